//! How many sessions more are wanted, and how the store is asked for the slots that they are taken over from, or bought for.

use std::collections::BTreeMap;

use super::root::{For, Machine, call_options, is_dynamic};
use super::slots::Doing;
use crate::client::{CallOptions, Client, Slot};
use crate::contract::pools::PoolReplace;
use crate::engine::Answered;
use crate::policy::Error;
use crate::pool::buyer::{May, Trial};
use crate::pool::leases::SlotNo;
use crate::state::Name;
use crate::time::Millis;

/// So many slots are asked for in one call of the store.
const AT_ONCE: usize = 256;
/// Slots are asked for again after this long, at least and at most, while somebody waits.
const ASK_AGAIN: (Millis, Millis) = (1000, 5000);
/// A slot in doubt is looked at again after this, while no hold says when.
pub(super) const DOUBT_AGAIN: Millis = 600_000;
/// The same where the store could not be asked.
const READ_AGAIN: Millis = 60_000;

impl Machine {
    /// Whether it is not known yet what there is to be had.
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.out.is_empty() || self.asking.reads_products
    }

    /// How many sessions more are wanted than there are or are coming.
    pub(super) fn wanted(&self) -> u32 {
        let counts = &self.slots.counts;
        let ahead = self.ready().saturating_sub(self.leases.idle_count());
        let coming = counts.coming + counts.rotating;
        let wanted = u32::try_from(self.leases.waiting() + ahead).unwrap_or(u32::MAX).saturating_sub(coming);
        wanted.min(self.options.size.saturating_sub(self.slots.len()))
    }

    /// How many purchases may be begun now.
    fn allowed(&self, client: &Client) -> (u32, Option<Trial>) {
        if self.shared.forbids_buying().is_some() {
            return (0, None);
        }
        match self.buyer.may(self.slots.counts.in_doubt, client.unix()) {
            May::Buy(room) => (room, None),
            // By whoever owns the pool's record.
            May::Try(trial) if self.shared.is_owned() => (1, Some(trial)),
            May::Try(_) | May::Wait => (0, None),
        }
    }

    /// Whether a trial is due that this client could make. Between two times that it asks for a slot it is not: the pool's record is for
    /// others to change then.
    pub(super) fn wants_trial(&self, client: &Client) -> bool {
        if self.asking.next > client.monotonic() {
            return false;
        }
        let May::Try(trial) = self.buyer.may(self.slots.counts.in_doubt, client.unix()) else { return false };
        let has_doubt = trial == Trial::Same && self.slots.counts.in_doubt > 0;
        self.closing.is_none() && self.shared.forbids_buying().is_none() && (has_doubt || self.wanted() > 0)
    }

    /// Whether nothing is to be bought, but by the trial of a hold.
    fn may_not_buy(&self) -> bool {
        self.shared.forbids_buying().is_some() || self.buyer.hold().is_some()
    }

    /// Whether purchases are wanted, so that the pool's record is to be read before.
    pub(super) fn is_to_buy(&self, client: &Client) -> bool {
        self.closing.is_none() && self.wanted() > 0 && !self.is_asking() && self.asking.next <= client.monotonic()
    }

    /// Asks for slots, where somebody waits or fewer are free than are to be at hand.
    pub(super) fn want_more(&mut self, client: &mut Client, now: Millis) {
        let (allowed, trial) = self.allowed(client);
        match trial {
            // The purchase that had no answer is the trial, with its key.
            Some(Trial::Same) => match self.slots.which(|held| held.doing == Doing::Doubts).first() {
                Some(_) if now < self.asking.next => return,
                Some(slot) => return self.look_at_doubt(client, *slot, true),
                None => {}
            },
            Some(Trial::AfterRead) if self.wanted() > 0 && !self.asking.reads_products => {
                self.asking.reads_products = true;
                let command = client.start_for(self.number, "list_products", "{}", CallOptions::default());
                self.commands.insert(command, For::Products);
                return;
            }
            Some(Trial::AfterRead) => return,
            _ => {}
        }
        // Whether anything may be bought, the pool's record says.
        if self.shared.is_fresh(now) || allowed == 0 {
            self.ask(client, now, allowed);
        }
    }

    /// Asks the store for a slot in doubt: what is there by now goes on, as a trial where one is due. That it is free by now, as somebody
    /// settled it, is no reason to buy.
    pub(super) fn look_at_doubt(&mut self, client: &mut Client, slot: SlotNo, is_trial: bool) {
        let soon = client.monotonic().saturating_add(ASK_AGAIN.0);
        if !self.asking.out.is_empty() {
            return self.slots.set(slot, Doing::Doubts, Some(soon));
        }
        let name = client.slot_name(&self.slot_text(slot));
        match client.claim_slots(self.number, vec![name.clone()], 1) {
            true => (self.asking.out, self.asking.tries) = (BTreeMap::from([(name, slot)]), is_trial),
            false => self.slots.set(slot, Doing::Doubts, Some(soon)),
        }
    }

    /// The store could not be asked.
    pub(super) fn not_claimed(&mut self, client: &Client) {
        let now = client.monotonic();
        let out = std::mem::take(&mut self.asking.out);
        if self.ends_what_it_finds() {
            self.asking.ends_from = out.values().copied().chain(self.asking.ends_from).min();
        }
        self.asking.tries = false;
        self.ask_later(now);
        for slot in self.slots.forgotten_doubts() {
            self.slots.set(slot, Doing::Doubts, Some(now.saturating_add(READ_AGAIN)));
        }
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
        let size = self.options.size.max(self.shared.size());
        let first = client.any_below(size);
        let slots: Vec<SlotNo> = self.slots.unknown(first, size).take(AT_ONCE).collect();
        if !self.claim(client, slots, most) {
            self.ask_later(now);
        }
    }

    /// Asks for slots, to end what they hold.
    pub(super) fn ask_to_end(&mut self, client: &mut Client) {
        let Some(from) = self.asking.ends_from else { return };
        let size = self.options.size.max(self.shared.size());
        let behind = self.slots.unknown(from, size).take_while(|slot| *slot >= from);
        let slots: Vec<SlotNo> = behind.take(AT_ONCE).collect();
        let next = slots.last().map(|last| last + 1).filter(|next| *next < size);
        let most = u32::try_from(slots.len()).unwrap_or(u32::MAX);
        match most == 0 || self.claim(client, slots, most) {
            true => self.asking.ends_from = next,
            // They are being let go of at this moment.
            false => self.ask_later(client.monotonic()),
        }
    }

    fn claim(&mut self, client: &mut Client, slots: Vec<SlotNo>, most: u32) -> bool {
        self.asking.out = slots.into_iter().map(|slot| (client.slot_name(&self.slot_text(slot)), slot)).collect();
        let is_asked = client.claim_slots(self.number, self.asking.out.keys().cloned().collect(), most);
        if !is_asked {
            self.asking.out.clear();
        }
        is_asked
    }

    pub(super) fn ask_later(&mut self, now: Millis) {
        let wait = ASK_AGAIN.0.saturating_mul(1 << self.asking.failures.min(8)).min(ASK_AGAIN.1);
        self.asking.failures = self.asking.failures.saturating_add(1);
        self.asking.next = now.saturating_add(wait);
    }

    pub(super) fn slot_text(&self, slot: SlotNo) -> String {
        format!("{}/{slot}", self.options.name)
    }

    /// The store has given slots: what is there is taken over, and where nothing is, one may be bought.
    pub(super) fn claimed(&mut self, client: &mut Client, claimed: &[(Name, Slot)]) {
        let now = client.monotonic();
        let (asked, is_trial) = (std::mem::take(&mut self.asking.out), std::mem::take(&mut self.asking.tries));
        // A slot in doubt that was asked for is nobody's doubt any more, or another client has it.
        let is_in_doubt = |slot: &SlotNo| self.slots.doing(*slot) == Some(Doing::Doubts);
        let doubts: Vec<SlotNo> = asked.values().copied().filter(is_in_doubt).collect();
        let is_of_doubt = !doubts.is_empty();
        doubts.into_iter().for_each(|slot| self.slots.remove(slot));
        let (mut free, mut began) = (Vec::new(), false);
        for (name, found) in claimed {
            let Some(slot) = asked.get(name).copied() else { continue };
            match (found, self.ends_what_it_finds()) {
                (Slot::Taken, true) => self.open_slot(client, slot, Doing::Takes { ends: true }),
                (_, true) => client.release_slot(name),
                // To go on with it may buy it: during a hold that is the trial's.
                (Slot::Doubt, _) if self.closing.is_none() && !is_trial && self.may_not_buy() => {
                    client.release_slot(name);
                    self.slots.set(slot, Doing::Doubts, Some(now.saturating_add(DOUBT_AGAIN)));
                }
                (Slot::Taken | Slot::Doubt, _) if self.closing.is_none() => {
                    began = true;
                    let is_old = client.is_slot_of_another(name, &self.params);
                    if is_trial {
                        self.buyer.begun(true);
                    }
                    self.open_slot(client, slot, if is_trial { Doing::Buys { is_trial } } else { Doing::Takes { ends: is_old } });
                }
                (Slot::Free, _) if self.closing.is_none() && slot < self.options.size => free.push((name, slot)),
                (Slot::Expired, _) if self.closing.is_none() && self.options.renew_duration.is_some() => {
                    began = true;
                    self.slots.set(slot, Doing::Takes { ends: false }, None);
                    let command = client.resume_slot(self.number, name, call_options(&self.options));
                    self.commands.insert(command, For::Slot(slot));
                }
                (Slot::Over | Slot::Expired, _) if self.closing.is_none() && slot < self.options.size => match self.replaces() {
                    true => free.push((name, slot)),
                    false => {
                        client.release_slot(name);
                        self.slots.set(slot, Doing::Empty, None);
                    }
                },
                (Slot::Stuck, _) => {
                    client.release_slot(name);
                    self.slots.set(slot, Doing::Rests, Some(now.saturating_add(DOUBT_AGAIN)));
                }
                _ => client.release_slot(name),
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
                    self.open_slot(client, slot, Doing::Buys { is_trial: trial.is_some() });
                }
                false => client.release_slot(name),
            }
        }
        match began || self.ends_what_it_finds() {
            true => (self.asking.failures, self.asking.next) = (0, now),
            false => self.ask_later(now),
        }
    }

    /// Whether another session is bought where one is over.
    pub(super) fn replaces(&self) -> bool {
        let default = if is_dynamic(&self.options) { PoolReplace::Ended } else { PoolReplace::Never };
        self.options.replace.unwrap_or(default) != PoolReplace::Never
    }

    pub(super) fn products_read(&mut self, client: &mut Client, result: &Result<Answered, Error>) {
        self.asking.reads_products = false;
        match result {
            // The service works again: the next one that may be bought is the trial.
            Ok(_) => self.buyer.may_try(),
            Err(_) => {
                let hold = self.buyer.try_later(client.unix());
                self.held(hold, true);
            }
        }
    }

    /// Begins what a slot is opened for.
    fn open_slot(&mut self, client: &mut Client, slot: SlotNo, doing: Doing) {
        self.slots.set(slot, doing, None);
        match client.open_slot(self.number, &self.slot_text(slot), &self.params, &call_options(&self.options)) {
            Ok(command) => _ = self.commands.insert(command, For::Slot(slot)),
            Err(error) => self.not_opened(client, slot, doing, &error),
        }
    }
}
