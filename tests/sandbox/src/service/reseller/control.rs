//! The acts of an operator on the backend, and the reports of its proxies.

use std::sync::Arc;

use serde::Serialize;

use super::call::Owner;
use super::envelope::Spelling;
use super::static_order::{StaticOrder, Status};
use crate::service::Service;
use crate::service::observe::Exit;

/// A user name and password of the backend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Login {
    /// The number of the reseller or its sub-user.
    pub id: u32,
    /// The user name.
    pub username: String,
    /// The password.
    pub password: String,
}

impl Service {
    /// The logins of all resellers whose account is ready, the first account's first.
    pub fn logins(&self) -> Vec<Login> {
        let agents =
            (0..self.accounts.len()).filter(|agent| self.accounts[*agent].unready.is_none()).map(|agent| Owner { agent, user: None });
        let login = |owner| Login {
            id: self.id_of(owner),
            username: self.name_of(owner).to_string(),
            password: self.password_of(owner).to_string(),
        };
        agents.map(login).collect()
    }

    /// Sets how long the tokens are good that are given from now on.
    pub fn set_token_lifetime(&mut self, ms: i64) {
        self.backend.tokens.lifetime_ms = ms;
    }

    /// Expires every token that was given.
    pub fn expire_tokens(&mut self) {
        self.backend.tokens.generation += 1;
    }

    /// Sets which spellings of the contract the backend uses.
    pub fn set_spelling(&mut self, spelling: Spelling) {
        self.backend.spelling = spelling;
    }

    /// Makes so many of the next static orders fail, when they should become active.
    pub fn fail_orders(&mut self, orders: u32) {
        self.backend.to_fail = orders;
    }

    /// Ends the wait for a static order: it is active now, or failed. False when no order of this number is processing.
    pub fn finish_order(&mut self, order_no: &str, fails: bool, now_ms: i64) -> bool {
        let mut orders = self.backend.static_orders.iter_mut();
        let found = orders.find(|order| &*order.order_no == order_no && order.status(now_ms) == Status::Processing);
        let is_found = found.map(|order| {
            let order = Arc::make_mut(order);
            (order.fails, order.ready_at) = (fails, now_ms);
        });
        self.settle(now_ms);
        is_found.is_some()
    }

    /// Gives the first account a static order that it may use as `existing`, one address that does not run out; false
    /// when there is no such static product, or it has no free address.
    pub fn add_resource(&mut self, order_no: &str, product_no: &str, now_ms: i64) -> bool {
        let found = self.catalogue.iter().find(|product| product.number == product_no && product.stock.is_some());
        let Some(product) = found.cloned() else {
            return false;
        };
        let Ok(exits) = self.assign(&product, &[], 1, now_ms) else {
            return false;
        };
        let owner = Owner { agent: 0, user: None };
        let order = StaticOrder { order_no: Arc::from(order_no), ..self.new_static(owner, product, now_ms, &exits, None) };
        self.backend.static_orders.push(Arc::new(order));
        true
    }

    /// The exit that the credentials of an instance or of an extracted proxy open at this moment.
    pub(crate) fn backend_exit(&self, username: &str, password: &str, now_ms: i64) -> Option<Exit> {
        let opens = |number| self.proxy_username(number) == username && self.proxy_password(number) == password;
        let orders = self.backend.static_orders.iter().filter(|order| order.status(now_ms) == Status::Active);
        let mut instances = orders.flat_map(|order| &order.instances).filter(|instance| !instance.is_over(now_ms));
        if let Some(instance) = instances.find(|instance| opens(instance.number)) {
            return Some(Exit { session_id: Arc::from(instance.id()), ip: instance.exit });
        }
        let extract = self.backend.extracts.iter().find(|extract| opens(extract.number))?;
        let order = &self.backend.dynamic_orders[extract.order];
        order.is_active().then(|| Exit { session_id: order.order_no.clone(), ip: extract.exit })
    }

    /// Adds to the traffic of an instance or a dynamic order.
    pub(crate) fn add_backend_traffic(&mut self, id: &str, bytes: u64) {
        if let Some(order) = self.backend.dynamic_orders.iter_mut().find(|order| &*order.order_no == id) {
            let order = Arc::make_mut(order);
            order.used_bytes = order.used_bytes.saturating_add(bytes);
        }
        for order in &mut self.backend.static_orders {
            if let Some(place) = order.instances.iter().position(|instance| instance.id() == id) {
                let instance = &mut Arc::make_mut(order).instances[place];
                instance.traffic_bytes = instance.traffic_bytes.saturating_add(bytes);
            }
        }
    }
}
