//! An agenda of a life: messages, leases that end, orders of the story.

use std::collections::BTreeMap;

use hopline::client::{Millis, StepId, StoreAnswer, StoreCall};
use hopline::wire::Request;

use super::caller::Out;

/// An answer of the service: status, headers and body.
pub(super) type Reply = (u16, Vec<(String, String)>, Vec<u8>);

/// An event that is due. Programs are named by their numbers: what is due for one that has ended is over.
#[derive(Debug)]
pub(super) enum Due {
    /// A call reaches the store; its answer takes so long.
    Call(u8, StepId, StoreCall, Millis),
    Called(u8, StepId, StoreAnswer),
    /// A request reaches the service; its answer takes so long.
    Request(u8, StepId, Request, Millis),
    /// A program has an answer: about which session and to which operation.
    Answer(u8, StepId, Option<(String, &'static str)>, Reply),
    Wakes(u8),
    /// A program opens the pool, once more where it could not.
    Opens(u8),
    /// A caller asks for a lease.
    Asks(u8, usize),
    /// A caller gives a lease back.
    GivesBack(u8, usize, Out),
    /// An order of the story.
    Order(usize),
    /// The claims of a killed program end.
    ClaimsEnd(u8),
    /// A program has closed its pool, and lets go of the last name until then.
    Ended(u8, Millis),
    /// A session is used up.
    Dies(String),
}

/// The events that are due, by time; of one time, the one that was written down first comes first.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    due: BTreeMap<(Millis, u64), Due>,
    written: u64,
}

impl Agenda {
    pub(super) fn write(&mut self, at: Millis, due: Due) {
        self.written += 1;
        self.due.insert((at, self.written), due);
    }

    /// The first that is due until a time.
    pub(super) fn next(&mut self, until: Millis) -> Option<(Millis, Due)> {
        let first = self.due.first_entry().filter(|first| first.key().0 <= until)?;
        Some((first.key().0, first.remove()))
    }
}
