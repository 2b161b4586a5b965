//! A store in memory: for tests, and for programs that may forget what they bought when they end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::{Name, check_space, check_spend, parse_all};
use crate::{
    Claim, Clock, Decimal, Entry, Error, PAGE, Page, Put, Spend, Spent, Store, Whose, Written, day_of, is_over, millis, system_clock,
};

/// A client of a store in memory. The store ends with its last client.
pub struct Memory {
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
    /// `None` once it is closed.
    client: Mutex<Option<u64>>,
}

#[derive(Default)]
struct Shared {
    clients: u64,
    records: BTreeMap<String, Record>,
    owners: HashMap<String, u64>,
    /// When which record may go. A record that somebody owns by then goes when it is let go of.
    ends: BTreeSet<(u64, String)>,
    /// What entries count, by space, day and entry.
    days: BTreeMap<String, BTreeMap<i64, BTreeMap<String, Decimal>>>,
}

struct Record {
    data: Vec<u8>,
    keep_until: Option<u64>,
}

impl Shared {
    /// Drops what is kept no longer.
    fn drop_ended(&mut self, now: u64) {
        while self.ends.first().is_some_and(|(until, _)| *until < now) {
            if let Some((_, name)) = self.ends.pop_first() {
                self.drop_if_ended(&name, now);
            }
        }
    }

    fn drop_if_ended(&mut self, name: &str, now: u64) {
        let has_ended = self.records.get(name).is_some_and(|record| record.keep_until.is_some_and(|until| until < now));
        if has_ended && !self.owners.contains_key(name) {
            self.records.remove(name);
        }
    }

    /// Lets go of what a client owns of these names, or of all.
    fn release(&mut self, client: u64, names: Option<&[Name<'_>]>, now: u64) {
        let names: Vec<String> = match names {
            Some(names) => names.iter().map(|name| name.as_str().to_owned()).collect(),
            None => self.owners.iter().filter(|(_, owner)| **owner == client).map(|(name, _)| name.clone()).collect(),
        };
        for name in names.iter().filter(|name| self.owners.get(*name) == Some(&client)).collect::<Vec<_>>() {
            self.owners.remove(name);
            self.drop_if_ended(name, now);
        }
    }
}

impl Memory {
    /// A new store, and its first client.
    pub fn new() -> Memory {
        Memory::with_clock(system_clock())
    }

    /// The same, with a clock of the caller's.
    pub fn with_clock(clock: Clock) -> Memory {
        Memory { shared: Arc::default(), clock, client: Mutex::new(Some(0)) }
    }

    /// One more client of the same store.
    pub fn open(&self) -> Memory {
        let mut shared = lock(&self.shared);
        shared.clients += 1;
        Memory { shared: Arc::clone(&self.shared), clock: Arc::clone(&self.clock), client: Mutex::new(Some(shared.clients)) }
    }

    /// Ends the claims of this client though it lives, as those in a database end when their owner gives no sign of life. For tests.
    pub fn end_claims(&self) {
        if let Some(client) = *lock(&self.client) {
            lock(&self.shared).release(client, None, (self.clock)());
        }
    }

    fn enter(&self) -> Result<Inside<'_>, Error> {
        let client = lock(&self.client).ok_or_else(|| Error::Misuse("this client of the store is closed".to_owned()))?;
        let mut shared = lock(&self.shared);
        let now = (self.clock)();
        shared.drop_ended(now);
        Ok(Inside { client, now, shared })
    }
}

/// What a call works with.
struct Inside<'a> {
    client: u64,
    now: u64,
    shared: MutexGuard<'a, Shared>,
}

impl Inside<'_> {
    fn whose(&self, name: &str) -> Whose {
        match self.shared.owners.get(name) {
            None => Whose::Free,
            Some(owner) if *owner == self.client => Whose::Mine,
            Some(_) => Whose::Other,
        }
    }

    fn data(&self, name: &str) -> Option<Vec<u8>> {
        self.shared.records.get(name).map(|record| record.data.clone())
    }

    /// Lets go of these names, or of all.
    fn release(&mut self, names: Option<&[Name<'_>]>) {
        self.shared.release(self.client, names, self.now);
    }
}

impl Store for Memory {
    fn claim(&self, names: &[&str], most: usize) -> Result<Claim, Error> {
        let names = parse_all(names)?;
        let mut inside = self.enter()?;
        let rank = |name: &str| (inside.whose(name) != Whose::Mine, !inside.shared.records.contains_key(name));
        let mut free: Vec<&str> = names.iter().map(|name| name.as_str()).filter(|name| inside.whose(name) != Whose::Other).collect();
        if free.is_empty() && !names.is_empty() && most > 0 {
            return Ok(Claim::Busy(names.iter().find_map(|name| inside.data(name.as_str()))));
        }
        free.sort_by_key(|name| rank(name));
        free.truncate(most);
        let client = inside.client;
        inside.shared.owners.extend(free.iter().map(|name| ((*name).to_owned(), client)));
        Ok(Claim::Claimed(free.into_iter().map(|name| (name.to_owned(), inside.data(name))).collect()))
    }

    fn put(&self, name: &str, data: &[u8], how: &Put) -> Result<Written, Error> {
        let parsed = Name::parse(name)?;
        let mut inside = self.enter()?;
        match inside.whose(name) {
            Whose::Mine => {}
            Whose::Free if how.new && !inside.shared.records.contains_key(name) => {}
            Whose::Free | Whose::Other => return Ok(Written::Lost),
        }
        let (client, now) = (inside.client, inside.now);
        let keep_until = how.keep_for.map(|length| now.saturating_add(millis(length)));
        inside.shared.ends.extend(keep_until.map(|until| (until, name.to_owned())));
        inside.shared.records.insert(name.to_owned(), Record { data: data.to_owned(), keep_until });
        inside.shared.owners.insert(name.to_owned(), client);
        if how.release {
            inside.release(Some(&[parsed]));
        }
        Ok(Written::Done)
    }

    fn delete(&self, name: &str) -> Result<Written, Error> {
        let parsed = Name::parse(name)?;
        let mut inside = self.enter()?;
        if inside.whose(name) != Whose::Mine && inside.shared.records.contains_key(name) {
            return Ok(Written::Lost);
        }
        inside.shared.records.remove(name);
        inside.release(Some(&[parsed]));
        Ok(Written::Done)
    }

    fn release(&self, names: Option<&[&str]>) -> Result<(), Error> {
        let names = names.map(parse_all).transpose()?;
        self.enter()?.release(names.as_deref());
        Ok(())
    }

    fn list(&self, space: &str, after: Option<&str>, open: bool) -> Result<Page, Error> {
        check_space(space)?;
        let inside = self.enter()?;
        let prefix = format!("{space}.");
        let from = after.unwrap_or_default().max(&prefix).to_owned();
        let names = inside.shared.records.range(from..).take_while(|(name, _)| name.starts_with(&prefix));
        let shown = names.filter(|(name, record)| after != Some(name) && !(open && record.keep_until.is_some()));
        let mut entries: Vec<Entry> = shown
            .take(PAGE + 1)
            .map(|(name, record)| Entry { name: name.clone(), data: record.data.clone(), whose: inside.whose(name) })
            .collect();
        let more = entries.len() > PAGE;
        entries.truncate(PAGE);
        Ok(Page { entries, more })
    }

    fn spend(&self, spend: &Spend<'_>) -> Result<Spent, Error> {
        check_spend(spend)?;
        let mut inside = self.enter()?;
        let today = day_of(inside.now);
        let days = inside.shared.days.entry(spend.space.to_owned()).or_default();
        let day = spend.day.unwrap_or_else(|| days.keys().last().map_or(today, |last| today.max(*last)));
        let amounts = days.get(&day).into_iter().flat_map(|entries| entries.values());
        let total = amounts.fold(Decimal::ZERO, |sum, amount| sum.saturating_add(*amount));
        let before = days.get(&day).and_then(|entries| entries.get(spend.entry)).copied().unwrap_or_default();
        if is_over(before, total, spend.amount, spend.cap) {
            return Ok(Spent::Over { total });
        }
        days.entry(day).or_default().insert(spend.entry.to_owned(), spend.amount);
        Ok(Spent::Granted { day })
    }

    fn close(&self) {
        if let Some(client) = lock(&self.client).take() {
            lock(&self.shared).release(client, None, (self.clock)());
        }
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.close();
    }
}

/// A panic in a clock that was given leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
