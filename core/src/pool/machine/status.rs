//! How a pool is, for people; and those who wait for its sessions to be ready.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::action::PoolAction;
use super::asking::LOOKS;
use super::input::ListedPage;
use super::root::{Machine, told};
use super::slots::{Doing, HeldSlot};
use crate::client::Client;
use crate::contract::pools::{PoolHoldReason, PoolNeeds, PoolReason, PoolSlot, PoolSlotReason, PoolSlotState, PoolStatus, PoolStatusOf};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::leases::{Resting, SlotNo, WaiterId};
use crate::pool::others::SeenSlot;
use crate::pool::targets::TargetId;
use crate::pool::unavailable::{Comes, PoolCounts, Rests, Shortage};
use crate::state::{CommandId, Name};
use crate::time::{Millis, Now};

/// How long sessions are waited for.
pub(super) const READY_TIMEOUT: Millis = 300_000;

impl Machine {
    /// Returns true if the session of a slot rests for all targets.
    fn rests(&self, slot: SlotNo, held: &HeldSlot, now: Millis) -> bool {
        held.doing == Doing::Lends && self.leases.rests_for_all(slot, now)
    }

    /// Sessions without a lease that are not at work.
    fn free(&self) -> u32 {
        u32::try_from(self.leases.idle_count()).unwrap_or(u32::MAX).min(self.slots.counts.lends)
    }

    /// How it is, as far as this client knows.
    pub(in crate::pool) fn status(&self, client: &Client, at: Now) -> PoolStatus {
        let now = at.monotonic;
        let rests = self.slots.iter().filter(|(slot, held)| self.rests(*slot, held, now)).count();
        let rests = u32::try_from(rests).unwrap_or(u32::MAX).min(self.free());
        let slot = |(slot, held): (SlotNo, &HeldSlot)| {
            let session = held.session.as_ref();
            Some(PoolSlot {
                slot,
                state: match self.rests(slot, held, now) {
                    true => PoolSlotState::Resting,
                    false => held.doing.state(self.leases.is_lent(slot))?,
                },
                reason: Some(PoolSlotReason::ProxyFails).filter(|_| self.rests(slot, held, now)).or_else(|| reason_of(held)),
                purchase: session.and_then(|session| client.purchase_number(&session.id)),
                session_id: session.map(|session| session.id.to_string()),
                generation: session.map(|session| session.generation),
                age_ms: session.map(|session| now.saturating_sub(session.ready_at)),
            })
        };
        let names = self.blocking.all_everywhere().filter_map(|target| self.labels.get(&target)).map(ToString::to_string);
        let counts = self.counts();
        PoolStatus {
            size: counts.size,
            ready: counts.ready - rests,
            leased: counts.leased,
            creating: counts.creating,
            changing: counts.changing,
            resting: counts.resting + counts.left + rests,
            in_doubt: counts.in_doubt,
            empty: counts.empty,
            with_others: counts.with_others,
            free_in_store: counts.free_in_store,
            unknown: counts.unknown,
            waiting: u32::try_from(self.leases.waiting()).unwrap_or(u32::MAX),
            hold: self.hold(at.unix),
            blocked_everywhere: names.collect(),
            spent_today_usd: self.spent.on(at.unix),
            slots: self.slots.iter().filter_map(slot).collect(),
        }
    }

    /// The slots by what they are.
    fn counts(&self) -> PoolCounts {
        let (own, others, size, ready) = (&self.slots.counts, self.slots.others.counts, self.whole_size(), self.free());
        // Of those that may be with others, as many are as others say that they have.
        let taken = others.empty_or_taken.min(self.sharing.others_have().saturating_sub(others.with_others));
        PoolCounts {
            size,
            ready,
            leased: own.lends - ready,
            creating: own.coming - own.reading - own.renewing,
            changing: own.rotating + own.reading + own.renewing,
            resting: own.waiting + own.resting,
            left: own.left,
            in_doubt: own.in_doubt + others.in_doubt,
            empty: own.empty + others.empty + (others.empty_or_taken - taken),
            with_others: others.with_others + taken,
            free_in_store: others.free_in_store,
            unknown: size.saturating_sub(self.slots.len() + others.seen()),
        }
    }

    /// Returns true if there are slots of which this client has never seen anything, so far as it looks for sessions.
    pub(super) fn has_unseen(&self) -> bool {
        self.slots.room() > 0 && self.counts().unknown > 0 && self.slots.others.counts.seen() < LOOKS
    }

    /// Returns true if they are looked at, as nothing may be bought.
    pub(super) fn looks_for_unseen(&self) -> bool {
        self.held_by().is_some() && self.has_unseen()
    }

    /// The situation of those who wait for a session for a target.
    pub(super) fn shortage_for(&self, target: TargetId) -> Shortage<'_> {
        let now = self.now.monotonic;
        let resting = self.leases.resting(target, now);
        let resting = Resting { until: resting.until.map(|at| self.now.unix.saturating_add(at.saturating_sub(now))), ..resting };
        Shortage { target: self.labels.get(&target).map(ArcStr::as_str), ..self.shortage(now, resting) }
    }

    /// The situation of somebody for whom these rest. A lent one is as good as a free one to them.
    fn shortage(&self, now: Millis, resting: Resting) -> Shortage<'_> {
        let counts = self.counts();
        let lent = resting.lent.min(counts.leased);
        let counts = PoolCounts { ready: counts.ready + lent, leased: counts.leased - lent, ..counts };
        Shortage {
            counts,
            target: None,
            rests: Rests { count: resting.free.saturating_add(lent).min(counts.ready), until: resting.until },
            lent_for: self.leases.oldest().0.map(|since| now.saturating_sub(since)),
            has_room: self.slots.room() > 0,
            replaces: self.replaces(),
            is_asking: self.is_asking(),
            has_asked: !self.has_unseen(),
            hold: self.hold(self.now.unix),
        }
    }

    /// The error for those who get no session, or not as many as they want.
    pub(super) fn unavailable(&self, operation: &'static str, lead: &str, shortage: &Shortage<'_>) -> Error {
        let reason = shortage.reason();
        let what = format!("{lead}; {}", shortage.in_words());
        // The cause, if this client knows it; and if a person or program has to act, the advice for that.
        let is_cause = |refused: &&Error| PoolReason::from(PoolHoldReason::of_error(refused).0) == reason;
        let cause = self.refused.as_deref().filter(is_cause).cloned();
        let needs = shortage.hold.as_ref().filter(|hold| PoolReason::from(hold.reason) == reason).map(|hold| hold.needs);
        let advice = match (&cause, reason) {
            (Some(cause), _) if needs.is_some_and(|needs| needs != PoolNeeds::Nobody) => cause.advice,
            (_, PoolReason::Left | PoolReason::Over) => Advice::ChangeRequest,
            (_, PoolReason::Store) => Advice::MendStore,
            _ => Advice::RetryLater,
        };
        let error = Error::new(Kind::Unavailable, Effect::None, operation, what, advice);
        error.with(|new| (new.reason, new.retry_at, new.cause) = (Some(reason), shortage.retry_at(), cause))
    }

    /// Ends those who have waited for as long as they said.
    pub(super) fn end_late(&mut self, now: Millis) {
        self.end_waits(self.callers.late(now), "no session was free in time");
    }

    /// Fails the callers at once to whom no session comes before their time is over.
    pub(super) fn fail_fast(&mut self, now: Millis) {
        let all = Resting { free: u32::MAX, lent: u32::MAX, until: None };
        let is_any_lent = self.slots.counts.lends > self.free() && self.leases.is_any_to_come_back(now);
        if self.leases.waiting() == 0 || is_any_lent || self.shortage(now, all).comes() == Comes::Soon {
            return;
        }
        for target in self.leases.targets() {
            let comes = match self.shortage_for(target).comes() {
                Comes::Soon => continue,
                Comes::At(at) => Some(now.saturating_add(at.saturating_sub(self.now.unix))),
                Comes::Never => None,
            };
            let waiters = self.callers.gone_by(comes).into_iter().filter(|waiter| self.leases.wanted_target(*waiter) == Some(target));
            self.end_waits(waiters.collect(), "no session is free");
        }
    }

    fn end_waits(&mut self, waiters: Vec<WaiterId>, lead: &str) {
        let mut errors: BTreeMap<TargetId, Error> = BTreeMap::new();
        for waiter in waiters {
            let Some(target) = self.leases.wanted_target(waiter) else { continue };
            let error = || self.unavailable("acquire", lead, &self.shortage_for(target));
            let error = errors.entry(target).or_insert_with(error).clone();
            self.end_wait(waiter, error);
        }
    }

    /// The largest size that the pool was opened with, here or elsewhere.
    fn whole_size(&self) -> u32 {
        self.options.size.max(self.shared.size())
    }

    pub(super) fn tell_own_status(&mut self, client: &mut Client, command: CommandId) {
        let status = self.status(client, self.now);
        self.complete(command, Ok(told(&status)));
    }

    /// How it is, also in other clients where that is asked.
    pub(in crate::pool) fn tell_status(&mut self, client: &mut Client, command: CommandId, asked: &PoolStatusOf) {
        if !asked.everywhere.unwrap_or_default() {
            return self.tell_own_status(client, command);
        }
        self.spent.asks.push(command);
        // While the store is read, also for somebody who does not wait any more, whoever comes waits for that.
        if !self.spent.is_reading {
            self.spent.is_reading = true;
            self.spent.names = (0..self.whole_size()).map(|slot| (self.slot_name(slot), slot)).collect();
            self.act(PoolAction::List(None));
        }
    }

    /// Returns true if the store is read for this name.
    pub(in crate::pool) fn reads(&self, name: &Name) -> bool {
        self.spent.names.contains_key(name)
    }

    /// A page of what the store holds.
    pub(super) fn listed(&mut self, client: &mut Client, page: Option<ListedPage>) {
        let Some(ListedPage { slots, after }) = page else {
            (self.spent.is_reading, self.spent.names) = (false, BTreeMap::new());
            for command in std::mem::take(&mut self.spent.asks) {
                let what = "could not be done, because the store could not be read";
                self.complete(command, Err(Error::new(Kind::Store, Effect::None, "pool_status", what, Advice::MendStore)));
            }
            return;
        };
        for (name, seen) in slots {
            if let Some(slot) = self.spent.names.remove(&name).filter(|slot| !self.slots.is_known(*slot)) {
                self.slots.others.note(slot, seen);
            }
        }
        if after.is_some() {
            return self.act(PoolAction::List(after));
        }
        self.spent.is_reading = false;
        for slot in std::mem::take(&mut self.spent.names).into_values() {
            if !self.slots.is_known(slot) {
                self.slots.others.note(slot, SeenSlot::Empty);
            }
        }
        for command in std::mem::take(&mut self.spent.asks) {
            self.tell_own_status(client, command);
        }
    }

    pub(super) fn tell_ready(&mut self, client: &mut Client, now: Millis) {
        let ready = self.free();
        for waiter in self.callers.take_ready(ready, now) {
            if waiter.count <= ready {
                self.tell_own_status(client, waiter.command);
            } else {
                let lead = format!("only {ready} of {} sessions were free in time", waiter.count);
                let error = self.unavailable("wait_ready", &lead, &self.shortage_for(TargetId::NONE));
                self.complete(waiter.command, Err(error));
            }
        }
    }
}

/// Why the session of a slot can't be lent.
fn reason_of(held: &HeldSlot) -> Option<PoolSlotReason> {
    let session = held.session.as_deref();
    Some(match held.doing {
        Doing::Lends | Doing::Empty => return None,
        Doing::Buys { .. } => PoolSlotReason::Buying,
        Doing::Takes { ends: false } => PoolSlotReason::TakingOver,
        Doing::Reads => PoolSlotReason::Reading,
        Doing::Rotates => PoolSlotReason::Rotating,
        Doing::Renews => PoolSlotReason::Renewing,
        Doing::Ends | Doing::Takes { ends: true } => PoolSlotReason::Ending,
        Doing::Waits if session.is_some_and(|session| session.ends_after_leases) => PoolSlotReason::Ending,
        Doing::Waits if session.is_some_and(|session| session.renews_again) => PoolSlotReason::Renewing,
        Doing::Waits if session.is_some_and(|session| session.is_unsure) => PoolSlotReason::InDoubt,
        Doing::Waits if session.is_some_and(|session| session.is_discarded) => PoolSlotReason::Left,
        Doing::Waits => PoolSlotReason::NotReady,
        Doing::Doubts { .. } => PoolSlotReason::InDoubt,
        Doing::Rests | Doing::Left => PoolSlotReason::Left,
    })
}
