//! Buying a session.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::Service;
use super::call::Call;
use super::catalogue::{DYNAMIC, PROTOCOLS, Product, STATIC};
use super::envelope::{Code, Refusal, Reply};
use super::ids;
use super::input::{Body, required};
use super::reseller::StaticOrder;
use super::session::{Session, Telemetry};
use super::sessions::{later, total};

const PURCHASE: &str = "purchase";
const EXISTING: &str = "existing";
const ROTATION_MODES: &[&str] = &["fixed", "timed", "on_demand"];

/// A create request with every field of the contract read and checked on its own.
struct Order {
    kind: &'static str,
    product_no: String,
    mode: &'static str,
    resource_id: Option<String>,
    quantity: Decimal,
    months: i64,
    protocol: &'static str,
    project_id: Option<String>,
}

impl Order {
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        let body = Body::parse(body)?;
        let order = Self {
            kind: required("session_type", body.word("session_type", &[DYNAMIC, STATIC])?)?,
            product_no: required("product_no", body.text("product_no")?)?,
            mode: body.word("provisioning_mode", &[PURCHASE, EXISTING])?.unwrap_or(PURCHASE),
            resource_id: body.text("resource_id")?,
            quantity: body.positive("quantity")?.unwrap_or(Decimal::ONE),
            months: body.whole("duration", 1)?.unwrap_or(1),
            protocol: body.word("protocol", PROTOCOLS)?.unwrap_or("socks5"),
            project_id: body.text("project_id")?,
        };
        // These are checked and have no effect here.
        body.text("country_code")?;
        body.text("city_code")?;
        body.word("rotation_mode", ROTATION_MODES)?;
        body.whole("rotation_interval_sec", i64::MIN)?;
        if order.kind == STATIC && !order.quantity.fract().is_zero() {
            return Err(Refusal::invalid("quantity", "must be a whole number for a static session"));
        }
        Ok(order)
    }

    /// Checks that product and order fit each other.
    fn check_product(&self, product: &Product) -> Result<(), Refusal> {
        if product.kind != self.kind {
            return Err(Refusal::invalid("session_type", "must be the type of the product"));
        }
        if !product.protocols.contains(&self.protocol) {
            return Err(Refusal::invalid("protocol", "is not offered by the product"));
        }
        match &self.project_id {
            None if product.projects.is_empty() => Ok(()),
            None => Err(Refusal::invalid("project_id", "is required by the product")),
            Some(project) if product.projects.contains(&project.as_str()) => Ok(()),
            Some(_) => Err(Refusal::invalid("project_id", "is not a project of the product")),
        }
    }

    fn check_stock(&self, stock: Option<u32>) -> Result<(), Refusal> {
        match stock {
            Some(stock) if self.quantity > stock.into() => {
                Err(Refusal::new(Code::ProductOutOfStock, "the product cannot be purchased in this quantity").detail("stock", stock))
            }
            _ => Ok(()),
        }
    }
}

pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.query.text("include_credentials").is_some() {
        return Err(Refusal::invalid("include_credentials", "is not accepted here"));
    }
    let order = Order::read(call.body)?;
    service.check_backend(call)?;
    let product = service.catalogue.iter().find(|product| product.number == order.product_no).cloned();
    let product = product.ok_or_else(|| Refusal::new(Code::ProductNotFound, "product_no is not a current product"))?;
    order.check_product(&product)?;
    let months = if order.kind == STATIC { order.months } else { 1 };
    let (resource, amount) = if order.mode == EXISTING {
        (Some(service.free_resource(&order, call)?), Decimal::ZERO)
    } else {
        order.check_stock(service.stock(&product))?;
        service.check_quote(&product, call)?;
        (None, total(service.price(&product), order.quantity, months)?)
    };
    let ready_at = call.now_ms.saturating_add(service.drawn_ms(ids::PROVISIONING, service.sessions.len() as u64));
    let ends_at = if order.kind == STATIC { Some(later(ready_at, months)?) } else { None };
    service.check_session_limit(call)?;
    service.check_budget(amount, true, call)?;
    service.check_balance(amount, call)?;

    let number = service.sessions.len() as u64;
    let seed = service.config.seed;
    if resource.is_none() {
        service.take_from_stock(&product, order.quantity);
    }
    let session = Session {
        number,
        account: call.account,
        id: Arc::from(format!("ses_{}", ids::token(seed, ids::SESSION, number))),
        mode: order.mode,
        resource,
        protocol: order.protocol,
        quantity: order.quantity,
        created_at: call.now_ms,
        ready_at,
        ends_at,
        terminated: false,
        rotations: 0,
        exit: service.next_exit(),
        traffic_bytes: 0,
        telemetry: Telemetry::default(),
        product,
    };
    service.charge("create_session", session.id.clone(), amount, call);
    let reply = Reply::new(202, &session.acceptance(&service.config, amount));
    service.sessions.push(session);
    Ok(reply)
}

impl Service {
    fn check_session_limit(&self, call: &Call<'_>) -> Result<(), Refusal> {
        let limit = self.config.session_limit;
        let own = self.sessions.iter().filter(|session| session.account == call.account);
        let counted = own.filter(|session| session.is_counted(call.now_ms)).count();
        if counted < limit {
            return Ok(());
        }
        Err(Refusal::new(Code::SessionLimitReached, "the account is at its active session limit").detail("limit", limit))
    }

    /// An active static order of the account, or of a sub-user of it, that no living session uses. When there is none, the request is sound and can't
    /// be fulfilled now.
    fn free_resource(&self, order: &Order, call: &Call<'_>) -> Result<Arc<str>, Refusal> {
        if order.kind == DYNAMIC {
            return Err(Refusal::invalid("provisioning_mode", "must be purchase for a dynamic session"));
        }
        let of_product =
            |resource: &&Arc<StaticOrder>| resource.owner.agent == call.account && *resource.product.number == *order.product_no;
        let wanted = |resource: &&Arc<StaticOrder>| order.resource_id.as_deref().is_none_or(|wanted| wanted == &*resource.order_no);
        let is_whole = |resource: &&Arc<StaticOrder>| order.quantity == Decimal::from(resource.addresses());
        let named = || self.backend.static_orders.iter().filter(of_product).filter(wanted);
        if order.resource_id.is_some() && named().next().is_none() {
            return Err(Refusal::invalid("resource_id", "must name a resource of the product"));
        }
        if order.resource_id.is_some() && !named().any(|resource| is_whole(&resource)) {
            return Err(Refusal::invalid("quantity", "must be the number of addresses of the resource"));
        }
        let usable = |resource: &&Arc<StaticOrder>| self.is_usable(resource, call.now_ms);
        let found = named().filter(is_whole).find(usable);
        found.map(|resource| resource.order_no.clone()).ok_or_else(|| Refusal::unable("no usable resource is left"))
    }

    /// True if an order is active and no living session uses it.
    fn is_usable(&self, order: &StaticOrder, now_ms: i64) -> bool {
        let mut users = self.sessions.iter().filter(|session| session.resource.as_ref() == Some(&order.order_no));
        order.is_active(now_ms) && !users.any(|session| session.is_counted(now_ms) && session.account == order.owner.agent)
    }

    /// Refuses the renewal of a session whose existing resource is not active, or is used by another session by now.
    pub(crate) fn check_resource(&self, session: &Session, now_ms: i64) -> Result<(), Refusal> {
        let Some(number) = &session.resource else { return Ok(()) };
        let order = self.backend.static_orders.iter().find(|order| order.order_no == *number);
        let is_kept = session.is_counted(now_ms) && order.is_some_and(|order| order.is_active(now_ms));
        match is_kept || order.is_some_and(|order| self.is_usable(order, now_ms)) {
            true => Ok(()),
            false => Err(Refusal::unable("the resource of the session is not usable")),
        }
    }

    /// Ends the sessions whose existing resource is no longer active.
    pub(crate) fn end_with_resources(&mut self, now_ms: i64) {
        let orders = &self.backend.static_orders;
        for session in &mut self.sessions {
            let Some(number) = &session.resource else { continue };
            let is_active = orders.iter().any(|order| order.order_no == *number && order.is_active(now_ms));
            if !is_active && session.is_counted(now_ms) {
                session.ends_at = Some(now_ms);
            }
        }
    }

    /// How long something takes to be made, drawn for it from the settings.
    pub(crate) fn drawn_ms(&self, purpose: ids::Purpose, counter: u64) -> i64 {
        let (least, most) = (*self.config.provisioning_ms.start(), *self.config.provisioning_ms.end());
        let span = most.saturating_sub(least).max(0).unsigned_abs().saturating_add(1);
        let drawn = ids::number(self.config.seed, purpose, counter) % span;
        least.saturating_add_unsigned(drawn)
    }
}
