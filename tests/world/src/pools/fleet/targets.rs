//! Targets, and their answers to those who come through an exit.

use std::collections::BTreeMap;

use hopline::client::{Millis, Seen};

/// A kind of target.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Good,
    /// Blocks an exit after so many answers.
    BlocksAfter(u32),
    /// Blocks every exit until then.
    BlocksUntil(Millis),
    /// Answers one of three requests with 429, and says for how long to wait.
    Busy(Millis),
    /// Takes so long.
    Slow(Millis),
}

/// The end of the world: what blocks until then blocks for ever.
pub(super) const EVER: Millis = Millis::MAX;

/// The targets of a story, and what they have seen.
#[derive(Debug)]
pub(super) struct Targets {
    kinds: Vec<Kind>,
    /// The answers through each exit: by target, session and its rotations.
    seen: BTreeMap<(usize, String, u32), u32>,
}

impl Targets {
    pub(super) fn new(kinds: Vec<Kind>) -> Self {
        Targets { kinds, seen: BTreeMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// How long its answers take beside the work.
    pub(super) fn takes(&self, target: usize) -> Millis {
        if let Kind::Slow(takes) = self.kinds[target] { takes } else { 0 }
    }

    /// How long it says to wait.
    pub(super) fn wait(&self, target: usize) -> Option<Millis> {
        if let Kind::Busy(wait) = self.kinds[target] { Some(wait) } else { None }
    }

    /// The answer of a target at a time, through an exit.
    pub(super) fn answer(&mut self, target: usize, session: &str, rotations: u32, now: Millis) -> Seen {
        let is_blocked = match self.kinds[target] {
            Kind::Good | Kind::Slow(_) => false,
            Kind::BlocksUntil(until) => now < until,
            Kind::Busy(_) => {
                let seen = self.seen.entry((target, session.to_owned(), rotations)).or_default();
                *seen += 1;
                return Seen::Status(if seen.is_multiple_of(3) { 429 } else { 200 });
            }
            Kind::BlocksAfter(most) => {
                let seen = self.seen.entry((target, session.to_owned(), rotations)).or_default();
                *seen += 1;
                *seen > most
            }
        };
        Seen::Status(if is_blocked { 403 } else { 200 })
    }
}
