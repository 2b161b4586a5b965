//! How many sessions a pool lacks, and how many it may buy.

use super::asking::VAIN_AGAIN;
use super::parts::Away;
use super::root::{Machine, is_dynamic};
use crate::client::Client;
use crate::contract::pools::PoolReplace;
use crate::pool::buyer::{HoldTrial, May};
use crate::pool::leases::{SHARES_AFTER, SlotNo};
use crate::pool::rules::{PoolRule, holds};
use crate::pool::share::{Here, SPARE_FIRST};
use crate::pool::targets::TargetId;
use crate::time::Millis;

impl Machine {
    /// Returns true if another session is bought for one that is over.
    pub(super) fn replaces(&self) -> bool {
        let default = if is_dynamic(&self.options) { PoolReplace::Ended } else { PoolReplace::Never };
        self.options.replace.unwrap_or(default) != PoolReplace::Never
    }

    /// Returns true if the available sessions are not known yet.
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.out.is_empty() || self.asking.reads_products
    }

    /// The sessions of this client, without those that can't be used for now.
    pub(super) fn here(&self) -> Here {
        let counts = &self.slots.counts;
        let free = u32::try_from(self.leases.idle_count()).unwrap_or(u32::MAX);
        let has = counts.lends + counts.coming + counts.rotating;
        Here { has, buying: counts.buying, free, size: self.options.size.max(self.shared.size()) }
    }

    /// Notes how many sessions are in use here, and waited for.
    pub(super) fn note_needs(&mut self, now: Millis) {
        let here = self.here();
        let lent = self.slots.counts.lends.saturating_sub(here.free);
        let of_keys = self.leases.idle_of_keys(now.saturating_sub(self.idle_release())).count();
        self.sharing.note(
            here.there(),
            lent,
            u32::try_from(of_keys).unwrap_or(u32::MAX),
            u32::try_from(self.leases.demand()).unwrap_or(u32::MAX),
            now,
        );
    }

    /// The service does not answer: a session that is let go of now could be taken over by nobody.
    fn away_now(&self, now: Millis) -> Option<Away> {
        self.away.filter(|away| now < away.until && holds(PoolRule::UnreadIsKept))
    }

    /// Lets go of sessions that are not needed here, and of those that others need more.
    pub(super) fn share_sessions(&mut self, client: &mut Client, now: Millis) {
        if let Some(away) = self.away_now(now) {
            // One session that can't be read may be the cause itself: another one is read before it is let go of.
            let is_next = !away.is_many && self.slots.counts.reading == 0 && self.sharing.gives_back(self.here(), now) > 0;
            let next = if is_next { self.leases.to_let_go(now).find(|slot| *slot != away.slot) } else { None };
            next.into_iter().for_each(|slot| self.read_beside(slot));
            return;
        }
        let gives = self.sharing.gives_back(self.here(), now) as usize;
        if gives > 0 {
            let free: Vec<SlotNo> = self.leases.to_let_go(now).take(gives).collect();
            for slot in free {
                let rests: Vec<(TargetId, Millis)> = self.leases.rests_for(slot, now).collect();
                self.release_idle(client, slot);
                let rested_first = rests.iter().map(|(_, until)| *until).min().filter(|_| holds(PoolRule::RestingIsLeftAlone));
                if let Some(rested_first) = rested_first {
                    let until = rested_first.min(now.saturating_add(VAIN_AGAIN));
                    self.asking.vain.insert(slot, (until, rests.into_iter().map(|(target, _)| target).collect()));
                }
            }
        }
        // Where there are more clients than sessions, they take turns.
        let here = self.here();
        let since = |slot| self.slots.session(slot).map_or(now, |session| session.ready_at);
        let turn = |slot| self.sharing.slice(here, since(slot), now).filter(|(at, _)| *at <= now).map(|(_, pause)| (slot, pause));
        let over: Vec<(SlotNo, Millis)> = self.leases.idle(Millis::MAX).filter_map(turn).collect();
        for (slot, pause) in over {
            self.release_idle(client, slot);
            self.asking.next = self.asking.next.max(now.saturating_add(pause));
        }
    }

    /// When a session goes to others by time.
    pub(super) fn shares_sessions_at(&self, now: Millis) -> Option<Millis> {
        if let Some(away) = self.away_now(now) {
            return self.sharing.next(now).into_iter().chain([away.until]).min();
        }
        let here = self.here();
        let since = |slot| Some(self.slots.session(slot)?.ready_at);
        let turn = |slot| self.sharing.slice(here, since(slot)?, now).map(|(at, _)| at);
        let slice = if here.free > 0 { self.leases.idle(Millis::MAX).filter_map(turn).min() } else { None };
        let of_keys = self.leases.idle_of_keys(now.saturating_sub(self.idle_release())).next();
        let let_go = of_keys.map(|since| since.saturating_add(self.idle_release()));
        self.sharing.next(now).into_iter().chain(slice).chain(let_go).min()
    }

    /// How many sessions more could be used than there are or will be in a moment: to be taken over from whoever has let go of them. What is
    /// being bought may take long.
    pub(super) fn lacking(&self, now: Millis) -> u32 {
        self.beyond(self.to_have(), self.slots.counts.buying, now)
    }

    /// How many sessions would help those who wait, and be at hand.
    fn to_have(&self) -> usize {
        self.leases.demand() + self.keep_ready().saturating_sub(self.leases.idle_count())
    }

    /// The same, less the free ones, whomever they suit.
    pub(super) fn to_buy_for(&self) -> usize {
        if holds(PoolRule::RestIsNoReason) { self.leases.lacking(self.keep_ready()) } else { self.to_have() }
    }

    /// How many are wanted that would have to be bought. Where a free session does not suit whoever waits, since it rests for their target,
    /// they wait for that: what was seen there is no reason to buy.
    pub(super) fn wanted(&self, now: Millis) -> u32 {
        self.beyond(self.to_buy_for(), 0, now)
    }

    /// So many sessions less those that are coming; `without`: these of the coming ones do not count.
    fn beyond(&self, sessions: usize, without: u32, now: Millis) -> u32 {
        let counts = &self.slots.counts;
        let coming = counts.coming + counts.rotating - without;
        let more = u32::try_from(sessions).unwrap_or(u32::MAX).saturating_sub(coming);
        more.min(self.room(now))
    }

    /// How many sessions more this client may have.
    fn room(&self, now: Millis) -> u32 {
        let here = self.here();
        self.slots.room().min(self.sharing.most(here, now).saturating_sub(here.has))
    }

    /// How long a caller with a new key waits for a session that no key has; none where one is on its way.
    pub(super) fn share_after(&self, now: Millis) -> Option<Millis> {
        let counts = &self.slots.counts;
        match () {
            () if !holds(PoolRule::KeysShare) => None,
            () if counts.coming > counts.reading + counts.renewing => None,
            () if self.room(now) == 0 || self.shared.is_replaced() => Some(0),
            () => self.sharing.has_nothing().then_some(SHARES_AFTER),
        }
    }

    /// How many purchases may be begun now.
    pub(super) fn allowed(&self) -> (u32, Option<HoldTrial>) {
        if self.shared.forbids_buying().is_some() {
            return (0, None);
        }
        match self.buyer.may(self.now.unix, self.now.monotonic) {
            May::Buy(_) if self.waits_for_spare(self.now.monotonic) => (0, None),
            May::Buy(room) => (room, None),
            // A slot that this client does not buy for can't be the trial.
            May::Try(HoldTrial::There(slot)) if slot >= self.options.size || !self.replaces() => (1, Some(HoldTrial::Any)),
            // A trial that was taken over goes on here.
            May::Try(_) if !self.buyer.is_proven() && self.slots.counts.coming > self.slots.counts.buying => (0, None),
            May::Try(trial) => (1, Some(trial)),
            May::Wait => (0, None),
        }
    }

    /// Returns true if sessions that others do not need are asked for before one is bought.
    fn waits_for_spare(&self, now: Millis) -> bool {
        holds(PoolRule::SpareComesFirst)
            && self.sharing.have_others_spare()
            && self.asking.wanted_since.is_none_or(|since| now.saturating_sub(since) < SPARE_FIRST)
    }

    /// Returns true if nothing is to be bought, except by a trial.
    pub(super) fn may_not_buy(&self) -> bool {
        self.shared.forbids_buying().is_some() || self.buyer.needs_trial()
    }
}
