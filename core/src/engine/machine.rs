//! The vocabulary of machines: their actions, inputs and notes.

use super::answer::{Answered, Phase};
use super::counted::Counted;
use super::event::EventKind;
use super::gate::Wake;
use crate::contract::Decimal;
use crate::policy::{Error, FailureKind, Sent};
use crate::time::Millis;
use crate::wire::{self, Facts, Request};

/// The next thing that a machine waits for.
#[derive(Debug)]
pub(crate) enum Action {
    /// Sends this request; the answer is [`Input::Response`].
    Send(Request),
    /// Puts its record in the store, as it is now; the answer is [`Input::Stored`].
    Put,
    /// Waits for that time; the answer is [`Input::Due`].
    Wake(Wake),
    /// Requests a shared resource; the answer is [`Input::Granted`].
    Need(Need),
    /// Ends without an effect: its record is deleted, and then the error is reported.
    Erase(Error),
    /// Rests, until a caller resumes or settles it: its effect is unknown.
    Doubt(Error),
    /// Rests, until a caller resumes it: the resource that it follows continues.
    Rest(Error),
    /// Ends.
    End(Result<Box<Answered>, Error>),
}

/// The outcome of an action.
pub(crate) enum Input<'a> {
    /// The time has come; holds the time that was requested.
    Due(Millis),
    /// The outcome of a request.
    Response(SendResult<'a>),
    /// The outcome of storing the record.
    Stored(Stored),
    /// The requested resource, or an error.
    Granted(Result<Grant, Error>),
}

/// The outcome of an HTTP request.
pub(crate) enum SendResult<'a> {
    /// A response that is to be read.
    Response(wire::Received<'a>),
    /// A response that was read.
    Read(wire::Response<'a>),
    /// No response.
    Failed(FailureKind, Sent),
    /// The request was not sent, since a header of the caller's own can't be sent; holds the reason, as the end of a sentence.
    Unfit(&'a str),
}

/// The outcome of storing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The store has the record.
    Done,
    /// The store may or may not have the record.
    Failed,
}

/// A resource that a machine needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A token.
    Token,
    /// The service's time.
    ServerTime,
    /// The purchase counts under the cap of this UTC day.
    Counted { day: i64 },
}

/// A resource that a machine needs from the client.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// A token to send with.
    Token,
    /// The service's time.
    ServerTime,
    /// An amount to count under the day's cap, in USD.
    Count { entry: String, usd: Decimal },
}

/// A fact that a machine reports beside its action. Nothing that the machine does depends on it.
#[derive(Debug)]
pub(crate) enum Note {
    /// An event.
    Event(EventKind),
    /// A session was bought.
    Bought(Box<Bought>),
    /// A read showed the session that is followed; a new status is an event if a phase is given.
    Shown(Facts, Option<Phase>),
    /// An answer shows the state of a session.
    Learnt(Facts),
    /// The session has another exit.
    Moved,
    /// The session is gone.
    Gone,
    /// The order was placed under this number.
    Placed(String),
    /// The service shows the order.
    OrderShown,
    /// The entries of a key under the day's cap, and its actual charge.
    Charged(Vec<Counted>, Decimal),
    /// Entries that count no more.
    Freed(Vec<Counted>),
    /// True if the account can buy.
    BackendReady(bool),
}

/// A session that was bought.
#[derive(Debug)]
pub(crate) struct Bought {
    pub(crate) facts: Facts,
    /// The requested type, if the answer does not state the type.
    pub(crate) session_type: Option<String>,
    /// The requested protocol of its proxy.
    pub(crate) protocol: Option<String>,
}

/// The state of a part of a job after an input.
#[derive(Debug)]
pub(crate) enum Part<T> {
    /// The part waits for something.
    Asks(Action),
    /// The part is over.
    Done(T),
}
