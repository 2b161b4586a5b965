//! What was seen through a session, as the `event` of `report_session_event`. The service does not document which members it reads,
//! so the names of the facts are Hopline's own.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::policy::Error;
use crate::wire::host_of;

/// The facts, by Hopline's names or the caller's own; and where the host has a place of its own for the latter, those as `more`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given<'a> {
    #[serde(borrow, default)]
    facts: BTreeMap<String, &'a RawValue>,
    #[serde(borrow, default)]
    more: BTreeMap<String, &'a RawValue>,
}

/// A fact: its name, whether a value fits it, and what it must be.
struct Fact(&'static str, fn(&str) -> bool, &'static str);

const FACTS: [Fact; 5] = [
    Fact("status", |json| json.parse::<u16>().is_ok_and(|status| (100..600).contains(&status)), "must be an HTTP status, 100 to 599"),
    Fact("seen", |json| matches!(json, r#""captcha""# | r#""timeout""# | r#""block""#), "must be one of captcha, timeout, block"),
    Fact(
        "latency_ms",
        |json| json.parse::<f64>().is_ok_and(|ms| ms.is_finite() && ms >= 0.0),
        "must be a number of milliseconds, at least 0",
    ),
    Fact("bytes", |json| json.parse::<u64>().is_ok(), "must be a whole number of bytes, at least 0"),
    Fact("target", |json| target(json).is_some(), "must be a host name, or a URL that has one"),
];

/// The event. Of a target only the host name is told: a path, a query or a login may be secret.
pub(super) fn event(given: Given<'_>) -> Result<BTreeMap<String, Box<RawValue>>, Error> {
    let refuse = |field: &str, rule: &str| Error::invalid("report_session_event", field, rule);
    let Given { facts, more } = given;
    if let Some(Fact(name, ..)) = FACTS.iter().find(|Fact(name, ..)| more.contains_key(*name)) {
        return Err(refuse("more", &format!("must not hold `{name}`, which is a parameter of its own")));
    }
    for Fact(name, fits, rule) in &FACTS {
        if facts.get(*name).is_some_and(|value| !fits(value.get())) {
            return Err(refuse(name, rule));
        }
    }
    if facts.is_empty() && more.is_empty() {
        return Err(refuse("facts", "must not be empty"));
    }
    let host = facts.get("target").and_then(|json| target(json.get())).and_then(|host| to_raw_value(&host).ok());
    let mut event: BTreeMap<_, _> = facts.into_iter().chain(more).map(|(name, value)| (name, value.to_owned())).collect();
    event.extend(host.map(|host| ("target".to_owned(), host)));
    Ok(event)
}

fn target(json: &str) -> Option<String> {
    host_of(&serde_json::from_str::<String>(json).ok()?)
}
