//! Dynamic orders: traffic that is bought and there at once.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::books::Kind;
use super::call::{Call, Owner};
use super::envelope::refused;
use super::input::Paging;
use super::people::number;
use super::static_create::check_price;
use super::static_order::session_order_id;
use crate::service::Service;
use crate::service::catalogue::{DYNAMIC, Product};
use crate::service::envelope::{Number, Refusal, Reply, timestamp};
use crate::service::input::{Body, required};
use crate::service::session::{self, BYTES_PER_GB, Session};

/// A dynamic order as the sandbox keeps it.
#[derive(Clone, Debug)]
pub(crate) struct DynamicOrder {
    pub(super) id: u32,
    pub(super) order_no: Arc<str>,
    pub(super) app_order_no: Arc<str>,
    pub(super) owner: Owner,
    pub(super) product: Arc<Product>,
    /// The traffic that was bought, in GB.
    pub(super) traffic: Decimal,
    price: Decimal,
    pub(super) total: Decimal,
    remark: Option<Arc<str>>,
    created_at: i64,
    pub(super) used_bytes: u64,
}

/// A proxy that was extracted from an order.
#[derive(Clone, Debug)]
pub(crate) struct Extract {
    /// Its number among all proxies, which its credentials are drawn from.
    pub(super) number: u32,
    /// The place of its order.
    pub(super) order: usize,
    pub(super) exit: Ipv4Addr,
}

/// An order as its readers see it.
#[derive(Serialize)]
pub(super) struct Record {
    pub(super) id: u32,
    pub(super) order_no: String,
    #[serde(rename = "orderNo")]
    camel_order_no: String,
    app_order_no: String,
    #[serde(rename = "appOrderNo")]
    camel_app_order_no: String,
    user_id: u32,
    username: String,
    pub(super) product_no: String,
    pool_type: &'static str,
    status: &'static str,
    pub(super) traffic_gb: Number,
    pub(super) used_gb: Number,
    pub(super) remaining_gb: Number,
    unit_price: Number,
    total_amount: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<String>,
    created_at: String,
    #[serde(skip)]
    pub(super) owner: Owner,
    #[serde(skip)]
    created_ms: i64,
}

pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    body.word("orderType", &["dynamic_proxy"])?;
    let pool_id = required("poolId", body.text("poolId")?)?;
    let traffic = required("trafficAmount", body.positive("trafficAmount")?)?;
    let amount = |field| body.least(field, Decimal::ZERO).map(Option::unwrap_or_default);
    let (unit_price, total_amount) = (amount("unitPrice")?, amount("totalAmount")?);
    let remark = body.text("remark")?;
    let user_id = body.whole("userId", 1)?;
    // Traffic has neither addresses nor an end here.
    ["ipCount", "duration", "unit"].into_iter().try_for_each(|field| body.any(field).map(drop))?;
    let user_id = user_id.map(|id| u32::try_from(id).map_err(|_| Refusal::invalid("userId", "is too large"))).transpose()?;
    let owner = user_id.map_or(Ok(call.caller), |id| service.buyer(call.caller, id))?;
    let product = service.product("poolId", &pool_id, DYNAMIC)?;
    let price = service.price(&product);
    let total = price.checked_mul(traffic).ok_or_else(|| Refusal::invalid("trafficAmount", "is too large"))?;
    check_price(unit_price, price, "unitPrice")?;
    check_price(total_amount, total, "totalAmount")?;
    service.check_funds(owner, total)?;
    let id = service.next_order_id();
    let (order_no, app_order_no) = service.order_numbers(id);
    let remark = remark.map(Arc::from);
    let created_at = call.now_ms;
    let order = DynamicOrder { id, order_no, app_order_no, owner, product, traffic, price, total, remark, created_at, used_bytes: 0 };
    service.spend(owner, Kind::Purchase, (DYNAMIC, &order.order_no), total, call.now_ms);
    let reply = Reply::new(200, &service.dynamic_record(&order));
    service.backend.dynamic_orders.push(Arc::new(order));
    Ok(reply)
}

pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let query = &call.query;
    let paging = Paging::read(query)?;
    let (order_no, pool_type) = (query.text("order_no"), query.text("pool_type"));
    let user = query.text("user_id").map(|id| number("user_id", id)).transpose()?;
    let user = user.map(|id| service.within(call.caller, id)).transpose()?;
    let is_wanted = |record: &Record| {
        order_no.is_none_or(|wanted| record.is_named(wanted))
            && pool_type.is_none_or(|wanted| record.pool_type == wanted)
            && user.is_none_or(|user| record.owner == user)
    };
    let records = service.dynamic_records(call.caller, call.now_ms).into_iter().filter(is_wanted).collect();
    let (part, counts) = paging.cut(records);
    Ok(service.backend.spelling.listed(&part, &counts))
}

pub(crate) fn get(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    find_record(service, call, |record| call.id(0) == record.id.to_string())
}

/// Reads an order by its number or its application order number.
pub(crate) fn find(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    find_record(service, call, |record| record.is_named(call.id(0)))
}

fn find_record(service: &Service, call: &Call<'_>, is_meant: impl Fn(&Record) -> bool) -> Result<Reply, Refusal> {
    let records = service.dynamic_records(call.caller, call.now_ms);
    let found = records.iter().find(|record| is_meant(record));
    found.map(|record| Reply::new(200, record)).ok_or_else(|| refused(404, "you have no such dynamic order"))
}

impl Record {
    fn is_named(&self, number: &str) -> bool {
        [&self.order_no, &self.app_order_no].into_iter().any(|own| own == number)
    }
}

impl DynamicOrder {
    pub(super) fn used_gb(&self) -> Decimal {
        Decimal::from(self.used_bytes) / Decimal::from(BYTES_PER_GB)
    }

    /// True if there is traffic left.
    pub(super) fn is_active(&self) -> bool {
        self.used_gb() < self.traffic
    }
}

impl Service {
    /// Every dynamic order in the caller's scope, sessions among them; the newest first.
    pub(super) fn dynamic_records(&self, caller: Owner, now_ms: i64) -> Vec<Record> {
        let orders = self.backend.dynamic_orders.iter().map(|order| self.dynamic_record(order));
        let sessions = self.sessions.iter().filter(|session| session.product.kind == DYNAMIC);
        let sessions = sessions.map(|session| self.dynamic_session_record(session, now_ms));
        let mut records: Vec<Record> = orders.chain(sessions).filter(|record| caller.sees(record.owner)).collect();
        records.sort_by_key(|record| std::cmp::Reverse((record.created_ms, record.id)));
        records
    }

    fn dynamic_record(&self, order: &DynamicOrder) -> Record {
        let used = order.used_gb();
        Record {
            id: order.id,
            order_no: order.order_no.to_string(),
            camel_order_no: order.order_no.to_string(),
            app_order_no: order.app_order_no.to_string(),
            camel_app_order_no: order.app_order_no.to_string(),
            user_id: self.id_of(order.owner),
            username: self.name_of(order.owner).to_string(),
            product_no: order.product.number.clone(),
            pool_type: pool_type(&order.product),
            status: if order.is_active() { "active" } else { "expired" },
            traffic_gb: Number(order.traffic),
            used_gb: Number(used),
            remaining_gb: Number((order.traffic - used).max(Decimal::ZERO)),
            unit_price: Number(order.price),
            total_amount: Number(order.total),
            remark: order.remark.as_deref().map(str::to_owned),
            created_at: timestamp(order.created_at),
            owner: order.owner,
            created_ms: order.created_at,
        }
    }

    /// A session as the order that it is here, under its own id.
    fn dynamic_session_record(&self, session: &Session, now_ms: i64) -> Record {
        let price = self.price(&session.product);
        let charged = self.charges.iter().filter(|charge| charge.session_id == session.id).map(|charge| charge.amount);
        let order = DynamicOrder {
            id: session_order_id(session),
            order_no: session.id.clone(),
            app_order_no: session.id.clone(),
            owner: Owner { agent: session.account, user: None },
            product: session.product.clone(),
            traffic: session.quantity,
            price,
            total: charged.fold(Decimal::ZERO, Decimal::saturating_add),
            remark: None,
            created_at: session.created_at,
            used_bytes: session.traffic_bytes,
        };
        let status = match session.status(now_ms) {
            session::Status::Creating => "processing",
            session::Status::Active => "active",
            session::Status::Expired => "expired",
            session::Status::Terminated => "cancelled",
        };
        Record { status, ..self.dynamic_record(&order) }
    }
}

/// A pool is worldwide, or of one country.
fn pool_type(product: &Product) -> &'static str {
    if product.place.is_some() { "country" } else { "global" }
}
