//! The inputs of a pool: each input ends with one turn, which does the work that is due now.

use super::callers::ReadyWaiter;
use super::closing::GRACE;
use super::input::PoolInput;
use super::parts::Ends;
use super::root::{BLOCKS, For, Machine, TIMEOUT, answered, hash, is_closed, is_dynamic};
use super::slots::{Doing, PoolSession};
use super::status::READY_TIMEOUT;
use crate::client::Client;
use crate::contract::pools::{AcquireLease, DrainPool, LeaseAdvice, PoolReason, PoolReplace, WaitReady};
use crate::contract::{Json, Shaped, json_of};
use crate::engine::EventKind;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::buyer::{AT_ONCE, BuyingChange};
use crate::pool::leases::{LEAKS, LeaseGrant, LeaseId, ObservationResult, SlotNo};
use crate::pool::record::RecordChange;
use crate::pool::rules::{PoolRule, holds};
use crate::pool::share::SPARE_FIRST;
use crate::pool::targets::{Consequence, Observation, TargetId};
use crate::state::{CommandId, Name, Seen};
use crate::time::{Millis, Now};

impl Machine {
    /// Adds a caller that waits for a lease.
    pub(in crate::pool) fn acquire(&mut self, client: &mut Client, command: CommandId, asked: &AcquireLease) {
        if self.closing.is_some() {
            return self.complete(command, Err(is_closed("acquire")));
        }
        if self.joins {
            let what = "the pool was joined, and not opened: it lends nothing to this client";
            return self.complete(command, Err(Error::new(Kind::Misuse, Effect::None, "acquire", what, Advice::ChangeRequest)));
        }
        let key = asked.key.as_deref().map(|key| hash("key", key));
        let target = TargetId::of(asked.target.as_deref());
        if let Some(label) = &asked.target {
            self.label(target, label);
        }
        let avoid = asked.avoid.as_deref().map(|session| hash("session", session));
        let until = self.now.monotonic.saturating_add(asked.timeout_ms.unwrap_or(TIMEOUT));
        let waiter = self.leases.ask(target, key, avoid, until);
        self.callers.add(waiter, command, until);
        self.turn(client);
        let most = self.options.max_waiters.filter(|most| self.leases.waiting() > *most as usize);
        if let Some(most) = most.filter(|_| self.callers.waiter_of(command).is_some()) {
            let lead = format!("was refused, since `max_waiters` is {most} and so many callers wait already");
            let error = self.unavailable("acquire", &lead, &self.shortage_for(target));
            self.end_wait(waiter, error.with(|new| (new.reason, new.advice) = (Some(PoolReason::Waiters), Advice::RetryLater)));
        }
    }

    /// Cancels the wait of a command. Returns true if it did wait.
    pub(in crate::pool) fn leave(&mut self, client: &mut Client, command: CommandId) -> bool {
        let waited =
            self.leave_lending(command) || self.leave_opening(command) || self.leave_closing(command) || self.leave_asking(command);
        if waited {
            self.turn(client);
        }
        waited
    }

    /// Cancels the wait for a lease, or for ready sessions.
    fn leave_lending(&mut self, command: CommandId) -> bool {
        let error = |operation, what: &str| Error::new(Kind::Cancelled, Effect::None, operation, what, Advice::Nothing);
        if let Some(waiter) = self.callers.waiter_of(command) {
            let goes_on = if self.slots.counts.buying > 0 { ", and what is being bought goes on" } else { "" };
            self.end_wait(waiter, error("acquire", &format!("was cancelled before a session was free{goes_on}")));
            return true;
        }
        let waited = self.callers.leave_ready(command);
        if waited {
            self.complete(command, Err(error("wait_ready", "was cancelled before enough sessions were ready")));
        }
        waited
    }

    /// A lease comes back.
    pub(in crate::pool) fn give_back(&mut self, client: &mut Client, lease: LeaseId) {
        self.take_back(lease);
        self.turn(client);
    }

    pub(super) fn take_back(&mut self, lease: LeaseId) {
        let has_news = |slot: &SlotNo| self.slots.session(*slot).is_some_and(|session| session.is_data_new);
        if let Some(slot) = self.leases.slot_of(lease).filter(has_news).filter(|_| holds(PoolRule::DataIsPutOnReturn)) {
            self.write_notes(slot, true);
        }
        self.leases.give_back(lease, self.now.monotonic);
    }

    /// Something was seen through a lease. None where the lease is not valid, or the exit is another one by now.
    pub(in crate::pool) fn observe(
        &mut self,
        client: &mut Client,
        lease: LeaseId,
        seen: Seen,
        wait: Option<Millis>,
    ) -> Option<LeaseAdvice> {
        let (now, sight) = (self.now.monotonic, Observation::of(seen, wait));
        let ObservationResult { slot, target, follows, answers } = self.leases.observe(lease, sight, now)?;
        self.blocking.note(target, sight, follows, answers, now);
        if sight.is_answer() {
            self.proxies.worked(slot, now);
        }
        let everywhere = self.blocking.everywhere(target);
        let advice = match follows {
            Consequence::Nothing => LeaseAdvice::Keep,
            Consequence::Blocked { .. } | Consequence::Rests if everywhere => LeaseAdvice::Wait,
            Consequence::Blocked { .. } | Consequence::Rests | Consequence::Read | Consequence::Refused => LeaseAdvice::GiveBack,
        };
        let is_dynamic = is_dynamic(&self.options);
        let (mut fails, mut has_failed) = (false, false);
        // While those that fail are not replaced, none is ended for that.
        let ends_failing = self.options.replace == Some(PoolReplace::Failing) && self.buyer.replaces_failing();
        if let Some(session) = self.slots.session_mut(slot) {
            if sight.is_answer() {
                session.failures.worked(Some(target).filter(|_| sight == Observation::Good));
            }
            match follows {
                Consequence::Blocked { .. } => {
                    session.seen = Some(seen);
                    let exit = if is_dynamic { u64::from(session.generation) } else { lease };
                    let (blocks, _) = session.failures.count(Some(target), exit, now);
                    // Where no exit does, another session would not do, either.
                    fails = blocks >= BLOCKS && !everywhere;
                }
                Consequence::Refused => {
                    let (refusals, since) = session.failures.count(None, lease, now);
                    // Nor would it while the proxies of all sessions fail.
                    fails = refusals >= BLOCKS && self.proxies.another_worked(slot, since);
                }
                _ => {}
            }
            has_failed = fails && ends_failing && !session.ends_after_leases;
            session.ends_after_leases |= has_failed;
            fails = session.ends_after_leases;
        }
        let failed = has_failed.then_some(BuyingChange::Failed { unix: self.now.unix });
        let answered = if sight == Observation::Good { self.buyer.answered() } else { None };
        self.tell_all(failed.into_iter().chain(answered));
        match follows {
            Consequence::Blocked { .. } | Consequence::Refused if fails => self.leases.retire(slot),
            Consequence::Blocked { .. } if is_dynamic && holds(PoolRule::BlockedIsChanged) && self.blocking.may_rotate(target, now) => {
                self.leases.change(slot, now)
            }
            _ => {}
        }
        if matches!(follows, Consequence::Read | Consequence::Refused) {
            self.read(slot);
        }
        self.turn(client);
        Some(advice)
    }

    /// The session of a lease is not lent again. Once its leases are back, it is ended and another one is bought; a static session that
    /// nothing replaces is left, as it is not refunded. Returns false where the lease is not valid.
    pub(in crate::pool) fn discard(&mut self, client: &mut Client, lease: LeaseId) -> bool {
        let Some(slot) = self.leases.slot_of(lease).filter(|_| self.is_valid(client, lease)) else { return false };
        let (replaces, is_to_end) = (self.replaces(), is_dynamic(&self.options) || self.replaces());
        let Some(session) = self.slots.session_mut(slot) else { return false };
        // A caller who discards one session after the other does not buy without end.
        let fails = replaces && !session.ends_after_leases;
        session.ends_after_leases |= is_to_end;
        session.is_discarded = true;
        if holds(PoolRule::DiscardedIsNotLent) {
            self.leases.retire(slot);
        }
        self.tell_all(fails.then_some(BuyingChange::Failed { unix: self.now.unix }));
        self.turn(client);
        true
    }

    /// When a session may do again for the target of a lease.
    pub(in crate::pool) fn retry_at(&self, lease: LeaseId, now: Now) -> Option<Millis> {
        let target = self.leases.target_of(lease)?;
        let rotates_at = self.blocking.rotates_at(target).filter(|_| is_dynamic(&self.options));
        let at = self.leases.rested_first(target).into_iter().chain(rotates_at).min()?;
        Some(now.unix.saturating_add(at.saturating_sub(now.monotonic).max(0)))
    }

    /// The client below has something to say.
    pub(in crate::pool) fn on_input(&mut self, client: &mut Client, input: PoolInput) {
        match input {
            PoolInput::Claimed { asked, found } => self.claimed(&asked, &found),
            PoolInput::NotClaimed => self.not_claimed(),
            PoolInput::Ended(work, result) => match (self.works.remove(&work), result) {
                (Some(For::Slot(slot)), result) if self.slots.is_at(slot, work) => self.slot_ended(client, slot, result),
                // The slot was lost meanwhile, and may be this client's again, with another session.
                (Some(For::Slot(_)), Ok(answered)) => self.let_stale_go(&answered),
                (Some(For::Products), result) => self.products_read(&result),
                _ => {}
            },
            PoolInput::Charged(usd) => self.spent.add(self.now.unix, usd),
            PoolInput::Found(found) => self.found(client, found),
            PoolInput::Put(is_done) => self.shared_put(client, is_done),
            PoolInput::Listed(page) => self.listed(client, page),
        }
        self.turn(client);
    }

    /// Does what there is to do now.
    pub(in crate::pool) fn turn(&mut self, client: &mut Client) {
        let now = self.now.monotonic;
        self.take_back_late(now);
        let lives = self.buyer.outlived(self.now.unix);
        self.tell_all(lives);
        self.wake_slots(now);
        let mut rested = None;
        let is_lending = self.closing.is_none() && self.shared.is_open;
        if is_lending {
            self.change_exits(now);
            self.note_needs(now);
            if self.sharing.are_others_short() && holds(PoolRule::OthersComeFirst) {
                self.share_sessions(client, now);
            }
            if self.shared.is_replaced() && holds(PoolRule::OldIsNotLent) {
                // Its sessions are of the old request: whoever has opened the pool with the new one ends them, or leaves them.
                self.leases.idle(Millis::MAX).collect::<Vec<SlotNo>>().into_iter().for_each(|slot| self.release_idle(client, slot));
            } else {
                rested = self.lend(client, now);
            }
            self.note_needs(now);
        } else if self.closing.is_some() {
            self.close_slots(client, now);
        }
        self.end_late(now);
        if is_lending {
            // A caller is told that no session comes only after the store was asked, where its time has come.
            self.want_more(now);
            if holds(PoolRule::VainIsTold) {
                self.fail_fast(now);
            }
            self.share_sessions(client, now);
            self.tell_ready(client, now);
        }
        self.buy_kept(now);
        self.share(now);
        self.tell_hold();
        self.next = self.next_time(now, rested);
    }

    /// Leases that were out for too long: their callers are told of, or lose them.
    pub(super) fn take_back_late(&mut self, now: Millis) {
        for (lease, slot) in self.leases.leaking(now) {
            let session_id = self.slots.session(slot).map(|session| session.id.to_string()).unwrap_or_default();
            let lease = i64::try_from(lease).unwrap_or(i64::MAX);
            self.notify(EventKind::LeaseLeaked { lease, session_id });
        }
        let Some(most) = self.options.max_lease_ms else { return };
        while let Some(lease) = self.leases.out_since(now.saturating_sub(most)) {
            self.take_back(lease);
        }
    }

    pub(super) fn wake_slots(&mut self, now: Millis) {
        while let Some((slot, doing)) = self.slots.pop_due(now) {
            // Under a lease it is only read.
            let is_lent = self.leases.is_lent(slot) && self.closing.as_ref().is_none_or(|closing| now < closing.until);
            match doing {
                Doing::Waits if !is_lent && self.goes_on(slot) => {}
                Doing::Waits => self.read(slot),
                Doing::Lends => self.look_at_lent(slot, now),
                Doing::Doubts { .. } => self.look_at_doubt(slot, false),
                Doing::Rests | Doing::Left | Doing::Empty => self.slots.remove(slot),
                _ => {}
            }
        }
    }

    /// Lends what is free to those who wait. Returns when a rest ends that somebody waits for.
    pub(super) fn lend(&mut self, client: &mut Client, now: Millis) -> Option<Millis> {
        loop {
            let share_after = self.share_after(now);
            let slots = &self.slots;
            let is_fresh = |session: &PoolSession| session.is_fresh(now) && client.is_usable(&session.id);
            // One is read for each who waits, and no more at a time than may be bought: that something is bought keeps nobody waiting.
            let most = AT_ONCE.min(u32::try_from(self.leases.waiting()).unwrap_or(u32::MAX));
            let looks = most.saturating_sub(slots.counts.reading) as usize;
            let served = self.leases.serve(now, looks, share_after, |slot| slots.session(slot).is_some_and(is_fresh));
            served.grants.into_iter().for_each(|grant| self.grant(grant));
            let (reads, over): (Vec<SlotNo>, Vec<SlotNo>) = served
                .unusable
                .into_iter()
                .partition(|slot| self.slots.session(*slot).is_some_and(|session| client.is_usable(&session.id)));
            reads.into_iter().for_each(|slot| self.read(slot));
            if over.is_empty() {
                return served.later;
            }
            over.into_iter().for_each(|slot| self.session_over(client, slot));
        }
    }

    pub(super) fn grant(&mut self, grant: LeaseGrant) {
        let Some(command) = self.callers.remove(grant.waiter) else { return };
        let Some(session) = self.slots.session(grant.slot) else { return };
        let raw = format!(
            r#"{{"pool":{},"lease":{},"slot":{},"generation":{},"session_id":{},"proxy":{},"data":{}}}"#,
            self.number,
            grant.lease,
            grant.slot,
            grant.generation,
            json_of(session.id.as_str()),
            session.proxy.text(),
            session.data.as_ref().map_or("{}", Json::text),
        );
        self.complete(command, Ok(answered(Json::checked(raw), const { &crate::contract::pools::PoolLease::SHAPE })));
    }

    pub(super) fn next_time(&self, now: Millis, rested: Option<Millis>) -> Option<Millis> {
        let is_open = self.closing.is_none() && self.shared.is_open;
        let hold = self.buyer.changes_at(self.now.unix, now);
        let wants = is_open && self.lacking(now) > 0;
        let spare = self.asking.wanted_since.map(|since| since.saturating_add(SPARE_FIRST)).filter(|at| wants && *at > now);
        let (oldest, unsaid) = self.leases.oldest();
        let later = |since: Option<Millis>, by: Option<Millis>| Some(since?.saturating_add(by?));
        let times = [
            self.callers.next_deadline(),
            self.slots.next_wake(),
            rested,
            self.leases.changes_at(now).filter(|_| is_open),
            hold.filter(|at| (wants || self.slots.counts.in_doubt > 0 || self.buyer.watches_until().is_some()) && *at > now),
            ((wants || self.slots.counts.in_doubt > 0) && !self.is_asking() && self.asking.next > now).then_some(self.asking.next),
            spare,
            if is_open { self.shares_sessions_at(now).map(|at| at.max(now.saturating_add(1))) } else { None },
            later(oldest, self.options.max_lease_ms),
            later(unsaid, Some(LEAKS)),
            self.closing.as_ref().and_then(|closing| closing.next(now)),
            self.finds_at(now),
            self.shares_at(now),
        ];
        times.into_iter().flatten().min()
    }

    /// The pool is opened, for whom it is told.
    pub(in crate::pool) fn open(&mut self, client: &mut Client, command: CommandId) {
        self.shared.opening = Some(command);
        self.turn(client);
    }

    /// Buys nothing from here on, nowhere; what there is is lent.
    pub(in crate::pool) fn pause(&mut self, client: &mut Client, command: CommandId) {
        self.shared.asks.push((command, "pause_pool"));
        self.change(RecordChange::Paused(true));
        self.turn(client);
    }

    /// Buys again, everywhere, also where a hold was to last until this is said.
    pub(in crate::pool) fn resume(&mut self, client: &mut Client, command: CommandId) {
        self.shared.asks.push((command, "resume_pool"));
        self.change(RecordChange::Paused(false));
        self.change(RecordChange::Buying(BuyingChange::Freed));
        self.buyer.freed();
        self.look_at_doubts(self.now.monotonic);
        self.turn(client);
    }

    /// Claims that have ended: the record's, too.
    pub(in crate::pool) fn lost(&mut self, client: &mut Client, names: Option<&[Name]>) {
        let own = self.space.pool(&self.options.name);
        if names.is_none_or(|names| names.contains(&own)) {
            self.shared.lost();
        }
        self.lose_kept(names);
        self.give_up_lost(client);
        self.turn(client);
    }

    /// Lends no more: who waits is told so, and once all leases are back, or that took too long, all sessions are let go of.
    pub(in crate::pool) fn close(&mut self, client: &mut Client, command: CommandId, grace: Option<Millis>) {
        self.begin_closing(Some((command, "close_pool")), grace.unwrap_or(GRACE), None);
        self.turn(client);
    }

    /// The same, and sessions are ended.
    pub(in crate::pool) fn drain(&mut self, client: &mut Client, command: CommandId, drain: &DrainPool) {
        let everywhere = drain.everywhere.unwrap_or_default();
        let include_static = drain.include_static.unwrap_or_default();
        // It would end nothing, though the record of a pool that was closed may still be on its way.
        if self.closing.as_ref().is_some_and(|closing| closing.is_told && closing.ends.is_none()) {
            return self.complete(command, Err(is_closed("drain_pool")));
        }
        // A supervisor that starts the program again buys nothing.
        if holds(PoolRule::DrainPauses) {
            self.change(RecordChange::Paused(true));
        }
        if everywhere {
            self.change(RecordChange::Drained { include_static });
        }
        let ends = Ends { include_static, everywhere };
        self.begin_closing(Some((command, "drain_pool")), drain.grace_ms.unwrap_or(GRACE), Some(ends));
        self.turn(client);
    }

    /// Closes a pool that no command waits for.
    pub(in crate::pool) fn close_unheard(&mut self, client: &mut Client) {
        self.begin_closing(None, 0, None);
        self.turn(client);
    }

    /// Adds a caller that waits for a number of ready sessions.
    pub(in crate::pool) fn wait_ready(&mut self, client: &mut Client, command: CommandId, asked: &WaitReady) {
        let count = asked.count.unwrap_or(1);
        if count as usize > self.keep_ready() {
            let rule = "must be at most the pool's `keep_ready`, since no more are kept at hand";
            return self.complete(command, Err(Error::invalid("wait_ready", "count", rule)));
        }
        if self.closing.is_some() {
            return self.complete(command, Err(is_closed("wait_ready")));
        }
        let until = self.now.monotonic.saturating_add(asked.timeout_ms.unwrap_or(READY_TIMEOUT));
        self.callers.for_ready.push(ReadyWaiter { command, count, until });
        self.turn(client);
    }
}
