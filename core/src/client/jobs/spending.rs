//! The caps of a day, and the entries that count under them. What each key may cost is counted in the store before each of its sends, by an
//! entry of its own, and set anew once it is known what became of it.

use crate::client::jobs::charged::ChargedKeys;
use crate::collections::{IdMap, Map, SmallSet};
use crate::contract::Decimal;
use crate::contract::pools::SlotPurchase;
use crate::engine::{Counted, pool_digest, pool_of, stored_entry};
use crate::state::{CommandId, JobId, STORE_AGAIN, Space, StoreAnswer, StoreCall};
use crate::time::{DAY, Millis};

/// The caps, and the entries that are to change.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Spending {
    space: Space,
    /// The caller's cap on what is bought in a day.
    cap: Option<Decimal>,
    /// The cap of each pool that was opened, by its digest: `None` for a pool without a cap of its own.
    pools: Map<String, Option<Decimal>>,
    /// The last day that a store has said.
    day: i64,
    changes: IdMap<u32, EntryChange>,
    /// The changes of each entry.
    of_entries: Map<String, SmallSet<u32>>,
    reported: ChargedKeys,
}

/// An entry that is to count otherwise.
#[derive(Debug, Clone, Hash)]
struct EntryChange {
    counted: Counted,
    /// Under the cap of its pool, rather than the client's.
    of_pool: bool,
    failures: u32,
    /// True if the store was called and has not answered.
    is_out: bool,
    /// The command that waits for it.
    command: Option<CommandId>,
    /// The job that counts the same entry as soon as this was answered, and at how much.
    then: Option<(JobId, Decimal)>,
}

/// An entry that is counted before a send.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Counting {
    entry: String,
    usd: Decimal,
    /// Under the cap of its pool, rather than the client's.
    of_pool: bool,
    /// The day on which its pool has granted it, which is asked first.
    granted_by_pool: Option<i64>,
}

/// A thing that is to be done for the spending.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SpendingAction {
    /// The store counts an entry for a job.
    Count(JobId, Box<(Counting, StoreCall)>),
    /// The store carries out a change.
    Set(u32, Box<StoreCall>),
    /// The store is asked for a change once more, after so long.
    SetAfter(u32, Millis),
    /// The entry that a job is to count can be counted now.
    CountAgain(JobId, String, Decimal),
    /// A job may send; its entry counts on this day.
    Granted(JobId, i64),
    /// A job may not send.
    OverCap(JobId, Box<OverCap>),
    /// The store has not said whether the entry of a job counts.
    NotCounted(JobId),
    /// The store has answered a change.
    Answered(u32),
}

/// A price that would pass a cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OverCap {
    pub(crate) usd: Decimal,
    /// The part of the cap that is used already.
    pub(crate) total: Decimal,
    pub(crate) cap: Decimal,
    /// True if the cap is the pool's.
    pub(crate) of_pool: bool,
    /// The store's day.
    pub(crate) day: i64,
}

impl Spending {
    pub(crate) fn new(space: Space, cap: Option<Decimal>) -> Self {
        Spending {
            space,
            cap,
            pools: Map::default(),
            day: 0,
            changes: IdMap::default(),
            of_entries: Map::default(),
            reported: ChargedKeys::default(),
        }
    }

    pub(crate) fn has_cap(&self) -> bool {
        self.cap.is_some()
    }

    /// A pool is open, which has this cap of its own, or none.
    pub(crate) fn open_pool(&mut self, pool: &str, cap: Option<Decimal>) {
        self.pools.insert(pool_digest(pool), cap);
    }

    /// Forgets the cap of a closed pool. Its entries that change later are set wherever they may count.
    pub(crate) fn close_pool(&mut self, pool: &str) {
        self.pools.remove(pool_digest(pool).as_str());
    }

    #[cfg(test)]
    pub(crate) fn pools(&self) -> usize {
        self.pools.len()
    }

    /// The UTC day that counts now, where there is a cap for the purchase under this intent.
    pub(crate) fn today(&self, unix: Millis, intent: Option<&str>) -> Option<i64> {
        let of_pool = || intent.and_then(SlotPurchase::of).and_then(|purchase| *self.pools.get(pool_digest(purchase.pool()).as_str())?);
        self.cap.or_else(of_pool).map(|_| unix.div_euclid(DAY).max(self.day))
    }

    /// Returns true the first time that a key is charged.
    pub(crate) fn is_first_charge(&mut self, key: Option<&str>, monotonic: Millis) -> bool {
        self.reported.is_first(key, monotonic)
    }

    /// Counts what a key may cost, before it is put and sent.
    pub(crate) fn count(&mut self, job: JobId, entry: String, usd: Decimal, actions: &mut Vec<SpendingAction>) {
        // An entry is set to one thing at a time: what is being set is answered first, and what was to be tried again is overtaken.
        let mut out = None;
        for number in self.of_entries.get(entry.as_str()).cloned().unwrap_or_default().iter() {
            match self.changes.get(&number) {
                Some(change) if change.is_out => out = out.or(Some(number)),
                _ => drop(self.remove(number)),
            }
        }
        if let Some(change) = out.and_then(|number| self.changes.get_mut(&number)) {
            change.then = Some((job, usd));
            return;
        }
        let of_pool = self.pool_cap(&entry).is_some();
        self.ask(job, Counting { entry, usd, of_pool, granted_by_pool: None }, actions);
    }

    /// Takes the outcome of a count: granted, over the cap, or unknown.
    pub(crate) fn on_counted(&mut self, job: JobId, counting: Counting, answer: &StoreAnswer, actions: &mut Vec<SpendingAction>) {
        match answer {
            StoreAnswer::Granted { day } => {
                self.day = self.day.max(*day);
                if counting.of_pool && self.cap.is_some() {
                    return self.ask(job, Counting { of_pool: false, granted_by_pool: Some(*day), ..counting }, actions);
                }
                actions.push(SpendingAction::Granted(job, *day));
            }
            StoreAnswer::Over { day, total } => {
                self.day = self.day.max(*day);
                let Counting { entry, usd, of_pool, granted_by_pool } = counting;
                let cap = self.cap_of(&entry, of_pool).unwrap_or_default();
                if let Some(granted) = granted_by_pool {
                    self.set(Counted { entry, day: granted, usd: Decimal::from(0) }, true, actions);
                }
                actions.push(SpendingAction::OverCap(job, Box::new(OverCap { usd, total: *total, cap, of_pool, day: *day })));
            }
            _ => actions.push(SpendingAction::NotCounted(job)),
        }
    }

    /// A purchase was accepted: its key counts as it was charged. Returns the numbers of the changes.
    pub(crate) fn charged(&mut self, counted: Vec<Counted>, usd: Decimal, actions: &mut Vec<SpendingAction>) -> Vec<u32> {
        let charged = counted.into_iter().filter(|counted| counted.usd != usd);
        charged.flat_map(|counted| self.set_everywhere(Counted { usd, ..counted }, actions)).collect()
    }

    /// Keys bought nothing: they count no more. Returns the numbers of the changes.
    pub(crate) fn uncount(&mut self, counted: Vec<Counted>, actions: &mut Vec<SpendingAction>) -> Vec<u32> {
        counted.into_iter().flat_map(|counted| self.set_everywhere(Counted { usd: Decimal::from(0), ..counted }, actions)).collect()
    }

    /// Asks the store for a change.
    pub(crate) fn push(&mut self, number: u32, actions: &mut Vec<SpendingAction>) {
        let Some(change) = self.changes.get_mut(&number) else { return };
        change.is_out = true;
        let (Counted { entry, day, usd }, of_pool) = (change.counted.clone(), change.of_pool);
        let space = self.space_of(&entry, of_pool);
        let call = StoreCall::Spend { space, day: Some(day), entry: stored_entry(&entry), amount: usd, cap: None };
        actions.push(SpendingAction::Set(number, Box::new(call)));
    }

    /// Takes the outcome of a change, which is tried again later if it failed: no command waits for that.
    pub(crate) fn on_set(&mut self, number: u32, answer: &StoreAnswer, actions: &mut Vec<SpendingAction>) {
        let Some(change) = self.changes.get_mut(&number) else { return };
        let then = change.then.take();
        if then.is_none() && matches!(answer, StoreAnswer::Failed | StoreAnswer::Never) {
            change.is_out = false;
            actions.push(SpendingAction::SetAfter(number, STORE_AGAIN.wait(change.failures)));
            change.failures = change.failures.saturating_add(1);
        } else {
            let entry = self.remove(number).map(|change| change.counted.entry);
            actions.extend(entry.zip(then).map(|(entry, (job, usd))| SpendingAction::CountAgain(job, entry, usd)));
        }
        actions.push(SpendingAction::Answered(number));
    }

    /// A command waits for a change.
    pub(crate) fn serve(&mut self, number: u32, command: Option<CommandId>) {
        if let Some(change) = self.changes.get_mut(&number) {
            change.command = command;
        }
    }

    /// The command that waits for a change.
    pub(crate) fn command(&self, number: u32) -> Option<CommandId> {
        self.changes.get(&number)?.command
    }

    /// Returns true if a change was not answered yet: no command waits for a repeat.
    pub(crate) fn is_awaited(&self, number: u32) -> bool {
        self.changes.get(&number).is_some_and(|change| change.failures == 0)
    }

    fn ask(&self, job: JobId, counting: Counting, actions: &mut Vec<SpendingAction>) {
        let Counting { entry, usd, of_pool, .. } = &counting;
        let (space, cap) = (self.space_of(entry, *of_pool), self.cap_of(entry, *of_pool));
        let call = StoreCall::Spend { space, day: None, entry: stored_entry(entry), amount: *usd, cap };
        actions.push(SpendingAction::Count(job, Box::new((counting, call))));
    }

    /// Sets an entry wherever it counts: under the client's cap, and that of its pool. Of a pool that this client has not opened nobody
    /// knows whether it has one.
    fn set_everywhere(&mut self, counted: Counted, actions: &mut Vec<SpendingAction>) -> Vec<u32> {
        let pool = pool_of(&counted.entry).map(|pool| self.pools.get(pool).copied());
        let in_pool = pool.is_some_and(|known| known.is_none_or(|cap| cap.is_some()));
        let in_account = !matches!(pool, Some(Some(Some(_)))) || self.cap.is_some();
        let places = [(in_account, false), (in_pool, true)].into_iter().filter(|(counts, _)| *counts);
        places.map(|(_, of_pool)| self.set(counted.clone(), of_pool, actions)).collect()
    }

    fn set(&mut self, counted: Counted, of_pool: bool, actions: &mut Vec<SpendingAction>) -> u32 {
        let entry = counted.entry.clone();
        let number = self.changes.insert(EntryChange { counted, of_pool, failures: 0, is_out: false, command: None, then: None });
        self.of_entries.get_or_insert_with(entry, SmallSet::default).insert(number);
        self.push(number, actions);
        number
    }

    fn remove(&mut self, number: u32) -> Option<EntryChange> {
        let change = self.changes.remove(&number)?;
        let entry = change.counted.entry.as_str();
        if let Some(numbers) = self.of_entries.get_mut(entry) {
            numbers.remove(&number);
            if numbers.first().is_none() {
                self.of_entries.remove(entry);
            }
        }
        Some(change)
    }

    fn cap_of(&self, entry: &str, of_pool: bool) -> Option<Decimal> {
        if of_pool { self.pool_cap(entry) } else { self.cap }
    }

    /// The cap of the pool that an entry is of.
    fn pool_cap(&self, entry: &str) -> Option<Decimal> {
        *self.pools.get(pool_of(entry)?)?
    }

    /// The space of an entry's day: a pool has one of its own.
    fn space_of(&self, entry: &str, of_pool: bool) -> Space {
        match pool_of(entry).filter(|_| of_pool) {
            Some(pool) => self.space.of_pool(pool),
            None => self.space.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: i64 = 20_000;
    const JOB: JobId = JobId::MIN;

    fn spending(cap: Option<i64>, pool: Option<Option<i64>>) -> Spending {
        let mut spending = Spending::new(Space("5e".to_owned()), cap.map(Decimal::from));
        if let Some(cap) = pool {
            spending.open_pool("shop", cap.map(Decimal::from));
        }
        spending
    }

    /// An entry of the account, or of the pool.
    fn entry(of_pool: bool) -> String {
        if of_pool { format!("e1@{}", pool_digest("shop")) } else { "e1".to_owned() }
    }

    /// The actions in a few words: whose cap is asked, what is set.
    fn said(actions: &[SpendingAction]) -> Vec<String> {
        let whose = |space: &Space| if space.0 == "5e" { "account" } else { "pool" };
        let amount = |usd: &Decimal, cap: Option<Decimal>| format!("{usd} of {}", cap.map_or("any".to_owned(), |cap| cap.to_string()));
        let word = |action: &SpendingAction| match action {
            SpendingAction::Count(_, count) => match &count.1 {
                StoreCall::Spend { space, day: None, entry, amount: usd, cap } if entry == "e1" => {
                    format!("count {} {}", whose(space), amount(usd, *cap))
                }
                call => panic!("{call:?}"),
            },
            SpendingAction::Set(_, call) => match &**call {
                StoreCall::Spend { space, day: Some(day), entry, amount: usd, cap: None } if entry == "e1" => {
                    format!("set {} {usd} on {}", whose(space), day - TODAY)
                }
                call => panic!("{call:?}"),
            },
            SpendingAction::SetAfter(_, after) => format!("set after {after}"),
            SpendingAction::CountAgain(_, _, usd) => format!("count again {usd}"),
            SpendingAction::Granted(_, day) => format!("granted on {}", day - TODAY),
            SpendingAction::OverCap(_, over) => format!("over {} {}", if over.of_pool { "pool" } else { "account" }, over.cap),
            SpendingAction::NotCounted(_) => "not counted".to_owned(),
            SpendingAction::Answered(_) => "answered".to_owned(),
        };
        actions.iter().map(word).collect()
    }

    /// All actions of a count of 2 USD whose calls are answered in this order.
    fn counted(spending: &mut Spending, of_pool: bool, answers: &[StoreAnswer]) -> Vec<String> {
        let (mut actions, mut all) = (Vec::new(), Vec::new());
        spending.count(JOB, entry(of_pool), Decimal::from(2), &mut actions);
        for answer in answers {
            let counting = actions.iter().find_map(|action| match action {
                SpendingAction::Count(_, count) => Some(count.0.clone()),
                _ => None,
            });
            all.append(&mut said(&std::mem::take(&mut actions)));
            spending.on_counted(JOB, counting.expect("the store is asked"), answer, &mut actions);
        }
        all.append(&mut said(&actions));
        all
    }

    #[test]
    fn a_price_counts_under_the_cap_of_its_pool_and_then_under_that_of_the_account() {
        let granted = StoreAnswer::Granted { day: TODAY };
        let over = StoreAnswer::Over { day: TODAY, total: Decimal::from(9) };
        let failed = StoreAnswer::Failed;
        let cases: [(_, _, bool, &[&StoreAnswer], &[&str]); 8] = [
            (Some(10), None, false, &[&granted], &["count account 2 of 10", "granted on 0"]),
            (Some(10), None, false, &[&over], &["count account 2 of 10", "over account 10"]),
            (Some(10), None, false, &[&failed], &["count account 2 of 10", "not counted"]),
            (Some(10), Some(None), true, &[&granted], &["count account 2 of 10", "granted on 0"]),
            (None, Some(Some(5)), true, &[&granted], &["count pool 2 of 5", "granted on 0"]),
            (None, Some(Some(5)), true, &[&over], &["count pool 2 of 5", "over pool 5"]),
            (Some(10), Some(Some(5)), true, &[&granted, &granted], &["count pool 2 of 5", "count account 2 of 10", "granted on 0"]),
            // The grants of the pool count no more there.
            (
                Some(10),
                Some(Some(5)),
                true,
                &[&granted, &over],
                &["count pool 2 of 5", "count account 2 of 10", "set pool 0 on 0", "over account 10"],
            ),
        ];
        for (cap, pool, of_pool, answers, expected) in cases {
            let answers: Vec<StoreAnswer> = answers.iter().map(|answer| (*answer).clone()).collect();
            assert_eq!(counted(&mut spending(cap, pool), of_pool, &answers), expected);
        }
    }

    #[test]
    fn an_entry_is_set_wherever_it_may_count() {
        let cases: [(_, _, bool, &[&str]); 6] = [
            (Some(10), None, false, &["set account 1 on 0"]),
            (None, None, false, &["set account 1 on 0"]),
            // Another client may have opened the pool with a cap.
            (Some(10), None, true, &["set account 1 on 0", "set pool 1 on 0"]),
            (Some(10), Some(None), true, &["set account 1 on 0"]),
            (None, Some(Some(5)), true, &["set pool 1 on 0"]),
            (Some(10), Some(Some(5)), true, &["set account 1 on 0", "set pool 1 on 0"]),
        ];
        for (cap, pool, of_pool, expected) in cases {
            let counted = Counted { entry: entry(of_pool), day: TODAY, usd: Decimal::from(2) };
            let (mut spending, mut actions) = (spending(cap, pool), Vec::new());
            let numbers = spending.charged(vec![counted.clone()], Decimal::from(1), &mut actions);
            assert_eq!((said(&actions), numbers.len()), (expected.iter().map(ToString::to_string).collect(), expected.len()));
            assert!(spending.charged(vec![counted], Decimal::from(2), &mut actions).is_empty(), "it counts so already");
        }
    }

    #[test]
    fn a_change_that_failed_is_tried_again_and_waited_for_by_nobody() {
        let (mut spending, mut actions) = (spending(Some(10), None), Vec::new());
        let counted = Counted { entry: entry(false), day: TODAY, usd: Decimal::from(2) };
        let number = spending.uncount(vec![counted], &mut actions)[0];
        spending.serve(number, Some(CommandId(7)));
        assert_eq!((spending.is_awaited(number), spending.command(number)), (true, Some(CommandId(7))));
        for failed in [StoreAnswer::Failed, StoreAnswer::Never] {
            spending.on_set(number, &failed, &mut actions);
            assert!(!spending.is_awaited(number));
            spending.push(number, &mut actions);
        }
        spending.on_set(number, &StoreAnswer::Granted { day: TODAY }, &mut actions);
        let first = STORE_AGAIN.wait(0);
        let second = STORE_AGAIN.wait(1);
        let expected = format!(
            "set account 0 on 0, set after {first}, answered, set account 0 on 0, set after {second}, answered, set account 0 on 0, answered"
        );
        assert_eq!(said(&actions).join(", "), expected);
        assert!(spending.changes.len() == 0 && spending.of_entries.len() == 0);
    }

    #[test]
    fn an_entry_that_is_being_set_is_counted_once_the_store_has_answered_and_one_to_be_tried_again_at_once() {
        for answer in [StoreAnswer::Granted { day: TODAY }, StoreAnswer::Failed] {
            let (mut spending, mut actions) = (spending(Some(10), None), Vec::new());
            let numbers = spending.uncount(vec![Counted { entry: entry(false), day: TODAY, usd: Decimal::from(2) }], &mut actions);
            actions.clear();
            spending.count(JOB, entry(false), Decimal::from(3), &mut actions);
            assert_eq!(said(&actions), [""; 0], "the change is out");
            spending.on_set(numbers[0], &answer, &mut actions);
            assert_eq!(said(&actions), ["count again 3", "answered"]);
        }
        let (mut spending, mut actions) = (spending(Some(10), None), Vec::new());
        let numbers = spending.uncount(vec![Counted { entry: entry(false), day: TODAY, usd: Decimal::from(2) }], &mut actions);
        spending.on_set(numbers[0], &StoreAnswer::Failed, &mut actions);
        actions.clear();
        spending.count(JOB, entry(false), Decimal::from(3), &mut actions);
        spending.push(numbers[0], &mut actions);
        assert_eq!(said(&actions), ["count account 3 of 10"], "the change is overtaken");
    }

    #[test]
    fn a_day_that_a_store_has_said_does_not_go_back() {
        let mut spending = spending(Some(10), None);
        let noon = TODAY * DAY + DAY / 2;
        assert_eq!(spending.today(noon, None), Some(TODAY));
        counted(&mut spending, false, &[StoreAnswer::Granted { day: TODAY + 1 }]);
        assert_eq!((spending.today(noon, None), spending.today(noon + 2 * DAY, None)), (Some(TODAY + 1), Some(TODAY + 2)));
    }

    #[test]
    fn a_day_counts_only_where_there_is_a_cap() {
        let cases = [(None, None, false), (Some(1), None, true), (None, Some(None), false), (None, Some(Some(1)), true)];
        for (cap, pool, counts) in cases {
            assert_eq!(spending(cap, pool).today(0, Some("pool/shop/3#1")).is_some(), counts);
        }
        let mut spending = spending(None, Some(Some(1)));
        spending.close_pool("shop");
        assert_eq!((spending.today(0, Some("pool/shop/3#1")), spending.pools()), (None, 0));
    }
}
