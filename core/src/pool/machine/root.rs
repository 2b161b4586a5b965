//! The machine itself: who waits, what is lent to them, what was seen, and in which order things are done.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::callers::Callers;
use super::parts::{Asking, CREATING, Closing, Spent};
use super::shared::Shared;
use super::slots::{Doing, Session, Slots};
use crate::client::{CallOptions, Client, NewsOf, PoolNo};
use crate::collections::Map;
use crate::contract::pools::{AcquireLease, LeaseAdvice, OpenPool, PoolHoldReason, PoolNeeds, PoolReplace};
use crate::contract::{Encode, Json, Shape, Shaped, json_of};
use crate::engine::{Answered, EventKind};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};
use crate::pool::buyer::Buyer;
use crate::pool::leases::{Grant, LeaseId, Leases, SlotNo, Terms, WaiterId};
use crate::pool::targets::{Blocking, Follows, Sight, TargetId};
use crate::state::{CommandId, Seen};
use crate::time::Millis;

/// How long a lease is waited for.
const TIMEOUT: Millis = 30_000;
/// A lease that is out for so long is said to leak.
const LEAKS: Millis = 600_000;
/// A session that was not read for so long is read before it is lent.
const CHECK: Millis = 600_000;
/// A session that was idle for so long is let go of.
pub(super) const IDLE: Millis = 60_000;
/// So many blocks without a good answer, and a session is no use any more.
const BLOCKS: u32 = 3;
/// So many names of targets are remembered.
const LABELS: usize = 512;

/// What a command of the pool's is for: a slot, and which work on it.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) enum For {
    Slot(SlotNo, u32),
    /// The products are read, before a trial.
    Products,
}

#[derive(Debug, Clone, Hash)]
pub(in crate::pool) struct Machine {
    pub(super) number: PoolNo,
    pub(super) options: OpenPool,
    /// Whether it was opened as others had opened it, to look at it and to change how it buys: it neither lends nor buys.
    pub(super) joins: bool,
    /// What is bought, as JSON.
    pub(super) params: String,
    pub(super) leases: Leases,
    pub(super) buyer: Buyer,
    pub(super) blocking: Blocking,
    /// The names of targets, for people.
    pub(super) labels: Map<TargetId, ArcStr>,
    pub(super) slots: Slots,
    pub(super) callers: Callers,
    /// The pool's own commands.
    pub(super) commands: BTreeMap<CommandId, For>,
    pub(super) asking: Asking,
    pub(super) shared: Shared,
    pub(super) closing: Option<Closing>,
    pub(super) spent: Spent,
    /// What the last purchase came to that bought nothing, or may have.
    pub(super) refused: Option<Box<Error>>,
    /// When there is something to do again.
    pub(in crate::pool) next: Option<Millis>,
}

impl Machine {
    pub(in crate::pool) fn new(number: PoolNo, options: OpenPool) -> Self {
        let terms = Terms {
            per_session: options.leases_per_session.unwrap_or(1),
            rotate_after_uses: options.rotate_after_uses.filter(|_| is_dynamic(&options)),
            leak_after: options.leak_after_ms.unwrap_or(LEAKS),
            size: options.size,
        };
        Machine {
            number,
            params: json_of(&options.session()),
            leases: Leases::new(terms),
            buyer: Buyer::new(options.size, options.max_creating.unwrap_or(CREATING), options.max_in_doubt),
            blocking: Blocking::default(),
            labels: Map::default(),
            slots: Slots::new(options.size),
            callers: Callers::default(),
            commands: BTreeMap::new(),
            asking: Asking::default(),
            shared: Shared::new(&options),
            closing: None,
            spent: Spent::default(),
            refused: None,
            next: None,
            joins: false,
            options,
        }
    }

    /// A pool that others have opened.
    pub(in crate::pool) fn joining(number: PoolNo, name: String) -> Self {
        let machine = Machine::new(number, OpenPool { name, size: 1, ..OpenPool::default() });
        Machine { joins: true, shared: Shared::default(), ..machine }
    }

    /// Somebody waits for a lease.
    pub(in crate::pool) fn acquire(&mut self, client: &mut Client, command: CommandId, asked: &AcquireLease) {
        if self.closing.is_some() {
            return client.complete(command, Err(is_closed("acquire")));
        }
        if self.joins {
            let what = "the pool was joined, and not opened: it lends nothing to this client";
            return client.complete(command, Err(Error::new(Kind::Misuse, Effect::None, "acquire", what, Advice::ChangeRequest)));
        }
        let key = asked.key.as_deref().map(|key| hash("key", key));
        let target = TargetId::of(asked.target.as_deref());
        if let Some(label) = &asked.target {
            self.label(target, label);
        }
        let waiter = self.leases.ask(target, key);
        self.callers.add(waiter, command, client.monotonic().saturating_add(asked.timeout_ms.unwrap_or(TIMEOUT)));
        self.turn(client);
    }

    fn label(&mut self, target: TargetId, label: &str) {
        if self.labels.len() >= LABELS {
            self.labels.retain(|known, _| self.blocking.knows(*known));
        }
        if self.labels.len() < LABELS {
            self.labels.get_or_insert_with(target, || label.into());
        }
    }

    /// Somebody who waits gives up. Whether they did wait.
    pub(in crate::pool) fn leave(&mut self, client: &mut Client, command: CommandId) -> bool {
        let error = |operation, what| Error::new(Kind::Cancelled, Effect::None, operation, what, Advice::Nothing);
        if let Some(waiter) = self.callers.waiter_of(command) {
            self.end_wait(client, waiter, error("acquire", "was cancelled before a session was free"));
            return true;
        }
        if self.callers.leave_ready(command) {
            client.complete(command, Err(error("wait_ready", "was cancelled before enough sessions were ready")));
            return true;
        }
        self.leave_opening(client, command) || self.leave_closing(client, command) || self.leave_asking(client, command)
    }

    pub(super) fn end_wait(&mut self, client: &mut Client, waiter: WaiterId, error: Error) {
        self.leases.leave(waiter);
        if let Some(command) = self.callers.remove(waiter) {
            client.complete(command, Err(error));
        }
    }

    /// A lease comes back.
    pub(in crate::pool) fn give_back(&mut self, client: &mut Client, lease: LeaseId) {
        self.take_back(client, lease);
        self.turn(client);
    }

    fn take_back(&mut self, client: &mut Client, lease: LeaseId) {
        if let Some(slot) = self.leases.give_back(lease, client.monotonic()) {
            self.rotate(client, slot);
        }
    }

    /// Something was seen through a lease. None where the lease is not valid, or the exit is another one by now.
    pub(in crate::pool) fn observe(
        &mut self,
        client: &mut Client,
        lease: LeaseId,
        seen: Seen,
        wait: Option<Millis>,
    ) -> Option<LeaseAdvice> {
        let (now, sight) = (client.monotonic(), Sight::of(seen, wait));
        let (follows, slot, target) = self.leases.observe(lease, sight, now)?;
        self.blocking.note(target, sight, follows, now);
        let everywhere = self.blocking.everywhere(target);
        let advice = match follows {
            Follows::Nothing => LeaseAdvice::Keep,
            Follows::Rests | Follows::Read | Follows::Refused => LeaseAdvice::GiveBack,
            Follows::Blocked { .. } if everywhere => LeaseAdvice::Wait,
            Follows::Blocked { .. } => LeaseAdvice::GiveBack,
        };
        let failing = self.options.replace == Some(PoolReplace::FailedSend);
        let is_dynamic = is_dynamic(&self.options);
        if let Some(session) = self.slots.session_mut(slot) {
            match follows {
                Follows::Blocked { .. } => {
                    session.seen = Some(seen);
                    session.blocked(if is_dynamic { u64::from(session.generation) } else { lease });
                }
                // A new exit does not help there, and none is asked for.
                Follows::Refused => session.blocked(lease),
                Follows::Nothing if sight == Sight::Good => session.blocks = 0,
                _ => {}
            }
            session.is_doomed |= failing && session.blocks >= BLOCKS && !everywhere;
        }
        let is_doomed = self.slots.session(slot).is_some_and(|session| session.is_doomed);
        let changes = match follows {
            Follows::Blocked { .. } | Follows::Refused if is_doomed => self.leases.retire(slot),
            Follows::Blocked { .. } => is_dynamic && self.blocking.may_rotate(target, now) && self.leases.change(slot, target),
            _ => false,
        };
        if changes {
            self.rotate(client, slot);
        } else if matches!(follows, Follows::Read | Follows::Refused) {
            self.read(client, slot);
        }
        self.turn(client);
        Some(advice)
    }

    /// The client below has something to say.
    pub(in crate::pool) fn on_client_event(&mut self, client: &mut Client, what: NewsOf) {
        match what {
            NewsOf::Claimed(claimed) => self.claimed(client, &claimed),
            NewsOf::NotClaimed => self.not_claimed(client),
            NewsOf::Ended(command) => match (self.commands.remove(&command), client.take_answer(command)) {
                (Some(For::Slot(slot, work)), Some(result)) if self.slots.is_at(slot, work) => self.slot_ended(client, slot, result),
                // The slot was lost meanwhile, and may be this client's again, with another session.
                (Some(For::Slot(..)), Some(Ok(answered))) => self.let_stale_go(client, &answered),
                (Some(For::Products), Some(result)) => self.products_read(client, &result),
                _ => {}
            },
            NewsOf::Charged(usd) => self.spent.add(client.unix(), usd),
            NewsOf::Found(found) => self.found(client, found),
            NewsOf::Put(is_done) => self.shared_put(client, is_done),
            NewsOf::Listed(page) => self.listed(client, page),
        }
        self.turn(client);
    }

    /// Does what there is to do now.
    pub(in crate::pool) fn turn(&mut self, client: &mut Client) {
        let now = client.monotonic();
        self.take_back_late(client, now);
        self.wake_slots(client, now);
        self.share(client, now);
        let mut rested = None;
        let is_lending = self.closing.is_none() && self.shared.is_open;
        if is_lending {
            rested = self.lend(client, now);
        } else if self.closing.is_some() {
            self.close_slots(client, now);
        }
        self.end_late(client, now);
        if is_lending {
            self.fail_fast(client, now);
            self.want_more(client, now);
            self.let_idle_go(client, now);
            self.tell_ready(client, now);
        }
        self.share(client, now);
        self.tell_hold(client);
        self.next = self.next_time(client, now, rested);
    }

    /// Ends those who have waited for as long as they said.
    fn end_late(&mut self, client: &mut Client, now: Millis) {
        while let Some(waiter) = self.callers.late(now) {
            let error = Error::new(Kind::Unavailable, Effect::None, "acquire", "no session was free in time", Advice::RetryLater);
            self.end_wait(client, waiter, self.why(client, error));
        }
    }

    /// An error says why nothing is bought, where that is so.
    pub(super) fn why(&self, client: &Client, error: Error) -> Error {
        let Some(hold) = self.hold(client) else { return error };
        let fields = error.into_fields();
        let doubts = match self.slots.counts.in_doubt {
            0 => String::new(),
            1 => ", and one of its purchases is in doubt".to_owned(),
            more => format!(", and {more} of its purchases are in doubt"),
        };
        let what = format!("{}; the pool does not buy {}{doubts}", fields.what, hold.why);
        // What it was refused for, where that was told to this client; and where somebody has to act, what to do about that.
        let cause = self.refused.as_deref().filter(|refused| PoolHoldReason::of_error(refused) == hold.reason).cloned();
        let advice = cause.as_ref().filter(|_| hold.needs != PoolNeeds::Nobody).map_or(fields.advice, |cause| cause.advice);
        Error::from(ErrorFields { what, retry_at: hold.retry_at, cause, advice, ..fields })
    }

    /// Leases that were out for too long: their callers are told of, or lose them.
    fn take_back_late(&mut self, client: &mut Client, now: Millis) {
        for (lease, slot) in self.leases.leaking(now) {
            let session_id = self.slots.session(slot).map(|session| session.id.to_string()).unwrap_or_default();
            let lease = i64::try_from(lease).unwrap_or(i64::MAX);
            client.notify_of_pool(&self.options.name, EventKind::LeaseLeaked { lease, session_id });
        }
        let Some(most) = self.options.max_lease_ms else { return };
        while let Some(lease) = self.leases.out_since(now.saturating_sub(most)) {
            self.take_back(client, lease);
        }
    }

    fn wake_slots(&mut self, client: &mut Client, now: Millis) {
        while let Some((slot, doing)) = self.slots.pop_due(now) {
            // Under a lease it is only read.
            let is_lent = self.leases.is_lent(slot) && self.closing.as_ref().is_none_or(|closing| now < closing.until);
            match doing {
                Doing::Delays if !is_lent => self.rotate(client, slot),
                Doing::Waits if !is_lent && self.goes_on(client, slot) => {}
                Doing::Waits | Doing::Delays => self.read(client, slot),
                // Its exit is old.
                Doing::Lends if self.leases.retire(slot) => self.rotate(client, slot),
                Doing::Doubts { .. } => self.look_at_doubt(client, slot, false),
                Doing::Rests => self.slots.remove(slot),
                _ => {}
            }
        }
    }

    /// Lends what is free to those who wait. Returns when a rest ends that somebody waits for.
    fn lend(&mut self, client: &mut Client, now: Millis) -> Option<Millis> {
        loop {
            let check_after = self.options.check_after_ms.unwrap_or(CHECK);
            let slots = &self.slots;
            let is_fresh = |session: &Session| now.saturating_sub(session.read_at) < check_after && client.is_usable(&session.id);
            // One is read for each who waits, and no more at a time than may be bought: that something is bought keeps nobody waiting.
            let most = self.options.max_creating.unwrap_or(CREATING).min(u32::try_from(self.leases.waiting()).unwrap_or(u32::MAX));
            let looks = most.saturating_sub(slots.counts.reading) as usize;
            let served = self.leases.serve(now, looks, |slot| slots.session(slot).is_some_and(is_fresh));
            served.grants.into_iter().for_each(|grant| self.grant(client, grant));
            let (reads, over): (Vec<SlotNo>, Vec<SlotNo>) = served
                .unusable
                .into_iter()
                .partition(|slot| self.slots.session(*slot).is_some_and(|session| client.is_usable(&session.id)));
            reads.into_iter().for_each(|slot| self.read(client, slot));
            if over.is_empty() {
                return served.later;
            }
            over.into_iter().for_each(|slot| self.session_over(client, slot));
        }
    }

    fn grant(&mut self, client: &mut Client, grant: Grant) {
        let Some(command) = self.callers.remove(grant.waiter) else { return };
        let Some(session) = self.slots.session(grant.slot) else { return };
        let raw = format!(
            r#"{{"pool":{},"lease":{},"slot":{},"generation":{},"session_id":{},"proxy":{}}}"#,
            self.number,
            grant.lease,
            grant.slot,
            grant.generation,
            json_of(session.id.as_str()),
            session.proxy.text(),
        );
        client.complete(command, Ok(answered(Json::checked(raw), const { &crate::contract::pools::PoolLease::SHAPE })));
    }

    /// Whoever can't get a session before their time is over is told so at once.
    fn fail_fast(&mut self, client: &mut Client, now: Millis) {
        let Some(hold) = self.hold(client) else { return };
        let counts = &self.slots.counts;
        let has_some = counts.lends + counts.coming + counts.rotating + counts.delayed + counts.waiting > 0;
        if has_some || self.is_asking() || !self.asking.is_all {
            return;
        }
        let tried_at = hold.retry_at.map(|at| now.saturating_add(at.saturating_sub(client.unix())));
        for waiter in self.callers.gone_by(tried_at) {
            let error = Error::new(Kind::Unavailable, Effect::None, "acquire", "no session is there", Advice::RetryLater);
            self.end_wait(client, waiter, self.why(client, error));
        }
    }

    fn next_time(&self, client: &Client, now: Millis, rested: Option<Millis>) -> Option<Millis> {
        let is_open = self.closing.is_none() && self.shared.is_open;
        let hold = self.buyer.hold().and_then(|hold| hold.retry_at).map(|at| now.saturating_add(at.saturating_sub(client.unix())));
        let wants = is_open && self.lacking() > 0;
        let idle = self.options.idle_release_ms.unwrap_or(IDLE);
        let spare = is_open && self.leases.waiting() == 0 && self.leases.idle_count() > self.ready();
        let (oldest, unsaid) = self.leases.oldest();
        let later = |since: Option<Millis>, by: Option<Millis>| Some(since?.saturating_add(by?));
        let times = [
            self.callers.next_deadline(),
            self.slots.next_wake(),
            rested,
            hold.filter(|at| (wants || self.slots.counts.in_doubt > 0) && *at > now),
            ((wants || self.slots.counts.in_doubt > 0) && !self.is_asking() && self.asking.next > now).then_some(self.asking.next),
            self.leases.idle_longest().filter(|_| spare).map(|since| since.saturating_add(idle).max(now.saturating_add(1))),
            later(oldest, self.options.max_lease_ms),
            later(unsaid, Some(self.options.leak_after_ms.unwrap_or(LEAKS))),
            self.closing.as_ref().and_then(|closing| closing.next(now)),
            self.finds_at(now),
            self.shares_at(client, now),
        ];
        times.into_iter().flatten().min()
    }

    pub(super) fn ready(&self) -> usize {
        self.options.ready.unwrap_or_default() as usize
    }

    pub(in crate::pool) fn name(&self) -> &str {
        &self.options.name
    }

    /// Whether it is open under this name: one that is being closed stands in nobody's way.
    pub(in crate::pool) fn is_named(&self, name: &str) -> bool {
        self.options.name == name && self.closing.is_none()
    }
}

/// How a slot of the pool is bought for.
pub(in crate::pool) fn call_options(open: &OpenPool) -> CallOptions {
    CallOptions {
        credentials: Some(true),
        max_unit_price: open.max_unit_price,
        expected_charge_usd: open.expected_charge_usd,
        retry_paid: Some(open.retry_paid.unwrap_or_default()),
        ends: open.ends.clone().unwrap_or_default(),
        ..CallOptions::default()
    }
}

/// What whoever asks a pool is told that is closed.
pub(in crate::pool) fn is_closed(operation: &'static str) -> Error {
    let what = "the pool is closed or drained; open it again";
    Error::new(Kind::Misuse, Effect::None, operation, what, Advice::ChangeRequest)
}

/// What a pool answers with.
pub(super) fn told<T: Encode + Shaped>(value: &T) -> Answered {
    answered(Json::checked(json_of(value)), const { &T::SHAPE })
}

pub(super) fn answered(raw: Json, shape: &'static Shape) -> Answered {
    Answered { raw, shape, ..Answered::of(Default::default()) }
}

pub(super) fn is_dynamic(options: &OpenPool) -> bool {
    options.session_type.as_str() == "dynamic"
}

fn hash(of: &str, text: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = crate::entropy::digest_bytes(of, text.as_bytes());
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
