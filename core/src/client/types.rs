//! The words of the drive contract: what the client asks of its host, and what the host answers.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;

use crate::client::text::event::Event;
use crate::contract::{AnyRequest, Json, Operation, Shape, Sink};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, StepId, StoreAnswer, StoreCall};

pub use crate::contract::{EventEntry, Level};
pub use crate::engine::{Answered, EVENTS, EventKind, EventName, Phase, RecordId};
pub use crate::policy::{FailureKind, Sent};
pub use crate::time::{Millis, Now};
use crate::wire::{DecodeError, Facts, Request, Response};

/// A command that was started, and the type of its answer.
pub struct Ticket<O> {
    /// The command.
    pub command: CommandId,
    pub(super) kind: PhantomData<fn() -> O>,
}

impl<O> Ticket<O> {
    /// The ticket of a command that gave only its id, such as one that was resumed.
    pub fn of(command: CommandId) -> Self {
        Ticket { command, kind: PhantomData }
    }
}

impl<O> Clone for Ticket<O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for Ticket<O> {}

impl<O> fmt::Debug for Ticket<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({})", self.command.0)
    }
}

/// The next thing for the host to do.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Step {
    /// Ask the store, and answer with [`Outcome::Store`]. Only a client with [`ClientOptions::store`](super::ClientOptions::store)
    /// gives these.
    Store {
        /// To answer with.
        id: StepId,
        /// For which command, where one waits for it: a host does it where that one waits, before any send.
        command: Option<CommandId>,
        /// The call.
        call: StoreCall,
    },
    /// Send the request and answer with what came of it.
    Send {
        /// To answer with.
        id: StepId,
        /// For which command.
        command: CommandId,
        /// The request.
        request: Request,
    },
    /// The command has ended: take its result, once.
    Completed {
        /// The command.
        command: CommandId,
    },
    /// Progress, for people and metrics; nothing depends on it.
    Notify(Event),
    /// Nothing to do until that time, or until something is resolved or started.
    Wait {
        /// Monotonic milliseconds; `None` for no time at all.
        until: Option<Millis>,
    },
}

/// The outcome of a step. `Debug` shows neither the body nor the values of headers.
#[derive(Clone)]
pub enum Outcome<'a> {
    /// The store's answer.
    Store(StoreAnswer),
    /// A response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The headers that [`RESPONSE_HEADERS`](super::RESPONSE_HEADERS) names; others are ignored.
        headers: &'a [(&'a str, &'a str)],
        /// The body.
        body: &'a [u8],
        /// True if the body is longer than what was read.
        truncated: bool,
    },
    /// A response that was read as its request [expects](Request::expects): a host that builds its own values from it reads it once.
    Read(Response<'a>),
    /// No response.
    Failed {
        /// Why.
        kind: FailureKind,
        /// The reach of the request.
        sent: Sent,
    },
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Store(answer) => answer.fmt(f),
            Outcome::Response { status, headers, body, truncated } => {
                let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
                f.debug_struct("Response")
                    .field("status", status)
                    .field("headers", &names)
                    .field("body", &format_args!("[{} bytes]", body.len()))
                    .field("truncated", truncated)
                    .finish()
            }
            Outcome::Read(_) => f.write_str("Read"),
            Outcome::Failed { kind, sent } => f.debug_struct("Failed").field("kind", kind).field("sent", sent).finish(),
        }
    }
}

/// A call to [`Client::resolve`](super::Client::resolve) that has no meaning. Nothing was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Misuse {
    /// No step of that id waits for an answer: it was answered before, or never given.
    #[error("no step waits for an answer under this id; answer each step once")]
    UnknownStep,
    /// A question to the store was answered with a response, or a Send with what a store answers, or a question with the answer to
    /// another.
    #[error("this answer does not fit its step; a call of the store is answered as its kind is, a send by a response or failed")]
    WrongAnswer,
}

/// The typed answer of an operation, with everything it came with.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply<T> {
    /// The typed view of `raw`.
    pub data: T,
    /// The whole `data`, known and unknown members alike.
    pub raw: Json,
    /// The facts that the engine uses.
    pub facts: Facts,
    /// Of a session, where it is; of a read with `until`, whether that holds.
    pub phase: Option<Phase>,
}

impl<T> std::ops::Deref for Reply<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.data
    }
}

/// An answer that does not fit its type, and where.
pub type ReadFailure = Box<(Answered, serde_json::Error)>;

/// The result type of a ticket.
pub trait Outputs {
    /// The type of the answer.
    type Output;
    /// Reads the answer, or says what doesn't fit.
    fn read(answered: Answered) -> Result<Self::Output, ReadFailure>;
}

impl<O: Operation> Outputs for O {
    type Output = Reply<O::Output>;

    fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
        match serde_json::from_str(answered.view().as_deref().unwrap_or(answered.raw.text())) {
            Ok(data) => Ok(Reply { data, raw: answered.raw, facts: answered.facts, phase: answered.phase }),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

impl Outputs for AnyRequest {
    type Output = Reply<Json>;

    fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
        Ok(Reply { data: answered.raw.clone(), raw: answered.raw, facts: answered.facts, phase: answered.phase })
    }
}

/// Marks the ticket of an answer that is read as a whole.
#[derive(Debug, Clone, Copy)]
pub struct Whole<T>(PhantomData<T>);

impl<T: DeserializeOwned> Outputs for Whole<T> {
    type Output = T;

    fn read(answered: Answered) -> Result<T, ReadFailure> {
        answered.raw.read().map_err(|error| Box::new((answered, error)))
    }
}

/// Of what an intent stands for: `None` where that is nothing. See [`Client::resume_intent`](super::Client::resume_intent).
impl<O: Outputs> Outputs for Option<O> {
    type Output = Option<O::Output>;

    fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
        if answered.facts.nothing { Ok(None) } else { O::read(answered).map(Some) }
    }
}

/// Another command, or another client, has it.
pub(super) fn busy(operation: &'static str, what: &str) -> Error {
    Error::new(Kind::Busy, Effect::None, operation, what, Advice::WaitForOther)
}

/// An answer that has not been decoded yet. Decoding needs no client.
#[derive(Clone)]
pub struct Taken {
    pub(super) operation: &'static str,
    pub(super) answered: Answered,
}

impl Taken {
    /// The type of the answer.
    pub fn shape(&self) -> &'static Shape {
        self.answered.shape
    }

    /// As the service wrote it.
    pub fn raw(&self) -> &str {
        self.answered.raw.text()
    }

    /// The facts about the answer, for a host that has built its value from the same text before.
    pub fn answered(self) -> Answered {
        self.answered
    }

    /// Reads it, and has a sink build it; or says that it does not fit its type, and where.
    pub fn read<S: Sink>(self, sink: &mut S) -> Result<(S::Value, Answered), Error> {
        match self.answered.read(sink) {
            Ok(value) => Ok((value, self.answered)),
            Err(error) => Err(self.unfit(error)),
        }
    }

    /// The error that says where it does not fit its type.
    pub(super) fn unfit(self, error: DecodeError) -> Error {
        misfit(self.operation, self.answered, &error.to_string()).with(|new| new.field = Some(error.place))
    }
}

/// The error for an answer that does not fit its type, and where.
pub(super) fn misfit(operation: &'static str, answered: Answered, place: &str) -> Error {
    let effect = match crate::contract::endpoint(operation) {
        Some(endpoint) if endpoint.safety == crate::contract::Safety::Safe => Effect::None,
        _ => Effect::Done,
    };
    let (what, advice) = match answered.facts.settled {
        true => ("was settled by hand as happened, so there is no answer to read".to_owned(), Advice::CheckAccount),
        false => (format!("the answer does not fit its type: {place}"), Advice::ReadRaw),
    };
    Error::new(Kind::Decode, effect, operation, what, advice).with(|new| {
        new.session_id = answered.facts.session_id;
        new.order_no = answered.facts.order_no;
        new.request_id = answered.facts.request_id;
        new.raw = Some(answered.raw);
        new.status = answered.http_status;
        new.attempts = answered.attempts;
    })
}

#[cfg(test)]
mod tests {
    use super::super::Responded;
    use super::*;

    #[test]
    fn what_came_of_a_step_prints_no_body_and_no_header_value() {
        let outcome = Outcome::Response { status: 200, headers: &[("date", "canary")], body: b"canary", truncated: false };
        let told = Responded::Response {
            status: 200,
            headers: vec![("date".into(), "canary".into())],
            body: b"canary".to_vec(),
            truncated: false,
        };
        let said = r#"Response { status: 200, headers: ["date"], body: [6 bytes], truncated: false }"#;
        assert_eq!((format!("{outcome:?}"), format!("{told:?}")), (said.to_owned(), said.to_owned()));
    }
}
