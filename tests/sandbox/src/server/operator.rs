//! The acts of an operator, a supplier or a payer, as control calls: money, prices, stock, accounts, mail.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::control_answer::{Answer, done, read, wrong};
use super::shared::Shared;
use crate::service::{Mail, OPERATIONS};

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/balance", post(balance))
        .route("/price", post(price))
        .route("/stock", post(stock))
        .route("/resource", post(resource))
        .route("/pay", post(pay))
        .route("/refund", post(refund))
        .route("/account", post(account))
        .route("/backend", post(backend))
        .route("/mailbox", get(mailbox))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Balance {
    amount: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Price {
    product_no: String,
    price: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stock {
    product_no: String,
    stock: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resource {
    resource_id: String,
    product_no: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Payment {
    order_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refund {
    session_id: String,
    amount: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Standing {
    agent_id: Option<u32>,
    active: Option<bool>,
    denied: Option<BTreeSet<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backend {
    agent_id: Option<u32>,
    #[serde(default)]
    opened: bool,
    ready: bool,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Mailbox<'a> {
    mails: &'a [Mail],
}

async fn balance(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Balance { amount } = read(&body)?;
    let amount = money("amount", &amount)?;
    shared.change(|service, _| service.set_balance(amount));
    Ok(done())
}

async fn price(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Price { product_no, price } = read(&body)?;
    let price = money("price", &price)?;
    check(shared.change(|service, _| service.set_price(&product_no, price)), || format!("there is no product {product_no}"))
}

async fn stock(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Stock { product_no, stock } = read(&body)?;
    check(shared.change(|service, _| service.set_stock(&product_no, stock)), || format!("there is no static product {product_no}"))
}

async fn resource(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Resource { resource_id, product_no } = read(&body)?;
    let added = shared.change(|service, now_ms| service.add_resource(&resource_id, &product_no, now_ms));
    check(added, || format!("there is no static product {product_no} with a free address"))
}

async fn pay(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Payment { order_id } = read(&body)?;
    check(shared.change(|service, now_ms| service.pay(&order_id, now_ms)), || format!("there is no order {order_id} to pay"))
}

async fn refund(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Refund { session_id, amount } = read(&body)?;
    let amount = money("amount", &amount)?;
    let refunded = shared.change(|service, now_ms| service.refund(&session_id, amount, now_ms));
    check(refunded, || format!("session {session_id} was not charged so much"))
}

async fn account(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Standing { agent_id, active, denied } = read(&body)?;
    if let Some(name) = denied.iter().flatten().find(|name| !OPERATIONS.contains(&name.as_str())) {
        return Err(wrong(format!("operation {name} is none of {}", OPERATIONS.join(", "))));
    }
    let known = shared.change(|service, _| {
        let agent_id = agent_id.unwrap_or(service.agent_id());
        active.is_none_or(|active| service.set_active(agent_id, active)) && denied.is_none_or(|denied| service.set_denied(agent_id, denied))
    });
    check(known, || format!("there is no account {}", agent_id.unwrap_or_default()))
}

async fn backend(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Backend { agent_id, opened, ready, reason } = read(&body)?;
    let reason = reason.unwrap_or_else(|| "the backend account is not synced".to_owned());
    let reason = (!ready).then_some(reason.as_str());
    let known = shared.change(|service, _| {
        if opened {
            service.set_new_unready(reason);
        }
        match agent_id {
            Some(agent_id) => service.set_unready(agent_id, reason),
            None => opened || service.set_unready(service.agent_id(), reason),
        }
    });
    check(known, || format!("there is no account {}", agent_id.unwrap_or_default()))
}

async fn mailbox(State(shared): State<Arc<Shared>>) -> Response {
    let state = shared.lock();
    Json(Mailbox { mails: state.service.mails() }).into_response()
}

pub(super) fn check(is_done: bool, error: impl FnOnce() -> String) -> Answer {
    if is_done { Ok(done()) } else { Err(wrong(error())) }
}

/// An amount of money is text in the control API, so that nobody writes it as a float.
fn money(field: &str, text: &str) -> Result<Decimal, super::control_answer::Wrong> {
    let amount = text.parse::<Decimal>().ok().filter(|amount| *amount >= Decimal::ZERO);
    amount.ok_or_else(|| wrong(format!("{field} must be decimal text of at least 0")))
}
