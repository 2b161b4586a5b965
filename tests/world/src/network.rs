//! The network before the service: what comes of a request by how it is delivered.

use std::hash::{Hash, Hasher};

use hopline::client::{FailureKind, Millis, Sent};
use hopline::contract::Api;
use hopline_sandbox::{ErrorFault, Fault, FaultRule};

use crate::delivery::Delivery;
use crate::service::{Arrival, Effects, ExchangeResult, Remote, Response};

/// Responses that do not say if a write was done: an HTTP status, a code and data of the reseller API.
const ODD: &[(u16, &str, &str)] = &[
    (200, r#""upstream_timeout""#, "null"),
    (200, "-1", "null"),
    (200, "50000", "null"),
    (408, "1001", "null"),
    (409, r#""invalid_state""#, "null"),
    (400, "1001", r#"{"id":1}"#),
    (425, "1001", "null"),
    (200, r#""0000""#, "null"),
];
/// Responses that say that a write was not done, by their number or their words.
const REFUSALS: &[(u16, &str, &str)] =
    &[(200, "1002", "null"), (400, r#""balance_insufficient""#, "null"), (422, r#""USER_NOT_FOUND""#, "{}")];

/// How long slow work takes.
const SLOW: Millis = 30_000;

impl Remote {
    /// Executes a request as it is delivered; a message that is to arrive later is the network's.
    pub(crate) fn meet(&mut self, delivery: Delivery, arrival: Arrival<'_>, effects: &mut Effects) -> ExchangeResult {
        let is_login = arrival.request.uri().path().ends_with("/auth/login");
        let is_overloaded = matches!(delivery, Delivery::Throttled | Delivery::LostAfter | Delivery::PageAfter);
        let key = arrival.request.headers().get("idempotency-key").filter(|_| is_overloaded);
        self.overloaded = key.and_then(|key| key.to_str().ok()).map(str::to_owned);
        match delivery {
            Delivery::Answered | Delivery::CopyLater | Delivery::Late | Delivery::Shifted => self.execute(arrival, effects),
            Delivery::Twice => {
                self.execute(arrival, effects);
                self.execute(arrival, effects)
            }
            Delivery::LostBefore | Delivery::Delayed => lost(),
            Delivery::LostAfter => {
                self.execute(arrival, effects);
                lost()
            }
            Delivery::PageBefore => page(502),
            Delivery::PageAfter => {
                self.execute(arrival, effects);
                page(504)
            }
            Delivery::DoorBefore => page(401),
            Delivery::DoorAfter => {
                self.execute(arrival, effects);
                page(401)
            }
            Delivery::Cut => match self.execute(arrival, effects) {
                ExchangeResult::Response(whole) => ExchangeResult::Response(Response { body: half(&whole.body), ..whole }),
                lost => lost,
            },
            Delivery::Truncated => match self.execute(arrival, effects) {
                ExchangeResult::Response(whole) => ExchangeResult::Response(Response { body: half(&whole.body), truncated: true, ..whole }),
                lost => lost,
            },
            Delivery::Expired => {
                self.service.expire_tokens();
                self.digest = self.digest.wrapping_add(1);
                self.execute(arrival, effects)
            }
            Delivery::Refused if is_login => self.refusal(401, 0),
            Delivery::Refused if self.api == Api::Reseller => self.refusal(400, 0),
            Delivery::Refused => self.fail(ErrorFault { stored: true, ..error("INSUFFICIENT_BALANCE") }, arrival, effects),
            Delivery::Locked => self.fail(error("AUTH_INVALID_KEY"), arrival, effects),
            Delivery::Unknown => self.fail(ErrorFault { status: Some(422), stored: true, ..error("SOMETHING_ELSE") }, arrival, effects),
            Delivery::Mismatch => self.fail(ErrorFault { stored: true, ..error("PRICE_MISMATCH") }, arrival, effects),
            Delivery::Throttled => self.refusal(429, 1),
            Delivery::ThrottledLong => self.refusal(429, 3600),
            Delivery::ThrottledUntil => self.refusal_until(arrival.now),
            Delivery::Unavailable => unavailable(),
            Delivery::Conflict => {
                self.execute(arrival, effects);
                failure("IDEMPOTENCY_CONFLICT", 409, "", "")
            }
            Delivery::StoredFailure => self.fail(ErrorFault { stored: true, ..self.timeout() }, arrival, effects),
            Delivery::StoredSale => self.fail(ErrorFault { stored: true, sold: true, ..self.timeout() }, arrival, effects),
            // One at a time, so that what it did is known to be its own.
            Delivery::Slow | Delivery::SlowFails if self.working.is_some() => lost(),
            Delivery::Slow | Delivery::SlowFails => {
                let error = (delivery == Delivery::SlowFails).then(|| ErrorFault { stored: true, ..error("BACKEND_ERROR") });
                self.with(Fault::InProgress { ms: SLOW, error }, arrival, effects)
            }
            Delivery::Dearer => {
                self.rise();
                self.execute(arrival, effects)
            }
            Delivery::DearerBefore => {
                self.rise();
                lost()
            }
            Delivery::SoldOut => self.fail(ErrorFault { stored: true, ..error("PRODUCT_OUT_OF_STOCK") }, arrival, effects),
            Delivery::OddBefore => self.odd(ODD),
            Delivery::OddAfter => {
                self.execute(arrival, effects);
                self.odd(ODD)
            }
            Delivery::OddRefusal => self.odd(REFUSALS),
            Delivery::NotPassedOn => {
                self.requests += 1;
                page([403, 404, 413, 422, 429][self.requests as usize % 5])
            }
            Delivery::Unreached => ExchangeResult::Lost(FailureKind::Connect, Sent::Never),
        }
    }

    /// The product that most purchases are of becomes dearer.
    fn rise(&mut self) {
        self.price = 12;
        self.service.set_price("dynamic-world", rust_decimal::Decimal::from(self.price));
        self.digest = self.digest.wrapping_add(2);
    }

    /// An answer of the reseller API with one of these statuses and codes, each in turn.
    fn odd(&mut self, of: &[(u16, &str, &str)]) -> ExchangeResult {
        let (status, code, data) = of[self.requests as usize % of.len()];
        self.requests += 1;
        let headers = vec![("content-type".into(), "application/json".into())];
        response(status, headers, &format!(r#"{{"code":{code},"message":"odd","data":{data}}}"#))
    }

    /// The failure of a supplier that did not answer in time.
    fn timeout(&self) -> ErrorFault {
        ErrorFault { status: Some(504), ..error(if self.api == Api::Agent { "BACKEND_TIMEOUT" } else { "504" }) }
    }

    fn fail(&mut self, error: ErrorFault, arrival: Arrival<'_>, effects: &mut Effects) -> ExchangeResult {
        self.with(Fault::Error(error), arrival, effects)
    }

    fn with(&mut self, fault: Fault, arrival: Arrival<'_>, effects: &mut Effects) -> ExchangeResult {
        let mut hasher = rustc_hash::FxHasher::default();
        (self.digest, format!("{fault:?}")).hash(&mut hasher);
        self.digest = hasher.finish();
        self.service.inject(FaultRule { operation: None, times: 1, fault });
        let result = self.execute(arrival, effects);
        self.service.clear_faults();
        result
    }

    /// The service's own refusal, before anything was done.
    fn refusal(&self, status: u16, wait: u32) -> ExchangeResult {
        if self.api == Api::Agent {
            // A gateway that repeats one id makes every 429 look like a stored one.
            return failure("RATE_LIMIT_EXCEEDED", status, &format!(r#","details":{{"retry_after":{wait}}}"#), "one id");
        }
        let mut headers = vec![("content-type".into(), "application/json".into())];
        headers.extend((wait > 0).then(|| ("retry-after".to_owned(), wait.to_string())));
        response(status, headers, &format!(r#"{{"code":{status},"message":"no","data":null}}"#))
    }

    /// A refusal with a time until which to wait.
    fn refusal_until(&self, now: Millis) -> ExchangeResult {
        let date = |at: Millis| httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_millis(at.unsigned_abs()));
        let mut result = self.refusal(429, 0);
        if let ExchangeResult::Response(response) = &mut result {
            response.headers.extend([("date".to_owned(), date(now)), ("retry-after".to_owned(), date(now + 5_000))]);
        }
        result
    }
}

fn error(code: &str) -> ErrorFault {
    ErrorFault { code: code.to_owned(), ..ErrorFault::default() }
}

pub(crate) fn lost() -> ExchangeResult {
    ExchangeResult::Lost(FailureKind::Closed, Sent::Maybe)
}

fn half(body: &[u8]) -> Vec<u8> {
    body.get(..body.len() / 2).unwrap_or_default().to_vec()
}

fn response(status: u16, headers: Vec<(String, String)>, body: &str) -> ExchangeResult {
    ExchangeResult::Response(Response { status, headers, body: body.as_bytes().to_vec(), truncated: false })
}

fn page(status: u16) -> ExchangeResult {
    response(status, vec![("content-type".into(), "text/html".into())], "<html>bad gateway</html>")
}

/// A gateway that says when to come again.
fn unavailable() -> ExchangeResult {
    response(503, vec![("content-type".into(), "text/html".into()), ("retry-after".into(), "7".into())], "<html>later</html>")
}

fn failure(code: &str, status: u16, more: &str, request_id: &str) -> ExchangeResult {
    let error = format!(r#"{{"code":"{code}","message":""{more}}}"#);
    let body = format!(r#"{{"success":false,"data":null,"error":{error},"meta":{{"request_id":"{request_id}","timestamp":""}}}}"#);
    response(status, vec![("content-type".into(), "application/json".into())], &body)
}
