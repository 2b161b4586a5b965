//! The pool's record is read before purchases and each few seconds, and changed by whoever has something to say: who opens the pool, who finds
//! that nothing can be bought, who pauses or drains it, who needs more sessions than it has.

use super::action::PoolAction;
use super::root::{Machine, told};
use super::shared::{Custody, READ_BESIDE};
use super::slots::Doing;
use crate::client::{Client, PoolFound};
use crate::contract::json_of;
use crate::contract::pools::{OpenPool, OpenedPool, PoolOnChange};
use crate::engine::EventKind;
use crate::policy::{Advice, Backoff, Effect, Error, Kind};
use crate::pool::record::{PoolRecord, RecordChange, differing, request_of};
use crate::pool::rules::{PoolRule, holds};
use crate::state::CommandId;
use crate::time::Millis;

/// A pool's record that is asked for again while another client has it or the store fails.
const ASK_AGAIN: Backoff = Backoff { first: 250, most: 8000 };
/// The record is asked for again after one to four times this where another client has it.
const ASK_BUSY: Millis = 100;

impl Machine {
    /// Cancels the opening of the pool. Returns true if it was being opened.
    pub(super) fn leave_opening(&mut self, command: CommandId) -> bool {
        if self.shared.opening != Some(command) {
            return false;
        }
        self.shared.opening = None;
        let error = Error::new(Kind::Cancelled, Effect::None, self.opens_by(), "was cancelled before the pool was open", Advice::Nothing);
        self.complete(command, Err(error));
        self.begin_closing(None, 0, None);
        true
    }

    /// Claims the pool's record, changes it, or lets go of it, as is due.
    pub(super) fn share(&mut self, now: Millis) {
        match self.shared.custody {
            Custody::Nobodys if self.shares_at(now).is_some_and(|at| at <= now) => {
                (self.shared.custody, self.shared.asked_at) = (Custody::Claiming, now);
                self.act(PoolAction::ClaimRecord);
            }
            // An entry that is due before the next read is put with this one, which costs no call of the store.
            Custody::Mine if !self.shared.changes.is_empty() || self.is_entry_due(now, self.shared.read_after) => self.put_shared(),
            Custody::Mine => {
                self.shared.custody = Custody::Leaving;
                self.act(PoolAction::ReleaseRecord);
            }
            _ => {}
        }
    }

    /// When the record is claimed next.
    pub(super) fn shares_at(&self, now: Millis) -> Option<Millis> {
        let is_wanted =
            self.shared.is_asked_for || self.shared.may_be_left || self.looks() || (self.closing.is_none() && self.is_entry_due(now, 0));
        let takes_part = self.closing.is_none() && (self.here().has > 0 || self.leases.waiting() > 0);
        self.shared.next(now, is_wanted, takes_part).filter(|_| !self.is_gone())
    }

    /// Returns true if the record is to say something else of this client, now or within `ahead`.
    fn is_entry_due(&self, now: Millis, ahead: Millis) -> bool {
        let is_due = || match self.shares_with_others() {
            false => self.sharing.is_listed(),
            true => self.sharing.is_to_put(self.here(), now, ahead),
        };
        self.shared.is_open && !self.joins && is_due()
    }

    /// Returns true if this client gets and gives sessions: of a pool with another request it lends none.
    fn shares_with_others(&self) -> bool {
        self.closing.is_none() && !self.shared.is_replaced()
    }

    fn put_shared(&mut self) {
        self.shared.custody = Custody::Leaving;
        (self.shared.putting, self.shared.is_putting) = (self.shared.changes.len(), true);
        let here = self.shares_with_others().then(|| self.here());
        // Others may change it from the put on, before this client hears that it was made.
        self.shared.asked_at = self.now.monotonic;
        self.shared.known.clients = self.sharing.put_entries(here, self.shared.asked_at);
        let data = self.shared.known.bytes();
        self.act(PoolAction::PutRecord(data));
    }

    /// The record was claimed, or another client has it.
    pub(super) fn found(&mut self, client: &mut Client, found: PoolFound) {
        let now = self.now.monotonic;
        self.looked();
        let (data, is_mine) = match found {
            PoolFound::Mine(data) => (data, true),
            PoolFound::Others(data) => (data, false),
            // It may be this client's all the same.
            PoolFound::Failed => {
                self.shared.store_failed(self.now.unix);
                self.shared.custody = Custody::Leaving;
                self.act(PoolAction::ReleaseRecord);
                return self.share_later(now, "could not be read, because the store failed");
            }
        };
        self.shared.store_answered();
        self.shared.custody = if is_mine { Custody::Mine } else { Custody::Nobodys };
        self.shared.may_be_left = false;
        let read = data.as_deref().map_or(Some(PoolRecord::default()), PoolRecord::read);
        let Some(read) = read else {
            // The record stays as it is.
            if is_mine {
                self.shared.custody = Custody::Leaving;
                self.act(PoolAction::ReleaseRecord);
            }
            return self.share_later(now, "can't be read; another version of Hopline may have written it");
        };
        // A record that another client makes at this moment is not there yet.
        if !is_mine && data.is_none() {
            return self.share_later(now, "is not there yet");
        }
        let is_new = data.is_none();
        // Somebody has deleted the record of a pool that is open.
        if is_new && self.shared.is_open && !self.joins && self.closing.is_none() && !self.shared.changes.contains(&RecordChange::Opened) {
            self.shared.changes.push(RecordChange::Opened);
        }
        if self.joins && !self.shared.is_open {
            match read.reopened() {
                Some(open) if !is_new => self.take_request(open),
                _ => return self.refuse_opening("does not belong to a pool in the store"),
            }
        }
        let differs = !is_new && read.request != self.shared.request;
        let may_replace = self.options.on_change == Some(PoolOnChange::Replace);
        let (opens, was_lately) = (self.shared.changes.contains(&RecordChange::Opened), read.was_replaced_lately(self.now.unix));
        if differs && opens && may_replace && was_lately {
            let rule = "belongs to a pool whose request was replaced less than 10 min ago; open it with that one, or try again later";
            return self.refuse_opening(rule);
        }
        if differs && opens && may_replace && !self.shared.changes.iter().any(|change| matches!(change, RecordChange::Replaced { .. })) {
            self.shared.changes.push(RecordChange::Replaced { at: self.now.unix });
        }
        if differs && opens && !may_replace {
            let names: Vec<String> = differing(&read.request, &self.shared.request).iter().map(|name| format!("`{name}`")).collect();
            let rule = format!(
                "belongs to a pool with another {}; choose another name, or set `on_change` to `replace`",
                names.join(" and another ")
            );
            return self.refuse_opening(&rule);
        }
        let before = read.clone();
        // What another client has at this moment may be older than the answer.
        let read_at = if is_mine { now } else { self.shared.asked_at };
        (self.shared.read_at, self.shared.is_asked_for) = (Some(read_at), false);
        self.shared.read_after = READ_BESIDE * 3 / 4 + Millis::from(self.dice.below((READ_BESIDE / 2) as u32));
        self.sharing.read(&read.clients, now);
        self.shared.known = read;
        for change in &self.shared.changes {
            self.shared.known.apply(change, &self.options, &self.shared.request);
        }
        if self.shared.known == before {
            self.shared.changes.clear();
            self.tell_put(client);
        }
        if is_mine {
            self.shared.failures = 0;
        } else if (self.shared.is_behind() || !self.asking.kept.is_empty() || self.is_entry_due(now, 0)) && holds(PoolRule::BusyIsAskedSoon)
        {
            self.shared.next = now + ASK_BUSY + Millis::from(self.dice.below(3 * ASK_BUSY as u32));
        }
        self.adopt();
        self.withdraw_purchases();
        // Another client that has it keeps nobody from opening it as it is.
        if self.shared.changes.is_empty() || (!is_mine && !differs) {
            self.opened_pool();
        }
    }

    /// Applies the record here, too.
    fn adopt(&mut self) {
        self.buyer.read(self.shared.known.buying, self.sharing.do_others_try(), self.now.unix, self.now.monotonic);
        self.sharing.waits_for_others(self.buyer.waits_for_others());
        if self.shared.is_open && self.shared.known.drains > self.shared.drains {
            self.shared.drains = self.shared.known.drains;
            self.drain_unheard(self.shared.known.draining, self.shared.known.draining_static);
        }
    }

    /// The record was put, or let go of; or nobody knows.
    pub(super) fn shared_put(&mut self, client: &mut Client, is_done: bool) {
        let now = self.now.monotonic;
        self.shared.custody = Custody::Nobodys;
        let putting = std::mem::take(&mut self.shared.putting);
        // The record is busy for others until then.
        self.shared.may_be_left = !is_done;
        if !is_done && self.shared.next <= now {
            self.shared.next = now.saturating_add(ASK_AGAIN.wait(self.shared.failures));
        }
        if !std::mem::take(&mut self.shared.is_putting) {
            return;
        }
        self.trial_put(is_done);
        if !is_done {
            self.sharing.not_put();
            return self.share_later(now, "could not be put, because the store failed");
        }
        self.shared.changes.drain(..putting.min(self.shared.changes.len()));
        (self.shared.failures, self.shared.read_at) = (0, Some(self.shared.asked_at));
        self.opened_pool();
        self.tell_put(client);
    }

    /// Completes the commands that wait for their changes in the record, once it has them.
    fn tell_put(&mut self, client: &mut Client) {
        if self.shared.changes.is_empty() {
            for (command, _) in std::mem::take(&mut self.shared.asks) {
                self.tell_own_status(client, command);
            }
        }
    }

    /// Cancels a command's wait for the record. Its change stands.
    pub(super) fn leave_asking(&mut self, command: CommandId) -> bool {
        if let Some(at) = self.spent.asks.iter().position(|known| *known == command) {
            self.spent.asks.remove(at);
            let what = "was cancelled before the store was read";
            self.complete(command, Err(Error::new(Kind::Cancelled, Effect::None, "pool_status", what, Advice::Nothing)));
            return true;
        }
        let Some(at) = self.shared.asks.iter().position(|(known, _)| *known == command) else { return false };
        let (_, operation) = self.shared.asks.remove(at);
        let what = "is not waited for any more; other clients may hear of it later";
        self.complete(command, Err(Error::new(Kind::Cancelled, Effect::Unknown, operation, what, Advice::Nothing)));
        true
    }

    fn ask_for_record_later(&mut self, now: Millis) {
        let wait = ASK_AGAIN.wait(self.shared.failures);
        self.shared.failures = self.shared.failures.saturating_add(1);
        self.shared.next = now.saturating_add(wait);
    }

    /// Reads the record again later. An opening gets an error after a few times.
    fn share_later(&mut self, now: Millis, why: &str) {
        self.ask_for_record_later(now);
        if self.shared.failures < 3 {
            return;
        }
        for (command, operation) in std::mem::take(&mut self.shared.asks) {
            let what = format!("holds for this client, and other clients may not hear of it, because the pool's record {why}");
            self.complete(command, Err(Error::new(Kind::Store, Effect::Unknown, operation, what, Advice::MendStore)));
        }
        if let Some(command) = self.shared.opening.take() {
            let what = format!("was not done, because the pool's record {why}");
            self.complete(command, Err(Error::new(Kind::Store, Effect::None, self.opens_by(), what, Advice::MendStore)));
            self.begin_closing(None, 0, None);
        }
    }

    /// A pool that is joined is what it was opened as before.
    fn take_request(&mut self, open: OpenPool) {
        (self.shared.request, self.params) = (request_of(&open), json_of(&open.session()));
        self.options = open;
    }

    /// The operation that it is opened by.
    fn opens_by(&self) -> &'static str {
        if self.joins { "join_pool" } else { "open_pool" }
    }

    fn refuse_opening(&mut self, rule: &str) {
        self.shared.changes.clear();
        if let Some(command) = self.shared.opening.take() {
            self.complete(command, Err(Error::invalid(self.opens_by(), "name", rule)));
        }
        self.begin_closing(None, 0, None);
    }

    fn opened_pool(&mut self) {
        if !self.shared.is_open {
            (self.shared.is_open, self.shared.drains) = (true, self.shared.known.drains);
        }
        if let Some(command) = self.shared.opening.take() {
            self.complete(command, Ok(told(&OpenedPool { pool: self.number })));
        }
    }

    /// Says so where purchases are held back from now on, or for another reason or time, or are not any more.
    pub(super) fn tell_hold(&mut self) {
        let hold = self.held_by().map(|(reason, _, retry_at)| (reason, retry_at));
        if hold == std::mem::replace(&mut self.shared.told, hold) || self.closing.is_some() {
            return;
        }
        if hold.is_none() {
            self.look_at_doubts(self.now.monotonic);
        }
        let what = hold.map_or(EventKind::PoolFreed, |(reason, retry_at)| EventKind::PoolHeld { reason, retry_at });
        self.notify(what);
    }

    /// Slots in doubt are looked at now: their keys may be sent again, or somebody has settled them.
    pub(super) fn look_at_doubts(&mut self, now: Millis) {
        for slot in self.slots.which(|held| matches!(held.doing, Doing::Doubts { .. })) {
            self.slots.wake_at(slot, now);
        }
    }
}
