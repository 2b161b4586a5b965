//! The day's cap: what each key may cost is counted in the store before each of its sends, by its own entry, and set anew once it is
//! known what became of it.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::Parked;
use crate::client::outbox::{Counting, Pending};
use crate::client::router::Router;
use crate::client::waiting::{Spend, Timer};
use crate::contract::Decimal;
use crate::engine::{Counted, Grant, Input, pool_of, stored_entry};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{JobId, STORE_AGAIN, Space, StoreAnswer, StoreCall};
use crate::time::DAY;

impl Router {
    /// Counts what a key may cost, before it is put and sent.
    pub(crate) fn count(&mut self, id: JobId, entry: String, usd: Decimal) {
        if !self.shared.rules.holds(Rule::SpendBeforeSend) {
            let day = self.today_of(id).unwrap_or_default();
            return self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(Grant::Counted { day }))));
        }
        self.park(id, Parked::Counting);
        // An entry is set to one thing at a time: what is being set is answered first, and what was to be tried again is overtaken.
        let mut out = None;
        for number in self.spending.open.of(&entry).iter() {
            match self.spending.open.get(number) {
                Some(spend) if spend.is_out => out = out.or(Some(number)),
                _ => drop(self.spending.open.remove(number)),
            }
        }
        if let Some(spend) = out.and_then(|number| self.spending.open.get_mut(number)) {
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

    /// The space of an entry's day: a pool has one of its own.
    fn space_of(&self, entry: &str, of_pool: bool) -> Space {
        match pool_of(entry).filter(|_| of_pool) {
            Some(pool) => self.account.space.of_pool(pool),
            None => self.account.space.clone(),
        }
    }

    fn today_of(&self, id: JobId) -> Option<i64> {
        let intent = self.jobs.get(&id).and_then(|entry| entry.subject.intent.as_deref());
        self.spending.today(self.shared.clock.unix(), intent)
    }

    /// Takes the outcome of a count: granted, over the cap, or unknown.
    pub(crate) fn on_counted(&mut self, id: JobId, counting: Counting, answer: &StoreAnswer) {
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
                let is_ahead = *day > self.shared.clock.unix().div_euclid(DAY);
                let until = if is_ahead { "the store's day ends, which is ahead of this clock's" } else { "midnight UTC" };
                let what = format!(
                    "was not sent, because it costs {usd} USD, and {total} USD of {whose} daily cap of {cap} USD are already used, until {until}"
                );
                let error = entry.subject.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget);
                let retry_at = (usd <= cap).then(|| day.saturating_add(1).saturating_mul(DAY));
                if let Some(day) = counting.granted_by_pool {
                    let counted = Counted { entry: counting.entry, day, usd: Decimal::from(0) };
                    self.spend_in(counted, true);
                }
                Err(error.with(|new| new.retry_at = retry_at))
            }
            _ => Err(Error::new(Kind::Store, Effect::None, "store", "could not count its charge under the daily cap", Advice::MendStore)),
        };
        self.deferred.push(Deferred::Tell(id, Input::Granted(granted)));
    }

    /// A purchase was accepted: its key counts as it was charged.
    pub(crate) fn charged(&mut self, counted: Vec<Counted>, charge: Decimal) -> Vec<u32> {
        let charged = counted.into_iter().filter(|counted| counted.usd != charge);
        let charged: Vec<Counted> = charged.map(|counted| Counted { usd: charge, ..counted }).collect();
        charged.into_iter().flat_map(|counted| self.spend(counted)).collect()
    }

    /// Keys bought nothing: they count no more.
    pub(crate) fn uncount(&mut self, counted: Vec<Counted>) -> Vec<u32> {
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
        let number = self.spending.open.insert(Spend { counted, of_pool, failures: 0, is_out: false, command: None, then: None });
        self.push_spend(number);
        number
    }

    pub(crate) fn push_spend(&mut self, number: u32) {
        let Some(spend) = self.spending.open.get_mut(number) else { return };
        spend.is_out = true;
        let (Counted { entry, day, usd }, of_pool) = (spend.counted.clone(), spend.of_pool);
        let space = self.space_of(&entry, of_pool);
        let call = StoreCall::Spend { space, day: Some(day), entry: stored_entry(&entry), amount: usd, cap: None };
        self.push_store(Pending::Spend(number), None, call);
    }

    /// Takes the outcome of a changed entry, which is tried again later if it failed: no command waits for that.
    pub(crate) fn on_spent(&mut self, number: u32, answer: &StoreAnswer) {
        let then = self.spending.open.get_mut(number).and_then(|spend| spend.then.take());
        let has_failed = matches!(answer, StoreAnswer::Failed | StoreAnswer::Never);
        if let (true, Some(spend), None) = (has_failed, self.spending.open.get_mut(number), then) {
            spend.is_out = false;
            let again = STORE_AGAIN.wait(spend.failures);
            spend.failures = spend.failures.saturating_add(1);
            self.timers.add(self.shared.clock.monotonic().saturating_add(again), Timer::Spend(number));
        } else {
            let entry = self.spending.open.remove(number).map(|spend| spend.counted.entry);
            let is_wanted = |id: &JobId| self.jobs.get(id).is_some_and(|job| matches!(job.parked, Parked::Counting));
            if let Some((entry, (id, usd))) = entry.zip(then).filter(|(_, (id, _))| is_wanted(id)) {
                self.count(id, entry, usd);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{NOW, go_on};
    use crate::client::{CallOptions, Client, ClientOptions, Now};
    use crate::collections::walked;
    use crate::state::Memory;

    const LIST: &str = r#"{"success":true,"data":{"items":[{"product_no":"p","name":"n","type":"dynamic","available":true,"price":2,"currency":"USD","unit":"GB"}]}}"#;
    const BUY: &str = r#"{"session_type":"dynamic","product_no":"p","quantity":1}"#;

    /// Begins so many purchases of 2 USD at once, under a cap for half of them. How many were bought, and how much
    /// of what the client holds was walked over for it.
    fn at_once(many: u32, capped: bool, store: bool) -> (u32, u64) {
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            daily_cap_usd: capped.then(|| Decimal::from(i64::from(many))),
            store,
            ..ClientOptions::default()
        };
        let mut client = Client::new(options, [7; 16]).expect("the options are sound");
        let commands: Vec<_> = (0..many).map(|_| client.start_json("create_session", BUY, CallOptions::default())).collect();
        walked::take();
        let (mut disk, mut bought, mut now) = (Memory::default(), 0, NOW);
        for _ in 0..10 {
            go_on(&mut client, &mut disk, now, |request| {
                if request.url.contains("/products") {
                    return (200, LIST.to_owned());
                }
                bought += 1;
                let body =
                    format!(r#"{{"success":true,"data":{{"session_id":"s-{bought}","status":"creating","estimated_charge_usd":1.5}}}}"#);
                (202, body)
            });
            now = Now { unix: now.unix + 500, monotonic: now.monotonic + 500 };
        }
        for command in commands {
            let result = client.take_answer(command).expect("has completed");
            let said = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
            let error = result.err().map(|error| (error.kind, error.effect, error.retry_at));
            assert!(matches!(error, None | Some((Kind::Refused, Effect::None, Some(_)))), "{error:?} {said}");
        }
        (bought, walked::take())
    }

    #[test]
    fn a_thousand_purchases_begun_at_once_are_bought_as_far_as_the_cap_goes_and_each_costs_what_one_of_few_costs() {
        for store in [false, true] {
            let [(few, of_few), (bought, of_many)] = [100, 1000].map(|many| at_once(many, true, store));
            // Those that were charged less than they were counted leave room for some more.
            assert!((50..=66).contains(&few) && (500..=666).contains(&bought), "{few} {bought}");
            assert!(of_many < 15 * of_few, "{of_few} for a hundred, {of_many} for a thousand");
            let [(_, of_few), (bought, of_many)] = [100, 1000].map(|many| at_once(many, false, store));
            assert!(bought == 1000 && of_many < 15 * of_few, "{of_few} for a hundred, {of_many} for a thousand, without a cap");
        }
    }
}
