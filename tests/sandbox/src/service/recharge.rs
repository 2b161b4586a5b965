//! Top-ups: orders that are paid in USDT, here by control.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::Call;
use super::envelope::{Number, Refusal, Reply};
use super::input::Body;
use super::products::to_cny;
use super::{Service, ids};

/// The smallest top-up in USD.
pub(crate) const LEAST: Decimal = Decimal::TEN;

/// An order to top up a balance.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    id: Arc<str>,
    account: usize,
    amount: Decimal,
    is_paid: bool,
}

/// An order as an onlooker sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderView {
    /// Its id.
    pub order_id: String,
    /// `pending` or `paid`.
    pub status: &'static str,
}

#[derive(Serialize)]
struct Record<'a> {
    order_id: &'a str,
    amount_usd: Number,
    amount_usdt: Number,
    amount_cny: Number,
    exchange_rate: Number,
    network: &'static str,
    wallet_address: String,
    wallet_explorer_url: String,
    status: &'static str,
}

/// Orders a top-up. The balance rises when it is paid.
pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let amounts = [amount(&body, "amount")?, amount(&body, "amount_usd")?];
    body.word("currency", &["USDT"])?;
    let amount = match amounts {
        [Some(amount), Some(usd)] if amount != usd => return Err(Refusal::invalid("amount", "must equal amount_usd where both are given")),
        [Some(amount), _] | [None, Some(amount)] => amount,
        [None, None] => return Err(Refusal::invalid("amount", "or amount_usd is required")),
    };
    let amount_cny = to_cny(amount).ok_or_else(|| Refusal::invalid("amount", "is too large"))?;
    let token = ids::token(service.config.seed, ids::ORDER, service.orders.len() as u64);
    let order = Order { id: Arc::from(format!("rch_{token}")), account: call.account, amount, is_paid: false };
    let wallet_address = format!("TSandbox{token}");
    let record = Record {
        order_id: &order.id,
        amount_usd: Number(amount),
        amount_usdt: Number(amount),
        amount_cny: Number(amount_cny),
        exchange_rate: Number(super::products::YUAN_A_DOLLAR),
        network: "TRC20",
        wallet_explorer_url: format!("https://explorer.example/address/{wallet_address}"),
        wallet_address,
        status: order.status(),
    };
    let reply = Reply::new(201, &record);
    service.orders.push(order);
    Ok(reply)
}

fn amount(body: &Body, field: &str) -> Result<Option<Decimal>, Refusal> {
    body.least(field, LEAST)
}

impl Order {
    fn status(&self) -> &'static str {
        if self.is_paid { "paid" } else { "pending" }
    }
}

impl Service {
    /// Pays an order, as its owner would; false when there is no such order, or it is paid already. An order of the backend
    /// gets its transfer, which is credited when somebody reads the order's status.
    pub fn pay(&mut self, order_id: &str, now_ms: i64) -> bool {
        let Some(order) = self.orders.iter_mut().find(|order| &*order.id == order_id && !order.is_paid) else {
            return self.transfer_usdt(order_id);
        };
        order.is_paid = true;
        let (place, amount, id) = (order.account, order.amount, order.id.clone());
        self.credit(place, "recharge", amount, Some(id), now_ms);
        true
    }

    /// Every order to top up, in order.
    pub fn orders(&self) -> Vec<OrderView> {
        self.orders.iter().map(|order| OrderView { order_id: order.id.to_string(), status: order.status() }).collect()
    }
}
