//! An observation through a session, as the `event` of `report_session_event`. The service does not document which members it reads, so the
//! names of the facts are Hopline's own.

use crate::client::text::host_params::HostParams;
use crate::json::{quoted, text_of};
use crate::policy::Error;
use crate::wire::host_of;

/// A fact: its name, whether a value fits it, and what it must be.
struct Fact(&'static str, fn(&str) -> bool, &'static str);

/// The status that some sites answer scrapers with.
const BLOCK: u16 = 999;

const FACTS: [Fact; 5] = [
    Fact(
        "status",
        |json| json.parse::<u16>().is_ok_and(|status| (100..600).contains(&status) || status == BLOCK),
        "must be an HTTP status, 100 to 599 or 999",
    ),
    Fact("seen", |json| matches!(json, r#""captcha""# | r#""timeout""# | r#""block""#), "must be one of captcha, timeout, block"),
    Fact("latency_ms", is_duration, "must be a number of milliseconds, at least 0"),
    Fact("bytes", |json| json.parse::<u64>().is_ok(), "must be a whole number of bytes, at least 0"),
    Fact("target", |json| target(json).is_some(), "must be a host name, or a URL that has one"),
];

/// Returns true if some JSON is a number that is not negative and that a double holds, however small: clocks return values such as 5.5e-17.
fn is_duration(json: &str) -> bool {
    let (digits, exponent) = json.split_once(['e', 'E']).unwrap_or((json, "0"));
    let is_zero = digits.starts_with('-') && digits.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    let whole = digits.split('.').next().map_or(0, str::len) as i64;
    let fits = exponent.parse::<i64>().is_ok_and(|exponent| whole.saturating_add(exponent) <= 308);
    is_zero || (digits.starts_with(|c: char| c.is_ascii_digit()) && fits)
}

/// The event, as JSON. The facts have Hopline's names or the caller's own; where the host has a place of its own for the latter, they
/// are `more`. Of a target only the host name is told: a path, a query or a login may be secret.
pub(super) fn event(given: &HostParams<'_>) -> Result<String, Error> {
    let (facts, more) = (given.object("facts")?.into_all(), given.object("more")?.into_all());
    if let Some((name, _)) = more.iter().find(|(name, _)| fact(name).is_some()) {
        return Err(given.refuse("more", &format!("must not hold `{name}`, which is a parameter of its own")));
    }
    if facts.is_empty() && more.is_empty() {
        return Err(given.refuse("facts", "must not be empty"));
    }
    let mut members = Vec::new();
    for (name, value) in facts.into_iter().chain(more) {
        if let Some(Fact(name, fits, rule)) = fact(&name)
            && !fits(value)
        {
            return Err(given.refuse(name, rule));
        }
        let host = if name == "target" { target(value) } else { None };
        members.push(format!("{}:{}", quoted(&name), host.map_or_else(|| value.to_owned(), |host| quoted(&host))));
    }
    Ok(format!("{{{}}}", members.join(",")))
}

fn fact(name: &str) -> Option<&'static Fact> {
    FACTS.iter().find(|Fact(known, ..)| *known == name)
}

fn target(json: &str) -> Option<String> {
    host_of(&text_of(json)?)
}

#[cfg(test)]
mod tests {
    use super::is_duration;

    #[test]
    fn a_duration_is_any_number_that_a_clock_may_give() {
        for json in ["0", "-0", "-0.0e5", "12", "0.1", "5.551115123125783e-17", "1e+3", "1E307", "12345678901234567890123456789012345"] {
            assert!(is_duration(json), "{json}");
        }
        for json in ["-1", "-1e-9", "1e308", "1e999", "1e99999999999999999999", "true", "null", "\"1\"", "\"1e3\"", "[1]", "{}"] {
            assert!(!is_duration(json), "{json}");
        }
    }
}
