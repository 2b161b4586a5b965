//! Accepting a static order: it is charged at once, and made in the background.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::value::RawValue;

use super::books::Kind;
use super::call::{Call, Owner};
use super::envelope::{REGION, forbidden, refused};
use super::places;
use super::static_order::{Instance, StaticOrder};
use super::terms::Terms;
use crate::service::catalogue::{Product, STATIC};
use crate::service::envelope::{Refusal, Reply};
use crate::service::input::{Body, required};
use crate::service::{Service, ids};

/// The most addresses of one order.
const MOST_ADDRESSES: i64 = 1000;
/// The number of the first order.
const FIRST_ORDER: u32 = 5001;

/// A static order body with every field of the contract read and checked on its own.
struct Wanted {
    pool_id: String,
    user_id: u32,
    unit_price: Decimal,
    total_amount: Decimal,
    regions: Vec<String>,
    count: i64,
    terms: Terms,
    addresses: Vec<Ipv4Addr>,
    project_id: Option<String>,
}

#[derive(Serialize)]
struct Acceptance<'a> {
    #[serde(rename = "orderNo")]
    camel_order_no: &'a str,
    order_no: &'a str,
    #[serde(rename = "appOrderNo")]
    camel_app_order_no: &'a str,
    app_order_no: &'a str,
    status: &'static str,
    queued: bool,
    r#async: bool,
}

pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let wanted = Wanted::read(call.body)?;
    let owner = service.static_buyer(call.caller, wanted.user_id)?;
    let product = service.product("poolId", &wanted.pool_id, STATIC)?;
    check_location(&product, &wanted.regions)?;
    let project = check_project(&product, wanted.project_id.as_deref())?;
    let price = service.price(&product);
    let total = wanted.terms.cost(price, wanted.count)?;
    check_price(wanted.unit_price, price, "unitPrice")?;
    check_price(wanted.total_amount, total, "totalAmount")?;
    let stock = service.stock(&product).unwrap_or_default();
    if wanted.count > stock.into() {
        return Err(refused(422, "the product is out of stock in this quantity").detail("stock", stock));
    }
    let count = usize::try_from(wanted.count).unwrap_or(0);
    let exits = service.assign(&product, &wanted.addresses, count, call.now_ms)?;
    service.check_funds(owner, total)?;
    let place = service.backend.static_orders.len() as u64;
    let ready_at = call.now_ms.saturating_add(service.drawn_ms(ids::ACTIVATION, place));
    let ends_at = wanted.terms.end(ready_at)?;

    service.take_from_stock(&product, wanted.count.into());
    let fails = service.backend.to_fail > 0;
    service.backend.to_fail -= u32::from(fails);
    let order = StaticOrder {
        project: project.map(Arc::from),
        terms: wanted.terms,
        price,
        total,
        ready_at,
        fails,
        ..service.new_static(owner, product, call.now_ms, &exits, Some(ends_at))
    };
    let acceptance = Acceptance {
        camel_order_no: &order.order_no,
        order_no: &order.order_no,
        camel_app_order_no: &order.app_order_no,
        app_order_no: &order.app_order_no,
        status: "processing",
        queued: true,
        r#async: true,
    };
    let reply = Reply::new(200, &acceptance);
    service.spend(owner, Kind::Purchase, (STATIC, &order.order_no), total, call.now_ms);
    service.backend.static_orders.push(Arc::new(order));
    Ok(reply)
}

impl Wanted {
    fn read(body: &[u8]) -> Result<Self, Refusal> {
        let body = Body::parse(body)?;
        required("orderType", body.word("orderType", &["static_proxy"])?)?;
        let amount = |field: &'static str| required(field, body.least(field, Decimal::ZERO)?);
        let whole = |field: &'static str| required(field, body.whole(field, 1)?);
        let user_id = whole("userId")?;
        let count = whole("ipCount")?;
        if count > MOST_ADDRESSES {
            return Err(Refusal::invalid("ipCount", &format!("must be {MOST_ADDRESSES} at most")));
        }
        let regions = [body.text("regionCode")?, body.text("countryCode")?, body.text("cityCode")?];
        // The request does not tell shared from exclusive, and there is one resource type here.
        body.text("staticType")?;
        body.list::<&RawValue>("cidrBlocks")?;
        Ok(Self {
            pool_id: required("poolId", body.text("poolId")?)?,
            user_id: u32::try_from(user_id).map_err(|_| Refusal::invalid("userId", "is too large"))?,
            unit_price: amount("unitPrice")?,
            total_amount: amount("totalAmount")?,
            regions: regions.into_iter().flatten().collect(),
            terms: Terms::new(whole("duration")?, whole("unit")?, whole("cycleTimes")?)?,
            addresses: addresses(&body, count)?,
            project_id: body.text("projectId")?,
            count,
        })
    }
}

/// The addresses that are asked for by name.
fn addresses(body: &Body, count: i64) -> Result<Vec<Ipv4Addr>, Refusal> {
    let read = |field: &str, text: &str| text.parse().map_err(|_| Refusal::invalid(field, "must be an ipv4 address"));
    let one = body.text("assignedIp")?.map(|text| read("assignedIp", &text)).transpose()?;
    let list = body.list::<String>("assignedIpList")?.unwrap_or_default();
    let mut all: Vec<Ipv4Addr> = list.iter().map(|text| read("assignedIpList", text)).collect::<Result<_, _>>()?;
    all.extend(one);
    all.sort_unstable();
    all.dedup();
    if i64::try_from(all.len()).unwrap_or(i64::MAX) > count {
        return Err(Refusal::invalid("ipCount", "must cover the assigned addresses"));
    }
    Ok(all)
}

fn check_location(product: &Product, regions: &[String]) -> Result<(), Refusal> {
    let Some(place) = places::of(product) else {
        return Ok(());
    };
    if regions.iter().all(|code| code.is_empty() || place.is_named(code)) {
        return Ok(());
    }
    let supported = [place.country_code.to_owned(), place.region()];
    let message = format!("the product does not support this location; it supports {}", supported.join(", "));
    Err(Refusal::other(REGION, 400, message).detail("supportedRegions", supported))
}

fn check_project<'a>(product: &Product, project: Option<&'a str>) -> Result<Option<&'a str>, Refusal> {
    match project {
        None if product.projects.is_empty() => Ok(None),
        None => Err(Refusal::invalid("projectId", "is required by a shared product")),
        Some(_) if product.projects.is_empty() => Err(Refusal::invalid("projectId", "is not for an exclusive product")),
        Some(project) if product.projects.contains(&project) => Ok(Some(project)),
        Some(_) => Err(Refusal::invalid("projectId", "is not a project of the product")),
    }
}

/// A caller's own sum has to be the backend's; 0 leaves it to the backend.
pub(super) fn check_price(given: Decimal, own: Decimal, field: &'static str) -> Result<(), Refusal> {
    if given.is_zero() || given == own {
        return Ok(());
    }
    Err(Refusal::invalid(field, &format!("must be 0 or {}", own.normalize())))
}

impl Service {
    /// The owner of an order: a reseller orders for its direct subordinates, and a sub-user for itself.
    fn static_buyer(&self, caller: Owner, id: u32) -> Result<Owner, Refusal> {
        if caller.user.is_none() && self.id_of(caller) == id {
            return Err(forbidden("a reseller orders for its direct subordinates only"));
        }
        self.buyer(caller, id)
    }

    /// A product of a type by its number.
    pub(super) fn product(&self, field: &str, number: &str, kind: &str) -> Result<Arc<Product>, Refusal> {
        let product = self.catalogue.iter().find(|product| product.number == number);
        match product.ok_or_else(|| refused(404, "there is no such product"))? {
            product if product.kind == kind => Ok(product.clone()),
            _ => Err(Refusal::invalid(field, &format!("must be a {kind} product"))),
        }
    }

    pub(super) fn next_order_id(&self) -> u32 {
        let placed = self.backend.static_orders.len() + self.backend.dynamic_orders.len();
        FIRST_ORDER.saturating_add(u32::try_from(placed).unwrap_or(u32::MAX))
    }

    pub(super) fn order_numbers(&self, id: u32) -> (Arc<str>, Arc<str>) {
        let number = |prefix, purpose| Arc::from(format!("{prefix}-{}", ids::token(self.config.seed, purpose, id.into())));
        (number("ORD", ids::BACKEND_ORDER), number("APP", ids::APP_ORDER))
    }

    /// An order of a month that costs nothing and is active at once, until more is said of it.
    pub(super) fn new_static(
        &mut self,
        owner: Owner,
        product: Arc<Product>,
        now_ms: i64,
        exits: &[Ipv4Addr],
        ends_at: Option<i64>,
    ) -> StaticOrder {
        let id = self.next_order_id();
        let (order_no, app_order_no) = self.order_numbers(id);
        let instance = |exit: &Ipv4Addr| Instance { number: self.next_proxy(), exit: *exit, ends_at, traffic_bytes: 0 };
        StaticOrder {
            instances: exits.iter().map(instance).collect(),
            id,
            order_no,
            app_order_no,
            owner,
            product,
            project: None,
            terms: Terms::MONTH,
            price: Decimal::ZERO,
            total: Decimal::ZERO,
            created_at: now_ms,
            ready_at: now_ms,
            fails: false,
            is_settled: false,
            is_cancelled: false,
        }
    }
}
