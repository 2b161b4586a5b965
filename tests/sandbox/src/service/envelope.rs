//! The envelope of every answer, and the codes of a refusal.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Response, StatusCode, header};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

macro_rules! codes {
    ($($name:ident = $word:literal $status:literal,)*) => {
        /// Every error code of the agent API with its HTTP status.
        pub const CODES: &[(&str, u16)] = &[$(($word, $status)),*];

        /// An error code of the agent API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(
            dead_code,
            clippy::enum_variant_names,
            reason = "the list is the contract's, and some codes are given by faults only"
        )]
        pub(crate) enum Code { $($name),* }

        impl Code {
            fn entry(self) -> (&'static str, u16) {
                match self { $(Self::$name => ($word, $status)),* }
            }
        }
    };
}

codes! {
    AuthInvalidKey = "AUTH_INVALID_KEY" 401,
    AuthExpiredToken = "AUTH_EXPIRED_TOKEN" 401,
    AuthInsufficientPermission = "AUTH_INSUFFICIENT_PERMISSION" 403,
    AccountDisabled = "ACCOUNT_DISABLED" 403,
    InvalidRequest = "INVALID_REQUEST" 400,
    InvalidReferralCode = "INVALID_REFERRAL_CODE" 400,
    RouteNotFound = "ROUTE_NOT_FOUND" 404,
    InsufficientBalance = "INSUFFICIENT_BALANCE" 402,
    BudgetExceeded = "BUDGET_EXCEEDED" 402,
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT" 409,
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED" 429,
    TrialNotEligible = "TRIAL_NOT_ELIGIBLE" 429,
    ProductNotFound = "PRODUCT_NOT_FOUND" 404,
    ProductOutOfStock = "PRODUCT_OUT_OF_STOCK" 409,
    PriceMismatch = "PRICE_MISMATCH" 409,
    SessionNotFound = "SESSION_NOT_FOUND" 404,
    SessionExpired = "SESSION_EXPIRED" 410,
    SessionLimitReached = "SESSION_LIMIT_REACHED" 429,
    BackendError = "BACKEND_ERROR" 502,
    BackendTimeout = "BACKEND_TIMEOUT" 504,
    InternalError = "INTERNAL_ERROR" 500,
}

/// The success of an endpoint: a status and the `data` of the envelope.
pub(crate) struct Reply {
    status: u16,
    pub(crate) data: Box<RawValue>,
    age: Option<u32>,
}

impl Reply {
    pub(crate) fn new(status: u16, data: &impl Serialize) -> Self {
        Self { status, data: raw(data), age: None }
    }

    /// From a cache that is so many seconds old.
    pub(crate) fn aged(self, seconds: u32) -> Self {
        Self { age: Some(seconds), ..self }
    }
}

/// The refusal of an endpoint.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: Cow<'static, str>,
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) details: BTreeMap<&'static str, Box<RawValue>>,
    pub(crate) retry_after: Option<u32>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        let (word, status) = code.entry();
        Self::other(word, status, message)
    }

    /// A refusal with a code that need not be of the contract.
    pub(crate) fn other(code: impl Into<Cow<'static, str>>, status: u16, message: impl Into<String>) -> Self {
        Self { code: code.into(), status, message: message.into(), details: BTreeMap::new(), retry_after: None }
    }

    /// A request that failed validation, with the field and the rule it broke.
    pub(crate) fn invalid(field: &str, rule: &str) -> Self {
        Self::new(Code::InvalidRequest, format!("{field} {rule}")).detail("field", field).detail("rule", rule)
    }

    /// A sound request that can't be fulfilled in the present state.
    pub(crate) fn unable(message: &str) -> Self {
        let (word, _) = Code::InvalidRequest.entry();
        Self::other(word, 422, message)
    }

    pub(crate) fn detail(mut self, name: &'static str, value: impl Serialize) -> Self {
        self.details.insert(name, raw(&value));
        self
    }

    /// With its HTTP status in the place of a code of the agent API, as the backend has it.
    pub(crate) fn numbered(self) -> Self {
        let is_agents = CODES.iter().any(|(word, _)| *word == self.code);
        let code = if is_agents { self.status.to_string().into() } else { self.code };
        Self { code, ..self }
    }

    /// How long to wait, said in the details and in the `Retry-After` header unless a fault chooses.
    pub(crate) fn retry_after(mut self, wait: impl Into<RetryAfter>) -> Self {
        let (header, details) = match wait.into() {
            RetryAfter::Both(seconds) => (Some(seconds), Some(seconds)),
            RetryAfter::Each { header, details } => (header, details),
        };
        self.retry_after = header;
        match details {
            Some(seconds) => self.detail("retry_after", seconds),
            None => self,
        }
    }
}

/// Seconds to wait, and where they are said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RetryAfter {
    /// In the `Retry-After` header and in the details, as the contract has it.
    Both(u32),
    /// In either, or differently in each.
    Each {
        /// In the header.
        #[serde(default)]
        header: Option<u32>,
        /// In the details.
        #[serde(default)]
        details: Option<u32>,
    },
}

impl From<u32> for RetryAfter {
    fn from(seconds: u32) -> Self {
        Self::Both(seconds)
    }
}

/// A request whose work is under way; an extension of what stands in the place of its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InProgress {
    /// When the work is done, in Unix milliseconds.
    pub ends_at: i64,
    /// The number of the request.
    pub(super) request: u64,
}

/// A finished answer: small to clone, since the idempotency store keeps it for a day.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    status: u16,
    retry_after: Option<u32>,
    age: Option<u32>,
    body: Arc<[u8]>,
    /// Set in the place of an answer that there is none of yet.
    in_progress: Option<InProgress>,
}

impl Answer {
    pub(crate) fn new(status: u16, retry_after: Option<u32>, body: &impl Serialize) -> Self {
        Self { status, retry_after, age: None, body: text(body), in_progress: None }
    }

    /// The placeholder of an answer until the work is done.
    pub(crate) fn pending(in_progress: InProgress) -> Self {
        Self { in_progress: Some(in_progress), ..Self::new(StatusCode::PROCESSING.as_u16(), None, &()) }
    }

    /// Puts a result into its envelope.
    pub(crate) fn of(result: Result<Reply, Refusal>, request_id: &str, now_ms: i64) -> Self {
        let meta = Meta { request_id, timestamp: timestamp(now_ms) };
        match result {
            Ok(Reply { status, data, age }) => Self { age, ..Self::new(status, None, &Success { success: true, data: &data, meta }) },
            Err(Refusal { code, status, message, details, retry_after }) => {
                let details = (!details.is_empty()).then_some(details);
                let error = Error { code, message, details };
                Self::new(status, retry_after, &Failure { success: false, data: (), error, meta })
            }
        }
    }

    /// The answer as HTTP. `Date` tells when it is sent, which for a replay is later than when it was made.
    pub(crate) fn into_response(self, now_ms: i64) -> Response<Vec<u8>> {
        let mut response = Response::new(self.body.to_vec());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some(in_progress) = self.in_progress {
            response.extensions_mut().insert(in_progress);
        }
        let date = httpdate::fmt_http_date(instant(now_ms));
        let headers = [
            (header::CONTENT_TYPE, Some("application/json".to_owned())),
            (header::DATE, Some(date)),
            (header::RETRY_AFTER, self.retry_after.map(|seconds| seconds.to_string())),
            (header::AGE, self.age.map(|seconds| seconds.to_string())),
            (header::CACHE_CONTROL, self.age.map(|_| "public, max-age=60".to_owned())),
        ];
        for (name, value) in headers {
            if let Some(value) = value.and_then(|value| value.try_into().ok()) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// A sum of money or a quantity, written as its own decimal text and never through a float.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(pub(crate) Decimal);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.normalize().to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

/// A moment as RFC 3339 text with milliseconds.
pub(crate) fn timestamp(now_ms: i64) -> String {
    humantime::format_rfc3339_millis(instant(now_ms)).to_string()
}

/// The formatters know the years 1970 to 9999; a clock moved outside them stays at the edge.
fn instant(now_ms: i64) -> SystemTime {
    const END_OF_9999: i64 = 253_402_300_799_999;
    SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms.clamp(0, END_OF_9999).unsigned_abs())
}

#[derive(Serialize)]
struct Meta<'a> {
    request_id: &'a str,
    timestamp: String,
}

#[derive(Serialize)]
struct Success<'a> {
    success: bool,
    data: &'a RawValue,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Failure<'a> {
    success: bool,
    data: (),
    error: Error,
    meta: Meta<'a>,
}

#[derive(Serialize)]
struct Error {
    code: Cow<'static, str>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<BTreeMap<&'static str, Box<RawValue>>>,
}

pub(crate) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("the sandbox's own values have text keys")
}

fn text(value: &impl Serialize) -> Arc<[u8]> {
    serde_json::to_vec(value).expect("the sandbox's own values have text keys").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_as_its_decimal_text() {
        let written = |text: &str| serde_json::to_string(&Number(text.parse().unwrap())).unwrap();
        assert_eq!(written("0.10"), "0.1");
        assert_eq!(written("100"), "100");
        assert_eq!(written("1234567890.123456789012345678"), "1234567890.123456789012345678");
    }

    #[test]
    fn a_timestamp_is_rfc_3339_and_never_panics() {
        assert_eq!(timestamp(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(timestamp(i64::MIN), "1970-01-01T00:00:00.000Z");
        assert_eq!(timestamp(i64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn a_failure_has_null_data_and_no_empty_details() {
        let answer = Answer::of(Err(Refusal::new(Code::SessionNotFound, "no such session")), "r1", 0);
        assert_eq!(
            std::str::from_utf8(&answer.body).unwrap(),
            r#"{"success":false,"data":null,"error":{"code":"SESSION_NOT_FOUND","message":"no such session"},"meta":{"request_id":"r1","timestamp":"1970-01-01T00:00:00.000Z"}}"#
        );
    }
}
