//! From the bytes of an answer to a verdict. Total: any bytes with any status give one, and the status is never lost.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::text::{KEPT_WORD, cut, is_number, word};
use super::{media_type, time};
use crate::contract::{Api, Json};
use crate::time::Millis;

/// The most of a body that an error keeps.
const KEPT_TEXT: usize = 2048;

/// The deepest nesting of a body. serde_json, Python and others stop at about this depth.
const MAX_DEPTH: u32 = 100;

/// What came back over HTTP, before anything is known of it.
#[derive(Clone, Copy)]
pub(crate) struct Body<'a> {
    pub(crate) status: u16,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) bytes: &'a [u8],
    /// Whether the host read less than the whole body.
    pub(crate) truncated: bool,
    /// The longest body that is read.
    pub(crate) most: u32,
}

impl Body<'_> {
    /// Whether there is more than may be read, so that the rest was left unread.
    fn is_too_long(&self) -> bool {
        self.bytes.len() > self.most as usize || (self.truncated && self.bytes.len() >= self.most as usize)
    }

    /// Whether a success came only in part: the connection broke, or a gateway closed it within a JSON text.
    fn broke_off(&self, is_json: bool) -> bool {
        // These two have no body.
        let has_body = (200..300).contains(&self.status) && !matches!(self.status, 204 | 205);
        let ends_early = || serde_json::from_slice::<serde::de::IgnoredAny>(self.bytes).is_err_and(|error| error.is_eof());
        has_body && !self.is_too_long() && (self.truncated || (is_json && ends_early()))
    }
}

/// An answer, classified.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// What the envelope says.
    pub(crate) verdict: Verdict,
    /// `meta.request_id`, to quote when reporting a problem.
    pub(crate) request_id: Option<String>,
    /// How long the service asks to wait, in milliseconds: the largest of what it said.
    pub(crate) retry_after: Option<Millis>,
    /// The service's own time, Unix milliseconds: the later of `Date` and `meta.timestamp`.
    pub(crate) server_time: Option<Millis>,
}

/// What an envelope says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// `success` is true; this is its `data`.
    Success(Json),
    /// `success` is false.
    Failure(Failure),
    /// There is no envelope: a gateway's page, a truncated or an empty body, something else altogether.
    NoEnvelope {
        /// The `Content-Type`, where there was one.
        content_type: Option<String>,
        /// The beginning of the body, at most 2 KiB, where it is text.
        text: String,
        /// Whether it is the beginning of a success whose rest was lost.
        broke_off: bool,
    },
}

/// The `error` of a failure envelope.
#[derive(Clone, PartialEq)]
pub(crate) struct Failure {
    /// `code`, as it came.
    pub(crate) code: String,
    /// `message`, as it came.
    pub(crate) message: String,
    /// `details`, as it came.
    pub(crate) details: Option<Json>,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What a server writes about a request may repeat it; only the code is sure to be none of the caller's secrets.
        f.debug_struct("Failure").field("code", &self.code).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    success: bool,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    meta: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Fault<'a> {
    #[serde(borrow)]
    code: &'a RawValue,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

/// The envelope of the reseller API.
#[derive(Deserialize)]
struct BackendEnvelope<'a> {
    #[serde(borrow)]
    code: &'a RawValue,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    msg: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

/// What the envelope of the reseller API says: `code` 0 is a success, as a number or as a text.
fn backend(bytes: &[u8]) -> Option<Verdict> {
    let envelope: BackendEnvelope<'_> = serde_json::from_slice(bytes).ok()?;
    let code = match envelope.code.get() {
        // 0 may be written as 0.0.
        number if is_zero(number) => "0".to_owned(),
        number if is_number(number) => cut(number, KEPT_WORD),
        _ => word(envelope.code).filter(|code| !code.is_empty())?,
    };
    if code == "0" {
        return Some(Verdict::Success(envelope.data.map_or_else(Json::default, Json::from)));
    }
    let messages = [envelope.message, envelope.msg].into_iter().flatten().filter_map(word);
    let message = messages.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    Some(Verdict::Failure(Failure { code, message, details: details(envelope.data) }))
}

fn is_zero(json: &str) -> bool {
    let mantissa = json.split(['e', 'E']).next().unwrap_or_default();
    mantissa.contains('0') && mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}

/// What an error says beside its code and its message, unless it is too long to be kept.
fn details(raw: Option<&RawValue>) -> Option<Json> {
    raw.filter(|raw| raw.get() != "null" && raw.get().len() <= 64 * KEPT_WORD).map(Json::from)
}

/// Classifies an answer. Of the agent API `success` decides, then `error.code`; of the reseller API `code`.
pub(crate) fn classify(api: Api, body: Body<'_>, now_unix: Millis) -> Answer {
    let headers =
        |name: &'static str| body.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let content_type = headers("content-type").next();
    let is_json = content_type.is_none_or(media_type::is_json);
    let date = headers("date").find_map(time::http_date);
    let mut answer = Answer {
        status: body.status,
        verdict: Verdict::NoEnvelope { content_type: content_type.map(|text| cut(text, KEPT_WORD)), text: String::new(), broke_off: false },
        request_id: None,
        retry_after: headers("retry-after").filter_map(|text| time::retry_after(text, date, now_unix)).max(),
        server_time: date,
    };
    let whole = !body.truncated && !body.is_too_long();
    let readable = whole && is_json && is_shallow(body.bytes) && !(300..400).contains(&body.status);
    let agent = readable && api == Api::Agent;
    let envelope = agent.then(|| serde_json::from_slice::<Envelope<'_>>(body.bytes).ok()).flatten();
    let verdict = match (&envelope, api) {
        (Some(Envelope { success: true, data, .. }), _) => Some(Verdict::Success(data.map_or_else(Json::default, Json::from))),
        (Some(envelope), _) => envelope.error.and_then(failure).map(Verdict::Failure),
        (None, Api::Reseller) if readable => backend(body.bytes),
        (None, _) => None,
    };
    let Some(verdict) = verdict else {
        if let Verdict::NoEnvelope { text, broke_off, .. } = &mut answer.verdict {
            (*text, *broke_off) = (beginning(body.bytes), body.broke_off(is_json));
        }
        return answer;
    };
    if let Verdict::Failure(Failure { details: Some(details), .. }) = &verdict {
        answer.retry_after = answer.retry_after.max(wait_in(details));
    }
    let meta = envelope.and_then(|envelope| envelope.meta).map(RawValue::get);
    answer.request_id = meta.and_then(|meta| member(meta, "request_id")).filter(|id| !id.is_empty());
    answer.server_time = date.max(meta.and_then(|meta| member(meta, "timestamp")).and_then(|text| time::date_time(&text)));
    answer.verdict = verdict;
    answer
}

/// Whether a body is nested no deeper than any JSON reader takes. Hosts read `data` themselves, and what one of them can't
/// read must not be a success in another.
fn is_shallow(bytes: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_u32, false, false);
    bytes.iter().all(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth <= MAX_DEPTH
    })
}

fn failure(error: &RawValue) -> Option<Failure> {
    let fault: Fault<'_> = serde_json::from_str(error.get()).ok()?;
    Some(Failure {
        code: word(fault.code).filter(|code| !code.is_empty())?,
        message: fault.message.and_then(word).unwrap_or_default(),
        details: details(fault.details),
    })
}

/// `details.retry_after`: a number or a numeric text, in seconds.
fn wait_in(details: &Json) -> Option<Millis> {
    #[derive(Deserialize)]
    struct Details<'a> {
        #[serde(borrow)]
        retry_after: Option<&'a RawValue>,
    }
    let raw = details.read::<Details<'_>>().ok()?.retry_after?;
    let text = word(raw).unwrap_or_else(|| raw.get().to_owned());
    time::seconds(text.trim()).filter(|millis| *millis > 0)
}

/// A member of an object that is a string.
fn member(object: &str, name: &str) -> Option<String> {
    let found: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(object).ok()?;
    word(found.get(name)?)
}

/// The beginning of a body as text, with whatever is no text replaced.
fn beginning(bytes: &[u8]) -> String {
    cut(&String::from_utf8_lossy(bytes.get(..KEPT_TEXT).unwrap_or(bytes)), KEPT_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&str, &str)], bytes: &[u8]) -> Answer {
        classify(Api::Agent, Body { status, headers, bytes, truncated: false, most: 1 << 20 }, 0)
    }

    #[test]
    fn success_decides_before_the_status() {
        let answer = read(500, &[], br#"{"success":true,"data":{"a":1.10},"meta":{"request_id":"r1","timestamp":"1970-01-01T00:00:01Z"}}"#);
        assert_eq!(answer.verdict, Verdict::Success(r#"{"a":1.10}"#.parse().expect("json")));
        assert_eq!((answer.status, answer.request_id.as_deref(), answer.server_time), (500, Some("r1"), Some(1000)));
        let failed = read(200, &[], br#"{"success":false,"data":null,"error":{"code":"X_Y","message":"m"}}"#);
        assert!(matches!(failed.verdict, Verdict::Failure(Failure { ref code, .. }) if code == "X_Y"));
    }

    #[test]
    fn what_is_no_envelope_keeps_its_status_and_the_beginning_of_its_text() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let long = format!("<html>{}", "é".repeat(5000));
        let bodies: [&[u8]; 12] = [
            b"",
            b"<html>502</html>",
            b"{",
            b"null",
            b"[]",
            b"{}",
            br#"{"success":"true","data":{}}"#,
            br#"{"success":false}"#,
            br#"{"success":false,"error":{"message":"no code"}}"#,
            b"\xff\xfe{\"success\":true}",
            deep.as_bytes(),
            long.as_bytes(),
        ];
        for bytes in bodies {
            let answer = read(502, &[], bytes);
            let Verdict::NoEnvelope { text, .. } = answer.verdict else { panic!("{:?}", answer) };
            assert!(answer.status == 502 && text.len() <= KEPT_TEXT);
        }
    }

    #[test]
    fn an_envelope_that_is_nested_too_deeply_is_none() {
        let nested = |depth: usize| format!(r#"{{"success":true,"data":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(matches!(read(200, &[], nested(99).as_bytes()).verdict, Verdict::Success(_)));
        assert!(matches!(read(200, &[], nested(100).as_bytes()).verdict, Verdict::NoEnvelope { .. }));
        let text = format!(r#"{{"success":true,"data":"\"{}"}}"#, "[".repeat(500));
        assert!(matches!(read(200, &[], text.as_bytes()).verdict, Verdict::Success(_)));
    }

    #[test]
    fn a_truncated_body_or_another_content_type_is_no_envelope() {
        let good = br#"{"success":true,"data":{}}"#;
        assert!(matches!(read(200, &[("Content-Type", "application/json; charset=utf-8")], good).verdict, Verdict::Success(_)));
        assert!(matches!(read(200, &[("content-type", "text/html")], good).verdict, Verdict::NoEnvelope { .. }));
        assert!(matches!(read(302, &[], good).verdict, Verdict::NoEnvelope { .. }));
        let cut = classify(Api::Agent, Body { status: 200, headers: &[], bytes: good, truncated: true, most: 1 << 20 }, 0);
        assert!(matches!(cut.verdict, Verdict::NoEnvelope { .. }));
    }

    #[test]
    fn a_success_that_stops_early_broke_off_and_a_page_did_not() {
        let broke_off = |status, headers: &[(&str, &str)], text: &str, truncated, most| {
            let body = Body { status, headers, bytes: text.as_bytes(), truncated, most };
            matches!(classify(Api::Agent, body, 0).verdict, Verdict::NoEnvelope { broke_off: true, .. })
        };
        let half = r#"{"success":true,"data":{"a"#;
        assert!(broke_off(200, &[], half, false, 100) && broke_off(202, &[], "", false, 100) && broke_off(200, &[], half, true, 100));
        assert!(broke_off(200, &[("content-type", "text/html")], "<html", true, 100));
        assert!(!broke_off(200, &[("content-type", "text/html")], "<html", false, 100) && !broke_off(200, &[], "[1]", false, 100));
        assert!(!broke_off(204, &[], "", false, 100) && !broke_off(502, &[], half, true, 100));
        // Longer than it may be: a second try brings the same.
        assert!(!broke_off(200, &[], half, true, 26) && !broke_off(200, &[], half, false, 10));
    }

    #[test]
    fn the_later_of_both_times_is_the_services() {
        let time = |date: &str, timestamp: &str| {
            let body = format!(r#"{{"success":true,"data":{{}},"meta":{{"timestamp":"{timestamp}"}}}}"#);
            read(200, &[("date", date)], body.as_bytes()).server_time
        };
        let date = "Thu, 01 Jan 1970 00:00:05 GMT";
        assert_eq!(time(date, "1970-01-01T00:00:09Z"), Some(9000));
        assert_eq!(time(date, "1970-01-01T00:00:01Z"), Some(5000));
        assert_eq!([time("soon", "1970-01-01T00:00:01Z"), time(date, "soon")], [Some(1000), Some(5000)]);
    }

    #[test]
    fn the_longest_wait_that_was_asked_for_counts() {
        let body = |details: &str| {
            format!(r#"{{"success":false,"error":{{"code":"RATE_LIMIT_EXCEEDED","details":{{"retry_after":{details}}}}}}}"#)
        };
        let wait = |header: &str, details: &str| read(429, &[("retry-after", header)], body(details).as_bytes()).retry_after;
        assert_eq!(wait("2", "5"), Some(5000));
        assert_eq!(wait("7", "\"5\""), Some(7000));
        assert_eq!(wait("-7", "0.5"), Some(500));
        assert_eq!([wait("1e1", "2"), wait("1", "1e1"), wait("1", "1.5")], [Some(10_000), Some(10_000), Some(1500)]);
        assert_eq!(wait("1", "1e18"), wait("1e400", "1"));
        assert_eq!(wait("never", "null"), None);
        assert_eq!([wait("never", "-3"), wait("0", "0")], [None, None]);
    }

    #[test]
    fn the_reseller_api_says_success_with_code_0() {
        let read = |status, body: &str| {
            let body = Body { status, headers: &[], bytes: body.as_bytes(), truncated: false, most: 1 << 20 };
            classify(Api::Reseller, body, 0).verdict
        };
        for good in [r#"{"code":0,"message":"ok","data":{"a":1.10}}"#, r#"{"code":"0","msg":"ok","data":{"a":1.10}}"#] {
            assert_eq!(read(200, good), Verdict::Success(r#"{"a":1.10}"#.parse().expect("json")), "{good}");
        }
        let codes = [r#"{"code":1001,"msg":"m"}"#, r#"{"code":"1001","message":"m"}"#, r#"{"code":1001,"message":null,"msg":"m"}"#];
        for bad in codes {
            let failure = Failure { code: "1001".to_owned(), message: "m".to_owned(), details: None };
            assert_eq!(read(200, bad), Verdict::Failure(failure), "{bad}");
        }
        let named = r#"{"code":"location_not_supported_for_product","message":"m","data":{"regions":["US"]}}"#;
        let Verdict::Failure(failure) = read(400, named) else { panic!("is a failure") };
        assert_eq!(failure.details.map(|details| details.text().to_owned()).as_deref(), Some(r#"{"regions":["US"]}"#));
        for none in ["{}", r#"{"code":null}"#, r#"{"code":true}"#, r#"{"code":""}"#, r#"{"success":true,"data":{}}"#, "[]", "<html>"] {
            assert!(matches!(read(200, none), Verdict::NoEnvelope { .. }), "{none}");
        }
    }

    #[test]
    fn details_of_up_to_64_kib_are_kept() {
        let kept = |length: usize| {
            let body = format!(r#"{{"success":false,"error":{{"code":"X","details":"{}"}}}}"#, "d".repeat(length - 2));
            let Verdict::Failure(failure) = read(400, &[], body.as_bytes()).verdict else { panic!("is a failure") };
            failure.details.is_some()
        };
        assert_eq!([2, 65_536, 65_537].map(kept), [true, true, false]);
    }

    #[test]
    fn a_failure_is_printed_by_its_code_alone() {
        let (code, message) = ("X_Y".to_owned(), "secret".to_owned());
        let printed = format!("{:?}", Failure { code, message, details: None });
        assert!(printed.contains("X_Y") && !printed.contains("secret"), "{printed}");
    }
}
