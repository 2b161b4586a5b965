//! How many sessions more are wanted, and how the store is asked for the slots that they are taken over from, or bought for.

use std::collections::BTreeMap;

use super::action::PoolAction;
use super::input::FoundSlot;
use super::root::{For, Machine, is_dynamic};
use super::slots::Doing;
use super::takeover::{READ_AGAIN, Situation, SlotUse};
use crate::client::SlotState;
use crate::engine::Answered;
use crate::policy::Error;
use crate::pool::buyer::{AT_ONCE as PURCHASES, HoldTrial, May};
use crate::pool::leases::SlotNo;
use crate::pool::others::SeenSlot;
use crate::pool::rules::{PoolRule, holds};
use crate::state::Name;
use crate::time::Millis;

/// So many slots are asked for in one call of the store.
const AT_ONCE: usize = 256;
/// Slots that are asked for again while somebody waits, about so often.
const ASK_AGAIN: Millis = 1000;
/// Slots asked for where this client has its share and others need theirs, or where all that is wanted is being bought: about so often.
const ASK_FOR_MORE: Millis = 2000;
/// Where nothing may be bought, an empty slot is asked for again after this.
const EMPTY_AGAIN: Millis = 5000;
/// A slot whose session rests for those who ask is asked for again after this.
pub(super) const VAIN_AGAIN: Millis = 5000;
/// A client that buys one session after the other looks for some to take over this often.
const LOOK_ANEW: Millis = 5000;
/// So many slots are looked at for sessions to take over before one is bought.
pub(super) const LOOKS: u32 = 1024;
/// Where nothing is bought, one of more slots than these is asked for at a time. A client that needs more sessions looks less often before it buys.
const MANY: usize = 32;
/// No more slots than these are looked into whose session turns out to be over.
const ENDED: u32 = 32;

impl Machine {
    /// Asks for slots, where somebody waits or fewer are free than are to be at hand.
    pub(super) fn want_more(&mut self, now: Millis) {
        match self.wanted(now) {
            0 => self.asking.wanted_since = None,
            _ => _ = self.asking.wanted_since.get_or_insert(now),
        }
        let (allowed, trial) = self.allowed();
        match trial {
            // The purchase that had no answer is the trial, with its key.
            Some(HoldTrial::Same) => match self.slots.resendable() {
                Some(_) if now < self.asking.next => return,
                Some(slot) => return self.look_at_doubt(slot, true),
                None => {}
            },
            Some(HoldTrial::AfterRead) if self.wanted(now) > 0 && !self.asking.reads_products => {
                self.asking.reads_products = true;
                let work = self.begin_work(For::Products);
                let (params, options) = ("{}".to_owned(), Box::default());
                self.act(PoolAction::Start { work, operation: "list_products", params, options });
            }
            _ => {}
        }
        // Until the products were read nothing is bought; what others give back is taken over.
        let (allowed, trial) = if trial == Some(HoldTrial::AfterRead) { (0, None) } else { (allowed, trial) };
        self.ask(now, allowed, trial);
    }

    /// Asks the store for a slot in doubt: what is there by now goes on, as a trial where one is due. That it is free by now, as somebody
    /// settled it, is no reason to buy.
    pub(super) fn look_at_doubt(&mut self, slot: SlotNo, is_trial: bool) {
        let Some(doing) = self.slots.doing(slot) else { return };
        let now = self.now.monotonic;
        if self.asking.out.is_empty() {
            self.asking.tries = is_trial;
            return self.claim(vec![slot], 1);
        }
        if is_trial {
            self.ask_later(now);
        }
        self.slots.set(slot, doing, Some(now.saturating_add(ASK_AGAIN)));
    }

    /// The store could not be asked.
    pub(super) fn not_claimed(&mut self) {
        let now = self.now.monotonic;
        self.shared.store_failed(self.now.unix);
        let out = std::mem::take(&mut self.asking.out);
        if self.ends_what_it_finds() {
            self.asking.ends_from = out.values().copied().chain(self.asking.ends_from).min();
        }
        self.asking.tries = false;
        self.ask_later(now);
        for slot in self.slots.forgotten_doubts() {
            if let Some(doing) = self.slots.doing(slot) {
                self.slots.set(slot, doing, Some(now.saturating_add(READ_AGAIN)));
            }
        }
    }

    /// Asks the store for slots. Where it is known that nothing is there to be taken over, only for those that may be bought for.
    fn ask(&mut self, now: Millis, allowed: u32, trial: Option<HoldTrial>) {
        let (lacking, wanted) = (self.lacking(now), self.wanted(now));
        let is_nothing_wanted = lacking == 0 || self.shared.is_replaced();
        if is_nothing_wanted || !self.asking.out.is_empty() || now < self.asking.next {
            return;
        }
        // Each is read when it is taken over.
        let most = if holds(PoolRule::FewAtOnce) { PURCHASES } else { u32::MAX };
        let room = most.saturating_sub(self.slots.counts.coming - self.slots.counts.buying);
        if room == 0 {
            return;
        }
        let most = if self.asking.is_all { wanted.min(allowed) } else { lacking.max(self.asking.ended) };
        // Nobody is told that nothing comes before every slot was seen once: twice as many each time.
        let looks = most == 0 && self.looks_for_unseen();
        let most = if looks { lacking.max(self.slots.others.counts.seen()) } else { most };
        // Where a session can't be read, nothing is bought elsewhere.
        let there = match trial {
            Some(HoldTrial::There(slot)) if self.asking.is_all => Some(slot),
            _ => None,
        };
        if let Some(slot) = there.filter(|slot| most > 0 && !self.slots.is_known(*slot)) {
            self.asking.look_anew();
            return self.claim(vec![slot], 1);
        }
        if most == 0 || there.is_some() {
            // Others may have let go of something meanwhile. Beside purchases that are under way that is looked for now and then.
            let is_buying = self.needs_many(lacking) && self.slots.counts.buying > 0 && self.wanted(now) > 0;
            if !is_buying || now.saturating_sub(self.asking.all_at) >= LOOK_ANEW {
                self.asking.look_anew();
            }
            return self.ask_later(now);
        }
        // Purchases stay within this client's own size; beyond it there may be sessions to take over.
        let size = if self.asking.is_all && !looks { self.options.size } else { self.options.size.max(self.shared.size()) };
        let is_random = holds(PoolRule::OrderIsRandom);
        let first = self.asking.from.unwrap_or_else(|| if is_random { self.dice.below(size) } else { 0 });
        // Where nothing may be bought, or nothing more is to be, those that were empty of late are left alone.
        let is_idle = (allowed == 0 || wanted == 0) && holds(PoolRule::EmptyIsLeftAlone);
        self.asking.empty.retain(|_, until| *until > now && is_idle);
        let targets = self.leases.targets();
        self.asking
            .vain
            .retain(|_, (until, rests)| *until > now && !targets.is_empty() && targets.iter().all(|target| rests.contains(target)));
        let is_asked = |slot: &SlotNo| !self.asking.empty.contains_key(slot) && !self.asking.vain.contains_key(slot);
        // Where there are enough to buy for, few names find one.
        let has_free = self.asking.has_free && self.needs_many(lacking);
        let names = if self.asking.is_all && has_free && !looks { MANY } else { AT_ONCE };
        let mut slots: Vec<SlotNo> = self.slots.unknown(first, size).filter(is_asked).take(names).collect();
        self.asking.looked = self.asking.looked.saturating_add(u32::try_from(slots.len()).unwrap_or(u32::MAX));
        self.asking.from = slots.last().map(|last| last.saturating_add(1) % size);
        if is_random {
            self.dice.shuffle(&mut slots);
        }
        if holds(PoolRule::SessionsComeFirst) {
            slots.sort_by_key(|slot| self.slots.others.likely(*slot));
        }
        // One with nothing under it says of many others that they have no session to take over.
        let looks_only = is_idle || (!self.asking.is_all && has_free);
        let most = if looks_only && slots.len() > MANY { 1 } else { most.min(room) };
        self.claim(slots, most);
    }

    /// True if this client buys one session after the other: a look at all that others may have let go of, before each, would cost the store
    /// several times what the purchase does.
    fn needs_many(&self, lacking: u32) -> bool {
        self.slots.len().saturating_add(lacking) as usize > MANY && !self.may_not_buy()
    }

    /// Asks for slots, to end what they hold.
    pub(super) fn ask_to_end(&mut self) {
        let Some(from) = self.asking.ends_from else { return };
        let size = self.options.size.max(self.shared.size());
        let behind = self.slots.unknown(from, size).take_while(|slot| *slot >= from);
        let slots: Vec<SlotNo> = behind.take(AT_ONCE).collect();
        let next = slots.last().map(|last| last + 1).filter(|next| *next < size);
        let most = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        if most == 0 {
            self.asking.ends_from = None;
            return;
        }
        self.asking.ends_from = next;
        self.claim(slots, most);
    }

    /// Notes what the store has said of slots: those that it did not give, though more were wanted, are with others.
    fn note_others(&mut self, asked: &BTreeMap<Name, SlotNo>, claimed: &[FoundSlot]) {
        let others = &mut self.slots.others;
        if claimed.len() < self.asking.most as usize {
            asked.values().for_each(|slot| others.note(*slot, SeenSlot::WithOthers));
        }
        let is_nothing_left = asked.len() > MANY && claimed.iter().any(|found| found.state == SlotState::Free);
        if is_nothing_left && claimed.len() >= self.asking.most as usize {
            let until = self.now.monotonic.saturating_add(EMPTY_AGAIN);
            let not_given = asked.values().filter(|slot| others.not_given(**slot));
            self.asking.empty.extend(not_given.map(|slot| (*slot, until)));
        }
        for found in claimed {
            asked.get(&found.name).into_iter().for_each(|slot| others.note(*slot, SeenSlot::of(found.state)));
        }
    }

    /// The store gives slots with something under them first, and no more than were asked for: where it gave none without, those that it did
    /// not give may have a session.
    fn note_kept_back(&mut self, asked: usize, claimed: &[FoundSlot]) {
        let is_under_all = claimed.iter().all(|found| found.state != SlotState::Free);
        if claimed.len() < self.asking.most as usize || !is_under_all || self.asking.ended >= ENDED {
            return;
        }
        let (asked, found) = (u32::try_from(asked).unwrap_or(u32::MAX), u32::try_from(claimed.len()).unwrap_or(u32::MAX));
        self.asking.looked = self.asking.looked.saturating_sub(asked.saturating_sub(found));
        self.asking.ended = self.asking.ended.saturating_add(found);
    }

    fn claim(&mut self, slots: Vec<SlotNo>, most: u32) {
        self.asking.most = most;
        let names: Vec<Name> = slots.iter().map(|slot| self.slot_name(*slot)).collect();
        self.asking.out = names.iter().cloned().zip(slots).collect();
        self.act(PoolAction::ClaimSlots { names, most });
    }

    /// The store was not asked for these slots, since the client has them, or is letting go of them at this moment.
    fn not_asked(&mut self, left_out: &[SlotNo]) {
        let now = self.now.monotonic;
        if self.ends_what_it_finds() {
            self.asking.ends_from = left_out.iter().copied().chain(self.asking.ends_from).min();
        }
        for slot in left_out {
            if let Some(doing @ Doing::Doubts { .. }) = self.slots.doing(*slot) {
                self.slots.set(*slot, doing, Some(now.saturating_add(ASK_AGAIN)));
            }
        }
    }

    pub(super) fn ask_later(&mut self, now: Millis) {
        let is_slow = self.sharing.has_its_share(self.here(), now) || self.wanted(now) == 0;
        let about = if is_slow { ASK_FOR_MORE } else { ASK_AGAIN };
        let wait = about * 4 / 5 + Millis::from(self.dice.below((about * 2 / 5) as u32));
        // Once the time of a hold has come, one is tried.
        let at = now.saturating_add(wait);
        let at =
            self.buyer.changes_at(self.now.unix, now).filter(|changes_at| *changes_at > now).map_or(at, |changes_at| at.min(changes_at));
        self.asking.next = self.asking.next.max(at);
    }

    /// The store has given slots: what is there is taken over, and where nothing is, one may be bought.
    pub(super) fn claimed(&mut self, asked: &[Name], claimed: &[FoundSlot]) {
        let now = self.now.monotonic;
        let (mut out, is_trial) = (std::mem::take(&mut self.asking.out), std::mem::take(&mut self.asking.tries));
        let asked: BTreeMap<Name, SlotNo> = asked.iter().filter_map(|name| out.remove_entry(name)).collect();
        self.not_asked(&out.into_values().collect::<Vec<_>>());
        if asked.is_empty() {
            return self.ask_later(now);
        }
        self.shared.store_answered();
        // A slot in doubt that was asked for is nobody's doubt any more, or another client has it.
        let is_in_doubt = |slot: &SlotNo| matches!(self.slots.doing(*slot), Some(Doing::Doubts { .. }));
        let doubts: Vec<SlotNo> = asked.values().copied().filter(is_in_doubt).collect();
        let is_of_doubt = !doubts.is_empty();
        doubts.into_iter().for_each(|slot| self.slots.remove(slot));
        self.note_others(&asked, claimed);
        if !is_of_doubt {
            self.note_kept_back(asked.len(), claimed);
        }
        if !claimed.is_empty() {
            let is_any_free = claimed.iter().any(|found| found.state == SlotState::Free);
            self.asking.has_free = is_any_free && claimed.len() >= self.asking.most as usize;
        }
        let (mut free, mut began, mut buys) = (Vec::new(), false, false);
        for found in claimed {
            let name = &found.name;
            let Some(slot) = asked.get(name).copied() else { continue };
            self.buyer.claimed(slot);
            let used = self.situation(found, slot, is_trial).use_of(found.state);
            began |= matches!(used, SlotUse::Takes | SlotUse::Sends | SlotUse::Reads);
            buys |= matches!(used, SlotUse::Sends);
            match used {
                SlotUse::Buys => free.push((name, slot)),
                SlotUse::Takes if self.lacking(now) == 0 => self.act(PoolAction::ReleaseSlot(name.clone())),
                SlotUse::Takes | SlotUse::Reads => self.take_over(name, slot, false),
                SlotUse::Ends => self.take_over(name, slot, true),
                SlotUse::Sends => match self.buyer.may(self.now.unix, now) {
                    May::Try(trial) if is_trial => self.keep(name, slot, true, Some(trial)),
                    May::Buy(_) if !is_trial => self.keep(name, slot, true, None),
                    _ => {
                        self.act(PoolAction::ReleaseSlot(name.clone()));
                        self.slots.set(slot, Doing::Doubts { resends: true }, Some(now.saturating_add(READ_AGAIN)));
                    }
                },
                SlotUse::Leaves(doing, after) => {
                    self.act(PoolAction::ReleaseSlot(name.clone()));
                    self.slots.set(slot, doing, after.map(|after| now.saturating_add(after)));
                }
                SlotUse::Releases => self.act(PoolAction::ReleaseSlot(name.clone())),
            }
        }
        // Beyond this client's own size there may be sessions by now.
        if claimed.is_empty() && !is_of_doubt && self.asking.is_all {
            self.asking.look_anew();
        }
        // Slots with a session come first: after one takeover there may be more.
        let left_alone = u32::try_from(self.asking.empty.len() + self.asking.vain.len()).unwrap_or(u32::MAX);
        let unknown = self.options.size.max(self.shared.size()).saturating_sub(self.slots.len().saturating_add(left_alone));
        if !is_of_doubt && free.is_empty() && began {
            self.asking.look_anew();
        }
        if !self.asking.is_all && !is_of_doubt && self.asking.looked > 0 && self.asking.looked >= unknown.min(LOOKS) {
            (self.asking.is_all, self.asking.all_at) = (true, now);
        }
        // One that was settled by hand is no reason to buy.
        // A session that rests is none either, though it is left alone for now.
        let may_buy = self.asking.is_all && !is_of_doubt && self.asking.vain.values().all(|(until, _)| *until <= now);
        for (name, slot) in free {
            let (allowed, trial) = self.allowed();
            let may_there = match trial {
                Some(HoldTrial::AfterRead) => false,
                // The purchase that had no answer is the trial.
                Some(HoldTrial::Same) if self.slots.resendable().is_some() => false,
                Some(HoldTrial::There(there)) => slot == there,
                _ => may_buy,
            };
            match may_there && allowed > 0 && self.wanted(now) > 0 {
                true => {
                    (began, buys) = (true, true);
                    self.keep(name, slot, false, trial);
                }
                false => {
                    self.asking.empty.insert(slot, now.saturating_add(EMPTY_AGAIN));
                    self.act(PoolAction::ReleaseSlot(name.clone()));
                }
            }
        }
        match () {
            () if buys => self.sharing.bought(),
            () if !began && !is_of_doubt && self.slots.counts.buying == 0 => self.sharing.found_nothing(now),
            () => {}
        }
        let looks_on = (!self.asking.is_all || self.looks_for_unseen()) && !is_of_doubt && self.asking.looked > 0;
        match began || self.ends_what_it_finds() || looks_on {
            true => self.asking.next = now,
            false => self.ask_later(now),
        }
    }

    /// The situation of a claimed slot.
    fn situation(&self, found: &FoundSlot, slot: SlotNo, is_trial: bool) -> Situation {
        Situation {
            closes: self.closing.is_some(),
            ends: self.ends_what_it_finds(),
            is_replaced: self.shared.is_replaced(),
            is_old: found.is_of_another,
            is_within: slot < self.options.size,
            may_send: is_trial || !self.may_not_buy(),
            is_dynamic: is_dynamic(&self.options),
            replaces: self.replaces(),
            renewal: self.renewal(slot),
            is_checked: self.asking.checked.get(&slot).is_some_and(|until| *until > self.now.monotonic),
        }
    }

    pub(super) fn products_read(&mut self, result: &Result<Answered, Error>) {
        self.asking.reads_products = false;
        match result {
            // The service works again: the next one that may be bought is the trial.
            Ok(_) => self.buyer.may_try(),
            Err(_) => {
                let hold = self.buyer.try_later(self.now.unix);
                self.tell_all(hold);
            }
        }
    }
}
