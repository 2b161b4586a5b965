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
    /// Answers 429 through an exit for ever, after so many answers.
    Throttles(u32),
    /// Answers 429 where an exit asks again within so long.
    Paced(Millis),
}

/// The end of the world: what blocks until then blocks for ever.
pub(super) const EVER: Millis = Millis::MAX;

/// The targets of a story, and what they have seen.
#[derive(Debug)]
pub(super) struct Targets {
    kinds: Vec<Kind>,
    /// The answers through each exit: by target, session and its rotations.
    seen: BTreeMap<(usize, String, u32), u32>,
    /// When each exit asked last.
    asked: BTreeMap<(usize, String, u32), Millis>,
}

impl Targets {
    pub(super) fn new(kinds: Vec<Kind>) -> Self {
        Targets { kinds, seen: BTreeMap::new(), asked: BTreeMap::new() }
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
        match self.kinds[target] {
            Kind::Busy(wait) | Kind::Paced(wait) => Some(wait),
            _ => None,
        }
    }

    /// The answer of a target at a time, through an exit.
    pub(super) fn answer(&mut self, target: usize, session: &str, rotations: u32, now: Millis) -> Seen {
        let mut asks = || {
            let seen = self.seen.entry((target, session.to_owned(), rotations)).or_default();
            *seen += 1;
            *seen
        };
        let throttles = |is_so| Seen::Status(if is_so { 429 } else { 200 });
        let is_blocked = match self.kinds[target] {
            Kind::Good | Kind::Slow(_) => false,
            Kind::BlocksUntil(until) => now < until,
            Kind::Busy(_) => return throttles(asks().is_multiple_of(3)),
            Kind::Throttles(most) => return throttles(asks() > most),
            Kind::Paced(apart) => {
                let before = self.asked.insert((target, session.to_owned(), rotations), now);
                return throttles(before.is_some_and(|before| now - before < apart));
            }
            Kind::BlocksAfter(most) => asks() > most,
        };
        Seen::Status(if is_blocked { 403 } else { 200 })
    }
}
