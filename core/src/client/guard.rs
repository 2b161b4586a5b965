//! The spend guard: what this client buys in a UTC day stays within the caller's cap. Each key counts at the price that it may
//! be charged, on each day that it is sent on; the day's total is saved before the key is sent. What is in doubt stays counted.

use super::job::Parked;
use super::root::Client;
use crate::contract::Decimal;
use crate::engine::{Input, RecordId, Reserved, sum};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::JobId;

impl Client {
    /// Counts what a purchase may cost under the day's cap, before it is saved and sent.
    pub(super) fn reserve(&mut self, id: JobId, usd: Decimal, before: Option<Reserved>) {
        let unix = self.clock.unix();
        let (Some(guard), Some(entry)) = (&mut self.guard, self.jobs.get_mut(&id)) else { return };
        guard.roll(unix);
        let (cap, others) = (guard.cap, guard.without(before));
        let total = sum(others, usd);
        if total > cap {
            let what = format!(
                "was not sent, because it costs {usd} USD and {others} of the {cap} USD that this client may spend today are spent"
            );
            let error = entry.subject.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget);
            return self.tell(id, Input::Granted(Err(error)));
        }
        guard.spent.usd = total;
        let new = Reserved { day: guard.spent.day, usd };
        if !self.rules.holds(Rule::TotalIsSaved) {
            return self.tell(id, Input::Granted(Ok(Some(new))));
        }
        entry.parked = Parked::Reserving(Box::new((new, before)));
        self.save_guard(Some(id));
    }

    /// The day's total was saved, for a job that waited for it.
    pub(super) fn reserved(&mut self, id: JobId, kept: bool) {
        let Some(Parked::Reserving(counted)) = self.jobs.get(&id).map(|entry| &entry.parked) else { return };
        let (new, before) = **counted;
        if kept {
            return self.tell(id, Input::Granted(Ok(Some(new))));
        }
        // Whatever the store has, this key is not counted at its new price: it is counted anew before it is sent. What an earlier send
        // of it was counted at stays.
        self.recount(&[Some(new)], before);
        let failed = Error::new(Kind::Store, Effect::None, "store", "could not save what is spent today", Advice::MendStore);
        self.tell(id, Input::Granted(Err(failed)));
    }

    /// A purchase was accepted: what it costs takes the place of what was set aside.
    pub(super) fn charged(&mut self, reserved: Reserved, charge: Option<Decimal>) {
        let Some(guard) = &mut self.guard else { return };
        let charge = charge.filter(|charge| *charge >= Decimal::from(0));
        if let Some(charge) = charge.filter(|_| reserved.day == guard.spent.day) {
            guard.spent.usd = sum(guard.without(Some(reserved)), charge);
            self.save_guard(None);
        }
    }

    /// Purchases had no effect: what was set aside for them is free again.
    pub(super) fn uncount<const N: usize>(&mut self, reserved: [Option<Reserved>; N]) {
        self.recount(&reserved, None);
    }

    /// What was set aside under a record is free again as soon as the store has the record without it: in a crash between the two
    /// it would be taken back twice, and the cap be passed.
    pub(super) fn uncount_once_saved(&mut self, record: &RecordId, unspent: Option<Reserved>) {
        if let Some((guard, unspent)) = self.guard.as_mut().zip(unspent) {
            guard.unspent.entry(record.clone()).or_default().push(Some(unspent));
        }
    }

    /// The newest Save of a record was kept: what it no longer sets aside is free again.
    pub(super) fn unspent_saved(&mut self, record: &RecordId) {
        let unspent = self.guard.as_mut().and_then(|guard| guard.unspent.remove(record));
        self.recount(&unspent.unwrap_or_default(), None);
    }

    /// What was set aside is free again, but for that.
    fn recount(&mut self, freed: &[Option<Reserved>], kept: Option<Reserved>) {
        let Some(guard) = &mut self.guard else { return };
        let before = guard.spent.usd;
        for reserved in freed {
            guard.spent.usd = guard.without(*reserved);
        }
        if let Some(kept) = kept.filter(|kept| kept.day == guard.spent.day) {
            guard.spent.usd = sum(guard.spent.usd, kept.usd);
        }
        if guard.spent.usd != before {
            self.save_guard(None);
        }
    }

    fn save_guard(&mut self, waiter: Option<JobId>) {
        let mut data = self.data();
        let Some(guard) = &mut self.guard else { return };
        let record = guard.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        data.spent = Some(guard.spent);
        guard.merged.append(&mut guard.adopted);
        self.save(&record, Some(data.bytes()), waiter);
        if !self.rules.holds(Rule::TotalIsHandedOver) {
            self.total_saved(&record);
        }
    }

    /// The newest Save of a record was kept: if it is that of our total, those of clients that are gone are of no use any more.
    pub(super) fn total_saved(&mut self, record: &RecordId) {
        let Some(guard) = self.guard.as_mut().filter(|guard| guard.record.as_ref() == Some(record)) else { return };
        let merged = std::mem::take(&mut guard.merged);
        merged.iter().for_each(|record| self.save(record, None, None));
    }
}
