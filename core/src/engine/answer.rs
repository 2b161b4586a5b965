//! The results of jobs.

use crate::contract::{Json, Shape, Sink, closed_enum};
use crate::wire::{DecodeError, Facts, Reading, read_as, reading, view, view_for_doubles};

closed_enum! {
    /// The progress of a session or an order, as far as waiting needs it.
    pub enum Phase {
        /// Not usable yet.
        Pending = "pending",
        /// Usable.
        Ready = "ready",
        /// Over.
        Ended = "ended",
        /// The contract does not document the status.
        Unknown = "unknown",
    }
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Answered {
    /// The facts that the engine uses.
    pub facts: Facts,
    /// The whole `data`, known and unknown members alike. Null if only the facts were kept.
    pub raw: Json,
    /// The type of `raw`.
    pub shape: &'static Shape,
    /// The findings from reading it; `None` for an answer that was composed here.
    pub reading: Option<Reading>,
    /// The phase of a session or an order; for a read with `until`, whether its condition holds.
    pub phase: Option<Phase>,
    /// The HTTP status of the response; `None` if there was none.
    pub http_status: Option<u16>,
    /// The number of sends.
    pub attempts: u32,
}

impl Answered {
    /// A result from facts alone, without a response.
    pub(crate) fn of(facts: Facts) -> Self {
        Answered { facts, raw: Json::default(), shape: &Shape::Json, reading: None, phase: None, http_status: None, attempts: 0 }
    }

    /// Takes the findings, which a host needs; reads the JSON for them if they are missing.
    pub(crate) fn reading(&mut self) -> Reading {
        self.reading.take().unwrap_or_else(|| reading(self.shape, self.raw.text()))
    }

    /// Reads the result as its type, while a sink builds the value.
    pub fn read<S: Sink>(&self, sink: &mut S) -> Result<S::Value, DecodeError> {
        read_as(self.shape, self.raw.text(), sink)
    }

    /// The JSON under the table's names and words; `None` if the service wrote it that way.
    pub fn view(&self) -> Option<String> {
        let is_plain = self.reading.as_ref().is_some_and(|reading| !reading.rewritten);
        if is_plain { None } else { view(self.shape, self.raw.text()) }
    }

    /// The JSON under the table's names and words, for JavaScript: a whole number that no double holds is a text.
    pub(crate) fn view_for_doubles(&self) -> Option<String> {
        view_for_doubles(self.shape, self.raw.text())
    }
}
