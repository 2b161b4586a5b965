//! The day's cap: what each key may cost is counted in the store before each of its sends, by its own entry, and set anew once it is
//! known what became of it.

use super::job::Parked;
use super::outbox::Pending;
use super::root::Client;
use super::waiting::{After, Spend, Timer};
use crate::contract::Decimal;
use crate::engine::{Counted, Grant, Input};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind, Rule};
use crate::state::{JobId, StoreAnswer, StoreCall, again_after};
use crate::time::DAY;

impl Client {
    /// Counts what a key may cost, before it is put and sent.
    pub(super) fn count(&mut self, id: JobId, entry: String, usd: Decimal) {
        if !self.means.rules.holds(Rule::SpendBeforeSend) {
            let day = self.spending.today(self.means.clock.unix()).unwrap_or_default();
            return self.tell(id, Input::Granted(Ok(Grant::Counted { day })));
        }
        self.park(id, Parked::Counting);
        // An entry is set to one thing at a time: what is being set is answered first, and what was to be tried again is overtaken.
        let out: Vec<u32> = self.outbox.pending.values().filter_map(Pending::spend).collect();
        self.spending.open.retain(|number, spend| spend.counted.entry != entry || out.contains(number));
        if let Some(spend) = self.spending.open.values_mut().find(|spend| spend.counted.entry == entry) {
            spend.then = Some((id, usd));
            return;
        }
        let call = StoreCall::Spend { space: self.account.space.clone(), day: None, entry, amount: usd, cap: self.spending.cap };
        let command = self.jobs.get(&id).and_then(|entry| entry.waiting.first());
        self.push_store(Pending::Count(id, usd), command, call);
    }

    /// It counts, or would pass the cap, or nobody knows.
    pub(super) fn on_counted(&mut self, id: JobId, usd: Decimal, answer: &StoreAnswer) {
        let Some(entry) = self.jobs.get(&id).filter(|entry| matches!(entry.parked, Parked::Counting)) else { return };
        let granted = match answer {
            StoreAnswer::Granted { day } => {
                self.spending.day = self.spending.day.max(*day);
                Ok(Grant::Counted { day: *day })
            }
            StoreAnswer::Over { total } => {
                let cap = self.spending.cap.unwrap_or_default();
                let what = format!(
                    "was not sent, because it costs {usd} USD, and {total} USD of the daily cap of {cap} USD are used until midnight UTC"
                );
                let fields = entry.subject.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget).into_fields();
                let retry_at = self
                    .spending
                    .today(self.means.clock.unix())
                    .filter(|_| usd <= cap)
                    .map(|day| day.saturating_add(1).saturating_mul(DAY));
                Err(Error::from(ErrorFields { retry_at, ..fields }))
            }
            _ => Err(Error::new(Kind::Store, Effect::None, "store", "could not count it under the day's cap", Advice::MendStore)),
        };
        self.tell(id, Input::Granted(granted));
    }

    /// A purchase was accepted: its key counts as it was charged.
    pub(super) fn charged(&mut self, counted: Vec<Counted>, charge: Decimal) -> Vec<u32> {
        let charged = counted.into_iter().filter(|counted| counted.usd != charge);
        let charged: Vec<Counted> = charged.map(|counted| Counted { usd: charge, ..counted }).collect();
        charged.into_iter().map(|counted| self.spend(counted)).collect()
    }

    /// Keys bought nothing: they count no more.
    pub(super) fn uncount(&mut self, counted: Vec<Counted>) -> Vec<u32> {
        counted.into_iter().map(|counted| self.spend(Counted { usd: Decimal::from(0), ..counted })).collect()
    }

    fn spend(&mut self, counted: Counted) -> u32 {
        let number = self.spending.open.insert(Spend { counted, failures: 0, command: None, then: None });
        self.push_spend(number);
        number
    }

    pub(super) fn push_spend(&mut self, number: u32) {
        let Some(Spend { counted, .. }) = self.spending.open.get(&number) else { return };
        let Counted { entry, day, usd } = counted.clone();
        let call = StoreCall::Spend { space: self.account.space.clone(), day: Some(day), entry, amount: usd, cap: None };
        self.push_store(Pending::Spend(number), None, call);
    }

    /// It counts so, or it is tried again later: nobody waits for that.
    pub(super) fn on_spent(&mut self, number: u32, answer: &StoreAnswer) {
        let then = self.spending.open.get_mut(&number).and_then(|spend| spend.then.take());
        if let (StoreAnswer::Failed, Some(spend), None) = (answer, self.spending.open.get_mut(&number), then) {
            let again = again_after(spend.failures);
            spend.failures = spend.failures.saturating_add(1);
            self.timers.add(self.means.clock.monotonic().saturating_add(again), Timer::Spend(number));
        } else {
            let entry = self.spending.open.remove(&number).map(|spend| spend.counted.entry);
            let is_wanted = |id: &JobId| self.jobs.get(id).is_some_and(|job| matches!(job.parked, Parked::Counting));
            if let Some((entry, (id, usd))) = entry.zip(then).filter(|(_, (id, _))| is_wanted(id)) {
                self.count(id, entry, usd);
            }
        }
        self.answered(&After::Spend(number), None);
    }
}
