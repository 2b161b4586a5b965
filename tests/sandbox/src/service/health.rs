//! The reports of agents about a session, and their consequences.

use serde::Serialize;
use serde_json::value::RawValue;

use super::Service;
use super::call::Call;
use super::catalogue::DYNAMIC;
use super::envelope::{Refusal, Reply};
use super::input::Body;
use super::session::{Session, Status};

/// The words of an event that are bad, which are also reasons to rotate.
const BAD: &[&str] = &["http_403", "http_429", "captcha", "timeout", "block"];

#[derive(Serialize)]
struct Recorded<'a> {
    session_id: &'a str,
    recorded: bool,
    events: u32,
}

#[derive(Serialize)]
struct Health<'a> {
    session_id: &'a str,
    status: &'static str,
    metrics: Metrics,
    rotation: Rotation,
}

#[derive(Serialize)]
struct Metrics {
    events: u32,
    bad_events: u32,
    bad_in_a_row: u32,
    traffic_bytes: u64,
    rotations: u32,
}

#[derive(Serialize)]
struct Rotation {
    recommended: bool,
    reason: Option<&'static str>,
}

/// Counts an event of any shape. Only `success`, `status` and the words of some members are looked at.
pub(crate) fn report(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    if call.body.is_empty() {
        return Err(Refusal::invalid("body", "must be a json object"));
    }
    let event = Body::parse(call.body)?;
    let place = service.place(call)?;
    let session = &mut service.sessions[place];
    session.telemetry.add(badness(&event));
    Ok(Reply::new(200, &Recorded { session_id: &session.id, recorded: true, events: session.telemetry.total }))
}

pub(crate) fn get(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let session = &service.sessions[service.place(call)?];
    let telemetry = session.telemetry;
    let recommended = session.product.kind == DYNAMIC && session.is_active(call.now_ms) && telemetry.is_degraded();
    let health = Health {
        session_id: &session.id,
        status: session.health(call.now_ms),
        metrics: Metrics {
            events: telemetry.total,
            bad_events: telemetry.bad,
            bad_in_a_row: telemetry.in_a_row,
            traffic_bytes: session.traffic_bytes,
            rotations: session.rotations,
        },
        rotation: Rotation { recommended, reason: telemetry.last.filter(|_| recommended) },
    };
    Ok(Reply::new(200, &health))
}

/// The bad part of an event, as a reason to rotate.
fn badness(event: &Body) -> Option<&'static str> {
    let word = |field| event.raw(field).and_then(|value| serde_json::from_str::<String>(value.get()).ok());
    let said = ["event", "type", "outcome", "reason"].into_iter().filter_map(word);
    let named = said.into_iter().find_map(|word| BAD.iter().find(|bad| **bad == word).copied());
    named.or_else(|| match event.raw("status").map(RawValue::get).and_then(|text| text.parse::<u16>().ok()) {
        Some(403) => Some("http_403"),
        Some(429) => Some("http_429"),
        Some(408 | 504) => Some("timeout"),
        Some(400..) => Some("block"),
        _ => event.raw("success").filter(|value| value.get() == "false").map(|_| "block"),
    })
}

impl Session {
    /// Its health in a word.
    pub(crate) fn health(&self, now_ms: i64) -> &'static str {
        match self.status(now_ms) {
            Status::Active if self.telemetry.is_degraded() => "degraded",
            Status::Active => "healthy",
            _ => "unavailable",
        }
    }
}
