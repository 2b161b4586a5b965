//! The ways in which the odd server answers: each a pure function from the service's answer to steps on the connection.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use crate::encoding::{deflate, gzip, zlib};
use crate::relay::Answer;

/// A way to answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Behaviour {
    /// The folder of the base URL that chooses it.
    pub name: &'static str,
    /// The client's ability to read the answer.
    pub answer: Reading,
    /// Description, for the table in the README.
    #[serde(skip)]
    pub about: &'static str,
    /// The time that it takes, unless the folder's name ends with another: `late-3000`.
    #[serde(skip)]
    pub milliseconds: Option<u64>,
    #[serde(skip)]
    pub(crate) act: Act,
}

/// A client's ability to read an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Every client must.
    Given,
    /// No client can: the request may have taken effect, and a write is sent again with its key.
    Lost,
    /// A client may, or it may refuse the answer as if it were lost.
    Either,
}

/// The treatment of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    /// The request is relayed, and the answer is treated so.
    Relay(fn(&Answer, Duration) -> Script),
    /// The request is neither read to its end nor relayed.
    Unread(fn() -> Script),
}

/// The events on the connection.
#[derive(Debug, Default)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) then: Then,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Write(Vec<u8>),
    Pause(Duration),
    /// Byte by byte, with a pause before each.
    Drip(Vec<u8>, Duration),
}

/// The state of the connection after the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Then {
    #[default]
    Serve,
    Close,
    /// The connection closes, or breaks, when the next request comes, before that is read.
    CloseAtNext,
    ResetAtNext,
}

impl Script {
    fn write(bytes: Vec<u8>) -> Self {
        Self { steps: vec![Step::Write(bytes)], then: Then::Serve }
    }

    fn then(self, then: Then) -> Self {
        Self { then, ..self }
    }

    fn before(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.splice(0..0, steps);
        self
    }

    fn after(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.steps.extend(steps);
        self
    }
}

const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload; as=style\r\n\r\n";
/// An answer that fits both APIs and belongs to no request.
const OF_NOBODY: &str = r#"{"success":true,"code":0,"message":"ok","data":{"session_id":"ses_of_nobody","status":"active","balance":"0"},"error":null,"meta":{"request_id":"nobody"}}"#;

const fn relay(name: &'static str, answer: Reading, about: &'static str, script: fn(&Answer, Duration) -> Script) -> Behaviour {
    Behaviour { name, answer, about, milliseconds: None, act: Act::Relay(script) }
}

const fn timed(
    name: &'static str,
    answer: Reading,
    milliseconds: u64,
    about: &'static str,
    script: fn(&Answer, Duration) -> Script,
) -> Behaviour {
    Behaviour { milliseconds: Some(milliseconds), ..relay(name, answer, about, script) }
}

use Reading::{Either, Given, Lost};

/// The ways to answer.
pub const BEHAVIOURS: &[Behaviour] = &[
    relay("plain", Given, "as it is", |answer, _| Script::write(answer.plain())),
    timed("early-hints", Given, 300, "103 Early Hints at once, the answer after a pause", |answer, pause| {
        Script::write(answer.plain()).before([Step::Write(HINTS.to_vec()), Step::Pause(pause)])
    }),
    timed("processing", Given, 100, "102 Processing, the answer after a pause", |answer, pause| {
        Script::write(answer.plain()).before([Step::Write(b"HTTP/1.1 102 Processing\r\n\r\n".to_vec()), Step::Pause(pause)])
    }),
    timed("continue", Given, 100, "100 Continue, for which nobody has asked, the answer after a pause", |answer, pause| {
        Script::write(answer.plain()).before([Step::Write(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()), Step::Pause(pause)])
    }),
    timed("informational", Given, 50, "100, 102, 103, 103 and 110, each after a pause, then the answer", |answer, pause| {
        let interim: [&[u8]; 5] = [
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 102 Processing\r\nX-Step: 1\r\n\r\n",
            HINTS,
            HINTS,
            b"HTTP/1.1 110 Odd\r\nX-Step: 2\r\n\r\n",
        ];
        Script::write(answer.plain()).before(interim.iter().flat_map(|bytes| [Step::Write(bytes.to_vec()), Step::Pause(pause)]))
    }),
    timed("early-hints-close", Lost, 50, "103 Early Hints, then the connection closes", |_, pause| Script {
        steps: vec![Step::Write(HINTS.to_vec()), Step::Pause(pause)],
        then: Then::Close,
    }),
    timed("late", Given, 1000, "the answer after a pause", |answer, pause| Script::write(answer.plain()).before([Step::Pause(pause)])),
    timed("drip", Given, 2, "the body byte by byte, with a pause before each", |answer, pause| {
        Script::write(answer.head("HTTP/1.1", Some(answer.body.len()))).after([Step::Drip(answer.body.clone(), pause)])
    }),
    timed("drip-head", Given, 2, "the head byte by byte, with a pause before each, then the body", |answer, pause| {
        let head = answer.head("HTTP/1.1", Some(answer.body.len()));
        Script::write(answer.body.clone()).before([Step::Drip(head, pause)])
    }),
    relay("gzip", Given, "the body compressed with gzip, whatever the client accepts", |answer, _| {
        Script::write(answer.encoded("gzip", gzip(&answer.body)).plain())
    }),
    relay("deflate", Given, "the body compressed with deflate, whatever the client accepts", |answer, _| {
        Script::write(answer.encoded("deflate", zlib(&answer.body)).plain())
    }),
    relay("raw-deflate", Either, "the same without what zlib puts around it, as some servers send it", |answer, _| {
        Script::write(answer.encoded("deflate", deflate(&answer.body)).plain())
    }),
    relay("gzip-chunked", Given, "gzip in chunks", |answer, _| {
        let answer = answer.encoded("gzip", gzip(&answer.body));
        Script::write(answer.chunked("", "", true))
    }),
    relay("gzip-unsaid", Lost, "gzip, which the head does not say", |answer, _| {
        Script::write(Answer { body: gzip(&answer.body), ..answer.clone() }.plain())
    }),
    relay("gzip-cut", Lost, "half of the gzip bytes; the length is right", |answer, _| {
        let mut bytes = gzip(&answer.body);
        bytes.truncate(bytes.len() / 2);
        Script::write(answer.encoded("gzip", bytes).plain())
    }),
    relay("identity", Given, "`Content-Encoding: identity`", |answer, _| {
        Script::write(answer.encoded("identity", answer.body.clone()).plain())
    }),
    relay("chunked", Given, "in chunks of 7 bytes", |answer, _| Script::write(answer.chunked("", "", true))),
    relay("chunk-extensions", Given, "chunks with extensions", |answer, _| Script::write(answer.chunked(";odd=\"yes\"", "", true))),
    relay("trailers", Given, "chunks with trailers after the last", |answer, _| {
        Script::write(answer.chunked("", "X-Checksum: 7\r\nServer-Timing: odd;dur=7\r\n", true))
    }),
    relay("chunked-cut", Lost, "the connection closes instead of the last chunk", |answer, _| {
        Script::write(answer.chunked("", "", false)).then(Then::Close)
    }),
    relay("until-close", Given, "without a length; the end of the connection ends the body", |answer, _| {
        Script::write(answer.with_body(answer.with("connection", "close").head("HTTP/1.1", None))).then(Then::Close)
    }),
    relay("http-1.0", Given, "HTTP/1.0, without a length", |answer, _| {
        Script::write(answer.with_body(answer.head("HTTP/1.0", None))).then(Then::Close)
    }),
    relay("length-null", Either, "`Content-Length: null`; the connection closes after the body", |answer, _| {
        Script::write(answer.with_body(answer.with("content-length", "null").head("HTTP/1.1", None))).then(Then::Close)
    }),
    relay("length-twice", Either, "the same `Content-Length` twice", |answer, _| {
        let length = answer.body.len();
        Script::write(answer.with_body(answer.with("content-length", &length.to_string()).head("HTTP/1.1", Some(length))))
    }),
    relay("length-long", Lost, "a length of 7 more bytes than come; the connection closes", |answer, _| {
        Script::write(answer.with_body(answer.head("HTTP/1.1", Some(answer.body.len() + 7)))).then(Then::Close)
    }),
    relay("length-short", Lost, "a length of 7 fewer bytes than come; the connection stays open", |answer, _| {
        Script::write(answer.with_body(answer.head("HTTP/1.1", Some(answer.body.len().saturating_sub(7)))))
    }),
    relay("after-body", Either, "bytes after the body; the connection stays open", |answer, _| {
        let mut bytes = answer.plain();
        bytes.extend(b"\r\n\r\n<!-- odd -->\r\n");
        Script::write(bytes)
    }),
    timed(
        "second-answer",
        Either,
        0,
        "a second answer with the first, which belongs to no request; the connection stays open",
        |answer, pause| {
            let headers = vec![("content-type".to_owned(), b"application/json".to_vec())];
            let second = Answer { status: 200, headers, body: OF_NOBODY.into() }.plain();
            if pause.is_zero() {
                return Script::write([answer.plain(), second].concat());
            }
            Script::write(answer.plain()).after([Step::Pause(pause), Step::Write(second)])
        },
    ),
    timed(
        "unasked-408",
        Given,
        5,
        "after the answer, 408 Request Timeout on the idle connection, which closes, as load balancers do",
        |answer, pause| {
            let timeout = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_vec();
            Script::write(answer.plain()).after([Step::Pause(pause), Step::Write(timeout)]).then(Then::Close)
        },
    ),
    timed(
        "close",
        Given,
        0,
        "the connection closes after the answer, or a pause after it, which the answer has not said",
        |answer, pause| Script::write(answer.plain()).after([Step::Pause(pause)]).then(Then::Close),
    ),
    relay("stale", Given, "the connection is reset when the next request comes on it, which is neither read nor relayed", |answer, _| {
        Script::write(answer.plain()).then(Then::ResetAtNext)
    }),
    relay(
        "stale-close",
        Given,
        "the connection closes when the next request comes on it, which is neither read nor relayed",
        |answer, _| Script::write(answer.plain()).then(Then::CloseAtNext),
    ),
    Behaviour {
        name: "unread",
        answer: Lost,
        about: "503 and the end of the connection once the head is there; the body is not read and nothing is relayed",
        milliseconds: None,
        act: Act::Unread(|| {
            let page = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n<h1>Busy</h1>\r\n";
            Script::write(page.as_bytes().to_vec()).then(Then::Close)
        }),
    },
    relay("no-reason", Given, "a status line without a reason", |answer, _| {
        let plain = answer.plain();
        let end = plain.windows(2).position(|two| two == b"\r\n").unwrap_or(0);
        let mut bytes = format!("HTTP/1.1 {} ", answer.status).into_bytes();
        bytes.extend(&plain[end..]);
        Script::write(bytes)
    }),
    relay("empty-lines", Either, "two empty lines before the status line", |answer, _| {
        Script::write([b"\r\n\r\n".as_slice(), &answer.plain()].concat())
    }),
    relay("many-headers", Either, "150 more headers", |answer, _| {
        let many = (0..150).map(|number| (format!("x-odd-{number}"), b"1".to_vec()));
        Script::write(Answer { headers: answer.headers.iter().cloned().chain(many).collect(), ..answer.clone() }.plain())
    }),
    relay("long-header", Either, "a header of 20 000 bytes", |answer, _| Script::write(answer.with("x-odd", &"o".repeat(20_000)).plain())),
    relay("latin-1-header", Given, "a header that is not UTF-8", |answer, _| {
        let mut odd = answer.clone();
        odd.headers.push(("x-odd".to_owned(), b"caf\xe9".to_vec()));
        Script::write(odd.plain())
    }),
    relay("folded-header", Either, "a header that goes on in the next line, which is obsolete", |answer, _| {
        Script::write(answer.with("x-odd", "one\r\n two").plain())
    }),
    relay("no-type", Given, "without `Content-Type`", |answer, _| Script::write(answer.without("content-type").plain())),
    relay("html-type", Given, "`Content-Type: text/html`, PHP's default", |answer, _| {
        Script::write(answer.without("content-type").with("content-type", "text/html; charset=UTF-8").plain())
    }),
    relay("bom", Given, "a byte order mark before the body", |answer, _| {
        Script::write(Answer { body: [b"\xef\xbb\xbf".as_slice(), &answer.body].concat(), ..answer.clone() }.plain())
    }),
];

impl Behaviour {
    /// The behaviour that a name chooses, and the time that it takes.
    pub(crate) fn find(name: &str) -> Option<(&'static Self, Duration)> {
        let known = |name: &str| BEHAVIOURS.iter().find(|behaviour| behaviour.name == name);
        if let Some(behaviour) = known(name) {
            return Some((behaviour, Duration::from_millis(behaviour.milliseconds.unwrap_or(0))));
        }
        let (name, milliseconds) = name.rsplit_once('-')?;
        let behaviour = known(name).filter(|behaviour| behaviour.milliseconds.is_some())?;
        Some((behaviour, Duration::from_millis(milliseconds.parse().ok()?)))
    }
}

impl Answer {
    /// The whole answer, as it should be.
    pub(crate) fn plain(&self) -> Vec<u8> {
        let has_length = self.status >= 200 && self.status != 204 && self.status != 304;
        self.with_body(self.head("HTTP/1.1", has_length.then_some(self.body.len())))
    }

    fn head(&self, version: &str, length: Option<usize>) -> Vec<u8> {
        let reason = http::StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Odd");
        let mut bytes = format!("{version} {} {reason}\r\n", self.status).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        if let Some(length) = length {
            bytes.extend(format!("content-length: {length}\r\n").into_bytes());
        }
        bytes.extend(b"\r\n");
        bytes
    }

    fn with_body(&self, mut head: Vec<u8>) -> Vec<u8> {
        head.extend(&self.body);
        head
    }

    fn with(&self, name: &str, value: &str) -> Self {
        let mut answer = self.clone();
        answer.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        answer
    }

    fn without(&self, name: &str) -> Self {
        let mut answer = self.clone();
        answer.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        answer
    }

    fn encoded(&self, encoding: &str, body: Vec<u8>) -> Self {
        Self { body, ..self.with("content-encoding", encoding) }
    }

    fn chunked(&self, extension: &str, trailers: &str, has_end: bool) -> Vec<u8> {
        let mut bytes = self.with("transfer-encoding", "chunked").head("HTTP/1.1", None);
        for chunk in self.body.chunks(7) {
            let mut line = String::new();
            let _ = write!(line, "{:x}{extension}\r\n", chunk.len());
            bytes.extend([line.as_bytes(), chunk, b"\r\n"].concat());
        }
        if has_end {
            bytes.extend(format!("0\r\n{trailers}\r\n").into_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_say_how_long_it_takes_where_it_takes_time() {
        let found = |name: &str| Behaviour::find(name).map(|(behaviour, pause)| (behaviour.name, pause.as_millis()));
        assert_eq!(found("late"), Some(("late", 1000)));
        assert_eq!(found("late-3000"), Some(("late", 3000)));
        assert_eq!(found("early-hints-close-7"), Some(("early-hints-close", 7)));
        assert_eq!(found("unasked-408"), Some(("unasked-408", 5)));
        assert_eq!(found("gzip-7"), None);
        assert_eq!(found("late-x"), None);
    }

    #[test]
    fn the_readme_describes_each_behaviour() {
        let readme = include_str!("../README.md");
        for Behaviour { name, answer, about, milliseconds, .. } in BEHAVIOURS {
            let word = serde_json::to_value(answer).unwrap();
            let pause = milliseconds.map(|pause| pause.to_string()).unwrap_or_default();
            let row = format!("| `{name}` | {} | {pause} | {about} |", word.as_str().unwrap());
            assert!(readme.contains(&row), "the README lacks {row}");
        }
        assert_eq!(readme.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 5).count(), BEHAVIOURS.len());
    }
}
