//! The distribution of sessions: first come, first served among the callers that a free session fits, and of the free sessions the one that
//! rested longest.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use super::keys::SlotNo;
use super::keys::{CallerKey, Keys};
use super::rules::{PoolRule, holds};
use super::targets::{Consequence, Observation, SavedRest, TargetHistory, TargetId};
use crate::time::Millis;

/// So many keys of callers are remembered for each session that there may be.
const KEYS: usize = 16;
/// A lease that is out for so long is said to leak.
pub(crate) const LEAKS: Millis = 600_000;
/// A caller with a new key waits for so long for a session that no key has, where one may come; then keys share.
pub(crate) const SHARES_AFTER: Millis = 2000;
/// From then on they share for so long before further sessions are waited for again.
const SHARES_FOR: Millis = 10_000;
/// A caller whose time is over after so long shares a session rather than get none.
const LAST: Millis = 1000;
/// So many free sessions are looked at for the one that the fewest keys have.
const LOOKS: usize = 64;
/// So many targets that were asked for last are remembered.
const LATELY: usize = 4;
/// The shortest time between two changes of a session's exit.
const CHANGES_APART: Millis = 5000;
fn changes_apart() -> Millis {
    if holds(PoolRule::ChangesAreApart) { CHANGES_APART } else { 0 }
}
/// The most exits that are changed at a time.
const CHANGES: u32 = 4;
/// A change that is due waits for so long until the session's leases happen to be back; then the session gets no further ones.
const PATIENCE: Millis = 30_000;

/// A caller who waits for a lease; they are numbered as they come.
pub(crate) type WaiterId = u64;
/// A lease; they are numbered as they are granted.
pub(crate) type LeaseId = u64;
/// A hash of a session's id.
pub(crate) type SessionKey = u64;

/// How sessions are lent.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct LeaseTerms {
    /// So many leases of one session at a time.
    pub(crate) per_session: u32,
    /// After so many uses an exit is to be changed.
    pub(crate) rotate_after_uses: Option<u32>,
    /// The size of the pool.
    pub(crate) size: u32,
}

/// A lease that was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct LeaseGrant {
    pub(crate) waiter: WaiterId,
    pub(crate) lease: LeaseId,
    pub(crate) slot: SlotNo,
    pub(crate) generation: u32,
}

/// A session that may be lent: its exit, and how that is used.
#[derive(Debug, Clone, Hash)]
struct Exit {
    session: SessionKey,
    generation: u32,
    /// How many leases of it are out.
    out: u32,
    /// How often it was lent.
    uses: u32,
    /// When its last lease came back.
    idle_since: Millis,
    /// Since when another exit is wanted. Until it can be changed, the session is lent with this one.
    due: Option<Millis>,
    /// When it may be changed.
    may_change_at: Millis,
    /// Since when a change that is due waits for the session's leases, while there are no new ones.
    drains: Option<Millis>,
    /// True if the session is to end once its leases are back, and is not lent any more.
    stale: bool,
    /// True if the session is being read or changed, and not lent meanwhile.
    withheld: bool,
    /// The observations against it. Boxed, as there are none against most exits.
    against: Option<Box<TargetHistory>>,
}

impl Exit {
    fn new(session: SessionKey, generation: u32, now: Millis, may_change_at: Millis) -> Self {
        Exit {
            session,
            generation,
            out: 0,
            uses: 0,
            idle_since: now,
            due: None,
            may_change_at,
            drains: None,
            stale: false,
            withheld: false,
            against: None,
        }
    }

    /// When it may be lent for this target.
    fn rested_at(&self, target: TargetId) -> Millis {
        self.against.as_ref().map_or(0, |against| against.rested_at(target))
    }

    /// The place among the free sessions.
    fn place(&self, slot: SlotNo) -> (bool, u32, Millis, SlotNo) {
        let idle_since = if holds(PoolRule::LongestRestedFirst) { self.idle_since } else { -self.idle_since };
        (self.due.is_some() && holds(PoolRule::DueIsLast), self.out, idle_since, slot)
    }
}

#[derive(Debug, Clone, Copy, Hash)]
struct LeaseWaiter {
    target: TargetId,
    key: Option<CallerKey>,
    /// A session that is not wanted, in whichever slot.
    avoid: Option<SessionKey>,
    /// Until when the caller waits.
    until: Millis,
}

#[derive(Debug, Clone, Copy, Hash)]
struct Lease {
    slot: SlotNo,
    generation: u32,
    target: TargetId,
    since: Millis,
    key: Option<CallerKey>,
}

/// The result of an observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObservationResult {
    pub(crate) slot: SlotNo,
    pub(crate) target: TargetId,
    pub(crate) follows: Consequence,
    /// How many good answers of the target are known of this exit.
    pub(crate) answers: u32,
}

/// The session that a caller waits for, beside the session of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Sought {
    target: TargetId,
    avoid: Option<SessionKey>,
    is_for_key: bool,
    /// True if a session that other keys have does, too.
    shares: bool,
}

/// The callers whom a further session would help.
#[derive(Debug, Clone, Copy)]
struct Demand {
    /// Keys without a session of their own.
    keys: usize,
    /// Callers without a key.
    others: usize,
    /// Those of them who avoid a session that is free.
    avoiding: usize,
}

/// The sessions that rest for a target: free ones, lent ones, and when the first of them has rested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) free: u32,
    pub(crate) lent: u32,
    pub(crate) until: Option<Millis>,
}

/// The result of serving the waiting callers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) grants: Vec<LeaseGrant>,
    /// When a rest ends that somebody waits for.
    pub(crate) later: Option<Millis>,
    /// Sessions that are to be looked at.
    pub(crate) unusable: Vec<SlotNo>,
}

/// All leases of one pool in this client.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Leases {
    terms: LeaseTerms,
    exits: BTreeMap<SlotNo, Exit>,
    /// The sessions that can be lent once more: those whose exit is to be changed last; of the others that with the fewest leases out, of
    /// those the one that rested longest.
    free: BTreeSet<(bool, u32, Millis, SlotNo)>,
    /// Those of them without a lease, by how long they have rested.
    idle: BTreeSet<(Millis, SlotNo)>,
    /// The sessions whose exit is to be changed or that are to end, by when that is so.
    changes: BTreeSet<(Millis, SlotNo)>,
    /// How many sessions get no new leases so that their exit can be changed.
    draining: u32,
    waiters: BTreeMap<WaiterId, LeaseWaiter>,
    /// Those of them who have a key, or a session that they avoid.
    choosy: BTreeSet<WaiterId>,
    lent: BTreeMap<LeaseId, Lease>,
    /// The same by slot.
    lent_of: BTreeSet<(SlotNo, LeaseId)>,
    keys: Keys,
    /// The targets that were asked for last.
    lately: Vec<TargetId>,
    /// The leases of each key that are out.
    keys_out: BTreeMap<CallerKey, u32>,
    /// Since when a caller waits for a session that no key has.
    share_since: Option<Millis>,
    next_waiter: WaiterId,
    next_lease: LeaseId,
    /// Leases before this one were said to leak, if they are out.
    leaks_from: LeaseId,
}

impl Leases {
    pub(crate) fn new(terms: LeaseTerms) -> Self {
        let most = KEYS.saturating_mul(terms.size as usize);
        Leases {
            terms,
            exits: BTreeMap::new(),
            free: BTreeSet::new(),
            idle: BTreeSet::new(),
            changes: BTreeSet::new(),
            draining: 0,
            waiters: BTreeMap::new(),
            choosy: BTreeSet::new(),
            lent: BTreeMap::new(),
            lent_of: BTreeSet::new(),
            keys: Keys::new(most),
            lately: Vec::new(),
            keys_out: BTreeMap::new(),
            share_since: None,
            next_waiter: 0,
            next_lease: 0,
            leaks_from: 0,
        }
    }

    /// Adds a waiting caller, who waits until then and does not want the session to avoid. Call [`serve`](Self::serve) after it.
    pub(crate) fn ask(&mut self, target: TargetId, key: Option<CallerKey>, avoid: Option<SessionKey>, until: Millis) -> WaiterId {
        if self.lately.last() != Some(&target) {
            self.lately.retain(|known| *known != target);
            self.lately.push(target);
            self.lately.drain(..self.lately.len().saturating_sub(LATELY));
        }
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        self.waiters.insert(waiter, LeaseWaiter { target, key, avoid, until });
        if key.is_some() || avoid.is_some() {
            self.choosy.insert(waiter);
        }
        waiter
    }

    /// Removes a waiting caller. A lease that was granted meanwhile goes back.
    pub(crate) fn leave(&mut self, waiter: WaiterId) {
        self.take_waiter(waiter);
    }

    fn take_waiter(&mut self, waiter: WaiterId) -> Option<LeaseWaiter> {
        self.choosy.remove(&waiter);
        self.waiters.remove(&waiter)
    }

    /// The session that a caller waits for by its key. A key is free for another session where the exit of its own is to change, or rests
    /// for longer than the caller waits.
    fn own(&self, waiter: &LeaseWaiter) -> Option<SlotNo> {
        let slot = self.keys.slot(waiter.key?)?;
        let exit = self.exits.get(&slot).filter(|exit| waiter.avoid != Some(exit.session) && holds(PoolRule::KeysStay))?;
        let is_rested = exit.rested_at(waiter.target) <= waiter.until || !holds(PoolRule::KeysLeaveResting);
        (exit.due.is_none() && !exit.stale && is_rested).then_some(slot)
    }

    /// True if a key has this session with others, and would part from them.
    fn is_shared(&self, slot: SlotNo) -> bool {
        self.keys.count(slot) > 1
    }

    /// How many sessions would help those who wait. Those whose key alone has a session wait for that one; a key counts once, and not while
    /// it has a lease.
    pub(crate) fn demand(&self) -> usize {
        let Demand { keys, others, .. } = self.demand_by_kind();
        keys + others.div_ceil(self.terms.per_session.max(1) as usize)
    }

    /// How many sessions more than the free ones would help them, and leave so many free ones.
    pub(crate) fn lacking(&self, ahead: usize) -> usize {
        let Demand { keys, others, avoiding } = self.demand_by_kind();
        let per_session = self.terms.per_session.max(1) as usize;
        // A session that keys have is none for another key.
        let of_keys = if keys == 0 { 0 } else { self.keys.slots().filter(|slot| self.is_idle(*slot)).count() };
        let for_keys = keys.min(self.idle.len() - of_keys);
        let left = self.idle.len() - for_keys;
        let for_others = (others.div_ceil(per_session) + ahead).saturating_sub(left);
        // Nor is the only free one for those who avoid it.
        let for_avoiding = avoiding.div_ceil(per_session).saturating_sub(left.saturating_sub(1));
        keys - for_keys + for_others.max(for_avoiding)
    }

    fn demand_by_kind(&self) -> Demand {
        let (mut keys, mut bound, mut keyed, mut avoiding) = (BTreeSet::new(), 0, 0, 0);
        for waiter in self.choosy.iter().filter_map(|waiter| self.waiters.get(waiter)) {
            match waiter.key {
                None => {
                    avoiding += usize::from(waiter.avoid.is_some_and(|session| self.idle.iter().any(|(_, slot)| self.has(*slot, session))))
                }
                Some(_) if self.own(waiter).is_some_and(|slot| !self.is_shared(slot)) => bound += 1,
                Some(_) if !holds(PoolRule::KeysCountOnce) => {}
                Some(key) => {
                    keyed += 1;
                    if !self.keys_out.contains_key(&key) {
                        keys.insert(key);
                    }
                }
            }
        }
        Demand { keys: keys.len(), others: self.waiters.len() - bound - keyed, avoiding }
    }

    fn has(&self, slot: SlotNo, session: SessionKey) -> bool {
        self.exits.get(&slot).is_some_and(|exit| exit.session == session)
    }

    fn is_idle(&self, slot: SlotNo) -> bool {
        self.exits.get(&slot).is_some_and(|exit| self.idle.contains(&(exit.idle_since, slot)))
    }

    /// The targets for which somebody waits, each once.
    pub(crate) fn targets(&self) -> BTreeSet<TargetId> {
        self.waiters.values().map(|waiter| waiter.target).collect()
    }

    /// The target for which a caller waits.
    pub(crate) fn wanted_target(&self, waiter: WaiterId) -> Option<TargetId> {
        self.waiters.get(&waiter).map(|waiter| waiter.target)
    }

    /// How many sessions rest for a target.
    pub(crate) fn resting(&self, target: TargetId, now: Millis) -> Resting {
        let mut resting = Resting::default();
        for exit in self.exits.values().filter(|exit| !exit.withheld && !exit.stale && exit.drains.is_none()) {
            let at = exit.rested_at(target);
            // A session has another exit before it has rested, where that is due.
            match exit.out > 0 {
                _ if at <= now || exit.due.is_some() => continue,
                true => resting.lent += 1,
                false => resting.free += 1,
            }
            resting.until = resting.until.into_iter().chain([at]).min();
        }
        resting
    }

    /// Returns true if a session is lent that anybody may have once it is back.
    pub(crate) fn is_any_to_come_back(&self, now: Millis) -> bool {
        let is_for_all = |exit: &Exit| exit.due.is_some() || exit.stale || exit.against.as_ref().is_none_or(|against| !against.rests(now));
        self.lent.values().any(|lease| self.exits.get(&lease.slot).is_some_and(is_for_all))
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The session of a slot may be lent, or has another exit: what was held against the one before is forgotten.
    /// No lease of it is out.
    pub(crate) fn ready(&mut self, slot: SlotNo, session: SessionKey, generation: u32, now: Millis) {
        let may_change_at = match self.exits.contains_key(&slot) {
            true => now.saturating_add(changes_apart()),
            // A further session: those who wait for one that no key has may get it.
            false => {
                self.share_since = None;
                0
            }
        };
        self.gone(slot);
        self.exits.insert(slot, Exit::new(session, generation, now, may_change_at));
        self.list(slot);
    }

    /// The observations against the exit of a session, for a record, and whether it is to be changed.
    pub(crate) fn saved(&self, slot: SlotNo, now: Millis, unix: Millis) -> (Vec<SavedRest>, bool) {
        let Some(exit) = self.exits.get(&slot) else { return (Vec::new(), false) };
        (exit.against.as_ref().map_or_else(Vec::new, |against| against.saved(now, unix)), exit.due.is_some())
    }

    /// The observations of a record against the exit of a session that is [`ready`](Self::ready).
    pub(crate) fn recall(&mut self, slot: SlotNo, history: TargetHistory, is_due: bool, now: Millis) {
        self.update(slot, |exit| {
            exit.against = Some(Box::new(history));
            exit.due = is_due.then_some(now);
        });
    }

    /// The session of a slot is over, or not this client's any more. Returns the leases that are not valid from now on.
    pub(crate) fn gone(&mut self, slot: SlotNo) -> Vec<LeaseId> {
        self.unlist(slot);
        self.keys.release(slot);
        if self.exits.remove(&slot).is_none_or(|exit| exit.out == 0) {
            return Vec::new();
        }
        let ended: Vec<LeaseId> = self.lent_of.range((slot, 0)..=(slot, LeaseId::MAX)).map(|(_, lease)| *lease).collect();
        ended.iter().for_each(|lease| _ = self.take_lease(*lease));
        ended
    }

    fn take_lease(&mut self, lease: LeaseId) -> Option<Lease> {
        let taken = self.lent.remove(&lease)?;
        self.lent_of.remove(&(taken.slot, lease));
        if let Some(key) = taken.key
            && let Some(out) = self.keys_out.get_mut(&key)
        {
            *out -= 1;
            if *out == 0 {
                self.keys_out.remove(&key);
            }
        }
        Some(taken)
    }

    /// The slot of a lease, while it is valid.
    pub(crate) fn slot_of(&self, lease: LeaseId) -> Option<SlotNo> {
        self.lent.get(&lease).map(|lease| lease.slot)
    }

    /// The slot of a lease, and the generation of its exit, while it is valid.
    pub(crate) fn exit_of(&self, lease: LeaseId) -> Option<(SlotNo, u32)> {
        self.lent.get(&lease).map(|lease| (lease.slot, lease.generation))
    }

    /// Gives free sessions to waiting callers. A session that turns out to be unusable is not offered any more before it was [looked
    /// at](Self::offer). At most `looks` are checked. New keys share sessions after `share_after`, if they may, and part once there is a free
    /// session that no key has.
    pub(crate) fn serve(&mut self, now: Millis, looks: usize, share_after: Option<Millis>, is_usable: impl Fn(SlotNo) -> bool) -> Served {
        let (mut grants, mut later, mut in_vain, mut unusable) = (Vec::new(), None::<Millis>, BTreeSet::new(), Vec::new());
        self.share_since = self.share_since.filter(|since| now.saturating_sub(*since) < SHARES_AFTER + SHARES_FOR);
        let (mut next, mut is_again) = (0, false);
        let (mut looked_for, mut passed_over) = (None, Vec::new());
        while !self.free.is_empty() {
            let Some((id, waiter)) = self.waiters.range(next..).next().map(|(id, waiter)| (*id, *waiter)) else {
                // Those who wait for a session whose last use was granted meanwhile may have another one.
                if !std::mem::take(&mut is_again) {
                    break;
                }
                next = 0;
                continue;
            };
            next = id + 1;
            let own = self.own(&waiter);
            let shares_at = match waiter.key {
                Some(_) if own.is_none() => self.shares_at(&waiter, share_after, now),
                _ => 0,
            };
            let shares = own.is_none() && shares_at <= now;
            let what = Sought { target: waiter.target, avoid: waiter.avoid, is_for_key: waiter.key.is_some(), shares };
            let has_none_out = waiter.key.is_some_and(|key| !self.keys_out.contains_key(&key));
            let parts = has_none_out && own.is_some_and(|slot| self.is_shared(slot)) && !in_vain.contains(&what);
            if shares_at > now {
                later = later.into_iter().chain([shares_at]).min();
            }
            // Where nothing was found for the one before, there is nothing for this one.
            if own.is_none() && in_vain.contains(&what) {
                continue;
            }
            match self.find(own, parts, what, now) {
                // One is looked at for each who waits, who gets another one meanwhile, where there is one.
                Ok(slot) if !is_usable(slot) => {
                    self.hold_back(slot);
                    match unusable.len() < looks && looked_for != Some(id) {
                        true => unusable.push(slot),
                        false => passed_over.push(slot),
                    }
                    (looked_for, next) = (Some(id), id);
                }
                Ok(slot) => {
                    let left = waiter.key.and_then(|key| self.keys.slot(key));
                    grants.extend(self.grant(id, waiter, slot, now));
                    is_again |= self.exits.get(&slot).is_some_and(|exit| exit.due == Some(now)) && self.keys.count(slot) > 0;
                    // Its key may have left a session that no key has now.
                    if left.is_some_and(|left| self.keys.count(left) == 0) {
                        (is_again, in_vain) = (true, BTreeSet::new());
                    }
                }
                Err(at) => {
                    later = later.into_iter().chain(at).min();
                    if own.is_none() || parts {
                        in_vain.insert(what);
                    }
                    if shares_at > now && self.share_since.is_none() {
                        self.share_since = Some(now);
                        let at = share_after.map(|after| now.saturating_add(after));
                        later = later.into_iter().chain(at).min();
                    }
                }
            }
        }
        passed_over.into_iter().for_each(|slot| self.offer(slot));
        Served { grants, later, unusable }
    }

    /// When a new key shares a session with others.
    fn shares_at(&self, waiter: &LeaseWaiter, share_after: Option<Millis>, now: Millis) -> Millis {
        let last = waiter.until.saturating_sub(LAST);
        match share_after {
            Some(0) => now,
            Some(after) => self.share_since.unwrap_or(now).saturating_add(after).min(last),
            None => last,
        }
    }

    /// How many sessions are free, with no lease out.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.len()
    }

    /// How many leases are out.
    pub(crate) fn lent_count(&self) -> usize {
        self.lent.len()
    }

    /// Returns true if a slot is lent with this exit.
    pub(crate) fn is_generation(&self, slot: SlotNo, generation: u32) -> bool {
        self.exits.get(&slot).is_some_and(|exit| exit.generation == generation)
    }

    /// A session is not lent for now.
    pub(crate) fn hold_back(&mut self, slot: SlotNo) {
        self.update(slot, |exit| exit.withheld = true);
    }

    /// A session that was held back can be lent again, with the exit that it had.
    pub(crate) fn offer(&mut self, slot: SlotNo) {
        self.update(slot, |exit| exit.withheld = false);
    }

    /// The exit of a session could not be changed: it is lent as it is where it has rested.
    pub(crate) fn unchanged(&mut self, slot: SlotNo, now: Millis) {
        self.update(slot, |exit| {
            (exit.due, exit.uses, exit.drains, exit.withheld) = (None, 0, None, false);
            exit.may_change_at = now.saturating_add(changes_apart());
        });
    }

    /// A free session that fits, of all or the caller's own, from which their key parts or not; else the time at which one has rested.
    fn find(&self, own: Option<SlotNo>, parts: bool, what: Sought, now: Millis) -> Result<SlotNo, Option<Millis>> {
        let mut later = None::<Millis>;
        let fits = |slot: SlotNo| {
            let is_free = |exit: &&Exit| self.free.contains(&exit.place(slot));
            self.exits.get(&slot).filter(is_free).map(|exit| exit.rested_at(what.target))
        };
        let mut look = |slot: SlotNo| match fits(slot) {
            Some(at) if at <= now => true,
            at => {
                later = later.into_iter().chain(at).min();
                false
            }
        };
        let is_avoided = |slot: &SlotNo| what.avoid.is_some_and(|session| self.has(*slot, session) && holds(PoolRule::AvoidIsAvoided));
        let mut free = self.free.iter().map(|(.., slot)| *slot).filter(|slot| !is_avoided(slot));
        let found = match own {
            Some(slot) if look(slot) => Some(slot),
            Some(_) if !parts => None,
            _ if what.is_for_key && holds(PoolRule::FewestKeysFirst) => {
                let mut fewest = None::<(usize, SlotNo)>;
                for slot in free.filter(|slot| look(*slot)).take(LOOKS) {
                    let keys = self.keys.count(slot);
                    if fewest.is_none_or(|(known, _)| keys < known) {
                        fewest = Some((keys, slot));
                    }
                    if keys == 0 {
                        break;
                    }
                }
                fewest.filter(|(keys, _)| *keys == 0 || what.shares).map(|(_, slot)| slot)
            }
            _ => free.find(|slot| look(*slot)),
        };
        found.ok_or(later)
    }

    /// A use counts when it is granted.
    fn grant(&mut self, waiter: WaiterId, LeaseWaiter { target, key, .. }: LeaseWaiter, slot: SlotNo, now: Millis) -> Option<LeaseGrant> {
        self.take_waiter(waiter)?;
        let most = self.terms.rotate_after_uses;
        let generation = self.update(slot, |exit| {
            (exit.out, exit.uses) = (exit.out + 1, exit.uses.saturating_add(1));
            if most.is_some_and(|most| exit.uses >= most) {
                exit.due.get_or_insert(now);
            }
            exit.generation
        })?;
        let lease = self.next_lease;
        self.next_lease += 1;
        self.lent.insert(lease, Lease { slot, generation, target, since: now, key });
        self.lent_of.insert((slot, lease));
        if let Some(key) = key {
            self.keys.remember(key, slot);
            *self.keys_out.entry(key).or_default() += 1;
        }
        Some(LeaseGrant { waiter, lease, slot, generation })
    }

    /// A lease came back.
    pub(crate) fn give_back(&mut self, lease: LeaseId, now: Millis) {
        let Some(Lease { slot, .. }) = self.take_lease(lease) else { return };
        self.update(slot, |exit| (exit.out, exit.idle_since) = (exit.out.saturating_sub(1), now));
    }

    /// Takes an observation through a lease. Returns its consequence; `None` if the exit has changed since, or the lease is not valid.
    pub(crate) fn observe(&mut self, lease: LeaseId, sight: Observation, now: Millis) -> Option<ObservationResult> {
        let Lease { slot, generation, target, since, .. } = *self.lent.get(&lease)?;
        let exit = self.exits.get_mut(&slot).filter(|exit| exit.generation == generation)?;
        let record = exit.against.get_or_insert_default();
        let follows = record.saw(target, sight, since, now);
        Some(ObservationResult { slot, target, follows, answers: record.answers(target) })
    }

    /// Returns true if a session rests for all targets, as its proxy fails, and no lease of it is out.
    pub(crate) fn rests_for_all(&self, slot: SlotNo, now: Millis) -> bool {
        let rests = |exit: &Exit| exit.out == 0 && exit.against.as_ref().is_some_and(|against| against.rests_until() > now);
        self.exits.get(&slot).is_some_and(rests)
    }

    /// The target of a lease, while it is valid.
    pub(crate) fn target_of(&self, lease: LeaseId) -> Option<TargetId> {
        self.lent.get(&lease).map(|lease| lease.target)
    }

    /// When the first session has rested for this target.
    pub(crate) fn rested_first(&self, target: TargetId) -> Option<Millis> {
        self.exits.values().filter(|exit| !exit.stale).map(|exit| exit.rested_at(target)).min()
    }

    /// Another exit is wanted: it is changed [when that may be](Self::next_change), and not under a lease.
    pub(crate) fn change(&mut self, slot: SlotNo, now: Millis) {
        self.update(slot, |exit| _ = exit.due.get_or_insert(now));
    }

    /// A session is to end, and is not lent any more.
    pub(crate) fn retire(&mut self, slot: SlotNo) {
        self.update(slot, |exit| exit.stale = true);
    }

    /// Returns a session whose exit is to be changed now, or that is to end: none of its leases is out, and until it is
    /// [`ready`](Self::ready) again or [`unchanged`](Self::unchanged), nobody gets it. `changing` exits are being changed.
    pub(crate) fn next_change(&mut self, now: Millis, changing: u32) -> Option<SlotNo> {
        loop {
            let (_, slot) = *self.changes.first().filter(|(at, _)| *at <= now)?;
            let exit = self.exits.get(&slot)?;
            // Its leases don't come back: it is lent again, and the change waits once more.
            if !exit.stale && exit.out > 0 && exit.drains.is_some() {
                self.update(slot, |exit| (exit.drains, exit.may_change_at) = (None, now.saturating_add(PATIENCE)));
                continue;
            }
            if !exit.stale && exit.drains.is_none() && !self.has_place(changing) {
                return None;
            }
            if exit.out == 0 || !holds(PoolRule::ExitsStay) {
                self.update(slot, |exit| (exit.withheld, exit.drains) = (true, None));
                return Some(slot);
            }
            self.update(slot, |exit| exit.drains = Some(now));
        }
    }

    /// When the next exit may be changed.
    pub(crate) fn changes_at(&self, now: Millis) -> Option<Millis> {
        self.changes.first().map(|(at, _)| *at).filter(|at| *at > now)
    }

    /// Returns true if one more exit may be changed: at most half of them at a time.
    fn has_place(&self, changing: u32) -> bool {
        let half = u32::try_from(self.exits.len() / 2).unwrap_or(CHANGES);
        changing.saturating_add(self.draining) < half.clamp(1, CHANGES) || !holds(PoolRule::FewChangeAtOnce)
    }

    /// When the exit of a session may be changed; that of one that drains, as soon as its leases are back.
    fn change_at(&self, exit: &Exit) -> Option<Millis> {
        let is_used_up = self.terms.rotate_after_uses.is_some_and(|most| exit.uses >= most);
        match exit.due {
            _ if exit.withheld => None,
            Some(since) if !holds(PoolRule::ExitsStay) => Some(since.max(exit.may_change_at)),
            _ if exit.stale => (exit.out == 0).then_some(0),
            _ if exit.out == 0 && exit.drains.is_some() => Some(0),
            Some(_) if let Some(since) = exit.drains => Some(since.saturating_add(PATIENCE)),
            Some(since) if exit.out == 0 || is_used_up => Some(since.max(exit.may_change_at)),
            Some(since) => Some(since.saturating_add(PATIENCE).max(exit.may_change_at)),
            None => None,
        }
    }

    /// A lease that has been out since this or before.
    pub(crate) fn out_since(&self, since: Millis) -> Option<LeaseId> {
        self.lent.first_key_value().filter(|(_, lease)| lease.since <= since).map(|(id, _)| *id)
    }

    /// When the oldest lease was granted, and the oldest that was not said to leak.
    pub(crate) fn oldest(&self) -> (Option<Millis>, Option<Millis>) {
        let since = |lease: Option<(&LeaseId, &Lease)>| lease.map(|(_, lease)| lease.since);
        (since(self.lent.first_key_value()), since(self.lent.range(self.leaks_from..).next()))
    }

    /// Returns true if a lease of the session is out.
    pub(crate) fn is_lent(&self, slot: SlotNo) -> bool {
        self.exits.get(&slot).is_some_and(|exit| exit.out > 0)
    }

    /// The leases that have been out for too long, each once.
    pub(crate) fn leaking(&mut self, now: Millis) -> Vec<(LeaseId, SlotNo)> {
        let old = |lease: &Lease| now.saturating_sub(lease.since) >= LEAKS;
        let leaking = self.lent.range(self.leaks_from..).take_while(|(_, lease)| old(lease)).map(|(id, lease)| (*id, lease.slot));
        let leaking: Vec<(LeaseId, SlotNo)> = leaking.collect();
        leaking.last().into_iter().for_each(|(id, _)| self.leaks_from = id + 1);
        leaking
    }

    /// The sessions without a lease that have been idle for so long that other clients may have them; the one that rested longest first.
    pub(crate) fn idle(&self, since: Millis) -> impl Iterator<Item = SlotNo> {
        self.idle.iter().take_while(move |(idle_since, _)| *idle_since <= since).map(|(_, slot)| *slot)
    }

    /// When the last lease of each session came back that a key has, and that has been idle since then only: the one that has rested longest
    /// comes first.
    pub(crate) fn idle_of_keys(&self, since: Millis) -> impl Iterator<Item = Millis> {
        let of_keys = if self.keys.is_empty() { None } else { Some(self.idle.range((since.saturating_add(1), 0)..)) };
        of_keys.into_iter().flatten().filter(|(_, slot)| self.keys.count(*slot) > 0).map(|(since, _)| *since)
    }

    /// The sessions without a lease in the order in which others may have them: first those that rest for what is asked for here, then those
    /// that have rested longest.
    pub(crate) fn to_let_go(&self, now: Millis) -> impl Iterator<Item = SlotNo> {
        let rests = |slot: &SlotNo| self.rests_for(*slot, now).next().is_some();
        let (resting, others): (Vec<SlotNo>, Vec<SlotNo>) = self.idle(Millis::MAX).partition(rests);
        let (first, last) = if holds(PoolRule::RestingGoesFirst) { (resting, others) } else { (others, resting) };
        first.into_iter().chain(last)
    }

    /// The targets that were asked for of late for which a session rests, and until when.
    pub(crate) fn rests_for(&self, slot: SlotNo, now: Millis) -> impl Iterator<Item = (TargetId, Millis)> {
        let exit = self.exits.get(&slot);
        self.lately.iter().filter_map(move |target| Some((*target, exit?.rested_at(*target)))).filter(move |(_, until)| *until > now)
    }

    /// Changes the exit of a slot, if there is one.
    fn update<T>(&mut self, slot: SlotNo, how: impl FnOnce(&mut Exit) -> T) -> Option<T> {
        self.unlist(slot);
        let came = self.exits.get_mut(&slot).map(how);
        self.list(slot);
        came
    }

    fn list(&mut self, slot: SlotNo) {
        let Some(exit) = self.exits.get(&slot) else { return };
        let is_lent_as_it_is = exit.due.is_none() || holds(PoolRule::DueIsLent);
        if !exit.withheld && !exit.stale && exit.drains.is_none() && exit.out < self.terms.per_session && is_lent_as_it_is {
            self.free.insert(exit.place(slot));
            if exit.out == 0 {
                self.idle.insert((exit.idle_since, slot));
            }
        }
        self.draining += u32::from(exit.drains.is_some());
        self.change_at(exit).into_iter().for_each(|at| _ = self.changes.insert((at, slot)));
    }

    fn unlist(&mut self, slot: SlotNo) {
        let Some(exit) = self.exits.get(&slot) else { return };
        self.free.remove(&exit.place(slot));
        self.idle.remove(&(exit.idle_since, slot));
        self.draining -= u32::from(exit.drains.is_some());
        self.change_at(exit).into_iter().for_each(|at| _ = self.changes.remove(&(at, slot)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: TargetId = TargetId::NONE;
    const TERMS: LeaseTerms = LeaseTerms { per_session: 1, rotate_after_uses: None, size: 3 };

    /// A pool whose slots became ready a second apart, from 0 on.
    fn pool(terms: LeaseTerms, slots: u32) -> Leases {
        let mut leases = Leases::new(terms);
        (0..slots).for_each(|slot| leases.ready(slot, slot.into(), 1, Millis::from(slot) * 1000));
        leases
    }

    fn serve(leases: &mut Leases, now: Millis) -> (Vec<LeaseGrant>, Option<Millis>) {
        let served = leases.serve(now, usize::MAX, Some(0), |_| true);
        assert!(served.unusable.is_empty());
        (served.grants, served.later)
    }

    fn acquire(leases: &mut Leases, target: TargetId, key: Option<CallerKey>, now: Millis) -> Option<LeaseGrant> {
        let waiter = leases.ask(target, key, None, Millis::MAX);
        serve(leases, now).0.into_iter().find(|grant| grant.waiter == waiter)
    }

    #[test]
    fn the_session_that_rested_longest_comes_first() {
        let mut leases = pool(TERMS, 3);
        let [a, b, c] = [0, 0, 0].map(|_| acquire(&mut leases, NONE, None, 10_000).expect("is free"));
        assert_eq!([a.slot, b.slot, c.slot], [0, 1, 2]);
        leases.give_back(b.lease, 11_000);
        leases.give_back(a.lease, 12_000);
        assert_eq!(acquire(&mut leases, NONE, None, 13_000).map(|grant| grant.slot), Some(1));
    }

    #[test]
    fn first_come_first_served_among_those_whom_it_fits() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(TERMS, 1);
        let first = acquire(&mut leases, shop, None, 0).expect("is free");
        let waiting = [shop, NONE, NONE].map(|target| leases.ask(target, None, None, Millis::MAX));
        assert_eq!((serve(&mut leases, 0), leases.waiting()), ((Vec::new(), None), 3));
        // The session was blocked at the shop, so a caller that wants the shop is passed over, and gets the time at which it has rested.
        leases.observe(first.lease, Observation::Blocked, 0);
        leases.give_back(first.lease, 0);
        let (grants, later) = serve(&mut leases, 0);
        assert_eq!((grants.iter().map(|grant| grant.waiter).collect::<Vec<_>>(), later), (vec![waiting[1]], Some(60_000)));
        leases.give_back(grants[0].lease, 60_000);
        assert_eq!(serve(&mut leases, 60_000).0.first().map(|grant| grant.waiter), Some(waiting[0]));
    }

    #[test]
    fn a_lent_session_that_rests_for_a_target_is_none_to_wait_for_there() {
        let [shop, other] = ["shop.example", "other.example"].map(|name| TargetId::of(Some(name)));
        let mut leases = pool(TERMS, 3);
        let sees = |leases: &mut Leases, now| {
            let lease = acquire(leases, shop, None, now).expect("is free").lease;
            leases.observe(lease, Observation::Blocked, now);
            lease
        };
        let first = sees(&mut leases, 10_000);
        assert_eq!(leases.resting(shop, 10_000), Resting { free: 0, lent: 1, until: Some(70_000) });
        assert!(!leases.is_any_to_come_back(10_000));
        leases.give_back(first, 11_000);
        assert_eq!(leases.resting(shop, 11_000), Resting { free: 1, lent: 0, until: Some(70_000) });
        // One whose exit is to be changed once it is back does after that; and one that has rested, at once.
        let second = sees(&mut leases, 12_000);
        leases.change(1, 12_000);
        assert_eq!(
            (leases.resting(shop, 12_000), leases.is_any_to_come_back(12_000)),
            (Resting { free: 1, lent: 0, until: Some(70_000) }, true)
        );
        // Given back, it is still none that rests: its change comes first.
        leases.give_back(second, 13_000);
        assert_eq!(leases.resting(shop, 13_000), Resting { free: 1, lent: 0, until: Some(70_000) });
        assert_eq!((leases.resting(shop, 70_000), leases.resting(other, 12_000)), (Resting::default(), Resting::default()));
    }

    #[test]
    fn nobody_who_left_is_granted_anything() {
        let mut leases = pool(TERMS, 1);
        let first = acquire(&mut leases, NONE, None, 0).expect("is free");
        let [gone, stays] = [0, 0].map(|_| leases.ask(NONE, None, None, Millis::MAX));
        leases.leave(gone);
        leases.give_back(first.lease, 1);
        assert_eq!(serve(&mut leases, 1).0.iter().map(|grant| grant.waiter).collect::<Vec<_>>(), [stays]);
    }

    #[test]
    fn ten_thousand_who_leave_lose_no_lease() {
        let mut leases = pool(TERMS, 3);
        for round in 0..10_000 {
            let waiter = leases.ask(NONE, None, None, Millis::MAX);
            let grants = serve(&mut leases, round).0;
            // Each is cancelled: some before they are granted one, some when they were.
            leases.leave(waiter);
            grants.iter().for_each(|grant| leases.give_back(grant.lease, round));
        }
        assert_eq!((leases.free.len(), leases.lent.len(), leases.waiting()), (3, 0, 0));
    }

    #[test]
    fn a_lease_given_back_twice_is_given_back_once() {
        let mut leases = pool(LeaseTerms { per_session: 2, ..TERMS }, 1);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, NONE, None, 0).expect("has room"));
        leases.give_back(a.lease, 1);
        leases.give_back(a.lease, 1);
        assert!(acquire(&mut leases, NONE, None, 1).is_some() && acquire(&mut leases, NONE, None, 1).is_none());
        assert!(leases.slot_of(b.lease).is_some() && leases.slot_of(a.lease).is_none());
    }

    #[test]
    fn an_exit_is_not_changed_under_a_lease() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(LeaseTerms { per_session: 3, ..TERMS }, 1);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, shop, None, 0).expect("has room"));
        leases.observe(a.lease, Observation::Blocked, 0);
        leases.change(0, 0);
        // Not for that target, but for others; and it is changed when the last one is back.
        assert!(acquire(&mut leases, shop, None, 0).is_none());
        let other = acquire(&mut leases, NONE, None, 0).expect("fits");
        [a, b].into_iter().for_each(|grant| leases.give_back(grant.lease, 1));
        assert_eq!(leases.next_change(1, 0), None);
        leases.give_back(other.lease, 2);
        assert_eq!((leases.next_change(2, 0), leases.next_change(2, 0)), (Some(0), None));
        assert_eq!(serve(&mut leases, 2).0, []);
        leases.ready(0, 0, 2, 3);
        assert_eq!(serve(&mut leases, 3).0.iter().map(|grant| grant.generation).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn an_idle_exit_is_changed_at_once_and_nobody_gets_it_meanwhile() {
        let mut leases = pool(TERMS, 1);
        leases.change(0, 0);
        assert_eq!(leases.next_change(0, 0), Some(0));
        assert!(acquire(&mut leases, NONE, None, 0).is_none());
        leases.ready(0, 0, 2, 1);
        assert_eq!(serve(&mut leases, 1).0.len(), 1);
    }

    #[test]
    fn a_key_does_not_get_an_exit_that_is_being_changed() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, shop, Some(7), 0).expect("is free");
        leases.change(0, 0);
        leases.give_back(grant.lease, 1);
        assert_eq!(leases.next_change(1, 0), Some(0));
        assert!(acquire(&mut leases, NONE, Some(7), 1).is_none());
    }

    #[test]
    fn what_was_seen_of_an_older_exit_is_ignored() {
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, NONE, None, 0).expect("is free");
        assert_eq!(leases.gone(0), [grant.lease]);
        leases.ready(0, 0, 2, 1);
        assert_eq!(leases.observe(grant.lease, Observation::Blocked, 1), None);
        leases.give_back(grant.lease, 2);
        assert_eq!((leases.slot_of(grant.lease), leases.exits[&0].out), (None, 0));
        assert!(acquire(&mut leases, NONE, None, 2).is_some());
    }

    #[test]
    fn the_same_key_gets_the_same_session_and_waits_for_it() {
        let mut leases = pool(TERMS, 3);
        let cart = acquire(&mut leases, NONE, Some(7), 5000).expect("is free");
        // Others are free, but not this one.
        let second = leases.ask(NONE, Some(7), None, Millis::MAX);
        assert_eq!(serve(&mut leases, 5000).0, []);
        leases.give_back(cart.lease, 6000);
        let again = serve(&mut leases, 6000).0;
        assert_eq!(again.iter().map(|grant| (grant.waiter, grant.slot)).collect::<Vec<_>>(), [(second, cart.slot)]);
        // With another exit it is as good as any.
        let third = leases.ask(NONE, Some(7), None, Millis::MAX);
        leases.gone(cart.slot);
        leases.ready(cart.slot, cart.slot.into(), 2, 6500);
        let other = serve(&mut leases, 7000).0;
        assert_eq!(other.iter().map(|grant| (grant.waiter, grant.slot)).collect::<Vec<_>>(), [(third, 1)]);
    }

    /// The callers who are granted sessions, where new keys share after this.
    fn granted(leases: &mut Leases, share_after: Option<Millis>, now: Millis) -> (Vec<(WaiterId, SlotNo)>, Option<Millis>) {
        let served = leases.serve(now, usize::MAX, share_after, |_| true);
        (served.grants.iter().map(|grant| (grant.waiter, grant.slot)).collect(), served.later)
    }

    #[test]
    fn a_new_key_gets_the_session_that_the_fewest_keys_have() {
        let mut leases = pool(TERMS, 3);
        for (key, slot) in [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1), (1, 0), (6, 2)] {
            let grant = acquire(&mut leases, NONE, Some(key), 5000 + Millis::try_from(key).expect("is small")).expect("is free");
            assert_eq!(grant.slot, slot, "key {key}");
            leases.give_back(grant.lease, 6000);
        }
    }

    #[test]
    fn a_new_key_that_would_share_is_demand_for_a_while_and_shares_then() {
        let mut leases = pool(TERMS, 1);
        let first = acquire(&mut leases, NONE, Some(1), 0).expect("is free");
        leases.give_back(first.lease, 0);
        let until = 30_000;
        let [a, b] = [2, 2].map(|key| leases.ask(NONE, Some(key), None, until));
        let c = leases.ask(NONE, Some(3), None, until);
        // While something is on its way, up to the last second of their time.
        assert_eq!(granted(&mut leases, None, 0), (vec![], Some(29_000)));
        assert_eq!((leases.demand(), leases.lacking(0), leases.lacking(5)), (2, 2, 6), "a key counts once");
        // Nothing comes any more.
        assert_eq!(granted(&mut leases, Some(2000), 1999), (vec![], Some(2000)));
        assert_eq!(granted(&mut leases, Some(2000), 2000).0, [(a, 0)]);
        assert_eq!((leases.demand(), leases.lacking(0)), (1, 1), "a key that has a session waits for that");
        let lease = *leases.lent.keys().next().expect("is lent");
        leases.give_back(lease, 3000);
        assert_eq!(granted(&mut leases, Some(2000), 3000).0, [(b, 0)]);
        leases.give_back(lease + 1, 4000);
        // A further session is that of the next one.
        leases.ready(1, 1, 1, 4000);
        assert_eq!((granted(&mut leases, Some(2000), 4000).0, leases.demand()), (vec![(c, 1)], 0));
        // Those who share now do so for some seconds; then further sessions are waited for once more. Where there is no room, at once.
        let d = leases.ask(NONE, Some(4), None, Millis::MAX);
        assert_eq!(granted(&mut leases, Some(2000), 20_000), (vec![], Some(22_000)));
        assert_eq!(granted(&mut leases, Some(2000), 31_999).0, [(d, 0)]);
        leases.give_back(lease + 3, 32_000);
        let e = leases.ask(NONE, Some(5), None, Millis::MAX);
        assert_eq!(granted(&mut leases, Some(2000), 32_000), (vec![], Some(34_000)));
        assert_eq!(granted(&mut leases, Some(0), 32_000).0, [(e, 0)]);
    }

    #[test]
    fn keys_that_had_to_share_a_session_are_demand_and_part_once_another_is_free() {
        let mut leases = pool(TERMS, 1);
        for key in [1, 2, 3] {
            let grant = acquire(&mut leases, NONE, Some(key), 0).expect("is free");
            leases.give_back(grant.lease, 0);
        }
        let first = acquire(&mut leases, NONE, Some(1), 0).expect("is free");
        let [b, c] = [2, 3].map(|key| leases.ask(NONE, Some(key), None, Millis::MAX));
        assert_eq!((serve(&mut leases, 0).0, leases.demand(), leases.lacking(0)), (vec![], 2, 2));
        leases.ready(1, 1, 1, 1000);
        assert_eq!((granted(&mut leases, None, 1000).0, leases.demand()), (vec![(b, 1)], 1));
        // The one that is left shares no more with the second, but with the first.
        leases.give_back(first.lease, 2000);
        assert_eq!((granted(&mut leases, None, 2000).0, leases.demand()), (vec![(c, 0)], 0));
        // A session that another key has is none to part for, and a key with a lease parts from no session.
        let [of_b, of_c] = [1, 0].map(|slot| leases.lent.iter().find(|(_, lease)| lease.slot == slot).map(|(id, _)| *id).expect("is lent"));
        leases.give_back(of_b, 3000);
        let d = leases.ask(NONE, Some(3), None, Millis::MAX);
        assert_eq!(granted(&mut leases, Some(0), 3000), (vec![], None));
        // A key that has a session alone waits for that.
        let [e, f] = [2, 2].map(|key| leases.ask(NONE, Some(key), None, Millis::MAX));
        assert_eq!(granted(&mut leases, Some(0), 3000), (vec![(e, 1)], None));
        leases.ready(2, 2, 1, 3000);
        assert_eq!((granted(&mut leases, Some(0), 3000), leases.demand()), ((vec![], None), 0));
        leases.leave(f);
        leases.give_back(of_c, 4000);
        assert_eq!(granted(&mut leases, Some(0), 4000).0, [(d, 0)]);
    }

    #[test]
    fn a_key_is_free_for_another_session_where_its_own_changes_or_rests_for_too_long() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(TERMS, 2);
        let grant = acquire(&mut leases, shop, Some(7), 2000).expect("is free");
        leases.observe(grant.lease, Observation::Blocked, 2000);
        leases.give_back(grant.lease, 2000);
        // Whoever waits for longer than it rests waits for it.
        let patient = leases.ask(shop, Some(7), None, 62_000);
        assert_eq!((granted(&mut leases, Some(0), 2000), leases.demand()), ((vec![], Some(62_000)), 0));
        leases.leave(patient);
        let hasty = leases.ask(shop, Some(7), None, 61_999);
        assert_eq!((leases.demand(), granted(&mut leases, Some(0), 2000).0), (1, vec![(hasty, 1)]));
        // That one is its own now, until its exit is to change.
        let lease = *leases.lent.keys().next().expect("is lent");
        leases.change(1, 2000);
        leases.give_back(lease, 2001);
        let next = leases.ask(NONE, Some(7), None, Millis::MAX);
        assert_eq!(granted(&mut leases, Some(0), 2001).0, [(next, 0)]);
        // A key that has a lease is no demand.
        let more = leases.ask(NONE, Some(7), None, Millis::MAX);
        leases.change(0, 2001);
        assert_eq!((leases.demand(), granted(&mut leases, Some(0), 2001).0), (0, vec![(more, 1)]));
    }

    #[test]
    fn a_session_to_avoid_is_not_given_and_another_one_is_demand() {
        let mut leases = pool(TERMS, 1);
        let retry = leases.ask(NONE, None, Some(0), Millis::MAX);
        assert_eq!((granted(&mut leases, Some(0), 0).0, leases.demand(), leases.lacking(0)), (vec![], 1, 1));
        // Others get it.
        let other = leases.ask(NONE, None, None, Millis::MAX);
        assert_eq!(granted(&mut leases, Some(0), 0).0, [(other, 0)]);
        leases.ready(1, 1, 1, 1);
        assert_eq!((granted(&mut leases, Some(0), 1).0, leases.lacking(0)), (vec![(retry, 1)], 0));
        // Its key gets another one, too.
        let lease = *leases.lent.keys().next().expect("is lent");
        leases.give_back(lease, 2);
        leases.give_back(lease + 1, 3);
        let keyed = acquire(&mut leases, NONE, Some(7), 4).expect("is free");
        leases.give_back(keyed.lease, 5);
        let again = leases.ask(NONE, Some(7), Some(keyed.slot.into()), Millis::MAX);
        assert_eq!((keyed.slot, granted(&mut leases, Some(0), 6).0), (0, vec![(again, 1)]));
        // The session that is avoided comes back in another slot, while a caller waits.
        leases.gone(0);
        leases.hold_back(1);
        let waits = leases.ask(NONE, None, Some(0), Millis::MAX);
        leases.ready(2, 0, 1, 7);
        assert_eq!(granted(&mut leases, Some(0), 7).0, []);
        leases.ready(0, 9, 1, 8);
        assert_eq!(granted(&mut leases, Some(0), 8).0, [(waits, 0)]);
    }

    #[test]
    fn a_use_counts_when_it_is_granted() {
        let mut leases = pool(LeaseTerms { per_session: 5, rotate_after_uses: Some(2), ..TERMS }, 1);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, NONE, None, 0).expect("has room"));
        assert_eq!(leases.next_change(0, 0), None);
        assert!(acquire(&mut leases, NONE, None, 0).is_none(), "it drains");
        leases.give_back(a.lease, 0);
        assert_eq!(leases.next_change(0, 0), None);
        leases.give_back(b.lease, 0);
        assert_eq!(leases.next_change(0, 0), Some(0));
    }

    #[test]
    fn a_change_that_waits_in_vain_for_leases_withholds_the_session_for_a_time_only() {
        let mut leases = pool(LeaseTerms { per_session: 3, ..TERMS }, 1);
        let kept = acquire(&mut leases, NONE, None, 0).expect("has room");
        leases.change(0, 0);
        assert_eq!((leases.next_change(29_999, 0), leases.changes_at(29_999)), (None, Some(30_000)));
        assert_eq!((leases.next_change(30_000, 0), leases.changes_at(30_000)), (None, Some(60_000)));
        assert!(acquire(&mut leases, NONE, None, 59_999).is_none(), "the lease may come back");
        assert_eq!(leases.next_change(60_000, 0), None);
        let waited = serve(&mut leases, 60_000).0.first().copied().expect("who waited gets it");
        assert_eq!((leases.draining, leases.changes_at(60_000)), (0, Some(90_000)));
        // The change is made as soon as all are back.
        [kept, waited].into_iter().for_each(|grant| leases.give_back(grant.lease, 89_000));
        assert_eq!((leases.next_change(89_000, 0), leases.next_change(90_000, 0)), (None, Some(0)));
    }

    #[test]
    fn an_exit_that_may_not_be_changed_yet_is_lent_as_it_is() {
        let mut leases = pool(LeaseTerms { rotate_after_uses: Some(1), ..TERMS }, 2);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, NONE, None, 2000).expect("is free"));
        leases.give_back(a.lease, 2001);
        leases.give_back(b.lease, 2002);
        // Half of two at a time: the other one is lent until its turn has come.
        assert_eq!((leases.next_change(2002, 0), leases.next_change(2002, 1)), (Some(0), None));
        let again = acquire(&mut leases, NONE, None, 2003).expect("is lent as it is");
        assert_eq!(again.slot, 1);
        leases.ready(0, 0, 2, 3000);
        assert_eq!(leases.next_change(3000, 0), None, "it is lent");
        leases.give_back(again.lease, 3001);
        assert_eq!(leases.next_change(3001, 0), Some(1));
        leases.ready(1, 1, 2, 4000);
        // A changed exit is used up at once, and may be changed again 5 s after it was.
        let next = acquire(&mut leases, NONE, None, 4000).expect("is free");
        leases.give_back(next.lease, 4001);
        assert_eq!((next.slot, leases.next_change(7999, 0), leases.changes_at(7999)), (0, None, Some(8000)));
        assert_eq!(leases.next_change(8000, 0), Some(0));
        leases.unchanged(0, 8001);
        leases.change(0, 8001);
        assert_eq!((leases.next_change(13_000, 0), leases.next_change(13_001, 0)), (None, Some(0)), "that failed");
    }

    #[test]
    fn at_most_half_of_the_exits_and_four_are_changed_at_a_time() {
        for (sessions, most) in [(1, 1), (2, 1), (3, 1), (4, 2), (7, 3), (8, 4), (100, 4)] {
            let mut leases = pool(LeaseTerms { size: 100, ..TERMS }, sessions);
            (0..sessions).for_each(|slot| leases.change(slot, 100_000));
            let changed = (0..).take_while(|changing| leases.next_change(100_000, *changing).is_some()).count();
            assert_eq!(changed, most, "of {sessions}");
            // What is left is lent, and what is to end waits for no other.
            assert_eq!(leases.idle_count(), sessions as usize - most);
            leases.retire(sessions - 1);
            assert_eq!(leases.next_change(100_000, 9), (most < sessions as usize).then_some(sessions - 1));
        }
    }

    #[test]
    fn a_session_whose_exit_is_to_be_changed_comes_last() {
        let mut leases = pool(TERMS, 3);
        leases.change(0, 2000);
        let slots = [0, 0, 0].map(|_| acquire(&mut leases, NONE, None, 3000).map(|grant| grant.slot));
        assert_eq!(slots, [Some(1), Some(2), Some(0)]);
    }

    #[test]
    fn a_change_that_is_due_waits_half_a_minute_for_leases_and_then_for_no_new_ones() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(LeaseTerms { per_session: 2, ..TERMS }, 2);
        let [a, other] = [0, 0].map(|_| acquire(&mut leases, shop, None, 1000).expect("has room"));
        for slot in [0, 1] {
            leases.change(slot, 1000);
        }
        let b = acquire(&mut leases, NONE, None, 1000).expect("has room");
        assert_eq!((b.slot, leases.next_change(30_999, 0), leases.changes_at(30_999)), (0, None, Some(31_000)));
        leases.give_back(a.lease, 30_999);
        let b2 = acquire(&mut leases, NONE, None, 30_999).expect("has room");
        leases.give_back(b2.lease, 30_999);
        // The first gets no new leases; the second one is not withheld beside it.
        assert_eq!(leases.next_change(31_000, 0), None);
        let slots = [0, 0].map(|_| acquire(&mut leases, NONE, None, 31_000).map(|grant| grant.slot));
        assert_eq!(slots, [Some(1), None]);
        leases.give_back(b.lease, 32_000);
        assert_eq!(leases.next_change(32_000, 0), Some(0));
        leases.ready(0, 0, 2, 33_000);
        assert_eq!((leases.next_change(33_000, 0), leases.exits[&1].drains), (None, Some(33_000)));
        assert_eq!((other.slot, leases.draining), (1, 1));
    }

    #[test]
    fn what_is_to_end_is_lent_no_more_and_ends_once_its_leases_are_back() {
        let mut leases = pool(LeaseTerms { per_session: 2, ..TERMS }, 1);
        let grant = acquire(&mut leases, NONE, None, 0).expect("is free");
        leases.retire(0);
        assert!(acquire(&mut leases, NONE, None, 0).is_none() && leases.next_change(0, 0).is_none());
        leases.give_back(grant.lease, 1);
        assert_eq!(leases.next_change(1, 4), Some(0));
    }

    #[test]
    fn fewer_leases_come_before_a_longer_rest() {
        let mut leases = pool(LeaseTerms { per_session: 2, ..TERMS }, 2);
        let slots = [0, 0, 0, 0].map(|_| acquire(&mut leases, NONE, None, 5000).map(|grant| grant.slot));
        assert_eq!(slots, [Some(0), Some(1), Some(0), Some(1)]);
        assert!(acquire(&mut leases, NONE, None, 5000).is_none());
    }

    #[test]
    fn a_lease_that_is_not_back_is_told_of_once() {
        let mut leases = pool(TERMS, 3);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, NONE, None, 0).expect("is free"));
        leases.give_back(a.lease, 1);
        let late = acquire(&mut leases, NONE, None, 100_000).expect("is free");
        assert_eq!(leases.leaking(599_999), []);
        assert_eq!(leases.leaking(600_000), [(b.lease, b.slot)]);
        assert_eq!(leases.leaking(600_001), []);
        assert_eq!(leases.leaking(700_000), [(late.lease, late.slot)]);
    }

    #[test]
    fn what_nobody_uses_may_go_to_others() {
        let mut leases = pool(LeaseTerms { per_session: 2, ..TERMS }, 3);
        let grant = acquire(&mut leases, NONE, None, 2000).expect("is free");
        assert_eq!(leases.idle(60_000).collect::<Vec<_>>(), [1, 2]);
        leases.give_back(grant.lease, 60_000);
        assert_eq!((leases.idle(59_999).collect::<Vec<_>>(), leases.idle(60_000).collect::<Vec<_>>()), (vec![1, 2], vec![1, 2, 0]));
    }

    #[test]
    fn what_rests_for_the_targets_in_demand_goes_to_others_first() {
        let [shop, news] = ["shop.example", "news.example"].map(|target| TargetId::of(Some(target)));
        let mut leases = pool(TERMS, 3);
        let [a, b, c] = [news, NONE, shop].map(|target| acquire(&mut leases, target, None, 5000).expect("is free"));
        leases.observe(a.lease, Observation::Blocked, 5000);
        leases.observe(c.lease, Observation::Throttled(None), 5000);
        [b, c, a].into_iter().for_each(|grant| leases.give_back(grant.lease, 6000 + Millis::from(grant.slot)));
        let order = |leases: &Leases, now| leases.to_let_go(now).collect::<Vec<_>>();
        assert_eq!(order(&leases, 6000), [0, 2, 1]);
        assert_eq!(order(&leases, 40_000), [0, 1, 2]);
        // Nobody asks for the news any more.
        for target in ["a", "b", "c", "d", "shop.example"].map(|target| TargetId::of(Some(target))) {
            let waiter = leases.ask(target, None, None, Millis::MAX);
            leases.leave(waiter);
        }
        assert_eq!((order(&leases, 6000), order(&leases, 40_000)), (vec![2, 0, 1], vec![0, 1, 2]));
    }

    /// A seed chooses the events; the invariants are checked after each step.
    #[test]
    fn whatever_happens_no_session_is_lent_too_often_and_nobody_is_passed_over() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let per_session = 1 + random.below(3) as u32;
            let rotate_after_uses = (random.below(3) == 0).then_some(4);
            let mut leases = Leases::new(LeaseTerms { per_session, rotate_after_uses, size: 4 });
            let (mut out, mut changing, mut gone_by) = (Vec::<LeaseGrant>::new(), BTreeSet::new(), BTreeSet::new());
            for step in 0..200 {
                let now = step * 7000;
                let target = [NONE, TargetId::of(Some("a")), TargetId::of(Some("b"))][random.below(3)];
                let (slot, generation) = (random.below(4) as u32, step as u32);
                match random.below(8) {
                    0 if !out.iter().any(|grant| grant.slot == slot) => {
                        changing.remove(&slot);
                        leases.ready(slot, slot.into(), generation, now);
                    }
                    1 => {
                        changing.remove(&slot);
                        let ended = leases.gone(slot);
                        assert_eq!(ended.len(), out.iter().filter(|grant| grant.slot == slot).count(), "seed {seed}, step {step}");
                        out.retain(|grant| !ended.contains(&grant.lease));
                    }
                    2 if leases.waiting() > 0 => {
                        let left = leases.waiters.keys().nth(random.below(leases.waiting())).copied().expect("waits");
                        leases.leave(left);
                        gone_by.insert(left);
                    }
                    3 => leases.change(slot, now),
                    4 | 5 if !out.is_empty() => {
                        let grant = out.swap_remove(random.below(out.len()));
                        let sight = [Observation::Good, Observation::Blocked, Observation::Throttled(None)][random.below(3)];
                        assert!(leases.observe(grant.lease, sight, now).is_some());
                        leases.give_back(grant.lease, now);
                    }
                    _ => {
                        let key = (random.below(3) == 0).then_some(random.below(5) as CallerKey);
                        leases.ask(target, key, None, Millis::MAX);
                    }
                }
                while let Some(slot) = leases.next_change(now, changing.len() as u32) {
                    assert!(changing.insert(slot) && !out.iter().any(|grant| grant.slot == slot), "seed {seed}, step {step}");
                    assert!(changing.len() <= 2, "seed {seed}, step {step}: too many exits are changed at a time");
                }
                let before = leases.waiters.clone();
                let (grants, _) = serve(&mut leases, now);
                for grant in &grants {
                    let of = before[&grant.waiter];
                    assert!(!gone_by.contains(&grant.waiter) && !changing.contains(&grant.slot), "seed {seed}, step {step}");
                    let earlier = before.range(..grant.waiter).filter(|(id, _)| leases.waiters.contains_key(id));
                    let passed = earlier.filter(|(_, waiter)| waiter.target == of.target && waiter.key.is_none()).count();
                    assert!(passed == 0 || of.key.is_some(), "seed {seed}, step {step}: one who came earlier was passed over");
                }
                out.extend(grants);
                for (slot, exit) in &leases.exits {
                    let lent = out.iter().filter(|grant| grant.slot == *slot).count();
                    assert!(lent == exit.out as usize && exit.out <= per_session, "seed {seed}, step {step}");
                }
                assert!(leases.free.iter().all(|place| leases.exits[&place.3].place(place.3) == *place), "seed {seed}, step {step}");
                assert_eq!([leases.lent.len(), leases.lent_of.len()], [out.len(); 2], "seed {seed}, step {step}");
                assert_eq!(serve(&mut leases, now).0, [], "seed {seed}, step {step}: serving once is enough");
            }
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % most
        }
    }

    #[test]
    fn what_is_not_usable_after_all_is_held_back_until_it_was_looked_at() {
        let mut leases = pool(TERMS, 3);
        let waiter = leases.ask(NONE, None, None, Millis::MAX);
        let look = |leases: &mut Leases, looks, usable| {
            let served = leases.serve(5000, looks, Some(0), |slot| Some(slot) == usable);
            (served.grants.iter().map(|grant| (grant.waiter, grant.slot)).collect::<Vec<_>>(), served.unusable)
        };
        // One for each who waits, and no more than are to be looked at.
        assert_eq!(look(&mut leases, usize::MAX, None), (vec![], vec![0]));
        assert_eq!(look(&mut leases, 0, None), (vec![], vec![]));
        assert_eq!(leases.idle_count(), 2, "what is not looked at stays free");
        // Nobody waits for a look beside one that is usable.
        assert_eq!(look(&mut leases, 1, Some(2)), (vec![(waiter, 2)], vec![1]));
        assert_eq!((acquire(&mut leases, NONE, None, 5000), leases.idle_count()), (None, 0));
        leases.offer(1);
        assert_eq!((leases.idle_count(), serve(&mut leases, 5000).0.first().map(|grant| grant.slot)), (1, Some(1)));
    }

    #[test]
    fn what_is_held_back_while_it_is_lent_is_not_lent_again_when_it_comes_back() {
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, NONE, None, 0).expect("is free");
        leases.hold_back(0);
        leases.give_back(grant.lease, 1);
        assert_eq!(leases.idle_count(), 0);
        leases.offer(0);
        assert_eq!(leases.idle_count(), 1);
    }
}
