//! The pool's record, as this client knows it, and whose it is.

use crate::contract::pools::{OpenPool, PoolHoldReason};
use crate::pool::record::{Change, PoolRecord, request_of};
use crate::state::CommandId;
use crate::time::Millis;

/// It is read again after this, whatever happens.
const READ_AGAIN: Millis = 60_000;
/// What was read is good for purchases for so long.
const FRESH: Millis = 1000;
/// Whose it is, as far as this client goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Custody {
    #[default]
    Nobodys,
    /// It is being claimed.
    Claiming,
    /// It is this client's.
    Mine,
    /// It is being put, or let go of.
    Leaving,
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Shared {
    /// What the sessions of the pool are.
    pub(super) request: String,
    /// As it was read last, with what is still to be put.
    pub(super) known: PoolRecord,
    pub(super) read_at: Option<Millis>,
    pub(super) custody: Custody,
    /// What is to be put, and how much of it is being put.
    pub(super) changes: Vec<Change>,
    pub(super) putting: usize,
    /// Not before this.
    pub(super) next: Millis,
    pub(super) failures: u32,
    /// Who waits for the pool to be open.
    pub(super) opening: Option<CommandId>,
    pub(super) is_open: bool,
    /// How often it had been drained when it was opened.
    pub(super) drains: u32,
    /// Whether it is to be read before something is sent that may buy.
    pub(super) is_asked_for: bool,
    /// Who waits until all changes are put.
    pub(super) asks: Vec<CommandId>,
    /// Why nothing is bought, and until when, as it was told last.
    pub(super) told: Option<(PoolHoldReason, Option<Millis>)>,
}

impl Shared {
    pub(super) fn new(open: &OpenPool) -> Self {
        Shared { request: request_of(open), changes: vec![Change::Opened], ..Shared::default() }
    }

    pub(super) fn is_owned(&self) -> bool {
        self.custody == Custody::Mine
    }

    /// Whether it was read so lately that what it says may be bought by.
    pub(super) fn is_fresh(&self, now: Millis) -> bool {
        self.custody == Custody::Mine || self.read_at.is_some_and(|at| now.saturating_sub(at) <= FRESH)
    }

    /// Whether it was read since then.
    pub(super) fn was_read_since(&self, at: Millis) -> bool {
        self.read_at.is_some_and(|read_at| read_at >= at)
    }

    /// The largest size of the pool.
    pub(super) fn size(&self) -> u32 {
        self.known.size
    }

    /// Whether something of this client's is still to be put.
    pub(super) fn is_behind(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Why nothing may be bought at all, beside a hold.
    pub(super) fn forbids_buying(&self) -> Option<PoolHoldReason> {
        self.known.forbids_buying().or(self.is_replaced().then_some(PoolHoldReason::Replaced))
    }

    /// Whether another client has opened the pool with another request, which is the pool's by now.
    pub(super) fn is_replaced(&self) -> bool {
        self.is_open && self.known.request != self.request
    }

    /// When there is something to do about it; at once, where it is wanted for a purchase or there is something to put.
    pub(super) fn next(&self, now: Millis, is_wanted: bool) -> Option<Millis> {
        let read = self.read_at.map_or(now, |at| at.saturating_add(READ_AGAIN));
        let at = if is_wanted || !self.changes.is_empty() { now } else { read };
        (self.custody == Custody::Nobodys).then(|| at.max(self.next))
    }

    /// Whether no step of it is out.
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
