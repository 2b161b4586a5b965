//! How a pool is, for people; and those who wait for its sessions to be ready.

use std::collections::BTreeMap;

use super::root::{Machine, told};
use super::slots::{Doing, HeldSlot};
use crate::client::Client;
use crate::contract::pools::{PoolSlot, PoolSlotReason, PoolSlotState, PoolStatus, PoolStatusOf};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::leases::SlotNo;
use crate::pool::others::SeenSlot;
use crate::state::{CommandId, Listed, Whose};
use crate::time::Millis;

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
    pub(in crate::pool) fn status(&self, client: &Client) -> PoolStatus {
        let counts = self.slots.counts;
        let now = client.monotonic();
        let free = self.free();
        let rests = self.slots.iter().filter(|(slot, held)| self.rests(*slot, held, now)).count();
        let rests = u32::try_from(rests).unwrap_or(u32::MAX).min(free);
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
        let others = self.slots.others.counts;
        PoolStatus {
            size: self.whole_size(),
            ready: free - rests,
            leased: counts.lends - free,
            creating: counts.coming - counts.reading - counts.renewing,
            changing: counts.rotating + counts.reading + counts.renewing,
            resting: counts.waiting + counts.resting + rests,
            in_doubt: counts.in_doubt + others.in_doubt,
            empty: counts.empty + others.empty,
            with_others: others.with_others,
            free_in_store: others.free_in_store,
            unknown: self.whole_size().saturating_sub(self.slots.len() + others.seen()),
            waiting: u32::try_from(self.leases.waiting()).unwrap_or(u32::MAX),
            hold: self.hold(client),
            blocked_everywhere: names.collect(),
            spent_today_usd: self.spent.on(client.unix()),
            slots: self.slots.iter().filter_map(slot).collect(),
        }
    }

    /// The largest size that the pool was opened with, here or elsewhere.
    fn whole_size(&self) -> u32 {
        self.options.size.max(self.shared.size())
    }

    pub(super) fn tell_own_status(&self, client: &mut Client, command: CommandId) {
        let status = self.status(client);
        client.complete(command, Ok(told(&status)));
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
            self.spent.names = (0..self.whole_size()).map(|slot| (client.slot_name(&self.slot_text(slot)), slot)).collect();
            client.list_for(self.number, None);
        }
    }

    /// A page of what the store holds.
    pub(super) fn listed(&mut self, client: &mut Client, page: Option<(Vec<Listed>, bool)>) {
        let Some((entries, more)) = page else {
            (self.spent.is_reading, self.spent.names) = (false, BTreeMap::new());
            for command in std::mem::take(&mut self.spent.asks) {
                let what = "could not be done, because the store could not be read";
                client.complete(command, Err(Error::new(Kind::Store, Effect::None, "pool_status", what, Advice::MendStore)));
            }
            return;
        };
        let last = entries.last().map(|listed| listed.name.clone());
        for listed in &entries {
            let Some(slot) = self.spent.names.remove(&listed.name).filter(|slot| !self.slots.is_known(*slot)) else { continue };
            let seen = match listed.whose {
                Whose::Other => SeenSlot::WithOthers,
                Whose::Mine | Whose::Free => SeenSlot::of(client.slot_in(&listed.data)),
            };
            self.slots.others.note(slot, seen);
        }
        if let Some(last) = last.filter(|_| more) {
            return client.list_for(self.number, Some(last));
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
                let what = format!("only {ready} of {} sessions were ready in time", waiter.count);
                let error = Error::new(Kind::Unavailable, Effect::None, "wait_ready", what, Advice::RetryLater);
                client.complete(waiter.command, Err(self.why(client, error)));
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
        Doing::Rests => PoolSlotReason::Left,
    })
}
