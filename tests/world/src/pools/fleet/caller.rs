//! Callers: threads that acquire a lease, work with it, say what they saw, give it back, and pause.

use std::ops::Range;

use hopline::client::Millis;
use hopline::contract::pools::LeaseRef;

/// The target of a caller's requests.
#[derive(Debug, Clone, Copy)]
pub(super) enum Aim {
    Nothing,
    One(usize),
    /// One of all, drawn each time.
    Any,
}

/// The life of a thread.
#[derive(Debug, Clone)]
pub(super) struct CallerPlan {
    pub(super) aim: Aim,
    pub(super) key: Option<String>,
    /// How long it works; where it is not exact, half as long to half as long again.
    pub(super) work: Millis,
    pub(super) is_exact: bool,
    pub(super) pause: Millis,
    pub(super) timeout: Millis,
    /// The time within which it asks.
    pub(super) during: Range<Millis>,
    /// The length of a round, in which it asks once in place of pausing.
    pub(super) every: Option<Millis>,
    /// After a block it asks for another session.
    pub(super) avoids: bool,
    /// After a block, or where it is asked to wait, it discards the session.
    pub(super) discards: bool,
    /// It puts data for an exit that has none.
    pub(super) keeps_data: bool,
    /// So many requests through one lease at once, which all have the same answer.
    pub(super) requests: u32,
}

/// A thread.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) plan: CallerPlan,
    pub(super) place: usize,
    /// The program in which it waits, and since when.
    pub(super) waits: Option<(u8, Millis)>,
    pub(super) target: Option<usize>,
    /// The session by which its last request was blocked.
    pub(super) avoids: Option<String>,
    /// The session that it has asked to avoid.
    pub(super) asked_to_avoid: Option<String>,
}

/// A lease that a caller has.
#[derive(Debug, Clone)]
pub(super) struct Out {
    pub(super) lease: LeaseRef,
    pub(super) session: String,
    pub(super) rotations: u32,
    /// True if its exit has data of callers.
    pub(super) has_data: bool,
}

/// Threads that work for so long, without target or key.
pub(super) fn threads(many: usize, work: Millis) -> Vec<CallerPlan> {
    let plan = CallerPlan {
        aim: Aim::Nothing,
        key: None,
        work,
        is_exact: false,
        pause: 0,
        timeout: 30_000,
        during: 0..Millis::MAX,
        every: None,
        avoids: false,
        discards: false,
        keeps_data: false,
        requests: 1,
    };
    vec![plan; many]
}
