//! The acts of an operator on the backend, as control calls: logins, tokens, spellings, orders.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};

use super::control_answer::{Answer, done, read, wrong};
use super::operator::check;
use super::shared::Shared;
use crate::service::{Login, Spelling};

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/logins", get(logins))
        .route("/tokens", post(tokens))
        .route("/spelling", post(spelling))
        .route("/order", post(order))
}

#[derive(Serialize)]
struct Logins {
    logins: Vec<Login>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tokens {
    lifetime_ms: Option<i64>,
    #[serde(default)]
    expire: bool,
}

/// The next state of a static order.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Active,
    Failed,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    fail_next: Option<u32>,
    order_no: Option<String>,
    outcome: Option<Outcome>,
}

async fn logins(State(shared): State<Arc<Shared>>) -> Response {
    Json(Logins { logins: shared.lock().service.logins() }).into_response()
}

async fn tokens(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Tokens { lifetime_ms, expire } = read(&body)?;
    shared.change(|service, _| {
        lifetime_ms.into_iter().for_each(|ms| service.set_token_lifetime(ms));
        if expire {
            service.expire_tokens();
        }
    });
    Ok(done())
}

async fn spelling(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let spelling: Spelling = read(&body)?;
    shared.change(|service, _| service.set_spelling(spelling));
    Ok(done())
}

async fn order(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Order { fail_next, order_no, outcome } = read(&body)?;
    if let Some(orders) = fail_next {
        shared.change(|service, _| service.fail_orders(orders));
    }
    match (order_no, outcome) {
        (None, None) => Ok(done()),
        (Some(number), Some(outcome)) => {
            let fails = matches!(outcome, Outcome::Failed);
            let is_done = shared.change(|service, now_ms| service.finish_order(&number, fails, now_ms));
            check(is_done, || format!("no order {number} is processing"))
        }
        _ => Err(wrong("order_no and outcome go together")),
    }
}
