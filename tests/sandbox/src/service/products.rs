//! The two product lists, and what is sold at which price while it lasts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Service;
use super::call::Call;
use super::catalogue::{DYNAMIC, Product, STATIC, starting_price, unit};
use super::envelope::{Code, Number, Refusal, Reply};

/// The owner of the prices in the public list.
const PUBLIC_PRICING_OWNER: u32 = 1;
const CACHE_TTL_SECONDS: u32 = 60;
const CACHE_TTL_MS: i64 = 60_000;
const PAGE_SIZE: i64 = 20;
const LARGEST_PAGE: i64 = 100;
/// The prefix of a cursor; the number of the last listed product follows.
const CURSOR: &str = "after.";

/// The gateway compares prices in its supplier's currency.
pub(crate) const YUAN_A_DOLLAR: Decimal = Decimal::from_parts(72, 0, 0, false, 1);

/// Addresses that are left of the products of which some were sold or taken away.
pub(crate) type Stock = BTreeMap<String, u32>;

/// The stock as the public list shows it until it is too old.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    made_at: i64,
    stock: Stock,
}

/// A list: the stock, the prices, and the owner of the prices.
struct List<'a> {
    stock: &'a Stock,
    price: &'a dyn Fn(&Product) -> Decimal,
    cache_ttl_seconds: u32,
    pricing_owner_agent_id: u32,
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

/// The public list, from a cache of 60 seconds.
pub(crate) fn list_public(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let cached = service.cached(call.now_ms);
    let (age_ms, stock) = (call.now_ms - cached.made_at, cached.stock.clone());
    let age = u32::try_from(age_ms / 1000).unwrap_or(0);
    let list = List {
        stock: &stock,
        price: &|product| starting_price(product.kind),
        cache_ttl_seconds: CACHE_TTL_SECONDS - age,
        pricing_owner_agent_id: PUBLIC_PRICING_OWNER,
    };
    Ok(page(service, call, &list)?.aged(age))
}

/// The account's list, which is the quote for its next purchases.
pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    service.check_backend(call)?;
    let list = List {
        stock: &service.stock,
        price: &|product| service.price(product),
        cache_ttl_seconds: 0,
        pricing_owner_agent_id: service.account(call).agent_id,
    };
    let reply = page(service, call, &list)?;
    service.accounts[call.account].quoted.clone_from(&service.prices);
    Ok(reply)
}

fn page(service: &Service, call: &Call<'_>, list: &List<'_>) -> Result<Reply, Refusal> {
    let kind = call.query.word("type", &["all", DYNAMIC, STATIC])?.unwrap_or("all");
    let in_stock = call.query.flag("in_stock", true)?;
    let limit = call.query.whole("limit", 1, LARGEST_PAGE)?.unwrap_or(PAGE_SIZE) as usize;
    let country = call.query.text("country");
    let stock = |product: &Product| stock_of(product, list.stock);
    let matching: Vec<&Product> = service
        .catalogue
        .iter()
        .map(Arc::as_ref)
        .filter(|product| kind == "all" || product.kind == kind)
        .filter(|product| !in_stock || stock(product) != Some(0))
        .filter(|product| country.is_none_or(|wanted| product.is_in(wanted)))
        .collect();
    let start = call.query.text("cursor").map_or(Ok(0), |cursor| after(&service.catalogue, &matching, cursor))?;
    let given = &matching[start..matching.len().min(start + limit)];
    let more = start + given.len() < matching.len();
    let page = Page {
        items: given.iter().map(|product| item(product, (list.price)(product), stock(product))).collect(),
        next_cursor: given.last().filter(|_| more).map(|last| format!("{CURSOR}{}", last.number)),
        total: matching.len(),
        cache_ttl_seconds: list.cache_ttl_seconds,
        pricing_owner_agent_id: list.pricing_owner_agent_id,
    };
    Ok(Reply::new(200, &page))
}

/// Where a page begins: behind the product of the cursor, which may have sold out since.
fn after(catalogue: &[Arc<Product>], matching: &[&Product], cursor: &str) -> Result<usize, Refusal> {
    let place = |number: &str| catalogue.iter().position(|product| product.number == number);
    let last = cursor.strip_prefix(CURSOR).and_then(place);
    let last = last.ok_or_else(|| Refusal::invalid("cursor", "must be a next_cursor of a product list"))?;
    Ok(matching.iter().take_while(|product| place(&product.number) <= Some(last)).count())
}

fn item(product: &Product, price: Decimal, stock: Option<u32>) -> Item<'_> {
    Item {
        product_no: &product.number,
        name: &product.name,
        r#type: product.kind,
        sharing: product.sharing,
        available: stock != Some(0),
        price: Number(price),
        currency: "USD",
        unit: unit(product.kind),
        stock,
        country: product.country(),
        city: product.place.map(|(_, city)| city),
    }
}

fn stock_of(product: &Product, stock: &Stock) -> Option<u32> {
    product.stock.map(|to_begin_with| stock.get(&product.number).copied().unwrap_or(to_begin_with))
}

/// An amount in yuan, rounded to its hundredth.
pub(crate) fn to_cny(usd: Decimal) -> Option<Decimal> {
    usd.checked_mul(YUAN_A_DOLLAR).map(|cny| cny.round_dp(2))
}

impl Service {
    /// The present price of a unit of a product.
    pub(crate) fn price(&self, product: &Product) -> Decimal {
        self.prices.get(&product.number).copied().unwrap_or(product.price)
    }

    /// How many addresses of a product are left; traffic has no stock.
    pub(crate) fn stock(&self, product: &Product) -> Option<u32> {
        stock_of(product, &self.stock)
    }

    /// Takes the addresses of a purchase from the stock, which was checked to hold them.
    pub(crate) fn take_from_stock(&mut self, product: &Product, addresses: Decimal) {
        if let Some(left) = self.stock(product) {
            let taken = u32::try_from(addresses).unwrap_or(left);
            self.stock.insert(product.number.clone(), left.saturating_sub(taken));
        }
    }

    /// Gives addresses back to the stock.
    pub(crate) fn restock(&mut self, product: &Product, addresses: Decimal) {
        if let Some(left) = self.stock(product) {
            let given = u32::try_from(addresses).unwrap_or(0);
            self.stock.insert(product.number.clone(), left.saturating_add(given));
        }
    }

    /// Refuses a purchase when the supplier's price is not the one the account was last quoted.
    pub(crate) fn check_quote(&self, product: &Product, call: &Call<'_>) -> Result<(), Refusal> {
        let now = self.price(product);
        let quoted = self.account(call).quoted.get(&product.number).copied().unwrap_or(product.price);
        if now == quoted {
            return Ok(());
        }
        Err(Refusal::new(Code::PriceMismatch, "the price changed after the quote was read")
            .detail("displayed_price_cny", to_cny(quoted).map(Number))
            .detail("upstream_price_cny", to_cny(now).map(Number)))
    }

    /// Changes the exact price of a product, as a supplier would; false when there is no such product. Until the
    /// authenticated list is read again, a purchase of it is refused with PRICE_MISMATCH.
    pub fn set_price(&mut self, product_no: &str, price: Decimal) -> bool {
        let known = self.catalogue.iter().any(|product| product.number == product_no);
        if known {
            self.prices.insert(product_no.to_owned(), price);
        }
        known
    }

    /// Sets how many addresses of a product are left; false when there is no such static product.
    pub fn set_stock(&mut self, product_no: &str, addresses: u32) -> bool {
        let known = self.catalogue.iter().any(|product| product.number == product_no && product.stock.is_some());
        if known {
            self.stock.insert(product_no.to_owned(), addresses);
        }
        known
    }

    /// The cache of the public list, made anew when it is too old, or from a time to come.
    fn cached(&mut self, now_ms: i64) -> &Cached {
        let is_fresh = |cached: &Cached| (0..CACHE_TTL_MS).contains(&now_ms.saturating_sub(cached.made_at));
        let fresh = self.public.take().filter(is_fresh);
        self.public.insert(fresh.unwrap_or_else(|| Cached { made_at: now_ms, stock: self.stock.clone() }))
    }
}
