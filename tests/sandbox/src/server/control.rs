//! The control API: faults, the clock, the target site, and a look inside; [`operator`] has the rest.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::connection_fault::ConnectionFault;
use super::control_answer::{Answer, Wrong, done, read, wrong};
use super::operator;
use super::reseller;
use super::shared::Shared;
use super::target::Target;
use crate::service::{
    BACKEND_OPERATIONS, BackendView, CODES, Charge, ErrorFault, Fault, FaultRule, Number, OPERATIONS, OrderView, SessionView, timestamp,
};

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/faults", post(add_fault).delete(clear_faults))
        .route("/clock", post(clock))
        .route("/target", post(target))
        .route("/visits", get(visits))
        .route("/requests", get(requests))
        .route("/state", get(state))
        .merge(operator::router())
        .merge(reseller::router())
}

#[derive(Deserialize)]
struct Kind {
    kind: String,
}

/// The faults that the service itself applies.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
enum ServiceFault {
    Error(ErrorFault),
    InProgress {
        ms: u32,
        #[serde(default)]
        error: Option<ErrorFault>,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Clock {
    advance_ms: i64,
}

#[derive(Serialize)]
struct View<'a> {
    now: String,
    now_ms: i64,
    balance: Number,
    charges: Vec<ChargeView<'a>>,
    sessions: Vec<SessionView>,
    orders: Vec<OrderView>,
    executions: &'a BTreeMap<&'static str, u32>,
    in_progress: usize,
    traffic_bytes: u64,
    backend: BackendView,
    target: &'a Target,
}

#[derive(Serialize)]
struct ChargeView<'a> {
    agent_id: u32,
    key: Option<&'a str>,
    operation: &'a str,
    session_id: &'a str,
    amount: Number,
    at_ms: i64,
}

async fn add_fault(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let rule: FaultRule<Box<RawValue>> = read(&body)?;
    let known = || OPERATIONS.into_iter().chain(BACKEND_OPERATIONS);
    if let Some(name) = rule.operation.as_deref().filter(|name| !known().any(|own| own == *name)) {
        return Err(wrong(format!("operation {name} is none of {}", known().collect::<Vec<_>>().join(", "))));
    }
    if rule.times == 0 {
        return Err(wrong("times must be at least 1"));
    }
    let FaultRule { operation, times, fault } = rule;
    let fault = fault.get().as_bytes();
    let kind: Kind = read(fault)?;
    if matches!(kind.kind.as_str(), "error" | "in_progress") {
        let fault = match read(fault)? {
            ServiceFault::Error(error) => Fault::Error(check_error(error)?),
            ServiceFault::InProgress { ms, error } => Fault::InProgress { ms: ms.into(), error: error.map(check_error).transpose()? },
        };
        shared.lock().service.inject(FaultRule { operation, times, fault });
    } else {
        let fault: ConnectionFault = read(fault)?;
        if let Some(problem) = fault.problem() {
            return Err(wrong(problem));
        }
        shared.lock().faults.push(FaultRule { operation, times, fault });
    }
    Ok(done())
}

fn check_error(error: ErrorFault) -> Result<ErrorFault, Wrong> {
    let known = CODES.iter().any(|(code, _)| *code == error.code);
    if !known && error.status.is_none() {
        return Err(wrong("a code that is not of the contract needs a status"));
    }
    if error.status.is_some_and(|status| !(200..=599).contains(&status)) {
        return Err(wrong("status must be from 200 to 599"));
    }
    Ok(error)
}

async fn clear_faults(State(shared): State<Arc<Shared>>) -> Response {
    let mut state = shared.lock();
    state.faults.clear();
    state.service.clear_faults();
    done()
}

async fn clock(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let Clock { advance_ms } = read(&body)?;
    shared.advance(advance_ms);
    Ok(done())
}

async fn target(State(shared): State<Arc<Shared>>, body: Bytes) -> Answer {
    let rules = read(&body)?;
    let mut state = shared.lock();
    let now_ms = state.now_ms();
    state.target.change(rules, now_ms);
    Ok(done())
}

async fn visits(State(shared): State<Arc<Shared>>) -> Response {
    Json(BTreeMap::from([("visits", shared.lock().target.log())])).into_response()
}

async fn requests(State(shared): State<Arc<Shared>>) -> Response {
    Json(BTreeMap::from([("requests", &shared.lock().arrivals)])).into_response()
}

async fn state(State(shared): State<Arc<Shared>>) -> Response {
    let mut state = shared.lock();
    let now_ms = state.now_ms();
    let in_progress = state.service.in_progress(now_ms);
    let backend = state.service.backend(now_ms);
    let sessions = state.service.sessions(now_ms);
    Json(View {
        now: timestamp(now_ms),
        now_ms,
        balance: Number(state.service.balance()),
        charges: state.service.charges().iter().map(ChargeView::from).collect(),
        traffic_bytes: sessions.iter().map(|session| session.traffic_bytes).sum(),
        sessions,
        orders: state.service.orders(),
        executions: state.service.executions(),
        in_progress,
        backend,
        target: &state.target,
    })
    .into_response()
}

impl<'a> From<&'a Charge> for ChargeView<'a> {
    fn from(charge: &'a Charge) -> Self {
        Self {
            agent_id: charge.agent_id,
            key: charge.key.as_deref(),
            operation: charge.operation,
            session_id: &charge.session_id,
            amount: Number(charge.amount),
            at_ms: charge.at_ms,
        }
    }
}
