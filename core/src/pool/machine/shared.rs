//! The pool's record, as this client knows it, and whose it is.

use crate::contract::pools::{OpenPool, PoolHoldReason};
use crate::pool::record::{PoolRecord, RecordChange, request_of};
use crate::pool::rules::{PoolRule, holds};
use crate::state::CommandId;
use crate::time::Millis;

/// The interval at which the record is read again, whatever happens; and where this client has a session, or somebody waits, about this.
const READ_AGAIN: Millis = 60_000;
pub(super) const READ_BESIDE: Millis = 3000;
/// The time for which a read record allows purchases.
const FRESH: Millis = 1000;
/// The owner of the record, as far as this client knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Custody {
    #[default]
    Nobodys,
    /// The record is being claimed.
    Claiming,
    /// This client owns the record.
    Mine,
    /// The record is being put, or released.
    Leaving,
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct SharedRecord {
    /// The request for the pool's sessions.
    pub(super) request: String,
    /// As it was read last, with what is still to be put.
    pub(super) known: PoolRecord,
    pub(super) read_at: Option<Millis>,
    /// When it was asked for last.
    pub(super) asked_at: Millis,
    /// The record is read again after this, where this client takes part.
    pub(super) read_after: Millis,
    pub(super) custody: Custody,
    /// The changes to put.
    pub(super) changes: Vec<RecordChange>,
    /// The number of them that are being put.
    pub(super) putting: usize,
    /// True if the record is being put.
    pub(super) is_putting: bool,
    /// True if it may be this client's still, as it could not be let go of.
    pub(super) may_be_left: bool,
    /// Not before this.
    pub(super) next: Millis,
    pub(super) failures: u32,
    /// The command that waits for the pool to be open.
    pub(super) opening: Option<CommandId>,
    pub(super) is_open: bool,
    /// How often it had been drained when it was opened.
    pub(super) drains: u32,
    /// True if the record is to be read before a request that may buy is sent.
    pub(super) is_asked_for: bool,
    /// The commands that wait until all changes are put, and their operations.
    pub(super) asks: Vec<(CommandId, &'static str)>,
    /// Why nothing is bought, and until when, as it was told last.
    pub(super) told: Option<(PoolHoldReason, Option<Millis>)>,
    /// How often the store has failed in a row, for slots or for the record, and since when (Unix milliseconds).
    fails: Option<(u32, Millis)>,
}

/// A store that fails so often in a row is away. It is asked again all the same.
const AWAY: u32 = 3;

impl SharedRecord {
    pub(super) fn new(open: &OpenPool) -> Self {
        SharedRecord { request: request_of(open), changes: vec![RecordChange::Opened], ..SharedRecord::default() }
    }

    /// Returns true if the record was read so recently that purchases may rely on it.
    pub(super) fn is_fresh(&self, now: Millis) -> bool {
        self.custody == Custody::Mine || self.read_at.is_some_and(|at| now.saturating_sub(at) <= FRESH)
    }

    /// Returns true if the record was read since then.
    pub(super) fn was_read_since(&self, at: Millis) -> bool {
        self.read_at.is_some_and(|read_at| read_at >= at)
    }

    /// The largest size of the pool.
    pub(super) fn size(&self) -> u32 {
        self.known.size
    }

    /// Returns true if a change of this client's is still to be put.
    pub(super) fn is_behind(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Why nothing may be bought at all, beside a hold.
    pub(super) fn forbids_buying(&self) -> Option<PoolHoldReason> {
        self.known.forbids_buying().or(self.is_replaced().then_some(PoolHoldReason::Replaced))
    }

    /// Returns true if another client has opened the pool with another request, which is now the pool's.
    pub(super) fn is_replaced(&self) -> bool {
        self.is_open && self.known.request != self.request
    }

    /// When there is something to do about it; at once, where it is wanted for a purchase or there is something to put. `takes_part`: this
    /// client has a session, or somebody waits.
    pub(super) fn next(&self, now: Millis, is_wanted: bool, takes_part: bool) -> Option<Millis> {
        let read = self.read_at.map_or(now, |at| {
            at.saturating_add(if takes_part && holds(PoolRule::RecordIsReadOften) { self.read_after } else { READ_AGAIN })
        });
        let at = if is_wanted || !self.changes.is_empty() { now } else { read };
        (self.custody == Custody::Nobodys).then(|| at.max(self.next))
    }

    /// The store could not be asked, or its answer could not be read.
    pub(super) fn store_failed(&mut self, unix: Millis) {
        let (times, since) = self.fails.unwrap_or((0, unix));
        self.fails = Some((times.saturating_add(1), since));
    }

    /// The store has answered.
    pub(super) fn store_answered(&mut self) {
        self.fails = None;
    }

    /// Since when the store is away, if it is (Unix milliseconds).
    pub(super) fn away_since(&self) -> Option<Millis> {
        self.fails.filter(|(times, _)| *times >= AWAY).map(|(_, since)| since)
    }

    /// Returns true if no step of the record is out.
    pub(super) fn is_idle(&self) -> bool {
        self.custody == Custody::Nobodys
    }

    /// Claims that have ended.
    pub(super) fn lost(&mut self) {
        if self.custody == Custody::Mine {
            self.custody = Custody::Nobodys;
        }
    }
}
