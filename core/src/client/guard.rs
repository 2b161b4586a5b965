//! The spend guard: what this client buys in a UTC day stays within the caller's cap. Each key counts at the price that it may
//! be charged, on each day that it is sent on; the day's total is saved before the key is sent. What is in doubt stays counted.

use super::Client;
use super::job::{Job, On};
use super::price::Price;
use super::record::Reserved;
use super::store::JobId;
use super::types::{Millis, RecordId};
use crate::contract::agent::{RenewSession, SessionType};
use crate::contract::{Decimal, Operation};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule, Rules};
use crate::wire::Facts;

const DAY: Millis = 24 * 3600 * 1000;
/// How a purchase gets a price where the list has none in USD.
pub(super) const PRICE_FIELD: &str = "expected_charge_usd";

/// The day's total.
#[derive(Debug, Clone, Hash)]
pub(super) struct Guard {
    cap: Decimal,
    spent: Reserved,
    record: Option<RecordId>,
    /// The records of clients that are gone, whose totals are in ours.
    adopted: Vec<RecordId>,
    /// Those whose totals are in a Save of ours: they go once it was answered.
    merged: Vec<RecordId>,
}

impl Guard {
    pub(super) fn new(cap: Decimal) -> Self {
        let spent = Reserved { day: 0, usd: Decimal::from(0) };
        Guard { cap, spent, record: None, adopted: Vec::new(), merged: Vec::new() }
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
        self.record.as_ref() == Some(record) || self.adopted.contains(record) || self.merged.contains(record)
    }

    /// Takes in what a client that is gone had spent.
    pub(super) fn adopt(&mut self, record: RecordId, spent: Reserved) {
        self.roll(spent.day.saturating_mul(DAY));
        if spent.day == self.spent.day {
            self.spent.usd = sum(self.spent.usd, spent.usd);
        }
        self.adopted.push(record);
    }

    /// Whether the key that is sent next is counted today at its price.
    fn counts(&self, price: &Price, rules: Rules) -> bool {
        let today = |reserved: Reserved| reserved.day == self.spent.day || !rules.holds(Rule::NewDayCounts);
        let enough = |reserved: Reserved| price.charge().is_some_and(|usd| usd <= reserved.usd) || !rules.holds(Rule::NewKeyCounts);
        price.reserved.is_some_and(|reserved| today(reserved) && enough(reserved))
    }

    /// The day's total without what was set aside.
    fn without(&self, reserved: Option<Reserved>) -> Decimal {
        let counted = reserved.filter(|reserved| reserved.day == self.spent.day).map_or(Decimal::from(0), |reserved| reserved.usd);
        let left = self.spent.usd.0.checked_sub(counted.0).unwrap_or(self.spent.usd.0);
        Decimal(left.max(rust_decimal::Decimal::ZERO))
    }
}

/// No sum of prices comes near the largest number; one that did would be over any cap.
fn sum(one: Decimal, other: Decimal) -> Decimal {
    Decimal(one.0.checked_add(other.0).unwrap_or(rust_decimal::Decimal::MAX))
}

impl Price {
    /// Another key takes the place of one that was answered, and has a price of its own. If the earlier one may have bought all the
    /// same, it stays counted; otherwise this returns what is free again.
    pub(super) fn begin_key(&mut self, may_have_sold: bool, rules: Rules) -> Option<Reserved> {
        (self.read, self.quote) = (false, None);
        if !rules.holds(Rule::NewKeyCounts) {
            return None;
        }
        let reserved = self.reserved.take()?;
        if !may_have_sold {
            return Some(reserved);
        }
        let earlier = self.earlier.filter(|earlier| earlier.day == reserved.day);
        let usd = earlier.map_or(reserved.usd, |earlier| sum(earlier.usd, reserved.usd));
        self.earlier = Some(Reserved { usd, ..reserved });
        None
    }
}

impl Job {
    /// Whether it buys something that the guard counts.
    fn counts(&self) -> bool {
        self.purchase().is_some() || self.endpoint.name == RenewSession::ENDPOINT.name
    }

    /// Whether the price of one unit tells what it costs: the unit of `duration` is not documented.
    pub(super) fn is_priced_by_unit(&self) -> bool {
        self.purchase().is_some_and(|purchase| purchase.session_type == SessionType::Dynamic || purchase.duration.is_none())
    }
}

impl Client {
    /// What a purchase is to cost must be known under a cap.
    pub(super) fn check_cost(&self, job: &Job) -> Result<(), Error> {
        if self.guard.is_none() || !job.counts() || job.price.said.is_some() || job.is_priced_by_unit() {
            return Ok(());
        }
        let rule = "is required under a daily cap, since the service does not document the unit of `duration` and the charge can't be \
                    known from the price";
        Err(Error::invalid(job.endpoint.name, PRICE_FIELD, rule))
    }

    /// Whether a purchase has to be counted before it is sent.
    pub(super) fn must_count(&mut self, id: JobId) -> bool {
        let (unix, rules) = (self.clock.unix(), self.rules);
        let (Some(guard), Some(job)) = (&mut self.guard, self.jobs.get(&id)) else { return false };
        guard.roll(unix);
        job.counts() && !guard.counts(&job.price, rules)
    }

    /// Counts what a purchase may cost, before it is saved and sent. Returns whether the job waits for that, or ended.
    pub(super) fn guard_due(&mut self, id: JobId) -> bool {
        if !self.must_count(id) {
            return false;
        }
        let (Some(guard), Some(job)) = (&mut self.guard, self.jobs.get_mut(&id)) else { return false };
        let Some(usd) = job.price.charge() else {
            let what = format!("was not sent, because its price is not known, and under a daily cap it needs one: give `{PRICE_FIELD}`");
            let error = job.error(Kind::Invalid, Effect::None, what, Advice::ChangeRequest);
            self.not_bought(id, Error::from(Report { field: Some(PRICE_FIELD.to_owned()), ..error.into_report() }));
            return true;
        };
        let (cap, others) = (guard.cap, guard.without(job.price.reserved));
        let total = sum(others, usd);
        if total > cap {
            let what = format!(
                "was not sent, because it costs {usd} USD and {others} of the {cap} USD that this client may spend today are spent"
            );
            let error = job.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget);
            self.not_bought(id, error);
            return true;
        }
        guard.spent.usd = total;
        job.price.before = job.price.reserved.replace(Reserved { day: guard.spent.day, usd });
        if !self.rules.holds(Rule::TotalIsSaved) {
            return false;
        }
        job.price.reserving = true;
        job.go(On::Save);
        self.save_guard(Some(id));
        true
    }

    /// The day's total was saved, for a job that waited for it.
    pub(super) fn reserved(&mut self, id: JobId, kept: bool) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.price.reserving = false;
        let before = job.price.before.take();
        if !kept {
            // Whatever the store has, this key is not counted at its new price: it is counted anew before it is sent. What an
            // earlier send of it was counted at stays.
            let reserved = std::mem::replace(&mut job.price.reserved, before);
            self.recount(&[reserved], before);
        }
        let Some(job) = self.jobs.get(&id) else { return };
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
        let charge = facts.estimated_charge_usd.as_deref().and_then(|charge| charge.parse::<Decimal>().ok());
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
