//! The day's cap: what each key may cost is counted in the store before each of its sends, by its own entry, and set anew once it is
//! known what became of it.

use super::job::Parked;
use super::outbox::{Counting, Pending};
use super::root::Client;
use super::waiting::{After, Spend, Timer};
use crate::contract::Decimal;
use crate::engine::{Counted, Grant, Input, pool_of, stored_entry};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind, Rule};
use crate::state::{JobId, Space, StoreAnswer, StoreCall, again_after};
use crate::time::DAY;

impl Client {
    /// Counts what a key may cost, before it is put and sent.
    pub(super) fn count(&mut self, id: JobId, entry: String, usd: Decimal) {
        if !self.means.rules.holds(Rule::SpendBeforeSend) {
            let day = self.today_of(id).unwrap_or_default();
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
        let of_pool = self.spending.pool_cap(&entry).is_some();
        self.push_count(id, Counting { entry, usd, of_pool, granted_by_pool: None });
    }

    fn push_count(&mut self, id: JobId, counting: Counting) {
        let cap = if counting.of_pool { self.spending.pool_cap(&counting.entry) } else { self.spending.cap };
        let (space, entry) = (self.space_of(&counting.entry, counting.of_pool), stored_entry(&counting.entry));
        let call = StoreCall::Spend { space, day: None, entry, amount: counting.usd, cap };
        let command = self.jobs.get(&id).and_then(|entry| entry.waiting.first());
        self.push_store(Pending::Count(id, Box::new(counting)), command, call);
    }

    /// Whose day an entry counts on: a pool has one of its own.
    fn space_of(&self, entry: &str, of_pool: bool) -> Space {
        match pool_of(entry).filter(|_| of_pool) {
            Some(pool) => self.account.space.of_pool(pool),
            None => self.account.space.clone(),
        }
    }

    fn today_of(&self, id: JobId) -> Option<i64> {
        let intent = self.jobs.get(&id).and_then(|entry| entry.subject.intent.as_deref());
        self.spending.today(self.means.clock.unix(), intent)
    }

    /// It counts, or would pass the cap, or nobody knows.
    pub(super) fn on_counted(&mut self, id: JobId, counting: Counting, answer: &StoreAnswer) {
        let Some(entry) = self.jobs.get(&id).filter(|entry| matches!(entry.parked, Parked::Counting)) else { return };
        let Counting { usd, of_pool, .. } = counting;
        let granted = match answer {
            StoreAnswer::Granted { day } => {
                self.spending.day = self.spending.day.max(*day);
                if of_pool && self.spending.cap.is_some() {
                    return self.push_count(id, Counting { of_pool: false, granted_by_pool: Some(*day), ..counting });
                }
                Ok(Grant::Counted { day: *day })
            }
            StoreAnswer::Over { day, total } => {
                self.spending.day = self.spending.day.max(*day);
                let own = if of_pool { self.spending.pool_cap(&counting.entry) } else { self.spending.cap };
                let (cap, whose) = (own.unwrap_or_default(), if of_pool { "the pool's" } else { "the" });
                let what = format!(
                    "was not sent, because it costs {usd} USD, and {total} USD of {whose} daily cap of {cap} USD are used until midnight UTC"
                );
                let fields = entry.subject.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget).into_fields();
                // The store's day, which may be ahead of this client's clock.
                let retry_at = (usd <= cap).then(|| day.saturating_add(1).saturating_mul(DAY));
                if let Some(day) = counting.granted_by_pool {
                    let counted = Counted { entry: counting.entry, day, usd: Decimal::from(0) };
                    self.spend_in(counted, true);
                }
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
        charged.into_iter().flat_map(|counted| self.spend(counted)).collect()
    }

    /// Keys bought nothing: they count no more.
    pub(super) fn uncount(&mut self, counted: Vec<Counted>) -> Vec<u32> {
        counted.into_iter().flat_map(|counted| self.spend(Counted { usd: Decimal::from(0), ..counted })).collect()
    }

    /// Sets an entry wherever it counts: under the client's cap, and that of its pool. Of a pool that this client has not opened nobody
    /// knows whether it has one.
    fn spend(&mut self, counted: Counted) -> Vec<u32> {
        let pool = pool_of(&counted.entry).map(|pool| self.spending.pools.get(pool).copied());
        let in_pool = pool.is_some_and(|known| known.is_none_or(|cap| cap.is_some()));
        let in_account = !matches!(pool, Some(Some(Some(_)))) || self.spending.cap.is_some();
        let places = [(in_account, false), (in_pool, true)].into_iter().filter(|(counts, _)| *counts);
        places.map(|(_, of_pool)| self.spend_in(counted.clone(), of_pool)).collect()
    }

    fn spend_in(&mut self, counted: Counted, of_pool: bool) -> u32 {
        let number = self.spending.open.insert(Spend { counted, of_pool, failures: 0, command: None, then: None });
        self.push_spend(number);
        number
    }

    pub(super) fn push_spend(&mut self, number: u32) {
        let Some(Spend { counted, of_pool, .. }) = self.spending.open.get(&number) else { return };
        let Counted { entry, day, usd } = counted.clone();
        let space = self.space_of(&entry, *of_pool);
        let call = StoreCall::Spend { space, day: Some(day), entry: stored_entry(&entry), amount: usd, cap: None };
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
