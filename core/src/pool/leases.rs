//! The distribution of sessions: first come, first served among the callers that a free session fits, and of the free sessions the one that
//! rested longest.

use std::collections::{BTreeMap, BTreeSet};

use super::targets::{Consequence, Observation, TargetHistory, TargetId};
use crate::time::Millis;

/// So many keys of callers are remembered for each session that there may be.
const KEYS: usize = 16;
/// A lease that is out for so long is said to leak.
pub(crate) const LEAKS: Millis = 600_000;

/// The number of a slot of the pool.
pub(crate) type SlotNo = u32;
/// A caller who waits for a lease; they are numbered as they come.
pub(crate) type WaiterId = u64;
/// A lease; they are numbered as they are granted.
pub(crate) type LeaseId = u64;
/// A key of a caller's own, hashed: the same key gets the same session.
pub(crate) type CallerKey = u64;

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
    generation: u32,
    /// How many leases of it are out.
    out: u32,
    /// How often it was lent.
    uses: u32,
    /// When its last lease came back.
    idle_since: Millis,
    /// True if the session is not to be lent any more once its leases are back.
    stale: bool,
    /// True if the session is being read or changed, and not lent meanwhile.
    withheld: bool,
    /// Boxed, as most exits have none of it.
    against: Option<Box<Against>>,
}

/// The observations against an exit.
#[derive(Debug, Clone, Default, Hash)]
struct Against {
    /// For which targets another exit is wanted, once its leases are back.
    due: Vec<TargetId>,
    record: TargetHistory,
}

impl Exit {
    fn new(generation: u32, now: Millis) -> Self {
        Exit { generation, out: 0, uses: 0, idle_since: now, stale: false, withheld: false, against: None }
    }

    /// For which targets another exit is wanted.
    fn due(&self) -> &[TargetId] {
        self.against.as_ref().map_or(&[], |against| &against.due)
    }

    /// When it may be lent for this target.
    fn rested_at(&self, target: TargetId) -> Millis {
        self.against.as_ref().map_or(0, |against| against.record.rested_at(target))
    }

    fn against(&mut self) -> &mut Against {
        self.against.get_or_insert_default()
    }
}

#[derive(Debug, Clone, Copy, Hash)]
struct LeaseWaiter {
    target: TargetId,
    key: Option<CallerKey>,
}

#[derive(Debug, Clone, Copy, Hash)]
struct Lease {
    slot: SlotNo,
    generation: u32,
    target: TargetId,
    since: Millis,
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
    /// The sessions that can be lent once more: that with the fewest leases out, of those the one that rested longest.
    free: BTreeSet<(u32, Millis, SlotNo)>,
    /// How many of them have no lease out.
    idle: usize,
    waiters: BTreeMap<WaiterId, LeaseWaiter>,
    /// Those of them who have a key.
    keyed: BTreeMap<WaiterId, CallerKey>,
    lent: BTreeMap<LeaseId, Lease>,
    /// The same by slot.
    lent_of: BTreeSet<(SlotNo, LeaseId)>,
    keys: Keys,
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
            idle: 0,
            waiters: BTreeMap::new(),
            keyed: BTreeMap::new(),
            lent: BTreeMap::new(),
            lent_of: BTreeSet::new(),
            keys: Keys { most, ..Keys::default() },
            next_waiter: 0,
            next_lease: 0,
            leaks_from: 0,
        }
    }

    /// Adds a waiting caller. Call [`serve`](Self::serve) after it.
    pub(crate) fn ask(&mut self, target: TargetId, key: Option<CallerKey>) -> WaiterId {
        let waiter = self.next_waiter;
        self.next_waiter += 1;
        self.waiters.insert(waiter, LeaseWaiter { target, key });
        key.into_iter().for_each(|key| _ = self.keyed.insert(waiter, key));
        waiter
    }

    /// Removes a waiting caller. A lease that was granted meanwhile goes back.
    pub(crate) fn leave(&mut self, waiter: WaiterId) {
        self.take_waiter(waiter);
    }

    fn take_waiter(&mut self, waiter: WaiterId) -> Option<LeaseWaiter> {
        self.keyed.remove(&waiter);
        self.waiters.remove(&waiter)
    }

    /// How many wait whom any session would do: those whose key has a session here wait for that one.
    pub(crate) fn unbound(&self) -> usize {
        let bound = self.keyed.values().filter(|key| self.keys.slot(**key, &self.exits).is_some()).count();
        self.waiters.len() - bound
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiters.len()
    }

    /// The session of a slot may be lent, or has another exit: what was held against the one before is forgotten.
    /// No lease of it is out.
    pub(crate) fn ready(&mut self, slot: SlotNo, generation: u32, now: Millis) {
        self.gone(slot);
        self.exits.insert(slot, Exit::new(generation, now));
        self.list(slot);
    }

    /// The session of a slot is over, or not this client's any more. Returns the leases that are not valid from now on.
    pub(crate) fn gone(&mut self, slot: SlotNo) -> Vec<LeaseId> {
        self.unlist(slot);
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
        Some(taken)
    }

    /// The slot of a lease, while it is valid.
    pub(crate) fn slot_of(&self, lease: LeaseId) -> Option<SlotNo> {
        self.lent.get(&lease).map(|lease| lease.slot)
    }

    /// Gives free sessions to waiting callers. A session that turns out to be unusable is not offered any more before it was [looked
    /// at](Self::offer). At most `looks` are checked.
    pub(crate) fn serve(&mut self, now: Millis, looks: usize, is_usable: impl Fn(SlotNo) -> bool) -> Served {
        let (mut grants, mut later, mut in_vain, mut unusable) = (Vec::new(), None::<Millis>, BTreeSet::new(), Vec::new());
        let mut next = 0;
        while let Some((id, waiter)) = self.waiters.range(next..).next().map(|(id, waiter)| (*id, *waiter)) {
            next = id + 1;
            if self.free.is_empty() {
                break;
            }
            let own = waiter.key.and_then(|key| self.keys.slot(key, &self.exits));
            // Where nothing was found for the one before, there is nothing for this one.
            if own.is_none() && in_vain.contains(&waiter.target) {
                continue;
            }
            match self.find(own, waiter.target, now) {
                Ok(slot) if !is_usable(slot) => {
                    if unusable.len() < looks {
                        self.hold_back(slot);
                        unusable.push(slot);
                    }
                }
                Ok(slot) => grants.extend(self.grant(id, waiter, slot, now)),
                Err(at) => {
                    later = later.into_iter().chain(at).min();
                    if own.is_none() {
                        in_vain.insert(waiter.target);
                    }
                }
            }
        }
        Served { grants, later, unusable }
    }

    /// How many sessions are free, with no lease out.
    pub(crate) fn idle_count(&self) -> usize {
        self.idle
    }

    /// How many leases are out.
    pub(crate) fn lent_count(&self) -> usize {
        self.lent.len()
    }

    /// Returns true if a slot is lent with this exit.
    pub(crate) fn is_generation(&self, slot: SlotNo, generation: u32) -> bool {
        self.exits.get(&slot).is_some_and(|exit| exit.generation == generation)
    }

    /// Returns true if another exit is wanted.
    pub(crate) fn wants_another(&self, slot: SlotNo) -> bool {
        let used_up = |exit: &Exit| self.terms.rotate_after_uses.is_some_and(|most| exit.uses >= most);
        self.exits.get(&slot).is_some_and(|exit| exit.stale || !exit.due().is_empty() || used_up(exit))
    }

    /// Since when that has been idle which rested longest.
    pub(crate) fn idle_longest(&self) -> Option<Millis> {
        self.free.first().filter(|(out, ..)| *out == 0).map(|(_, since, _)| *since)
    }

    /// A session is not lent for now.
    pub(crate) fn hold_back(&mut self, slot: SlotNo) {
        self.unlist(slot);
        self.exits.get_mut(&slot).into_iter().for_each(|exit| exit.withheld = true);
    }

    /// A session that was held back can be lent again, with the exit that it had.
    pub(crate) fn offer(&mut self, slot: SlotNo) {
        self.unlist(slot);
        self.exits.get_mut(&slot).into_iter().for_each(|exit| exit.withheld = false);
        self.list(slot);
    }

    /// The exit of a session could not be changed: it is lent as it is where it has rested.
    pub(crate) fn unchanged(&mut self, slot: SlotNo) {
        let Some(exit) = self.exits.get_mut(&slot) else { return };
        exit.against.iter_mut().for_each(|against| against.due.clear());
        (exit.uses, exit.stale) = (0, false);
        self.offer(slot);
    }

    /// A free session that fits, of all or of one slot; else the time at which one has rested.
    fn find(&self, own: Option<SlotNo>, target: TargetId, now: Millis) -> Result<SlotNo, Option<Millis>> {
        let mut later = None::<Millis>;
        let fits = |slot: SlotNo| {
            let fits = |exit: &Exit| !exit.stale && !exit.due().contains(&target);
            let is_free = |exit: &&Exit| self.free.contains(&(exit.out, exit.idle_since, slot)) && fits(exit);
            self.exits.get(&slot).filter(is_free).map(|exit| exit.rested_at(target))
        };
        let mut look = |slot: SlotNo| match fits(slot) {
            Some(at) if at <= now => true,
            at => {
                later = later.into_iter().chain(at).min();
                false
            }
        };
        let found = match own {
            Some(slot) => look(slot).then_some(slot),
            None => self.free.iter().map(|(_, _, slot)| *slot).find(|slot| look(*slot)),
        };
        found.ok_or(later)
    }

    /// A use counts when it is granted.
    fn grant(&mut self, waiter: WaiterId, LeaseWaiter { target, key }: LeaseWaiter, slot: SlotNo, now: Millis) -> Option<LeaseGrant> {
        self.take_waiter(waiter)?;
        self.unlist(slot);
        let exit = self.exits.get_mut(&slot)?;
        (exit.out, exit.uses) = (exit.out + 1, exit.uses.saturating_add(1));
        let generation = exit.generation;
        self.list(slot);
        let lease = self.next_lease;
        self.next_lease += 1;
        self.lent.insert(lease, Lease { slot, generation, target, since: now });
        self.lent_of.insert((slot, lease));
        key.into_iter().for_each(|key| self.keys.remember(key, slot, generation));
        Some(LeaseGrant { waiter, lease, slot, generation })
    }

    /// A lease came back. Returns the slot whose exit is to be changed now: until it is [`ready`](Self::ready) again, nobody gets it.
    pub(crate) fn give_back(&mut self, lease: LeaseId, now: Millis) -> Option<SlotNo> {
        let Lease { slot, .. } = self.take_lease(lease)?;
        self.unlist(slot);
        let exit = self.exits.get_mut(&slot)?;
        (exit.out, exit.idle_since) = (exit.out.saturating_sub(1), now);
        let used_up = self.terms.rotate_after_uses.is_some_and(|most| exit.uses >= most);
        let changes = exit.out == 0 && !exit.withheld && (used_up || exit.stale || !exit.due().is_empty());
        exit.withheld |= changes;
        self.list(slot);
        changes.then_some(slot)
    }

    /// Takes an observation through a lease. Returns the consequence, the slot and the target; `None` if the exit has changed since, or the
    /// lease is not valid.
    pub(crate) fn observe(&mut self, lease: LeaseId, sight: Observation, now: Millis) -> Option<(Consequence, SlotNo, TargetId)> {
        let Lease { slot, generation, target, .. } = *self.lent.get(&lease)?;
        let exit = self.exits.get_mut(&slot).filter(|exit| exit.generation == generation)?;
        Some((exit.against().record.saw(target, sight, now), slot, target))
    }

    /// Another exit is wanted for this target: the session is not lent for it before that, nor changed under a lease. Returns whether it can
    /// be changed at once; then nobody gets it until it is [`ready`](Self::ready) again.
    pub(crate) fn change(&mut self, slot: SlotNo, target: TargetId) -> bool {
        let Some(exit) = self.exits.get_mut(&slot) else { return false };
        if !exit.due().contains(&target) {
            exit.against().due.push(target);
        }
        self.take_now(slot)
    }

    /// A session is to be taken out of use for all targets, once its leases are back. Returns whether that is so now.
    pub(crate) fn retire(&mut self, slot: SlotNo) -> bool {
        self.exits.get_mut(&slot).into_iter().for_each(|exit| exit.stale = true);
        self.take_now(slot)
    }

    fn take_now(&mut self, slot: SlotNo) -> bool {
        let at_once = self.exits.get(&slot).is_some_and(|exit| exit.out == 0 && !exit.withheld);
        if at_once {
            self.hold_back(slot);
        }
        at_once
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
        let idle = self.free.iter().take_while(move |(out, idle_since, _)| *out == 0 && *idle_since <= since);
        idle.map(|(_, _, slot)| *slot)
    }

    fn list(&mut self, slot: SlotNo) {
        let Some(exit) = self.exits.get(&slot).filter(|exit| !exit.withheld && exit.out < self.terms.per_session) else { return };
        let used_up = self.terms.rotate_after_uses.is_some_and(|most| exit.uses >= most);
        if !used_up && self.free.insert((exit.out, exit.idle_since, slot)) && exit.out == 0 {
            self.idle += 1;
        }
    }

    fn unlist(&mut self, slot: SlotNo) {
        if let Some(exit) = self.exits.get(&slot)
            && self.free.remove(&(exit.out, exit.idle_since, slot))
            && exit.out == 0
        {
            self.idle = self.idle.saturating_sub(1);
        }
    }
}

/// The last exit of each key, for the keys that were used last.
#[derive(Debug, Clone, Default, Hash)]
struct Keys {
    most: usize,
    exits: BTreeMap<CallerKey, (SlotNo, u32, u64)>,
    /// The keys by when they were used.
    order: BTreeMap<u64, CallerKey>,
    uses: u64,
}

impl Keys {
    /// The slot of this key, while this client has it and its exit has not changed.
    fn slot(&self, key: CallerKey, exits: &BTreeMap<SlotNo, Exit>) -> Option<SlotNo> {
        let (slot, generation, _) = self.exits.get(&key)?;
        exits.get(slot).filter(|exit| exit.generation == *generation).map(|_| *slot)
    }

    fn remember(&mut self, key: CallerKey, slot: SlotNo, generation: u32) {
        self.uses += 1;
        if let Some((_, _, used)) = self.exits.insert(key, (slot, generation, self.uses)) {
            self.order.remove(&used);
        }
        self.order.insert(self.uses, key);
        if self.exits.len() > self.most {
            let oldest = self.order.pop_first();
            oldest.map(|(_, key)| self.exits.remove(&key));
        }
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
        (0..slots).for_each(|slot| leases.ready(slot, 1, Millis::from(slot) * 1000));
        leases
    }

    fn serve(leases: &mut Leases, now: Millis) -> (Vec<LeaseGrant>, Option<Millis>) {
        let served = leases.serve(now, usize::MAX, |_| true);
        assert!(served.unusable.is_empty());
        (served.grants, served.later)
    }

    fn acquire(leases: &mut Leases, target: TargetId, key: Option<CallerKey>, now: Millis) -> Option<LeaseGrant> {
        let waiter = leases.ask(target, key);
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
        let waiting = [shop, NONE, NONE].map(|target| leases.ask(target, None));
        assert_eq!((serve(&mut leases, 0), leases.waiting()), ((Vec::new(), None), 3));
        // The session was blocked at the shop, so a caller that wants the shop is passed over, and gets the time at which it has rested.
        leases.observe(first.lease, Observation::Blocked, 0);
        assert_eq!(leases.give_back(first.lease, 0), None);
        let (grants, later) = serve(&mut leases, 0);
        assert_eq!((grants.iter().map(|grant| grant.waiter).collect::<Vec<_>>(), later), (vec![waiting[1]], Some(60_000)));
        leases.give_back(grants[0].lease, 60_000);
        assert_eq!(serve(&mut leases, 60_000).0.first().map(|grant| grant.waiter), Some(waiting[0]));
    }

    #[test]
    fn nobody_who_left_is_granted_anything() {
        let mut leases = pool(TERMS, 1);
        let first = acquire(&mut leases, NONE, None, 0).expect("is free");
        let [gone, stays] = [0, 0].map(|_| leases.ask(NONE, None));
        leases.leave(gone);
        leases.give_back(first.lease, 1);
        assert_eq!(serve(&mut leases, 1).0.iter().map(|grant| grant.waiter).collect::<Vec<_>>(), [stays]);
    }

    #[test]
    fn ten_thousand_who_leave_lose_no_lease() {
        let mut leases = pool(TERMS, 3);
        for round in 0..10_000 {
            let waiter = leases.ask(NONE, None);
            let grants = serve(&mut leases, round).0;
            // Each is cancelled: some before they are granted one, some when they were.
            leases.leave(waiter);
            grants.iter().for_each(|grant| assert_eq!(leases.give_back(grant.lease, round), None));
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
        assert!(!leases.change(0, shop));
        // Not for that target, but for others; and it is changed when the last one is back.
        assert!(acquire(&mut leases, shop, None, 0).is_none());
        let other = acquire(&mut leases, NONE, None, 0).expect("fits");
        assert_eq!([a, b].map(|grant| leases.give_back(grant.lease, 1)), [None, None]);
        assert_eq!(leases.give_back(other.lease, 2), Some(0));
        assert_eq!(serve(&mut leases, 2).0, []);
        leases.ready(0, 2, 3);
        assert_eq!(serve(&mut leases, 3).0.iter().map(|grant| grant.generation).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn an_idle_exit_is_changed_at_once_and_nobody_gets_it_meanwhile() {
        let mut leases = pool(TERMS, 1);
        assert!(leases.change(0, NONE));
        assert!(acquire(&mut leases, NONE, None, 0).is_none());
        leases.ready(0, 2, 1);
        assert_eq!(serve(&mut leases, 1).0.len(), 1);
    }

    #[test]
    fn a_key_does_not_get_an_exit_that_is_being_changed() {
        let shop = TargetId::of(Some("shop.example"));
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, shop, Some(7), 0).expect("is free");
        assert!(!leases.change(0, shop));
        assert_eq!(leases.give_back(grant.lease, 1), Some(0));
        assert!(acquire(&mut leases, NONE, Some(7), 1).is_none());
    }

    #[test]
    fn what_was_seen_of_an_older_exit_is_ignored() {
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, NONE, None, 0).expect("is free");
        assert_eq!(leases.gone(0), [grant.lease]);
        leases.ready(0, 2, 1);
        assert_eq!(leases.observe(grant.lease, Observation::Blocked, 1), None);
        assert_eq!((leases.slot_of(grant.lease).is_some(), leases.give_back(grant.lease, 2)), (false, None));
        assert!(acquire(&mut leases, NONE, None, 2).is_some());
    }

    #[test]
    fn the_same_key_gets_the_same_session_and_waits_for_it() {
        let mut leases = pool(TERMS, 3);
        let cart = acquire(&mut leases, NONE, Some(7), 5000).expect("is free");
        // Others are free, but not this one.
        let second = leases.ask(NONE, Some(7));
        assert_eq!(serve(&mut leases, 5000).0, []);
        leases.give_back(cart.lease, 6000);
        let again = serve(&mut leases, 6000).0;
        assert_eq!(again.iter().map(|grant| (grant.waiter, grant.slot)).collect::<Vec<_>>(), [(second, cart.slot)]);
        // With another exit it is as good as any.
        let third = leases.ask(NONE, Some(7));
        leases.gone(cart.slot);
        leases.ready(cart.slot, 2, 6500);
        let other = serve(&mut leases, 7000).0;
        assert_eq!(other.iter().map(|grant| (grant.waiter, grant.slot)).collect::<Vec<_>>(), [(third, 1)]);
    }

    #[test]
    fn keys_are_remembered_within_bounds_those_used_last() {
        let mut leases = pool(LeaseTerms { size: 1, ..TERMS }, 1);
        for key in 0..100 {
            let grant = acquire(&mut leases, NONE, Some(key), 0).expect("is free");
            leases.give_back(grant.lease, 0);
        }
        assert_eq!((leases.keys.exits.len(), leases.keys.order.len()), (KEYS, KEYS));
        assert!(leases.keys.exits.contains_key(&99) && !leases.keys.exits.contains_key(&83));
    }

    #[test]
    fn a_use_counts_when_it_is_granted() {
        let mut leases = pool(LeaseTerms { per_session: 5, rotate_after_uses: Some(2), ..TERMS }, 1);
        let [a, b] = [0, 0].map(|_| acquire(&mut leases, NONE, None, 0).expect("has room"));
        assert!(acquire(&mut leases, NONE, None, 0).is_none());
        assert_eq!((leases.give_back(a.lease, 0), leases.give_back(b.lease, 0)), (None, Some(0)));
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
                        leases.ready(slot, generation, now);
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
                    3 if leases.change(slot, target) => {
                        changing.insert(slot);
                    }
                    4 | 5 if !out.is_empty() => {
                        let grant = out.swap_remove(random.below(out.len()));
                        let sight = [Observation::Good, Observation::Blocked, Observation::Throttled(None)][random.below(3)];
                        assert!(leases.observe(grant.lease, sight, now).is_some());
                        changing.extend(leases.give_back(grant.lease, now));
                    }
                    _ => {
                        leases.ask(target, (random.below(3) == 0).then_some(random.below(5) as CallerKey));
                    }
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
                assert!(
                    leases.free.iter().all(|(out, idle, slot)| leases.exits[slot].out == *out && leases.exits[slot].idle_since == *idle)
                );
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
        let waiter = leases.ask(NONE, None);
        let mut look = |looks| {
            let served = leases.serve(5000, looks, |slot| slot == 2);
            (served.grants.iter().map(|grant| (grant.waiter, grant.slot)).collect(), served.unusable)
        };
        // One for each who waits, and no more than are to be looked at.
        assert_eq!(look(usize::MAX), (vec![], vec![0]));
        assert_eq!(look(0), (vec![], vec![]));
        assert_eq!([look(1), look(1)], [(vec![], vec![1]), (vec![(waiter, 2)], vec![])]);
        assert_eq!((acquire(&mut leases, NONE, None, 5000), leases.idle_count()), (None, 0));
        leases.offer(1);
        assert_eq!((leases.idle_count(), serve(&mut leases, 5000).0.first().map(|grant| grant.slot)), (1, Some(1)));
    }

    #[test]
    fn what_is_held_back_while_it_is_lent_is_not_lent_again_when_it_comes_back() {
        let mut leases = pool(TERMS, 1);
        let grant = acquire(&mut leases, NONE, None, 0).expect("is free");
        leases.hold_back(0);
        assert_eq!((leases.give_back(grant.lease, 1), leases.idle_count()), (None, 0));
        leases.offer(0);
        assert_eq!(leases.idle_count(), 1);
    }
}
