//! The spend guard: what this client buys in a UTC day stays under the caller's cap. What may be charged is set aside, and
//! that is saved, before a purchase is; what is in doubt stays set aside.

use super::Client;
use super::job::{Job, On};
use super::record::Reserved;
use super::store::JobId;
use super::types::{Millis, RecordId};
use crate::contract::agent::{RenewSession, SessionType};
use crate::contract::{Decimal, Operation};
use crate::policy::{Advice, Effect, Error, Kind, Report};
use crate::wire::Facts;

const DAY: Millis = 24 * 3600 * 1000;

/// The day's total.
#[derive(Debug)]
pub(super) struct Guard {
    cap: Decimal,
    spent: Reserved,
    record: Option<RecordId>,
    /// The records of clients that are gone: they go once their totals are in our own.
    adopted: Vec<RecordId>,
}

impl Guard {
    pub(super) fn new(cap: Decimal) -> Self {
        Guard { cap, spent: Reserved { day: 0, usd: Decimal::from(0) }, record: None, adopted: Vec::new() }
    }

    /// Begins the day anew when it is another one; time that runs backwards does not bring an old one back.
    fn roll(&mut self, unix: Millis) {
        let day = unix.div_euclid(DAY);
        if day > self.spent.day {
            self.spent = Reserved { day, usd: Decimal::from(0) };
        }
    }

    /// Whether the record is one of its own.
    pub(super) fn holds(&self, record: &RecordId) -> bool {
        self.record.as_ref() == Some(record) || self.adopted.contains(record)
    }

    /// Takes in what a client that is gone had spent.
    pub(super) fn adopt(&mut self, record: RecordId, spent: Reserved) {
        self.roll(spent.day.saturating_mul(DAY));
        if spent.day == self.spent.day {
            self.add(spent.usd);
        }
        self.adopted.push(record);
    }

    fn add(&mut self, usd: Decimal) {
        // No sum of prices comes near the largest number; one that did would be over any cap.
        self.spent.usd = Decimal(self.spent.usd.0.checked_add(usd.0).unwrap_or(rust_decimal::Decimal::MAX));
    }

    fn take_back(&mut self, reserved: Reserved) {
        if reserved.day == self.spent.day {
            let left = self.spent.usd.0.checked_sub(reserved.usd.0).unwrap_or(self.spent.usd.0);
            self.spent.usd = Decimal(left.max(rust_decimal::Decimal::ZERO));
        }
    }
}

impl Job {
    /// Whether it buys something that the guard counts.
    fn counts(&self) -> bool {
        self.purchase().is_some() || self.endpoint.name == RenewSession::ENDPOINT.name
    }

    /// Whether the price of one unit tells what it costs: the unit of `duration` is not shown.
    fn is_priced_by_unit(&self) -> bool {
        self.purchase().is_some_and(|purchase| purchase.session_type == SessionType::Dynamic || purchase.duration.is_none())
    }
}

impl Client {
    /// What a purchase is to cost must be known under a cap.
    pub(super) fn check_cost(&self, job: &Job) -> Result<(), Error> {
        if self.guard.is_none() || !job.counts() || job.price.expected.is_some() || job.is_priced_by_unit() {
            return Ok(());
        }
        let rule = "is required under a daily cap, since the unit of `duration` is not shown and the charge can't be known from the price";
        Err(Error::invalid(job.endpoint.name, "expected_charge_usd", rule))
    }

    /// Sets aside what a purchase may cost, before it is saved and sent. Returns whether the job waits for that, or ended.
    pub(super) fn guard_due(&mut self, id: JobId) -> bool {
        let unix = self.clock.unix();
        let (Some(guard), Some(job)) = (&mut self.guard, self.jobs.get_mut(&id)) else { return false };
        if !job.counts() || job.restored || job.price.reserved.is_some() {
            return false;
        }
        guard.roll(unix);
        let (cap, spent) = (guard.cap, guard.spent.usd);
        let expected = job.price.expected;
        let fits = expected.and_then(|usd| spent.0.checked_add(usd.0)).is_some_and(|total| total <= cap.0);
        let (true, Some(usd)) = (fits, expected) else {
            let costs = expected.map_or_else(|| "an unknown amount".to_owned(), |usd| format!("{usd} USD"));
            let what =
                format!("was not sent, because it costs {costs} and {spent} of the {cap} USD that this client may spend today are spent");
            self.not_bought(id, Kind::Refused, what, Advice::RaiseBudget);
            return true;
        };
        guard.add(usd);
        job.price.reserved = Some(Reserved { day: guard.spent.day, usd });
        job.price.reserving = true;
        job.go(On::Save);
        self.save_guard(Some(id));
        true
    }

    /// The day's total was saved, for a job that waited for it.
    pub(super) fn reserved(&mut self, id: JobId, kept: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.price.reserving = false;
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        if kept {
            return self.save_job(id, Some(id));
        }
        let what = "was not sent, because the store could not save what is spent today";
        let open = job.ledger.is_open();
        let effect = if open { Effect::Unknown } else { Effect::None };
        let error = job.error(Kind::Store, effect, what, Advice::MendStore);
        if open { self.doubt(id, error) } else { self.refuse(id, Error::from(Report { cause: None, ..error.into_report() })) }
    }

    /// A purchase was accepted: what it costs takes the place of what was set aside.
    pub(super) fn charged(&mut self, id: JobId, facts: &Facts) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let (Some(guard), Some(reserved)) = (&mut self.guard, job.price.reserved.take()) else { return };
        if let Some(charge) = facts.estimated_charge_usd.as_deref().and_then(|charge| charge.parse::<Decimal>().ok()) {
            guard.take_back(reserved);
            guard.add(charge);
            self.save_guard(None);
        }
    }

    /// A purchase had no effect: what was set aside is free again.
    pub(super) fn release(&mut self, reserved: Option<Reserved>) {
        let (Some(guard), Some(reserved)) = (&mut self.guard, reserved) else { return };
        guard.take_back(reserved);
        self.save_guard(None);
    }

    /// An earlier key may have bought, and another is to be sent: both count.
    pub(super) fn reserve_again(&mut self, id: JobId) {
        let reserved = self.jobs.get(&id).filter(|job| job.ledger.may_have_sold).and_then(|job| job.price.reserved);
        if let (Some(guard), Some(reserved)) = (&mut self.guard, reserved) {
            guard.add(reserved.usd);
            self.save_guard(None);
        }
    }

    fn save_guard(&mut self, waiter: Option<JobId>) {
        let mut data = self.data();
        let Some(guard) = &mut self.guard else { return };
        let record = guard.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        data.spent = Some(guard.spent);
        let adopted = std::mem::take(&mut guard.adopted);
        self.save(&record, Some(data.bytes()), waiter);
        adopted.iter().for_each(|record| self.save(record, None, None));
    }
}
