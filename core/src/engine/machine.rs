//! The words between a machine and whoever runs it: what it asks for, what it is told, what it is given.

use super::answer::{Answered, Phase};
use super::counted::Counted;
use super::event::EventKind;
use super::gate::Wake;
use crate::contract::Decimal;
use crate::policy::{Error, FailureKind, Sent};
use crate::time::Millis;
use crate::wire::{self, Facts, Request};

/// What a machine waits for.
#[derive(Debug)]
pub(crate) enum Action {
    /// An answer to this request: [`Input::Response`].
    Send(Request),
    /// Its record in the store, as it is now: [`Input::Stored`].
    Put,
    /// That time: [`Input::Due`].
    Wake(Wake),
    /// Something that outlives jobs: [`Input::Granted`].
    Need(Need),
    /// Nothing more. It had no effect: its record goes, and then this is said.
    Erase(Error),
    /// Nothing more, until somebody resumes or settles it: its effect is not known.
    Doubt(Error),
    /// Nothing more, until somebody resumes it: what it follows lives on.
    Rest(Error),
    /// Nothing more.
    End(Result<Box<Answered>, Error>),
}

/// What came of an action.
pub(crate) enum Input<'a> {
    /// The time has come; it was to come then.
    Due(Millis),
    /// What came of a request.
    Response(Received<'a>),
    /// What came of storing its record.
    Stored(Stored),
    /// Whether there is now what it needed.
    Granted(Result<Grant, Error>),
}

/// What came over HTTP.
pub(crate) enum Received<'a> {
    /// A response, to be read.
    Response(wire::Received<'a>),
    /// A response that was read.
    Read(wire::Response<'a>),
    /// None.
    Failed(FailureKind, Sent),
    /// It was not sent, since a header of the caller's own can't be sent with it: why, as the end of a sentence.
    Unfit(&'a str),
}

/// What came of storing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The store has it.
    Done,
    /// Perhaps it has, perhaps not.
    Failed,
}

/// What a machine needed and has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A token.
    Token,
    /// The service's time.
    ServerTime,
    /// It counts under the cap of this UTC day.
    Counted { day: i64 },
}

/// What a machine needs and does not have by itself.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// A token to send with.
    Token,
    /// The service's time.
    ServerTime,
    /// To count so much under the day's cap, in USD.
    Count { entry: String, usd: Decimal },
}

/// What a machine has to say beside what it waits for. Nothing that it does depends on it.
#[derive(Debug)]
pub(crate) enum Note {
    /// Progress.
    Event(EventKind),
    /// A session was bought.
    Bought(Box<Bought>),
    /// A read showed the session that is followed; a new status is an event where a phase is given.
    Shown(Facts, Option<Phase>),
    /// An answer says how a session is.
    Learnt(Facts),
    /// The session has another exit.
    Moved,
    /// The session is no more.
    Gone,
    /// The order was placed under this number.
    Placed(String),
    /// The service shows the order.
    OrderShown,
    /// What a key counts under the day's cap, as it was charged.
    Charged(Vec<Counted>, Decimal),
    /// Keys that count no more.
    Freed(Vec<Counted>),
    /// Whether the account can buy.
    BackendReady(bool),
}

/// A session that was bought.
#[derive(Debug)]
pub(crate) struct Bought {
    pub(crate) facts: Facts,
    /// What was asked for, where the answer does not say what it is.
    pub(crate) session_type: Option<String>,
}

/// What a part of a job says.
#[derive(Debug)]
pub(crate) enum Part<T> {
    /// It waits for something.
    Asks(Action),
    /// It is over.
    Done(T),
}
