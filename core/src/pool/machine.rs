//! One pool in one client: who waits, which slots this client has, and what it does about them.

use std::collections::{BTreeMap, BTreeSet};

use arcstr::ArcStr;

use super::buyer::{Buyer, May, Reason, Trial};
use super::leases::{Grant, LeaseId, Leases, SlotNo, Terms, WaiterId};
use super::options::{Acquire, PoolOptions};
use super::targets::{Blocking, Follows, Sight, TargetId};
use crate::client::{CallOptions, Client, NewsOf, PoolNo, Slot};
use crate::contract::{Json, json_of};
use crate::engine::{Answered, Phase};
use crate::json::pick;
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};
use crate::state::{CommandId, Name};
use crate::time::Millis;

/// A session that could not be used at its deadline, or whose status nobody knows, is read again after this.
const READ_AGAIN: Millis = 60_000;
/// How long a lease is waited for.
const TIMEOUT: Millis = 30_000;
/// So many slots are asked for in one call of the store.
const AT_ONCE: usize = 256;
/// Slots are asked for again after this long, at least and at most, while somebody waits.
const ASK_AGAIN: (Millis, Millis) = (1000, 5000);
/// So many exits are changed at a time.
const ROTATIONS: u32 = 4;
/// A slot in doubt is looked at again after this, while no hold says when.
const DOUBT_AGAIN: Millis = 600_000;

/// What this client does with a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    /// It goes on with what is there.
    Takes,
    /// It buys; or tries to, during a hold.
    Buys { is_trial: bool },
    /// It reads the session.
    Reads,
    /// It changes the exit.
    Rotates,
    /// It lends it.
    Lends,
    /// It waits to read the session, or to change its exit.
    Waits,
    /// The purchase is in doubt, and the slot anybody's.
    Doubts,
    /// Nobody can use it before a person has looked at it.
    Rests,
}

impl Doing {
    /// Whether a session is on its way.
    fn is_coming(self) -> bool {
        matches!(self, Doing::Takes | Doing::Buys { .. } | Doing::Reads | Doing::Rotates)
    }
}

/// A slot of which this client knows something.
#[derive(Debug, Clone, Hash)]
struct Held {
    doing: Doing,
    session: Option<Session>,
    /// When it is looked at again.
    wakes: Option<Millis>,
}

#[derive(Debug, Clone, Hash)]
struct Session {
    id: ArcStr,
    proxy: Json,
    generation: u32,
    ready_at: Millis,
    read_at: Millis,
}

/// Somebody who waits for a lease.
#[derive(Debug, Clone, Hash)]
struct Waiter {
    command: CommandId,
    until: Millis,
}

/// How the store is asked for slots.
#[derive(Debug, Clone, Default, Hash)]
struct Asking {
    /// The names that were asked for, while the store is.
    out: BTreeMap<Name, SlotNo>,
    /// Whether what is found there is the trial of a hold.
    tries: bool,
    /// Not before this.
    next: Millis,
    failures: u32,
    /// Whether the last answer had all that there is to take over, so that only what may be bought is asked for.
    is_all: bool,
}

/// What a command of the pool's is for.
#[derive(Debug, Clone, Copy, Hash)]
enum For {
    Slot(SlotNo),
    /// The products are read, before a trial.
    Products,
}

/// A lease as its holder is told.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Granted {
    pub(super) command: CommandId,
    pub(super) lease: LeaseId,
}

/// How many slots are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Counts {
    pub(super) lends: u32,
    pub(super) coming: u32,
    pub(super) rotating: u32,
    pub(super) waiting: u32,
    pub(super) in_doubt: u32,
    pub(super) resting: u32,
}

impl Counts {
    fn of(&mut self, doing: Doing) -> &mut u32 {
        match doing {
            Doing::Lends => &mut self.lends,
            Doing::Takes | Doing::Buys { .. } | Doing::Reads => &mut self.coming,
            Doing::Rotates => &mut self.rotating,
            Doing::Waits => &mut self.waiting,
            Doing::Doubts => &mut self.in_doubt,
            Doing::Rests => &mut self.resting,
        }
    }
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Machine {
    number: PoolNo,
    name: String,
    pub(super) options: PoolOptions,
    params: String,
    pub(super) leases: Leases,
    pub(super) buyer: Buyer,
    pub(super) blocking: Blocking,
    slots: BTreeMap<SlotNo, Held>,
    pub(super) counts: Counts,
    /// The slots by when they are looked at again.
    wakes: BTreeSet<(Millis, SlotNo)>,
    waiters: BTreeMap<WaiterId, Waiter>,
    by_command: BTreeMap<CommandId, WaiterId>,
    deadlines: BTreeSet<(Millis, WaiterId)>,
    commands: BTreeMap<CommandId, For>,
    asking: Asking,
    /// Whether a trial waits for the products.
    reads_products: bool,
    /// When there is something to do again.
    pub(super) next: Option<Millis>,
    /// Who waits for it to be closed, and until when leases are waited for.
    closing: Option<(CommandId, Millis)>,
    pub(super) is_paused: bool,
    granted: Vec<Granted>,
}

impl Machine {
    pub(super) fn new(number: PoolNo, name: &str, options: PoolOptions) -> Self {
        let terms = Terms {
            per_session: options.leases_per_session.unwrap_or(1),
            rotate_after_uses: options.rotate_after_uses.filter(|_| is_dynamic(&options)),
            leak_after: options.leak_after_ms.unwrap_or(600_000),
            size: options.size,
        };
        Machine {
            number,
            name: name.to_owned(),
            params: json_of(&options.session),
            leases: Leases::new(terms),
            buyer: Buyer::new(options.size, options.max_creating.unwrap_or(8), options.max_in_doubt),
            blocking: Blocking::default(),
            slots: BTreeMap::new(),
            counts: Counts::default(),
            wakes: BTreeSet::new(),
            waiters: BTreeMap::new(),
            by_command: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            commands: BTreeMap::new(),
            asking: Asking::default(),
            reads_products: false,
            next: None,
            closing: None,
            is_paused: false,
            granted: Vec::new(),
            options,
        }
    }

    /// The leases that were granted since this was asked last.
    pub(super) fn take_granted(&mut self) -> Vec<Granted> {
        std::mem::take(&mut self.granted)
    }

    /// Somebody waits for a lease.
    pub(super) fn acquire(&mut self, client: &mut Client, command: CommandId, asked: &Acquire) {
        if self.closing.is_some() {
            let error = Error::new(Kind::Misuse, Effect::None, "acquire", "the pool is closed", Advice::Nothing);
            return client.complete(command, Err(error));
        }
        let key = asked.key.as_deref().map(|key| hash("key", key));
        let waiter = self.leases.ask(TargetId::of(asked.target.as_deref()), key);
        let until = client.monotonic().saturating_add(asked.timeout_ms.unwrap_or(TIMEOUT).max(0));
        self.waiters.insert(waiter, Waiter { command, until });
        self.by_command.insert(command, waiter);
        self.deadlines.insert((until, waiter));
        self.turn(client);
    }

    /// Somebody who waits gives up. Whether they did wait.
    pub(super) fn leave(&mut self, client: &mut Client, command: CommandId) -> bool {
        let Some(waiter) = self.by_command.get(&command).copied() else { return false };
        let what = "was cancelled before a session was free";
        self.end_wait(client, waiter, Error::new(Kind::Cancelled, Effect::None, "acquire", what, Advice::Nothing));
        true
    }

    fn end_wait(&mut self, client: &mut Client, waiter: WaiterId, error: Error) {
        self.leases.leave(waiter);
        if let Some(command) = self.forget_waiter(waiter) {
            client.complete(command, Err(error));
        }
    }

    fn forget_waiter(&mut self, waiter: WaiterId) -> Option<CommandId> {
        let Waiter { command, until } = self.waiters.remove(&waiter)?;
        self.by_command.remove(&command);
        self.deadlines.remove(&(until, waiter));
        Some(command)
    }

    /// A lease comes back.
    pub(super) fn give_back(&mut self, client: &mut Client, lease: LeaseId) {
        if let Some(slot) = self.leases.give_back(lease, client.monotonic()) {
            self.rotate(client, slot);
        }
        self.turn(client);
    }

    /// Something was seen through a lease. None where the lease is not valid, or the exit is another one by now.
    pub(super) fn observe(&mut self, client: &mut Client, lease: LeaseId, sight: Sight) -> Option<Advised> {
        let now = client.monotonic();
        let (follows, slot, target) = self.leases.observe(lease, sight, now)?;
        self.blocking.note(target, sight, follows, now);
        let advised = match follows {
            Follows::Nothing => Advised::Keep,
            Follows::Rests | Follows::Read => Advised::GiveBack,
            Follows::Blocked { .. } if self.blocking.everywhere(target) => Advised::Wait,
            Follows::Blocked { .. } => Advised::GiveBack,
        };
        match follows {
            Follows::Blocked { .. }
                if is_dynamic(&self.options) && self.blocking.may_rotate(target, now) && self.leases.change(slot, target) =>
            {
                self.rotate(client, slot);
            }
            Follows::Read => self.read(client, slot),
            _ => {}
        }
        self.turn(client);
        Some(advised)
    }

    /// The client below has something to say.
    pub(super) fn hear(&mut self, client: &mut Client, what: NewsOf) {
        match what {
            NewsOf::Claimed(claimed) => self.claimed(client, &claimed),
            NewsOf::NotClaimed => {
                self.asking.out.clear();
                self.asking.tries = false;
                self.ask_later(client.monotonic());
                self.look_at_doubts_later(client.monotonic());
            }
            NewsOf::Ended(command) => match (self.commands.remove(&command), client.take_answer(command)) {
                (Some(For::Slot(slot)), Some(result)) => self.slot_ended(client, slot, result),
                (Some(For::Products), Some(result)) => self.products_read(client, result),
                _ => {}
            },
        }
        self.turn(client);
    }

    /// Somebody says to go on.
    pub(super) fn resume(&mut self, client: &mut Client) {
        self.is_paused = false;
        self.buyer.resume();
        self.turn(client);
    }

    /// Does what there is to do now.
    pub(super) fn turn(&mut self, client: &mut Client) {
        let now = client.monotonic();
        self.end_late(client, now);
        self.wake_slots(client, now);
        let rested = self.lend(client, now);
        if self.closing.is_some() {
            self.close_slots(client, now);
        } else {
            self.fail_fast(client, now);
            self.want_more(client, now);
            self.let_idle_go(client, now);
        }
        self.next = self.next_time(client, now, rested);
    }

    /// Ends those who have waited for as long as they said.
    fn end_late(&mut self, client: &mut Client, now: Millis) {
        while let Some((until, waiter)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            self.deadlines.remove(&(until, waiter));
            let what = "no session was free in time";
            let error = Error::new(Kind::Unavailable, Effect::None, "acquire", what, Advice::RetryLater);
            self.end_wait(client, waiter, self.why(error));
        }
    }

    /// An error says why nothing is bought, where that is so.
    fn why(&self, error: Error) -> Error {
        let Some(hold) = self.buyer.hold() else { return error };
        let fields = error.into_fields();
        let what = format!("{}; nothing is bought, {}", fields.what, hold.reason.text());
        Error::from(ErrorFields { what, retry_at: hold.retry_at, ..fields })
    }

    fn wake_slots(&mut self, client: &mut Client, now: Millis) {
        while let Some((at, slot)) = self.wakes.first().copied().filter(|(at, _)| *at <= now) {
            self.wakes.remove(&(at, slot));
            let Some(held) = self.slots.get_mut(&slot) else { continue };
            held.wakes = None;
            match held.doing {
                Doing::Waits if held.session.is_some() && self.leases.wants_another(slot) => self.rotate(client, slot),
                Doing::Waits => self.read(client, slot),
                Doing::Doubts => self.look_at_doubt(client, slot, false),
                Doing::Rests => self.drop_slot(slot),
                _ => {}
            }
        }
    }

    /// Lends what is free to those who wait. Returns when a rest ends that somebody waits for.
    fn lend(&mut self, client: &mut Client, now: Millis) -> Option<Millis> {
        loop {
            let check_after = self.options.check_after_ms.unwrap_or(600_000);
            let slots = &self.slots;
            let session = |slot: SlotNo| slots.get(&slot).and_then(|held| held.session.as_ref());
            let is_fresh = |session: &Session| now.saturating_sub(session.read_at) < check_after && client.is_usable(&session.id);
            let served = self.leases.serve(now, |slot| session(slot).is_some_and(is_fresh));
            served.grants.into_iter().for_each(|grant| self.grant(client, grant));
            if served.unusable.is_empty() {
                return served.later;
            }
            for slot in served.unusable {
                let session = self.slots.get(&slot).and_then(|held| held.session.as_ref());
                match session.is_some_and(|session| client.is_usable(&session.id)) {
                    true => self.read(client, slot),
                    false => self.session_over(client, slot),
                }
            }
        }
    }

    fn grant(&mut self, client: &mut Client, grant: Grant) {
        let Some(command) = self.forget_waiter(grant.waiter) else { return };
        let Some(session) = self.slots.get(&grant.slot).and_then(|held| held.session.as_ref()) else { return };
        let raw = format!(
            r#"{{"lease":{},"slot":{},"generation":{},"session_id":{},"proxy":{}}}"#,
            grant.lease,
            grant.slot,
            grant.generation,
            json_of(&session.id.to_string()),
            session.proxy.text(),
        );
        self.granted.push(Granted { command, lease: grant.lease });
        client.complete(command, Ok(Answered { raw: Json::checked(raw), ..Answered::of(Default::default()) }));
    }

    /// Whoever can't get a session before their time is over is told so at once.
    fn fail_fast(&mut self, client: &mut Client, now: Millis) {
        let Some(hold) = self.buyer.hold() else { return };
        let has_some = self.counts.lends + self.counts.coming + self.counts.rotating + self.counts.waiting > 0;
        if has_some || !self.asking.out.is_empty() || !self.asking.is_all || self.reads_products {
            return;
        }
        let tried_at = hold.retry_at.map(|at| now.saturating_add(at.saturating_sub(client.unix())));
        let too_late = |waiter: &Waiter| tried_at.is_none_or(|at| waiter.until < at);
        let ended: Vec<WaiterId> = self.waiters.iter().filter(|(_, waiter)| too_late(waiter)).map(|(id, _)| *id).collect();
        for waiter in ended {
            let error = Error::new(Kind::Unavailable, Effect::None, "acquire", "no session is there", Advice::RetryLater);
            self.end_wait(client, waiter, self.why(error));
        }
    }

    /// How many sessions more are wanted than there are or are coming.
    fn wanted(&self) -> u32 {
        let ahead = (self.options.ready as usize).saturating_sub(self.leases.idle_count());
        let coming = self.counts.coming + self.counts.rotating;
        let wanted = u32::try_from(self.leases.waiting() + ahead).unwrap_or(u32::MAX).saturating_sub(coming);
        let known = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        wanted.min(self.options.size.saturating_sub(known))
    }

    /// How many purchases may be begun now.
    fn allowed(&self, client: &Client) -> (u32, Option<Trial>) {
        match self.buyer.may(self.counts.in_doubt, client.unix()) {
            _ if self.is_paused => (0, None),
            May::Buy(room) => (room, None),
            May::Try(trial) => (1, Some(trial)),
            May::Wait => (0, None),
        }
    }

    /// Asks for slots, where somebody waits or fewer are free than are to be at hand.
    fn want_more(&mut self, client: &mut Client, now: Millis) {
        let (allowed, trial) = self.allowed(client);
        match trial {
            // The purchase that had no answer is the trial, with its key.
            Some(Trial::Same) => {
                let doubt = self.slots.iter().find(|(_, held)| held.doing == Doing::Doubts).map(|(slot, _)| *slot);
                match doubt {
                    Some(_) if now < self.asking.next => return,
                    Some(slot) => return self.look_at_doubt(client, slot, true),
                    None => {}
                }
            }
            Some(Trial::AfterRead) if self.wanted() > 0 && !self.reads_products => {
                self.reads_products = true;
                let command = client.start_for(self.number, "list_products", "{}", CallOptions::default());
                self.commands.insert(command, For::Products);
                return;
            }
            Some(Trial::AfterRead) => return,
            _ => {}
        }
        self.ask(client, now, allowed);
    }

    /// Asks the store for a slot in doubt: what is there by now goes on, as a trial where one is due. That it is free by now, as somebody
    /// settled it, is no reason to buy.
    fn look_at_doubt(&mut self, client: &mut Client, slot: SlotNo, is_trial: bool) {
        let soon = client.monotonic().saturating_add(ASK_AGAIN.0);
        if !self.asking.out.is_empty() {
            return self.set(slot, Doing::Doubts, Some(soon));
        }
        let name = client.slot_name(&self.slot_text(slot));
        match client.claim_slots(self.number, vec![name.clone()], 1) {
            true => (self.asking.out, self.asking.tries) = (BTreeMap::from([(name, slot)]), is_trial),
            false => self.set(slot, Doing::Doubts, Some(soon)),
        }
    }

    /// What could not be asked about is asked about again.
    fn look_at_doubts_later(&mut self, now: Millis) {
        let forgotten = |held: &Held| held.doing == Doing::Doubts && held.wakes.is_none();
        let slots: Vec<SlotNo> = self.slots.iter().filter(|(_, held)| forgotten(held)).map(|(slot, _)| *slot).collect();
        slots.into_iter().for_each(|slot| self.set(slot, Doing::Doubts, Some(now.saturating_add(READ_AGAIN))));
    }

    /// Asks the store for slots. Where it is known that nothing is there to be taken over, only for those that may be bought for.
    fn ask(&mut self, client: &mut Client, now: Millis, allowed: u32) {
        let wanted = self.wanted();
        let most = if self.asking.is_all { wanted.min(allowed) } else { wanted };
        if wanted == 0 || !self.asking.out.is_empty() || (now < self.asking.next && (allowed == 0 || !self.asking.is_all)) {
            return;
        }
        if most == 0 {
            // Others may have let go of something meanwhile.
            self.asking.is_all = false;
            return self.ask_later(now);
        }
        let size = self.options.size;
        let first = client.any_below(size);
        let free = (0..size).map(|offset| (first + offset) % size).filter(|slot| !self.slots.contains_key(slot));
        let names = free.take(AT_ONCE).map(|slot| (client.slot_name(&self.slot_text(slot)), slot));
        self.asking.out = names.collect();
        if !client.claim_slots(self.number, self.asking.out.keys().cloned().collect(), most) {
            self.asking.out.clear();
            self.ask_later(now);
        }
    }

    fn ask_later(&mut self, now: Millis) {
        let wait = ASK_AGAIN.0.saturating_mul(1 << self.asking.failures.min(8)).min(ASK_AGAIN.1);
        self.asking.failures = self.asking.failures.saturating_add(1);
        self.asking.next = now.saturating_add(wait);
    }

    fn slot_text(&self, slot: SlotNo) -> String {
        format!("{}/{slot}", self.name)
    }

    /// The store has given slots: what is there is taken over, and where nothing is, one may be bought.
    fn claimed(&mut self, client: &mut Client, claimed: &[(Name, Slot)]) {
        let now = client.monotonic();
        let (asked, is_trial) = (std::mem::take(&mut self.asking.out), std::mem::take(&mut self.asking.tries));
        // A slot in doubt that was asked for is nobody's doubt any more, or another client has it.
        let is_in_doubt = |slot: &SlotNo| self.slots.get(slot).is_some_and(|held| held.doing == Doing::Doubts);
        let doubts: Vec<SlotNo> = asked.values().copied().filter(is_in_doubt).collect();
        let is_of_doubt = !doubts.is_empty();
        doubts.into_iter().for_each(|slot| self.drop_slot(slot));
        let slots = claimed.iter().filter_map(|(name, found)| Some((name, *asked.get(name)?, *found)));
        let (mut free, mut began) = (Vec::new(), false);
        for (name, slot, found) in slots {
            match found {
                Slot::Taken if self.closing.is_none() => {
                    began = true;
                    if is_trial {
                        self.buyer.begun(true);
                    }
                    self.open(client, slot, if is_trial { Doing::Buys { is_trial } } else { Doing::Takes });
                }
                Slot::Free if self.closing.is_none() => free.push((name, slot)),
                Slot::Taken | Slot::Free => client.release_slot(name),
                Slot::Stuck => {
                    client.release_slot(name);
                    self.set(slot, Doing::Rests, Some(now.saturating_add(DOUBT_AGAIN)));
                }
            }
        }
        // What holds something comes first: where there is more, nobody has it who would not use it.
        if !is_of_doubt {
            self.asking.is_all = !free.is_empty() || claimed.is_empty();
        }
        for (name, slot) in free {
            let (allowed, trial) = self.allowed(client);
            match allowed > 0 && self.wanted() > 0 && trial != Some(Trial::AfterRead) {
                true => {
                    began = true;
                    self.buyer.begun(trial.is_some());
                    self.open(client, slot, Doing::Buys { is_trial: trial.is_some() });
                }
                false => client.release_slot(name),
            }
        }
        match began {
            true => (self.asking.failures, self.asking.next) = (0, now),
            false => self.ask_later(now),
        }
    }

    fn products_read(&mut self, client: &mut Client, result: Result<Answered, Error>) {
        self.reads_products = false;
        match result {
            // The service works again: the next one that may be bought is the trial.
            Ok(_) => self.buyer.may_try(),
            Err(_) => _ = self.buyer.try_later(client.unix()),
        }
    }

    /// Begins what a slot is opened for.
    fn open(&mut self, client: &mut Client, slot: SlotNo, doing: Doing) {
        let options = CallOptions {
            credentials: true,
            max_unit_price: self.options.max_unit_price,
            expected_charge_usd: self.options.expected_charge_usd,
            retry_paid: Some(self.options.retry_paid),
            ends: self.options.ends.clone(),
            ..CallOptions::default()
        };
        self.set(slot, doing, None);
        match client.open_slot(self.number, &self.slot_text(slot), &self.params, &options) {
            Ok(command) => _ = self.commands.insert(command, For::Slot(slot)),
            Err(error) => self.not_opened(client, slot, doing, &error),
        }
    }

    /// What a slot was opened for, or its session was asked, has ended.
    fn slot_ended(&mut self, client: &mut Client, slot: SlotNo, result: Result<Answered, Error>) {
        let Some(doing) = self.slots.get(&slot).map(|held| held.doing) else { return };
        match (doing, result) {
            (Doing::Takes | Doing::Buys { .. }, Ok(answered)) => self.opened(client, slot, doing, &answered),
            (Doing::Takes | Doing::Buys { .. }, Err(error)) => self.not_opened(client, slot, doing, &error),
            (Doing::Reads, Ok(answered)) => self.was_read(client, slot, &answered, false),
            (Doing::Rotates, Ok(answered)) => self.was_read(client, slot, &answered, true),
            (Doing::Rotates, Err(error)) if error.effect == Effect::Unknown => {
                // It may have another exit; it is lent as one that has, once it was read.
                self.next_generation(slot);
                self.read(client, slot);
            }
            (Doing::Rotates, Err(error)) => self.not_rotated(client, slot, &error),
            (Doing::Reads, Err(error)) => self.not_read(client, slot, &error),
            (Doing::Lends | Doing::Waits | Doing::Doubts | Doing::Rests, _) => {}
        }
    }

    /// A slot has a session: it can be used, or not yet, or not any more.
    fn opened(&mut self, client: &mut Client, slot: SlotNo, doing: Doing, answered: &Answered) {
        let now = client.monotonic();
        let Some(id) = answered.facts.session_id.as_deref() else {
            self.settle(doing, Came::Bought);
            return self.set(slot, Doing::Rests, Some(now.saturating_add(DOUBT_AGAIN)));
        };
        if self.closing.is_some() {
            self.settle(doing, Came::Bought);
            client.release_session(id);
            return self.drop_slot(slot);
        }
        // What is known from before, since no read came through, says nothing of the proxy.
        let is_ready = answered.phase == Some(Phase::Ready) && has_proxy(answered);
        let session = Session { id: id.into(), proxy: proxy_of(answered), generation: 1, ready_at: now, read_at: now };
        match answered.phase {
            Some(Phase::Ended) => {
                self.settle(doing, Came::Bought);
                self.drop_slot(slot);
                if let Doing::Buys { .. } = doing {
                    self.buyer.ended(0, client.unix());
                }
            }
            _ => {
                self.settle(doing, if is_ready { Came::Ready } else { Came::Bought });
                let (next, wakes) = if is_ready { (Doing::Lends, None) } else { (Doing::Waits, Some(now.saturating_add(READ_AGAIN))) };
                self.set(slot, next, wakes);
                self.slots.get_mut(&slot).into_iter().for_each(|held| held.session = Some(session.clone()));
                if is_ready {
                    self.leases.ready(slot, 1, now);
                }
            }
        }
        self.asking.next = now;
    }

    /// A slot was opened in vain.
    fn not_opened(&mut self, client: &mut Client, slot: SlotNo, doing: Doing, error: &Error) {
        let (now, unix) = (client.monotonic(), client.unix());
        self.asking.next = now;
        match (error.kind, error.effect) {
            // Another client has it, or its session is over: the next one takes its place when one is wanted.
            (Kind::Busy | Kind::Ended, _) => {
                self.settle(doing, Came::Bought);
                self.drop_slot(slot);
            }
            (_, Effect::None) => {
                self.settle(doing, Came::Failed(Reason::of(error), unix));
                self.drop_slot(slot);
            }
            // It was bought, and what followed failed: it is found there.
            (_, Effect::Done) if error.session_id.is_some() => {
                self.settle(doing, Came::Bought);
                self.drop_slot(slot);
                self.asking.is_all = false;
            }
            _ => {
                self.settle(doing, Came::Failed(Reason::of(error), unix));
                self.set(slot, Doing::Doubts, Some(now.saturating_add(DOUBT_AGAIN)));
            }
        }
    }

    /// A purchase is not under way any more.
    fn settle(&mut self, doing: Doing, came: Came) {
        let Doing::Buys { is_trial } = doing else { return };
        match came {
            Came::Ready => _ = self.buyer.ready(is_trial),
            Came::Bought => self.buyer.bought(is_trial),
            Came::Failed(reason, unix) => _ = self.buyer.failed(is_trial, reason, unix),
        }
    }

    /// Reads a session, which is not lent meanwhile.
    fn read(&mut self, client: &mut Client, slot: SlotNo) {
        let Some(held) = self.slots.get(&slot).filter(|held| matches!(held.doing, Doing::Lends | Doing::Waits | Doing::Rotates)) else {
            return;
        };
        let Some(session) = &held.session else { return };
        let params = format!(r#"{{"session_id":{},"include_credentials":true}}"#, json_of(&session.id.to_string()));
        self.leases.hold_back(slot);
        self.set(slot, Doing::Reads, None);
        let command = client.start_for(self.number, "get_session", &params, CallOptions::default());
        self.commands.insert(command, For::Slot(slot));
    }

    /// Changes the exit of a session, of which no lease is out; not more often than it may be.
    fn rotate(&mut self, client: &mut Client, slot: SlotNo) {
        let now = client.monotonic();
        let Some(session) = self.slots.get(&slot).and_then(|held| held.session.as_ref()) else { return };
        if self.counts.rotating >= ROTATIONS || client.is_rotation_held_back(&session.id) {
            self.leases.hold_back(slot);
            return self.set(slot, Doing::Waits, Some(now.saturating_add(5000)));
        }
        let params = format!(r#"{{"session_id":{},"include_credentials":true,"reason":"block"}}"#, json_of(&session.id.to_string()));
        self.leases.hold_back(slot);
        self.set(slot, Doing::Rotates, None);
        let command = client.start_for(self.number, "rotate_session", &params, CallOptions::default());
        self.commands.insert(command, For::Slot(slot));
    }

    /// A session was read, or has another exit.
    fn was_read(&mut self, client: &mut Client, slot: SlotNo, answered: &Answered, is_another: bool) {
        let now = client.monotonic();
        match answered.phase {
            Some(Phase::Ready) if has_proxy(answered) => {}
            Some(Phase::Ended) => return self.session_over(client, slot),
            _ => return self.set(slot, Doing::Waits, Some(now.saturating_add(READ_AGAIN))),
        }
        let proxy = proxy_of(answered);
        let Some(session) = self.slots.get_mut(&slot).and_then(|held| held.session.as_mut()) else { return };
        // Other credentials are another way out, too.
        let is_another = is_another || session.proxy != proxy || !self.leases.is_generation(slot, session.generation);
        (session.read_at, session.proxy) = (now, proxy);
        if is_another {
            if self.leases.is_generation(slot, session.generation) {
                session.generation = session.generation.saturating_add(1);
            }
            self.leases.ready(slot, session.generation, now);
        } else {
            self.leases.offer(slot);
        }
        self.set(slot, Doing::Lends, None);
    }

    fn next_generation(&mut self, slot: SlotNo) {
        if let Some(session) = self.slots.get_mut(&slot).and_then(|held| held.session.as_mut()) {
            session.generation = session.generation.saturating_add(1);
        }
    }

    fn not_read(&mut self, client: &mut Client, slot: SlotNo, error: &Error) {
        if error.code.as_deref() == Some("SESSION_NOT_FOUND") {
            return self.session_over(client, slot);
        }
        self.set(slot, Doing::Waits, Some(client.monotonic().saturating_add(READ_AGAIN)));
    }

    fn not_rotated(&mut self, client: &mut Client, slot: SlotNo, error: &Error) {
        let session = self.slots.get(&slot).and_then(|held| held.session.as_ref());
        if error.code.as_deref() == Some("SESSION_NOT_FOUND") || !session.is_some_and(|session| client.is_usable(&session.id)) {
            return self.session_over(client, slot);
        }
        self.leases.unchanged(slot);
        self.set(slot, Doing::Lends, None);
    }

    /// Whether what a lease was given for is this client's still.
    pub(super) fn is_valid(&self, client: &Client, lease: LeaseId) -> bool {
        let slot = self.leases.slot_of(lease).and_then(|slot| self.slots.get(&slot));
        slot.and_then(|held| held.session.as_ref()).is_some_and(|session| client.is_usable(&session.id))
    }

    /// Claims have ended: what is not this client's any more is not lent on.
    pub(super) fn give_up_lost(&mut self, client: &mut Client) {
        let is_lost = |held: &Held| held.session.as_ref().is_some_and(|session| !client.is_usable(&session.id));
        let lost: Vec<SlotNo> = self.slots.iter().filter(|(_, held)| is_lost(held)).map(|(slot, _)| *slot).collect();
        lost.into_iter().for_each(|slot| self.session_over(client, slot));
        self.turn(client);
    }

    /// A session is over, or another client has it.
    fn session_over(&mut self, client: &mut Client, slot: SlotNo) {
        let session = self.slots.get(&slot).and_then(|held| held.session.clone());
        self.leases.gone(slot);
        self.drop_slot(slot);
        if let Some(session) = session {
            if client.is_over(&session.id) {
                let lived = client.monotonic().saturating_sub(session.ready_at);
                self.buyer.ended(lived, client.unix());
            }
            client.release_session(&session.id);
        }
    }

    /// Lets go of sessions that nobody used for long, beyond those that are to be at hand.
    fn let_idle_go(&mut self, client: &mut Client, now: Millis) {
        if self.leases.waiting() > 0 {
            return;
        }
        let since = now.saturating_sub(self.options.idle_release_ms.unwrap_or(60_000));
        let spare = self.leases.idle_count().saturating_sub(self.options.ready as usize);
        let idle: Vec<SlotNo> = self.leases.idle(since).take(spare).collect();
        idle.into_iter().for_each(|slot| self.let_go(client, slot));
    }

    fn let_go(&mut self, client: &mut Client, slot: SlotNo) {
        if let Some(session) = self.slots.get(&slot).and_then(|held| held.session.as_ref()) {
            client.release_session(&session.id);
        }
        self.leases.gone(slot);
        self.drop_slot(slot);
        self.asking.is_all = false;
    }

    /// Lends no more: who waits is told so, and once all leases are back, or that took too long, all sessions are let go of.
    pub(super) fn close(&mut self, client: &mut Client, command: CommandId, grace: Millis) {
        if self.closing.is_some() {
            return client.complete(command, Ok(Answered::of(Default::default())));
        }
        self.closing = Some((command, client.monotonic().saturating_add(grace.max(0))));
        let waiting: Vec<WaiterId> = self.waiters.keys().copied().collect();
        for waiter in waiting {
            let error = Error::new(Kind::Cancelled, Effect::None, "acquire", "the pool was closed", Advice::Nothing);
            self.end_wait(client, waiter, error);
        }
        self.turn(client);
    }

    fn close_slots(&mut self, client: &mut Client, now: Millis) {
        let Some((command, until)) = self.closing else { return };
        let free: Vec<SlotNo> = self.leases.idle(Millis::MAX).collect();
        free.into_iter().for_each(|slot| self.let_go(client, slot));
        if (self.leases.lent_count() > 0 && now < until) || !client.is_pending(command) {
            return;
        }
        let has_session = |held: &Held| held.session.is_some() && !held.doing.is_coming();
        let rest: Vec<SlotNo> = self.slots.iter().filter(|(_, held)| has_session(held)).map(|(slot, _)| *slot).collect();
        rest.into_iter().for_each(|slot| self.let_go(client, slot));
        client.complete(command, Ok(Answered::of(Default::default())));
    }

    /// Whether it is closed, and nothing of it is under way.
    pub(super) fn is_closed(&self, client: &Client) -> bool {
        self.closing.is_some_and(|(command, _)| !client.is_pending(command)) && self.commands.is_empty() && self.asking.out.is_empty()
    }

    fn next_time(&self, client: &Client, now: Millis, rested: Option<Millis>) -> Option<Millis> {
        let hold = self.buyer.hold().and_then(|hold| hold.retry_at).map(|at| now.saturating_add(at.saturating_sub(client.unix())));
        let wants = self.closing.is_none() && self.wanted() > 0;
        let idle = self.options.idle_release_ms.unwrap_or(60_000);
        let spare = self.leases.waiting() == 0 && self.leases.idle_count() > self.options.ready as usize;
        let times = [
            self.deadlines.first().map(|(at, _)| *at),
            self.wakes.first().map(|(at, _)| *at),
            rested,
            hold.filter(|at| wants && *at > now),
            (wants && self.asking.out.is_empty() && self.asking.next > now).then_some(self.asking.next),
            self.leases.idle_longest().filter(|_| spare).map(|since| since.saturating_add(idle).max(now.saturating_add(1))),
            self.closing.filter(|(command, _)| client.is_pending(*command)).map(|(_, until)| until),
        ];
        times.into_iter().flatten().min()
    }

    fn set(&mut self, slot: SlotNo, doing: Doing, wakes: Option<Millis>) {
        let held = self.slots.entry(slot).or_insert_with(|| {
            self.counts.resting += 1;
            Held { doing: Doing::Rests, session: None, wakes: None }
        });
        *self.counts.of(held.doing) -= 1;
        *self.counts.of(doing) += 1;
        held.doing = doing;
        if let Some(at) = std::mem::replace(&mut held.wakes, wakes) {
            self.wakes.remove(&(at, slot));
        }
        wakes.into_iter().for_each(|at| _ = self.wakes.insert((at, slot)));
    }

    fn drop_slot(&mut self, slot: SlotNo) {
        self.set(slot, Doing::Rests, None);
        self.counts.resting -= 1;
        self.slots.remove(&slot);
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// How many slots this client knows something of.
    pub(super) fn known(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }
}

/// What became of a purchase.
enum Came {
    Ready,
    /// It was made, or found to be; the session can't be used yet, or not any more.
    Bought,
    Failed(Reason, Millis),
}

/// What a caller is to do with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advised {
    /// Go on with it.
    Keep,
    /// Give it back, and ask for another one.
    GiveBack,
    /// Give it back, and come later: other sessions are blocked there, too.
    Wait,
}

fn is_dynamic(options: &PoolOptions) -> bool {
    options.session.session_type.as_str() == "dynamic"
}

fn proxy_of(answered: &Answered) -> Json {
    let proxy = pick(answered.raw.text(), ["proxy"]).and_then(|[proxy]| proxy);
    proxy.map(Json::checked).unwrap_or_default()
}

fn has_proxy(answered: &Answered) -> bool {
    proxy_of(answered).text().starts_with('{')
}

fn hash(of: &str, text: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = crate::entropy::digest_bytes(of, text.as_bytes());
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
