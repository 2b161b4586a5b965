//! The types that cross besides text and numbers. Types that may hold a secret print without it.

use std::fmt;

pub use hopline::client::{FailureKind, Sent};
use hopline::client::{Phase, facts_text};

use crate::StoreCall;
use crate::packed::{Read, pack, packed, packed_of};

/// The reason why a Send has no response.
#[uniffi::remote(Enum)]
pub enum FailureKind {
    /// The host name has no address.
    Dns,
    /// The connection could not be made.
    Connect,
    /// The TLS session could not be made.
    Tls,
    /// The answer did not come within the attempt's time.
    Timeout,
    /// The connection broke.
    Closed,
    /// The host aborted the request, after a cancel or on its own.
    Aborted,
    /// The host got to the request after `send_before`.
    Late,
    /// The caller's function for headers failed.
    Headers,
    /// Any other reason.
    Other,
}

/// The reach of a request that failed.
#[uniffi::remote(Enum)]
pub enum Sent {
    /// Not one byte left the host: the failure certainly came before.
    Never,
    /// The request may have reached the service.
    Maybe,
}

/// A call that was refused: options that do not fit, or an answer to a step that waits for none. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
pub enum ClientError {
    /// The only reason.
    #[error("refused")]
    Refused {
        /// The error, packed.
        error: Vec<u8>,
    },
}

impl From<hopline::Error> for ClientError {
    fn from(error: hopline::Error) -> Self {
        ClientError::Refused { error: packed(&error) }
    }
}

/// A header of a request or a response.
#[derive(Debug, Clone, PartialEq, Eq, uniffi::Record)]
#[uniffi::export(Display)]
pub struct Header {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: [redacted]", self.name)
    }
}

/// A request to send. Turn off the HTTP client's own repeats and redirects.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
#[uniffi::export(Display)]
pub struct Request {
    /// The method.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// The headers, in the order to send them in.
    pub headers: Vec<Header>,
    /// The body; null for none.
    pub body: Option<Vec<u8>>,
    /// The timeout, in milliseconds from the beginning of the send; fail the request by `Timeout`.
    pub timeout_ms: u32,
    /// The deadline for the beginning of the send, in monotonic milliseconds. A later host fails the request by `Late` and does not send
    /// it.
    pub send_before: i64,
    /// True for a termination: it is sent at any time, whatever the store says, and while the client is being closed.
    pub ends_session: bool,
    /// The most bytes to read of the answer's body; more is `truncated`.
    pub max_body: u32,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url.split('?').next().unwrap_or_default())
    }
}

/// The next thing to do.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum Step {
    /// Wait until that monotonic time, or until a command is started or a step is answered.
    Wait {
        /// Milliseconds; null for no time at all.
        until: Option<i64>,
    },
    /// Call the store, where the command waits and before any send, and answer by `Stored`. Given only to a client with the option `store`.
    Store {
        /// The id for the answer.
        id: u32,
        /// The command; null if none waits for it.
        command: Option<u32>,
        /// The call.
        call: StoreCall,
    },
    /// Send the request and answer by `Respond` or `Fail`.
    Send {
        /// The id for the answer.
        id: u32,
        /// The command.
        command: u32,
        /// The request.
        request: Request,
    },
    /// The command has ended: take its result.
    Completed {
        /// The command.
        command: u32,
        /// The result; null from `poll`, and if it was taken or abandoned before.
        result: Option<Taken>,
    },
    /// Progress, for people and metrics; nothing depends on it.
    Notify {
        /// The event, packed.
        event: Vec<u8>,
    },
}

impl Step {
    /// A step, with its command's result.
    pub(crate) fn of(step: hopline::Step, result: Option<Taken>) -> Self {
        match step {
            hopline::Step::Wait { until } => Step::Wait { until },
            hopline::Step::Store { id, command, call } => {
                Step::Store { id: id.0, command: command.map(|command| command.0), call: call.into() }
            }
            hopline::Step::Send { id, command, request } => Step::Send { id: id.0, command: command.0, request: request.into() },
            hopline::Step::Completed { command } => Step::Completed { command: command.0, result },
            hopline::Step::Notify(event) => Step::Notify { event: packed(&event) },
        }
    }
}

impl From<hopline::wire::Request> for Request {
    fn from(request: hopline::wire::Request) -> Self {
        let ends_session = request.ends_session();
        Request {
            method: request.method.as_str().to_owned(),
            url: request.url,
            headers: request.headers.into_iter().map(|(name, value)| Header { name, value }).collect(),
            body: Some(request.body).filter(|body| !body.is_empty()),
            timeout_ms: request.timeout_ms,
            send_before: request.send_before,
            ends_session,
            max_body: request.max_body,
        }
    }
}

/// The answer of a command.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
#[uniffi::export(Display)]
pub struct Answer {
    /// The facts, as JSON, for `misfit` and `page_turn`.
    pub facts: String,
    /// True if an intent that was to be resumed is not known.
    pub nothing: bool,
    /// The whole `data`, as the service wrote it. The JSON may hold secrets.
    pub raw: String,
    /// The answer packed as its type, for the printed constructors. The bytes may hold secrets.
    pub packed: Vec<u8>,
    /// The request's id, as the service gave it.
    pub request_id: Option<String>,
    /// Of a session or an order: `pending`, `ready`, `ended` or `unknown`.
    pub phase: Option<String>,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.facts)
    }
}

/// The result of a command.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum Taken {
    /// An answer.
    Answered {
        /// The answer.
        answer: Answer,
    },
    /// An error.
    Failed {
        /// The error, packed.
        error: Vec<u8>,
    },
}

impl Taken {
    /// The result of a command, of which the caller may have called another method than its operation. Its answer was packed already if it is
    /// the one in `made`.
    pub(crate) fn of(called: Option<&str>, taken: Result<hopline::client::Taken, hopline::Error>, made: Option<&Read>) -> Self {
        match taken.and_then(|taken| pack(taken, made)) {
            Ok((packed, answered)) => Taken::Answered {
                answer: Answer {
                    facts: facts_text(&answered),
                    nothing: answered.facts.nothing,
                    raw: answered.raw.text().to_owned(),
                    packed,
                    request_id: answered.facts.request_id,
                    phase: answered.phase.map(|phase| Phase::as_str(phase).to_owned()),
                },
            },
            Err(error) => Taken::Failed { error: packed_of(called, &error) },
        }
    }
}
