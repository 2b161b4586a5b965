//! Top-ups in USDT. Control makes the transfer; the balance rises when the status is read and finds it.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::books::{Entry, Kind};
use super::call::{Call, Owner};
use super::envelope::refused;
use super::input::agreed;
use crate::service::envelope::{Number, Refusal, Reply, timestamp};
use crate::service::input::{Body, required};
use crate::service::products::YUAN_A_DOLLAR;
use crate::service::{Service, ids};

const NETWORK: &str = "TRC20";

/// The spellings of the order number.
const NUMBERS: [&str; 2] = ["order_no", "orderNo"];

/// An order to top up a balance.
#[derive(Clone, Debug)]
pub(crate) struct UsdtOrder {
    pub(super) order_no: Arc<str>,
    pub(super) owner: Owner,
    pub(super) amount: Decimal,
    pub(super) status: Status,
    created_at: i64,
}

/// Where an order to top up stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Pending,
    /// Paid on the chain, where nobody has looked yet.
    Transferred,
    Paid,
    Cancelled,
}

#[derive(Serialize)]
struct Wallet {
    wallet_address: String,
    network: &'static str,
    currency: &'static str,
    exchange_rate: Number,
}

#[derive(Serialize)]
struct Record<'a> {
    order_no: &'a str,
    #[serde(rename = "orderNo")]
    camel_order_no: &'a str,
    user_id: u32,
    amount: Number,
    amount_usdt: Number,
    wallet_address: String,
    network: &'static str,
    status: &'static str,
    created_at: String,
}

pub(crate) fn wallet(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let wallet_address = service.wallet_of(call.caller);
    Ok(Reply::new(200, &Wallet { wallet_address, network: NETWORK, currency: "USDT", exchange_rate: Number(YUAN_A_DOLLAR) }))
}

pub(crate) fn create(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let amount = required("amount", Body::parse(call.body)?.positive("amount")?)?;
    let place = service.backend.usdt_orders.len();
    let order_no = Arc::from(format!("USDT-{}", ids::token(service.config.seed, ids::USDT_ORDER, place as u64)));
    let order = UsdtOrder { order_no, owner: call.caller, amount, status: Status::Pending, created_at: call.now_ms };
    service.backend.usdt_orders.push(order);
    Ok(Reply::new(200, &service.usdt_record(place)))
}

/// Reads an order, and credits a transfer that arrived.
pub(crate) fn check(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let given = agreed("order_no", NUMBERS.map(|name| call.query.text(name)))?;
    let place = service.usdt_place(call, required("order_no", given)?)?;
    service.detect(place, call.now_ms)?;
    Ok(Reply::new(200, &service.usdt_record(place)))
}

pub(crate) fn list(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let orders = service.backend.usdt_orders.iter().enumerate().rev().filter(|(_, order)| order.owner == call.caller);
    let records: Vec<Record<'_>> = orders.map(|(place, _)| service.usdt_record(place)).collect();
    let total = i64::try_from(records.len()).unwrap_or(i64::MAX);
    Ok(service.backend.spelling.listed(&records, &[("total", total)]))
}

pub(crate) fn cancel(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let [snake, camel] = NUMBERS;
    let given = agreed(snake, [body.text(snake)?, body.text(camel)?])?;
    let place = service.usdt_place(call, &required(snake, given)?)?;
    service.detect(place, call.now_ms)?;
    let order = &mut service.backend.usdt_orders[place];
    if order.status != Status::Pending {
        return Err(refused(422, "only an unpaid order can be cancelled").detail("status", order.status.word()));
    }
    order.status = Status::Cancelled;
    Ok(Reply::new(200, &service.usdt_record(place)))
}

impl Status {
    /// The visible state, without a look at the chain.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Pending | Self::Transferred => "pending",
            Self::Paid => "paid",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Service {
    /// Makes the transfer of an order, as its owner would; false when no order of this number waits for one.
    pub(crate) fn transfer_usdt(&mut self, order_no: &str) -> bool {
        let mut orders = self.backend.usdt_orders.iter_mut();
        let order = orders.find(|order| &*order.order_no == order_no && order.status == Status::Pending);
        order.map(|order| order.status = Status::Transferred).is_some()
    }

    fn usdt_place(&self, call: &Call<'_>, order_no: &str) -> Result<usize, Refusal> {
        let found = self.backend.usdt_orders.iter().position(|order| &*order.order_no == order_no && order.owner == call.caller);
        found.ok_or_else(|| refused(404, "you have no recharge order of this number"))
    }

    fn detect(&mut self, place: usize, now_ms: i64) -> Result<(), Refusal> {
        let UsdtOrder { order_no, owner, amount, status, .. } = self.backend.usdt_orders[place].clone();
        if status == Status::Transferred {
            let balance = self.balance_of(owner).checked_add(amount).ok_or_else(|| refused(422, "the balance can't hold the amount"))?;
            self.set_balance_of(owner, balance);
            if let Some(user) = owner.user {
                let user = self.user_mut(user);
                user.total_recharge = user.total_recharge.saturating_add(amount);
            }
            self.record(Entry { order_no: Some(order_no), ..Entry::new(owner, Kind::Recharge, amount, now_ms) });
            self.backend.usdt_orders[place].status = Status::Paid;
        }
        Ok(())
    }

    /// Everybody has a wallet, so that a transfer tells whose it is.
    fn wallet_of(&self, owner: Owner) -> String {
        format!("TSandbox{}", ids::token(self.config.seed, ids::WALLET, self.id_of(owner).into()))
    }

    fn usdt_record(&self, place: usize) -> Record<'_> {
        let order = &self.backend.usdt_orders[place];
        Record {
            order_no: &order.order_no,
            camel_order_no: &order.order_no,
            user_id: self.id_of(order.owner),
            amount: Number(order.amount),
            amount_usdt: Number(order.amount),
            wallet_address: self.wallet_of(order.owner),
            network: NETWORK,
            status: order.status.word(),
            created_at: timestamp(order.created_at),
        }
    }
}
