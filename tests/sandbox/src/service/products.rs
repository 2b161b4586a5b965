//! The two product lists.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::catalogue::{DYNAMIC, Product, STATIC};
use super::envelope::{Code, Number, Refusal, Reply};
use super::routes::Call;
use super::{ACCOUNT_ID, Service};

/// Whose prices the public list shows.
const PUBLIC_PRICING_OWNER: u32 = 1;
const CACHE_TTL_SECONDS: u32 = 60;
const PAGE_SIZE: i64 = 20;
const LARGEST_PAGE: i64 = 100;
/// What a cursor begins with; the number of the last product that was given follows.
const CURSOR: &str = "after.";

/// A price that was changed since the sandbox began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Price {
    pub(crate) now: Decimal,
    /// What the account was last quoted by the authenticated list.
    pub(crate) quoted: Decimal,
}

#[derive(Serialize)]
struct Page<'a> {
    items: Vec<Item<'a>>,
    next_cursor: Option<String>,
    total: usize,
    cache_ttl_seconds: u32,
    pricing_owner_agent_id: u32,
}

#[derive(Serialize)]
struct Item<'a> {
    product_no: &'a str,
    name: &'a str,
    r#type: &'a str,
    sharing: &'a str,
    available: bool,
    price: Number,
    currency: &'static str,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    stock: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'a str>,
}

pub(crate) fn list_public(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    page(service, call, PUBLIC_PRICING_OWNER, |product| product.starting_price())
}

pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let reply = page(service, call, ACCOUNT_ID, |product| service.price(product))?;
    for price in service.prices.values_mut() {
        price.quoted = price.now;
    }
    Ok(reply)
}

fn page(service: &Service, call: &Call<'_>, pricing_owner_agent_id: u32, price: impl Fn(&Product) -> Decimal) -> Result<Reply, Refusal> {
    let kind = call.query.word("type", &["all", DYNAMIC, STATIC])?.unwrap_or("all");
    let in_stock = call.query.flag("in_stock", true)?;
    let limit = call.query.whole("limit", 1, LARGEST_PAGE)?.unwrap_or(PAGE_SIZE) as usize;
    let country = call.query.text("country");
    let matching: Vec<&Product> = service
        .catalogue
        .iter()
        .map(Arc::as_ref)
        .filter(|product| kind == "all" || product.kind == kind)
        .filter(|product| !in_stock || product.available())
        .filter(|product| country.is_none_or(|wanted| product.is_in(wanted)))
        .collect();
    let start = call.query.text("cursor").map_or(Ok(0), |cursor| after(&matching, cursor))?;
    let given = &matching[start..matching.len().min(start + limit)];
    let more = start + given.len() < matching.len();
    let page = Page {
        items: given.iter().map(|product| item(product, price(product))).collect(),
        next_cursor: given.last().filter(|_| more).map(|last| format!("{CURSOR}{}", last.number)),
        total: matching.len(),
        cache_ttl_seconds: CACHE_TTL_SECONDS,
        pricing_owner_agent_id,
    };
    Ok(Reply::new(200, &page))
}

fn after(matching: &[&Product], cursor: &str) -> Result<usize, Refusal> {
    cursor
        .strip_prefix(CURSOR)
        .and_then(|number| matching.iter().position(|product| product.number == number))
        .map(|place| place + 1)
        .ok_or_else(|| Refusal::invalid("cursor", "must be a next_cursor of the same list"))
}

fn item(product: &Product, price: Decimal) -> Item<'_> {
    Item {
        product_no: &product.number,
        name: &product.name,
        r#type: product.kind,
        sharing: product.sharing,
        available: product.available(),
        price: Number(price),
        currency: "USD",
        unit: product.unit(),
        stock: product.stock,
        country: product.country(),
        city: product.place.map(|(_, city)| city),
    }
}

impl Service {
    /// What the account pays for a unit of a product now.
    pub(crate) fn price(&self, product: &Product) -> Decimal {
        self.prices.get(&product.number).map_or(product.price, |price| price.now)
    }

    /// Refuses a purchase when the supplier's price is not the one the account was last quoted.
    pub(crate) fn check_quote(&self, product: &Product) -> Result<(), Refusal> {
        match self.prices.get(&product.number) {
            Some(price) if price.now != price.quoted => {
                // The gateway compares in its supplier's currency.
                let cny = |usd: Decimal| Number((usd * Decimal::new(72, 1)).round_dp(2));
                Err(Refusal::new(Code::PriceMismatch, "the price changed after the quote was read")
                    .detail("displayed_price_cny", cny(price.quoted))
                    .detail("upstream_price_cny", cny(price.now)))
            }
            _ => Ok(()),
        }
    }

    /// Changes the exact price of a product, as a supplier would; false when there is no such product. Until the
    /// authenticated list is read again, a purchase of it is refused with PRICE_MISMATCH.
    pub fn set_price(&mut self, product_no: &str, price: Decimal) -> bool {
        let Some(product) = self.catalogue.iter().find(|product| product.number == product_no) else {
            return false;
        };
        let quoted = self.prices.get(product_no).map_or(product.price, |price| price.quoted);
        self.prices.insert(product.number.clone(), Price { now: price, quoted });
        true
    }
}
