//! Claimed slots that are to be bought for: each waits until the pool's record was read since, so that nothing is bought after somebody has
//! paused the pool, or another client has met a hold; and a trial until the record says that it goes on.

use super::action::PoolAction;
use super::parts::{ClaimedSlot, Mark};
use super::root::{For, Machine, call_options};
use super::shared::Custody;
use super::slots::Doing;
use super::takeover::READ_AGAIN;
use crate::client::{CallOptions, WorkNo};
use crate::pool::buyer::{BuyingChange, HoldTrial};
use crate::pool::leases::SlotNo;
use crate::pool::record::RecordChange;
use crate::pool::rules::{PoolRule, holds};
use crate::state::Name;
use crate::time::Millis;

impl Machine {
    /// A claimed slot is bought for once that may be.
    pub(super) fn keep(&mut self, name: &Name, slot: SlotNo, is_doubt: bool, trial: Option<HoldTrial>) {
        let is_trial = trial.is_some();
        self.buyer.begun(trial);
        self.slots.set(slot, Doing::Buys { is_trial }, None);
        let since = self.now.monotonic;
        self.asking.kept.push(ClaimedSlot { name: name.clone(), slot, since, is_doubt, is_trial, mark: Mark::None });
    }

    /// Buys for what was kept, if the record allows it; or lets go of it.
    pub(super) fn buy_kept(&mut self, now: Millis) {
        let all = std::mem::take(&mut self.asking.kept);
        // Those that wait here are among those that are coming, each for one session that is wanted.
        let here = u32::try_from(all.iter().filter(|kept| !kept.is_doubt).count()).unwrap_or(u32::MAX);
        let coming = (self.slots.counts.coming + self.slots.counts.rotating).saturating_sub(here);
        let mut wanted = u32::try_from(self.to_buy_for()).unwrap_or(u32::MAX).saturating_sub(coming);
        for kept in all {
            let is_forbidden = self.closing.is_some() || self.shared.forbids_buying().is_some();
            let is_needed = kept.is_doubt || wanted > 0 || !holds(PoolRule::NeedIsAskedAgain);
            wanted = wanted.saturating_sub(u32::from(!kept.is_doubt));
            let may = !is_forbidden && is_needed && self.buyer.may_still(kept.is_trial, self.now.unix, now);
            let is_read = self.shared.was_read_since(kept.since) || !holds(PoolRule::RecordIsReadFirst);
            let is_to_mark = kept.is_trial && holds(PoolRule::TrialsAreMarked) && self.buyer.tries_for_all() && kept.mark != Mark::Put;
            match () {
                () if !may => self.let_kept_go(kept),
                () if kept.mark == Mark::Out => self.asking.kept.push(kept),
                () if is_read && !is_to_mark => self.fill_slot(kept.slot, Doing::Buys { is_trial: kept.is_trial }),
                () if is_read && self.shared.custody == Custody::Mine => {
                    self.change(RecordChange::Buying(BuyingChange::Tries(kept.slot)));
                    self.buyer.marked(true);
                    self.asking.kept.push(ClaimedSlot { mark: Mark::Out, ..kept });
                }
                () => {
                    self.shared.is_asked_for = true;
                    self.asking.kept.push(kept);
                }
            }
        }
    }

    /// Withdraws purchases that may not be made any more, of which nothing was put yet: such as those whose price is being read.
    pub(super) fn withdraw_purchases(&mut self) {
        let is_forbidden = self.closing.is_some() || self.shared.forbids_buying().is_some();
        let may = |is_trial| !is_forbidden && self.buyer.may_go_on(is_trial, self.now.unix, self.now.monotonic);
        let is_over = |slot, work| match self.slots.doing(slot) {
            Some(Doing::Buys { is_trial }) => self.slots.is_at(slot, work) && !may(is_trial) && holds(PoolRule::PurchasesAreWithdrawn),
            _ => false,
        };
        let works = self.works.iter();
        let over: Vec<WorkNo> =
            works.filter(|(work, purpose)| matches!(purpose, For::Slot(slot) if is_over(*slot, **work))).map(|(work, _)| *work).collect();
        over.into_iter().for_each(|work| self.act(PoolAction::Withdraw(work)));
    }

    /// The record was put with what this client had to say, or may not have been.
    pub(super) fn trial_put(&mut self, is_done: bool) {
        for kept in std::mem::take(&mut self.asking.kept) {
            match (kept.mark, is_done) {
                (Mark::Out, true) => self.asking.kept.push(ClaimedSlot { mark: Mark::Put, ..kept }),
                // What says that a trial goes on is not said later.
                (Mark::Out, false) => {
                    self.buyer.marked(false);
                    self.shared.changes.retain(|change| !matches!(change, RecordChange::Buying(BuyingChange::Tries(_))));
                    self.let_kept_go(kept);
                }
                _ => self.asking.kept.push(kept),
            }
        }
    }

    fn let_kept_go(&mut self, kept: ClaimedSlot) {
        self.act(PoolAction::ReleaseSlot(kept.name));
        let (_, tried) = self.buyer.ended_purchase(kept.is_trial);
        self.tell_all(tried);
        match kept.is_doubt {
            true => self.slots.set(kept.slot, Doing::Doubts { resends: true }, Some(self.now.monotonic.saturating_add(READ_AGAIN))),
            false => self.slots.remove(kept.slot),
        }
    }

    /// Claims have ended.
    pub(super) fn lose_kept(&mut self, names: Option<&[Name]>) {
        let is_lost = |kept: &ClaimedSlot| names.is_none_or(|names| names.contains(&kept.name));
        let (lost, kept) = std::mem::take(&mut self.asking.kept).into_iter().partition(is_lost);
        self.asking.kept = kept;
        lost.into_iter().for_each(|kept| self.let_kept_go(kept));
    }

    /// How a slot is opened. A new key, where the service failed, is taken by the trial alone.
    pub(super) fn slot_options(&self, is_trial: bool) -> CallOptions {
        let options = call_options(&self.options);
        CallOptions { retry_paid: options.retry_paid.map(|retries| retries && is_trial), ..options }
    }

    /// Takes over what is under a claimed slot, which buys nothing, whatever became of it meanwhile.
    pub(super) fn take_over(&mut self, name: &Name, slot: SlotNo, ends: bool) {
        if !ends && !holds(PoolRule::TakeOverBuysNothing) {
            return self.fill_slot(slot, Doing::Takes { ends });
        }
        self.slots.set(slot, Doing::Takes { ends }, None);
        // A product is chosen for a purchase alone, and nothing else takes a choice.
        let options = Box::new(CallOptions { product: None, ..self.slot_options(false) });
        let work = self.begin_work(For::Slot(slot));
        self.act(PoolAction::ResumeSlot { work, name: name.clone(), options });
    }

    /// Begins the purchase for a slot, or goes on with it.
    fn fill_slot(&mut self, slot: SlotNo, doing: Doing) {
        self.slots.set(slot, doing, None);
        let options = Box::new(self.slot_options(doing == Doing::Buys { is_trial: true }));
        let work = self.begin_work(For::Slot(slot));
        self.act(PoolAction::OpenSlot { work, slot: self.slot_text(slot), params: self.params.clone(), options });
    }
}
