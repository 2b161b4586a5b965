//! Buying a session.

use std::sync::Arc;

use rust_decimal::Decimal;

use super::Service;
use super::catalogue::{DYNAMIC, PROTOCOLS, Product, RESOURCES, STATIC};
use super::envelope::{Code, Refusal, Reply};
use super::ids;
use super::input::{Body, required};
use super::routes::Call;
use super::session::Session;
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

    /// What product and order say about each other.
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

    fn check_stock(&self, product: &Product) -> Result<(), Refusal> {
        match product.stock {
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
    let product = service.catalogue.iter().find(|product| product.number == order.product_no).cloned();
    let product = product.ok_or_else(|| Refusal::new(Code::ProductNotFound, "product_no is not a current product"))?;
    order.check_product(&product)?;
    let months = if order.kind == STATIC { order.months } else { 1 };
    let (resource, amount) = if order.mode == EXISTING {
        (Some(service.free_resource(&order, call.now_ms)?), Decimal::ZERO)
    } else {
        order.check_stock(&product)?;
        service.check_quote(&product)?;
        (None, total(service.price(&product), order.quantity, months)?)
    };
    service.check_session_limit(call.now_ms)?;
    service.check_balance(amount)?;

    let number = service.sessions.len() as u64;
    let seed = service.config.seed;
    let ready_at = call.now_ms.saturating_add(service.provisioning_ms(number));
    let session = Session {
        number,
        id: Arc::from(format!("ses_{}", ids::token(seed, ids::SESSION, number))),
        mode: order.mode,
        resource,
        protocol: order.protocol,
        quantity: order.quantity,
        created_at: call.now_ms,
        ready_at,
        ends_at: if product.kind == STATIC { Some(later(ready_at, months)?) } else { None },
        terminated: false,
        rotations: 0,
        exit: service.next_exit(),
        traffic_bytes: 0,
        product,
    };
    service.charge("create_session", session.id.clone(), amount, call);
    let reply = Reply::new(202, &session.record(&service.config, call.now_ms, false, Some(amount)));
    service.sessions.push(session);
    Ok(reply)
}

impl Service {
    fn check_session_limit(&self, now_ms: i64) -> Result<(), Refusal> {
        let limit = self.config.session_limit;
        let counted = self.sessions.iter().filter(|session| session.is_counted(now_ms)).count();
        if counted < limit {
            return Ok(());
        }
        Err(Refusal::new(Code::SessionLimitReached, "the account is at its active session limit").detail("limit", limit))
    }

    /// A static resource of the account that no living session uses.
    fn free_resource(&self, order: &Order, now_ms: i64) -> Result<&'static str, Refusal> {
        if order.kind == DYNAMIC {
            return Err(Refusal::invalid("provisioning_mode", "must be purchase for a dynamic session"));
        }
        let in_use = |resource: &str| self.sessions.iter().any(|session| session.resource == Some(resource) && session.is_counted(now_ms));
        RESOURCES
            .iter()
            .filter(|(_, product)| *product == order.product_no)
            .filter(|(resource, _)| order.resource_id.as_deref().is_none_or(|wanted| wanted == *resource))
            .find(|(resource, _)| !in_use(resource))
            .map(|(resource, _)| *resource)
            .ok_or_else(|| Refusal::invalid("resource_id", "must name a usable resource of the product"))
    }

    fn provisioning_ms(&self, session: u64) -> i64 {
        let (least, most) = (*self.config.provisioning_ms.start(), *self.config.provisioning_ms.end());
        let span = most.saturating_sub(least).max(0).unsigned_abs().saturating_add(1);
        let drawn = ids::number(self.config.seed, ids::PROVISIONING, session) % span;
        least.saturating_add_unsigned(drawn)
    }
}
