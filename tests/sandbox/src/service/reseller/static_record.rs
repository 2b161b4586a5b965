//! A static order as the lists show it, and a session as the order that it is here.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::Owner;
use super::places;
use super::static_order::{Instance, StaticOrder, Status, session_order_id};
use super::terms::Terms;
use crate::service::Service;
use crate::service::catalogue::Product;
use crate::service::envelope::{Number, timestamp};
use crate::service::session::{self, Session};

/// An order as the lists show it.
#[derive(Serialize)]
pub(super) struct Record {
    pub(super) id: u32,
    pub(super) order_no: String,
    #[serde(rename = "orderNo")]
    camel_order_no: String,
    pub(super) app_order_no: String,
    #[serde(rename = "appOrderNo")]
    camel_app_order_no: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier_order_no: Option<String>,
    pub(super) user_id: u32,
    username: String,
    product_no: String,
    product_name: String,
    pub(super) status: &'static str,
    ip_count: usize,
    country_code: Option<&'static str>,
    city_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    #[serde(flatten)]
    length: Option<Length>,
    unit_price: Number,
    total_amount: Number,
    created_at: String,
    expires_at: Option<String>,
    pub(super) instances: Vec<InstanceRecord>,
    #[serde(skip)]
    pub(super) owner: Owner,
    #[serde(skip)]
    pub(super) created_ms: i64,
    #[serde(skip)]
    pub(super) expires_ms: Option<i64>,
    /// The remark on the order's user.
    #[serde(skip)]
    pub(super) remark: Option<Arc<str>>,
    #[serde(skip)]
    pub(super) place: Option<&'static places::Place>,
}

#[derive(Serialize)]
struct Length {
    duration: i64,
    unit: i64,
    cycle_times: i64,
}

/// A proxy to connect to, and the address that it leaves from.
#[derive(Serialize)]
pub(super) struct InstanceRecord {
    pub(super) instance_id: String,
    pub(super) ip: String,
    pub(super) port: u16,
    pub(super) http_port: u16,
    protocol: &'static str,
    pub(super) exit_ip: Ipv4Addr,
    pub(super) username: String,
    pub(super) password: String,
    status: &'static str,
    expires_at: Option<String>,
}

impl Service {
    /// Every static order in the caller's scope, sessions among them; the newest first.
    pub(super) fn static_records(&self, caller: Owner, now_ms: i64) -> Vec<Record> {
        let orders = self.backend.static_orders.iter().map(|order| self.order_record(order, now_ms));
        let sessions = self.sessions.iter().filter(|session| session.product.stock.is_some() && session.resource.is_none());
        let sessions = sessions.map(|session| self.session_record(session, now_ms));
        let mut records: Vec<Record> = orders.chain(sessions).filter(|record| caller.sees(record.owner)).collect();
        records.sort_by_key(|record| std::cmp::Reverse((record.created_ms, record.id)));
        records
    }

    pub(super) fn order_record(&self, order: &StaticOrder, now_ms: i64) -> Record {
        let status = order.status(now_ms);
        let is_there = matches!(status, Status::Active | Status::Expired);
        let instance = |instance: &Instance| InstanceRecord {
            instance_id: instance.id(),
            exit_ip: instance.exit,
            username: self.proxy_username(instance.number),
            password: self.proxy_password(instance.number),
            status: if instance.is_over(now_ms) { Status::Expired } else { Status::Active }.word(),
            expires_at: instance.ends_at.map(timestamp),
            ..self.door()
        };
        let Terms { duration, unit, cycles, .. } = order.terms;
        Record {
            app_order_no: order.app_order_no.to_string(),
            camel_app_order_no: order.app_order_no.to_string(),
            supplier_order_no: is_there.then(|| format!("SUP-{}", order.id)),
            ip_count: order.instances.len(),
            project_id: order.project.as_deref().map(str::to_owned),
            length: Some(Length { duration, unit, cycle_times: cycles }),
            unit_price: Number(order.price),
            total_amount: Number(order.total),
            instances: if is_there { order.instances.iter().map(instance).collect() } else { Vec::new() },
            ..self.blank(order.id, &order.order_no, order.owner, &order.product, status, order.created_at, order.ends_at())
        }
    }

    /// A session as the order that it is here, under its own id.
    fn session_record(&self, session: &Session, now_ms: i64) -> Record {
        let status = match session.status(now_ms) {
            session::Status::Creating => Status::Processing,
            session::Status::Active => Status::Active,
            session::Status::Expired => Status::Expired,
            session::Status::Terminated => Status::Cancelled,
        };
        let instance = InstanceRecord {
            instance_id: session.id.to_string(),
            protocol: session.protocol,
            exit_ip: session.exit_address(),
            username: session.username(&self.config),
            password: session.password(&self.config),
            status: status.word(),
            expires_at: session.ends_at.map(timestamp),
            ..self.door()
        };
        let is_there = matches!(status, Status::Active | Status::Expired);
        let charged = self.charges.iter().filter(|charge| charge.session_id == session.id).map(|charge| charge.amount);
        let owner = Owner { agent: session.account, user: None };
        Record {
            total_amount: Number(charged.fold(Decimal::ZERO, Decimal::saturating_add)),
            instances: is_there.then_some(instance).into_iter().collect(),
            ..self.blank(session_order_id(session), &session.id, owner, &session.product, status, session.created_at, session.ends_at)
        }
    }

    #[allow(clippy::too_many_arguments, reason = "each is one member of the record")]
    fn blank(
        &self,
        id: u32,
        number: &Arc<str>,
        owner: Owner,
        product: &Product,
        status: Status,
        created: i64,
        ends: Option<i64>,
    ) -> Record {
        let place = places::of(product);
        Record {
            id,
            order_no: number.to_string(),
            camel_order_no: number.to_string(),
            app_order_no: number.to_string(),
            camel_app_order_no: number.to_string(),
            supplier_order_no: None,
            user_id: self.id_of(owner),
            username: self.name_of(owner).to_string(),
            product_no: product.number.clone(),
            product_name: product.name.clone(),
            status: status.word(),
            ip_count: 1,
            country_code: place.map(|place| place.country_code),
            city_code: place.map(|place| place.city_code),
            project_id: None,
            length: None,
            unit_price: Number(self.price(product)),
            total_amount: Number(Decimal::ZERO),
            created_at: timestamp(created),
            expires_at: ends.map(timestamp),
            instances: Vec::new(),
            owner,
            created_ms: created,
            expires_ms: ends,
            remark: owner.user.and_then(|user| self.backend.users[user].remark.clone()),
            place,
        }
    }

    /// Where every instance is reached.
    fn door(&self) -> InstanceRecord {
        InstanceRecord {
            instance_id: String::new(),
            ip: self.config.proxy_host.clone(),
            port: self.config.socks5_port,
            http_port: self.config.http_proxy_port,
            protocol: "socks5",
            exit_ip: Ipv4Addr::LOCALHOST,
            username: String::new(),
            password: String::new(),
            status: "",
            expires_at: None,
        }
    }
}
