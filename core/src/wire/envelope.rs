//! A response as the engine keeps it: its content, the wait that it asks for, and the service's time.

use std::fmt;

use super::facts::{CHARGE, Facts};
use super::read::{self, DataRef, Expected, Flaw, Reading, Received, Response, Undocumented, read};
use super::text::{KEPT_WORD, cut, word};
use super::time;
use crate::contract::Json;
use crate::json::{pick, text_of};
use crate::time::Millis;

/// The most of a body that an error keeps.
const KEPT_TEXT: usize = 2048;

/// An answer, classified.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The content of the envelope.
    pub(crate) content: Content,
    /// `meta.request_id`, to quote when reporting a problem.
    pub(crate) request_id: Option<String>,
    /// How long the service asks to wait, in milliseconds: the largest of what it said.
    pub(crate) retry_after: Option<Millis>,
    /// The service's own time, Unix milliseconds: the later of `Date` and `meta.timestamp`.
    pub(crate) server_time: Option<Millis>,
}

/// The content of an envelope.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// The operation succeeded.
    Success(Box<Success>),
    /// The operation was refused, or it failed.
    Failure(Failure),
    /// There is no envelope: a gateway's page, a truncated or an empty body, or anything else.
    NoEnvelope {
        /// The `Content-Type`, where there was one.
        content_type: Option<String>,
        /// The beginning of the body, at most 2 KiB, where it is text.
        text: String,
        /// The reason why the body is not an envelope.
        flaw: Flaw,
    },
}

/// The `data` of a success.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Success {
    /// The JSON as it came.
    pub(crate) raw: Json,
    /// The members that the engine reads.
    pub(crate) facts: Facts,
    /// Members that came in two spellings with two values.
    pub(crate) differing: Vec<String>,
    /// Numbers that were rounded.
    pub(crate) rounded: Vec<String>,
    /// The findings of the reader; absent where the host has read the response.
    pub(crate) reading: Option<Reading>,
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
    /// True if `details` has content, whether or not it is kept.
    pub(crate) has_data: bool,
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A server's text about a request may repeat the request; only the code never holds a secret of the caller.
        f.debug_struct("Failure").field("code", &self.code).finish_non_exhaustive()
    }
}

/// Reads a response, and classifies what it says.
pub(crate) fn classify(expected: Expected, received: Received<'_>, now_unix: Millis) -> Answer {
    let mut undocumented = Undocumented::default();
    let (response, _) = read(expected, received, &mut undocumented);
    Answer::of(&response, Some(undocumented.secrets), now_unix)
}

/// Classifies a response that the host has read.
pub(crate) fn classify_read(expected: Expected, response: Response<'_>, now_unix: Millis) -> Answer {
    Answer::of(&response.read_as(expected), None, now_unix)
}

impl Answer {
    /// Builds the answer from a response.
    fn of(response: &Response<'_>, undocumented_secrets: Option<bool>, now_unix: Millis) -> Self {
        let received = response.received;
        let date = received.header("date").find_map(time::http_date);
        let [request_id, timestamp] = [0, 1].map(|at| response.meta.get(at).and_then(Option::as_deref).and_then(word));
        let request_id = request_id.filter(|id| !id.is_empty());
        let (content, asked) = match &response.content {
            read::ContentRef::Success(data) => {
                (Content::Success(Box::new(Success::of(data, undocumented_secrets, request_id.as_deref()))), None)
            }
            read::ContentRef::Failure(failure) => {
                (Content::Failure(Failure::of(failure)), failure.details.as_deref().and_then(|details| wait_in(details, date, now_unix)))
            }
            read::ContentRef::NoEnvelope { flaw } => {
                let content_type = received.header("content-type").next().map(|text| cut(text, KEPT_WORD));
                (Content::NoEnvelope { content_type, text: beginning(received.body), flaw: *flaw }, None)
            }
        };
        let waits = received.header("retry-after").filter_map(|text| time::retry_after(text, date, now_unix));
        let server_time = date.max(timestamp.as_deref().and_then(time::date_time));
        Answer { status: received.status, content, request_id, retry_after: waits.chain(asked).max(), server_time }
    }
}

impl Success {
    fn of(data: &DataRef<'_>, undocumented_secrets: Option<bool>, request_id: Option<&str>) -> Self {
        let reading = |undocumented_secrets| {
            let misfit = data.fit.clone().err().map(Box::new);
            Reading { misfit, rewritten: data.rewritten, beyond_doubles: data.beyond_doubles, undocumented_secrets }
        };
        let (facts, rounded_charge) = Facts::from(data.members, request_id);
        let mut rounded = data.rounded.clone();
        if rounded_charge && !rounded.iter().any(|name| name == CHARGE) {
            rounded.push(CHARGE.to_owned());
        }
        Success {
            raw: Json::checked(data.raw),
            facts,
            differing: data.differing.clone(),
            rounded,
            reading: undocumented_secrets.map(reading),
        }
    }
}

impl Failure {
    fn of(failure: &read::FailureRef<'_>) -> Self {
        // Details that are too long are not kept.
        let details = failure.details.as_deref().filter(|json| json.len() <= 64 * KEPT_WORD).map(Json::checked);
        let has_data = failure.details.as_deref().is_some_and(|json| !is_empty(json));
        Failure { code: cut(&failure.code, KEPT_WORD), message: cut(&failure.message, KEPT_WORD), details, has_data }
    }
}

/// Returns true if some JSON is null, a blank text, or an empty list or object.
fn is_empty(json: &str) -> bool {
    let inside = |open: char, close: char| json.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let is_blank = |inside: Option<&str>| inside.is_some_and(|text| text.trim().is_empty());
    json == "null" || inside('"', '"') == Some("") || is_blank(inside('[', ']')) || is_blank(inside('{', '}'))
}

/// `details.retry_after`: a number of seconds, or a text, which is read as the header is.
fn wait_in(details: &str, date: Option<Millis>, now_unix: Millis) -> Option<Millis> {
    let [said] = pick(details, ["retry_after"])?;
    let json = said?;
    time::retry_after(text_of(json).as_deref().unwrap_or(json), date, now_unix)
}

/// The beginning of a body as text, with invalid bytes replaced.
fn beginning(bytes: &[u8]) -> String {
    cut(&String::from_utf8_lossy(bytes.get(..KEPT_TEXT).unwrap_or(bytes)), KEPT_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::{Api, Shape};

    const AGENT: Expected = Expected { api: Api::Agent, operation: "get_balance", shape: &Shape::Json, max_body: 1 << 20 };
    const RESELLER: Expected = Expected { api: Api::Reseller, ..AGENT };

    fn read(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        classify(AGENT, Received { status, headers, body, truncated: false }, 0)
    }

    /// The `data` of a success.
    fn raw(content: Content) -> Option<Json> {
        if let Content::Success(success) = content { Some(success.raw) } else { None }
    }

    #[test]
    fn success_decides_before_the_status() {
        let answer = read(500, &[], br#"{"success":true,"data":{"a":1.10},"meta":{"request_id":"r1","timestamp":"1970-01-01T00:00:01Z"}}"#);
        assert_eq!((answer.status, answer.request_id.as_deref(), answer.server_time), (500, Some("r1"), Some(1000)));
        assert_eq!(raw(answer.content), r#"{"a":1.10}"#.parse().ok());
        let failed = read(200, &[], br#"{"success":false,"data":null,"error":{"code":"X_Y","message":"m"}}"#);
        assert!(matches!(failed.content, Content::Failure(Failure { ref code, .. }) if code == "X_Y"));
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
            let Content::NoEnvelope { text, .. } = answer.content else { panic!("{:?}", answer) };
            assert!(answer.status == 502 && text.len() <= KEPT_TEXT);
        }
    }

    #[test]
    fn an_envelope_that_is_nested_too_deeply_is_none() {
        let nested = |depth: usize| format!(r#"{{"success":true,"data":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(matches!(read(200, &[], nested(99).as_bytes()).content, Content::Success(_)));
        assert!(matches!(read(200, &[], nested(100).as_bytes()).content, Content::NoEnvelope { .. }));
        let text = format!(r#"{{"success":true,"data":"\"{}"}}"#, "[".repeat(500));
        assert!(matches!(read(200, &[], text.as_bytes()).content, Content::Success(_)));
    }

    #[test]
    fn an_envelope_is_one_under_any_content_type_if_it_is_the_whole_body() {
        let good = br#"{"success":true,"data":{}}"#;
        for content_type in ["application/json; charset=utf-8", "text/html", "text/plain", "application/octet-stream", "nonsense"] {
            assert!(matches!(read(200, &[("Content-Type", content_type)], good).content, Content::Success(_)), "{content_type}");
        }
        let with_mark = [b"\xef\xbb\xbf", &good[..]].concat();
        assert!(matches!(read(200, &[], &with_mark).content, Content::Success(_)));
        let inside: [&[u8]; 4] = [
            b"<html>{\"success\":true,\"data\":{}}</html>",
            b"{\"success\":true,\"data\":{}}<!-- -->",
            b"[{\"success\":true,\"data\":{}}]",
            b"\xef\xbb\xbf\xef\xbb\xbf{\"success\":true,\"data\":{}}",
        ];
        for page in inside {
            assert!(matches!(read(200, &[("content-type", "text/html")], page).content, Content::NoEnvelope { .. }));
        }
        assert!(matches!(read(302, &[], good).content, Content::NoEnvelope { .. }));
        let cut = classify(AGENT, Received { status: 200, headers: &[], body: good, truncated: true }, 0);
        assert!(matches!(cut.content, Content::NoEnvelope { .. }));
    }

    #[test]
    fn a_refusal_in_another_encoding_is_one_and_a_success_is_not() {
        let read = |body: &[u8]| classify(RESELLER, Received { status: 200, headers: &[], body, truncated: false }, 0).content;
        // Latin-1, GBK, and GBK whose second byte is a backslash.
        let messages: [&[u8]; 4] = [b"caf\xe9", b"\xd3\xe0\xb6\xee\xb2\xbb\xd7\xe3", b"\xd5\x5c", b"\xe9\\n"];
        for message in messages {
            let refusal = [b"{\"code\":4002,\"message\":\"", message, b"\",\"data\":{\"left\":1.50}}"].concat();
            let Content::Failure(Failure { code, message, details, .. }) = read(&refusal) else { panic!("is a refusal: {message:?}") };
            assert_eq!((code.as_str(), details.as_ref().map(Json::text)), ("4002", Some(r#"{"left":1.50}"#)));
            assert!(message.contains(char::REPLACEMENT_CHARACTER), "{message}");
            let success = [b"{\"code\":0,\"data\":{\"name\":\"", messages[0], b"\"}}"].concat();
            assert!(matches!(read(&success), Content::NoEnvelope { .. }));
        }
    }

    #[test]
    fn a_success_that_stops_early_broke_off_and_a_page_did_not() {
        let broke_off = |status, headers: &[(&str, &str)], text: &str, truncated, max_body| {
            let received = Received { status, headers, body: text.as_bytes(), truncated };
            matches!(classify(Expected { max_body, ..AGENT }, received, 0).content, Content::NoEnvelope { flaw: Flaw::BrokeOff, .. })
        };
        let half = r#"{"success":true,"data":{"a"#;
        assert!(broke_off(200, &[], half, false, 100) && broke_off(202, &[], "", false, 100) && broke_off(200, &[], half, true, 100));
        assert!(broke_off(200, &[("content-type", "text/html")], "<html", true, 100));
        assert!(broke_off(200, &[("content-type", "text/html")], half, false, 100) && broke_off(200, &[], "\u{feff}{", false, 100));
        assert!(!broke_off(200, &[("content-type", "text/html")], "<html", false, 100) && !broke_off(200, &[], "[1]", false, 100));
        assert!(!broke_off(204, &[], "", false, 100) && !broke_off(502, &[], half, true, 100));
        // The body is longer than allowed: a second attempt brings the same body.
        assert!(!broke_off(200, &[], half, true, 26) && !broke_off(200, &[], half, false, 10));
    }

    #[test]
    fn a_cursor_is_passed_on_whole_or_the_page_is_none() {
        use crate::contract::Operation;
        use crate::contract::agent::{GetBalance, ListProducts};
        let cursor = |endpoint, length: usize| {
            let body = format!(r#"{{"success":true,"data":{{"items":[],"next_cursor":"{}"}}}}"#, "c".repeat(length));
            let received = Received { status: 200, headers: &[], body: body.as_bytes(), truncated: false };
            match classify(Expected::of(endpoint, 1 << 20), received, 0).content {
                Content::Success(success) => Ok(success.facts.next_cursor.map(|cursor| cursor.len())),
                Content::NoEnvelope { flaw, .. } => Err(flaw),
                Content::Failure(_) => panic!("is no failure"),
            }
        };
        assert_eq!([8192, 8193].map(|length| cursor(ListProducts::ENDPOINT, length)), [Ok(Some(8192)), Err(Flaw::LongCursor)]);
        assert_eq!(cursor(GetBalance::ENDPOINT, 8193), Ok(None));
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
        let read =
            |status, body: &str| classify(RESELLER, Received { status, headers: &[], body: body.as_bytes(), truncated: false }, 0).content;
        for good in [r#"{"code":0,"message":"ok","data":{"a":1.10}}"#, r#"{"code":"0","msg":"ok","data":{"a":1.10}}"#] {
            assert_eq!(raw(read(200, good)), r#"{"a":1.10}"#.parse().ok(), "{good}");
        }
        let codes = [r#"{"code":1001,"msg":"m"}"#, r#"{"code":"1001","message":"m"}"#, r#"{"code":1001,"message":null,"msg":"m"}"#];
        for bad in codes {
            let failure = Failure { code: "1001".to_owned(), message: "m".to_owned(), details: None, has_data: false };
            assert_eq!(read(200, bad), Content::Failure(failure), "{bad}");
        }
        let named = r#"{"code":"location_not_supported_for_product","message":"m","data":{"regions":["US"]}}"#;
        let Content::Failure(failure) = read(400, named) else { panic!("is a failure") };
        assert_eq!(failure.details.map(|details| details.text().to_owned()).as_deref(), Some(r#"{"regions":["US"]}"#));
        for none in ["{}", r#"{"code":null}"#, r#"{"code":true}"#, r#"{"code":""}"#, r#"{"success":true,"data":{}}"#, "[]", "<html>"] {
            assert!(matches!(read(200, none), Content::NoEnvelope { .. }), "{none}");
        }
    }

    #[test]
    fn an_envelope_has_data_where_there_is_anything_in_it_kept_or_not() {
        let has_data = |data: &str| {
            let body = format!(r#"{{"code":7,"data":{data}}}"#);
            let received = Received { status: 400, headers: &[], body: body.as_bytes(), truncated: false };
            let Content::Failure(failure) = classify(RESELLER, received, 0).content else { panic!("is a failure") };
            failure.has_data
        };
        for empty in ["null", "{}", "[]", "{ }", "[\n]", "\"\""] {
            assert!(!has_data(empty), "{empty}");
        }
        let long = format!("\"{}\"", "d".repeat(100_000));
        for data in [r#"{"orderNo":null}"#, "[0]", "0", "false", "\" \"", "[[]]", long.as_str()] {
            assert!(has_data(data), "{data}");
        }
    }

    #[test]
    fn details_of_up_to_64_kib_are_kept() {
        let kept = |length: usize| {
            let body = format!(r#"{{"success":false,"error":{{"code":"X","details":"{}"}}}}"#, "d".repeat(length - 2));
            let Content::Failure(failure) = read(400, &[], body.as_bytes()).content else { panic!("is a failure") };
            failure.details.is_some()
        };
        assert_eq!([2, 65_536, 65_537].map(kept), [true, true, false]);
    }

    #[test]
    fn a_failure_is_printed_by_its_code_alone() {
        let (code, message) = ("X_Y".to_owned(), "secret".to_owned());
        let printed = format!("{:?}", Failure { code, message, details: None, has_data: false });
        assert!(printed.contains("X_Y") && !printed.contains("secret"), "{printed}");
    }
}
