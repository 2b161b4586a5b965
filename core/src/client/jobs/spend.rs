//! The day's cap, as jobs meet it: a job waits until its price is counted, and hears what came of that.

use crate::client::deferred::Deferred;
use crate::client::end::commands::PendingWrite;
use crate::client::jobs::job::Parked;
use crate::client::jobs::spending::{Counting, OverCap, Spending, SpendingAction};
use crate::client::outbox::Pending;
use crate::client::requests::Timer;
use crate::client::router::Router;
use crate::contract::Decimal;
use crate::engine::{Grant, Input, Subject};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{JobId, StoreAnswer};
use crate::time::{DAY, Millis};

impl Router {
    /// Counts what a key may cost, before it is put and sent.
    pub(crate) fn count(&mut self, id: JobId, entry: String, usd: Decimal) {
        if !self.holds(Rule::SpendBeforeSend) {
            let intent = self.jobs.get(id).and_then(|entry| entry.subject.intent.as_deref());
            let day = self.spending.today(self.unix(), intent).unwrap_or_default();
            return self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(Grant::Counted { day }))));
        }
        self.jobs.park(id, Parked::Counting);
        self.spend(|spending, actions| spending.count(id, entry, usd, actions));
    }

    /// Counts an entry once it is not being set any more, if its job still waits for that.
    pub(crate) fn count_again(&mut self, id: JobId, entry: String, usd: Decimal) {
        if self.is_counting(id) {
            self.count(id, entry, usd);
        }
    }

    /// Takes the outcome of a count.
    pub(crate) fn on_counted(&mut self, id: JobId, counting: Counting, answer: &StoreAnswer) {
        if self.is_counting(id) {
            self.spend(|spending, actions| spending.on_counted(id, counting, answer, actions));
        }
    }

    fn is_counting(&self, id: JobId) -> bool {
        self.jobs.get(id).is_some_and(|entry| matches!(entry.parked, Parked::Counting))
    }

    /// Does something with the spending, and what follows from it.
    pub(crate) fn spend<T>(&mut self, act: impl FnOnce(&mut Spending, &mut Vec<SpendingAction>) -> T) -> T {
        let mut actions = Vec::new();
        let value = act(&mut self.spending, &mut actions);
        actions.into_iter().for_each(|action| self.carry_out_spending(action));
        value
    }

    fn carry_out_spending(&mut self, action: SpendingAction) {
        let (id, granted) = match action {
            SpendingAction::Count(id, count) => {
                let (counting, call) = *count;
                let command = self.jobs.command(id);
                return self.push_store(Pending::Count(id, Box::new(counting)), command, call);
            }
            SpendingAction::Set(number, call) => return self.push_store(Pending::Spend(number), None, *call),
            SpendingAction::SetAfter(number, after) => {
                return self.timers.add(self.now().saturating_add(after), Timer::Spend(number));
            }
            SpendingAction::CountAgain(id, entry, usd) => return self.deferred.push(Deferred::Count(id, entry, usd)),
            SpendingAction::Answered(number) => return self.deferred.push(Deferred::Answered(PendingWrite::Spend(number))),
            SpendingAction::Granted(id, day) => (id, Ok(Grant::Counted { day })),
            SpendingAction::OverCap(id, over) => {
                let Some(entry) = self.jobs.get(id) else { return };
                (id, Err(over.error(&entry.subject, self.unix())))
            }
            SpendingAction::NotCounted(id) => {
                let what = "could not count its charge under the daily cap";
                (id, Err(Error::new(Kind::Store, Effect::None, "store", what, Advice::MendStore)))
            }
        };
        self.deferred.push(Deferred::Tell(id, Input::Granted(granted)));
    }
}

impl OverCap {
    /// The error of an operation that was not sent.
    fn error(&self, subject: &Subject, unix: Millis) -> Error {
        let OverCap { usd, total, cap, of_pool, day } = self;
        let whose = if *of_pool { "the pool's" } else { "the" };
        let is_ahead = *day > unix.div_euclid(DAY);
        let until = if is_ahead { "the store's day ends, which is ahead of this clock's" } else { "midnight UTC" };
        let what = format!(
            "was not sent, because it costs {usd} USD, and {total} USD of {whose} daily cap of {cap} USD are already used, until {until}"
        );
        let retry_at = (usd <= cap).then(|| day.saturating_add(1).saturating_mul(DAY));
        subject.error(Kind::Refused, Effect::None, what, Advice::RaiseBudget).with(|new| new.retry_at = retry_at)
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
    fn a_price_over_a_cap_says_whose_cap_it_is_and_when_it_may_be_paid() {
        const TODAY: i64 = 20_000;
        let said = |usd: i64, of_pool: bool, day: i64| {
            let over = OverCap { usd: Decimal::from(usd), total: Decimal::from(9), cap: Decimal::from(10), of_pool, day };
            let error = over.error(&Subject { operation: "create_session", ..Subject::default() }, TODAY * DAY);
            assert_eq!((error.kind, error.effect, error.advice), (Kind::Refused, Effect::None, Advice::RaiseBudget));
            (error.to_string(), error.retry_at)
        };
        let (text, retry_at) = said(2, false, TODAY);
        assert!(text.contains("costs 2 USD, and 9 USD of the daily cap of 10 USD are already used, until midnight UTC"), "{text}");
        assert_eq!(retry_at, Some((TODAY + 1) * DAY));
        let (text, retry_at) = said(2, true, TODAY + 1);
        assert!(text.contains("the pool's daily cap") && text.contains("the store's day ends"), "{text}");
        assert_eq!(retry_at, Some((TODAY + 2) * DAY));
        assert_eq!(said(11, false, TODAY).1, None, "it is over the whole cap");
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
