//! The traffic of dynamic orders: what is left of it, and proxies to use it with.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::{Call, Owner};
use super::dynamic::Extract;
use super::envelope::refused;
use super::people::number;
use super::products::PROXY_TYPE_DYNAMIC;
use crate::service::catalogue::DYNAMIC;
use crate::service::envelope::{Number, Refusal, Reply};
use crate::service::input::{Body, required};
use crate::service::{Service, ids};

#[derive(Clone, Copy, Default)]
struct Sum {
    bought: Decimal,
    used: Decimal,
    left: Decimal,
}

#[derive(Serialize)]
struct Flow<'a> {
    user_id: u32,
    product_no: &'a str,
    #[serde(rename = "productNo")]
    camel_product_no: &'a str,
    traffic_gb: Number,
    used_gb: Number,
    remaining_gb: Number,
}

#[derive(Serialize)]
struct Extracted<'a> {
    ip: &'a str,
    port: u16,
    http_port: u16,
    protocol: &'static str,
    username: String,
    password: String,
    exit_ip: Ipv4Addr,
    order_no: String,
}

/// The traffic of every product that a user has orders of.
pub(crate) fn all(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let owner = service.within(call.caller, number("user_id", call.id(0))?)?;
    let sums = service.sums(owner, call.now_ms);
    let flows: Vec<Flow<'_>> = sums.iter().map(|(product_no, sum)| service.flow(owner, product_no, *sum)).collect();
    Ok(service.backend.spelling.listed(&flows, &[("total", i64::try_from(flows.len()).unwrap_or(i64::MAX))]))
}

/// The traffic of one product, which may be none.
pub(crate) fn one(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let owner = service.within(call.caller, number("user_id", call.id(0))?)?;
    let product = service.product("product_no", call.id(1), DYNAMIC)?;
    let sum = service.sums(owner, call.now_ms).get(&product.number).copied().unwrap_or_default();
    Ok(Reply::new(200, &service.flow(owner, &product.number, sum)))
}

/// Gives a proxy with a new exit, on the oldest order of the product that has traffic left: the caller's own first, then
/// a sub-user's.
pub(crate) fn extract(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let product_no = required("productNo", body.text("productNo")?)?;
    let proxy_type = required("proxyType", body.whole("proxyType", i64::MIN)?)?;
    if let Some(config) = body.raw("extractConfig") {
        let config = Body::parse(config.get().as_bytes()).map_err(|_| Refusal::invalid("extractConfig", "must be an object"))?;
        config.text("method")?;
    }
    if proxy_type != PROXY_TYPE_DYNAMIC {
        return Err(refused(404, format!("there is no such product of this type; the dynamic ones are of {PROXY_TYPE_DYNAMIC}")));
    }
    let product = service.product("productNo", &product_no, DYNAMIC)?;
    let orders = || service.backend.dynamic_orders.iter().enumerate();
    let fitting = || orders().filter(|(_, order)| order.product.number == product.number && order.is_active());
    let own = fitting().find(|(_, order)| order.owner == call.caller);
    let found = own.or_else(|| fitting().find(|(_, order)| call.caller.sees(order.owner)));
    let (place, order) = found.ok_or_else(|| refused(422, "no traffic of the product is left"))?;
    let order_no = order.order_no.to_string();
    let number = service.next_proxy();
    let exit = ids::exit_address(service.next_exit());
    service.backend.extracts.push(Extract { number, order: place, exit });
    let extracted = Extracted {
        ip: &service.config.proxy_host,
        port: service.config.socks5_port,
        http_port: service.config.http_proxy_port,
        protocol: "socks5",
        username: service.proxy_username(number),
        password: service.proxy_password(number),
        exit_ip: exit,
        order_no,
    };
    Ok(service.backend.spelling.listed(&[extracted], &[("total", 1)]))
}

impl Service {
    fn sums(&self, owner: Owner, now_ms: i64) -> BTreeMap<String, Sum> {
        let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
        for record in self.dynamic_records(owner, now_ms).into_iter().filter(|record| record.owner == owner) {
            let (bought, used, left) = (record.traffic_gb.0, record.used_gb.0, record.remaining_gb.0);
            let sum = sums.entry(record.product_no).or_default();
            sum.bought = sum.bought.saturating_add(bought);
            sum.used = sum.used.saturating_add(used);
            sum.left = sum.left.saturating_add(left);
        }
        sums
    }

    fn flow<'a>(&self, owner: Owner, product_no: &'a str, sum: Sum) -> Flow<'a> {
        Flow {
            user_id: self.id_of(owner),
            product_no,
            camel_product_no: product_no,
            traffic_gb: Number(sum.bought),
            used_gb: Number(sum.used),
            remaining_gb: Number(sum.left),
        }
    }
}
