//! A story: the pool, its programs, their callers and targets, and what goes wrong.

use std::ops::{Range, RangeInclusive};

use hopline::client::Millis;
use hopline::contract::pools::PoolReplace;

use super::caller::CallerPlan;
use super::targets::Kind;

pub(super) const START: Millis = 1_800_000_000_000;
pub(super) const SECOND: Millis = 1000;
pub(super) const MINUTE: Millis = 60 * SECOND;
pub(super) const HOUR: Millis = 60 * MINUTE;
/// So long a call of the store takes, and a request of the service.
pub(super) const STORE: RangeInclusive<Millis> = 1..=12;
pub(super) const SERVICE: RangeInclusive<Millis> = 20..=200;

/// A trouble that lasts for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outage {
    /// No proxy can be reached.
    Proxies,
    /// None but that of the session that was lent first.
    OtherProxies,
    /// The service answers nothing but 503.
    Service,
    /// Reads of sessions are refused with this code and status; without a code by a page.
    Reads(Option<&'static str>, u16),
    /// Purchases are refused with this code.
    Purchases(&'static str),
    /// The same, and the products can't be read.
    Backend(&'static str),
    /// No call of the store is answered, and none is carried out.
    Store,
}

/// An event of a program, or an act of a person in it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Begin(usize),
    Close(usize),
    Kill(usize),
    /// A person calls this operation of the pool there, with these further members.
    Person(usize, &'static str, &'static str),
}

/// A program of a story.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) begins: Millis,
    /// How far its unix clock is off.
    pub(super) skew: Millis,
    /// The highest price at which it buys, if it has a limit of its own.
    pub(super) limit: Option<i64>,
    /// The country of its sessions, in place of any; it opens the pool with that in place of what the pool had.
    pub(super) country: Option<&'static str>,
    pub(super) callers: Vec<CallerPlan>,
}

/// A life of several programs, as data.
#[derive(Debug, Clone)]
pub(super) struct Story {
    pub(super) size: u32,
    pub(super) keep_ready: u32,
    pub(super) replace: Option<PoolReplace>,
    /// So many sessions are there at the beginning, with nobody.
    pub(super) there: u32,
    /// How long a session is being created.
    pub(super) creation: RangeInclusive<Millis>,
    /// How long a session lives once it is ready.
    pub(super) lives: Option<Millis>,
    /// So many sessions may be had at once.
    pub(super) limit: usize,
    /// The product is chosen for each purchase, in place of one that is named.
    pub(super) chooses: bool,
    /// The charge that is expected, so that no price is read.
    pub(super) expects: Option<i64>,
    /// How long what a killed program owned stays taken.
    pub(super) claims_outlast: Millis,
    pub(super) programs: Vec<Part>,
    pub(super) targets: Vec<Kind>,
    pub(super) outages: Vec<(Range<Millis>, Outage)>,
    pub(super) orders: Vec<(Millis, Order)>,
    pub(super) lasts: Millis,
}
