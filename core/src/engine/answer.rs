//! What a job ends with.

use crate::contract::{Json, Shape, Sink, closed_enum};
use crate::wire::{DecodeError, Facts, Reading, read_as, reading, view, view_for_doubles};

closed_enum! {
    /// Where a session or an order is, as far as waiting for it goes.
    pub enum Phase {
        /// Not usable yet.
        Pending = "pending",
        /// Usable.
        Ready = "ready",
        /// Over.
        Ended = "ended",
        /// The contract does not say what the status means.
        Unknown = "unknown",
    }
}

/// What a command ended with.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Answered {
    /// What the engine knows of it.
    pub facts: Facts,
    /// The whole `data`, known and unknown members alike. Null where only the facts were kept.
    pub raw: Json,
    /// What it is.
    pub shape: &'static Shape,
    /// What was found out when it was read; none of what was composed here.
    pub reading: Option<Reading>,
    /// Of a session or an order, where it is; of a read with `until`, whether that holds.
    pub phase: Option<Phase>,
    /// The HTTP status that it came with; none where it was not asked for now.
    pub http_status: Option<u16>,
    /// Sends so far.
    pub attempts: u32,
}

impl Answered {
    /// What is known without a response.
    pub(crate) fn of(facts: Facts) -> Self {
        Answered { facts, raw: Json::default(), shape: &Shape::Json, reading: None, phase: None, http_status: None, attempts: 0 }
    }

    /// What is to be known of it before it is given to a host.
    pub(crate) fn reading(&mut self) -> Reading {
        self.reading.take().unwrap_or_else(|| reading(self.shape, self.raw.text()))
    }

    /// Reads it as what it is, and has a sink build that.
    pub fn read<S: Sink>(&self, sink: &mut S) -> Result<S::Value, DecodeError> {
        read_as(self.shape, self.raw.text(), sink)
    }

    /// It under the names and with the words of the table, where the service wrote it in another way.
    pub fn view(&self) -> Option<String> {
        let is_plain = self.reading.as_ref().is_some_and(|reading| !reading.rewritten);
        if is_plain { None } else { view(self.shape, self.raw.text()) }
    }

    /// The same for JavaScript: a whole number that no double holds is text, too.
    pub(crate) fn view_for_doubles(&self) -> Option<String> {
        view_for_doubles(self.shape, self.raw.text())
    }
}
