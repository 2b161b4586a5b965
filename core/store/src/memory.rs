//! A store in memory: for tests, and for programs that may forget their purchases when they end. The store is the core's own, shared by
//! several clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopline::client::{Memory as Shared, Name, Space, StoreAnswer, StoreCall};

use crate::name::{check_space, check_spend, parse_all};
use crate::{Claim, Clock, Entry, Error, Page, Put, Spend, Spent, Store, Written, millis, system_clock};

/// A client of a store in memory. The store ends with its last client.
pub struct Memory {
    shared: Arc<Mutex<Clients>>,
    clock: Clock,
    /// `None` once the client is closed.
    client: Mutex<Option<u32>>,
}

#[derive(Default)]
struct Clients {
    last: u32,
    memory: Shared,
}

impl Memory {
    /// A new store, and its first client.
    pub fn new() -> Memory {
        Memory::with_clock(system_clock())
    }

    /// A new store with a clock of the caller's, and its first client.
    pub fn with_clock(clock: Clock) -> Memory {
        Memory { shared: Arc::default(), clock, client: Mutex::new(Some(0)) }
    }

    /// One more client of the same store.
    pub fn open(&self) -> Memory {
        let mut shared = lock(&self.shared);
        shared.last += 1;
        Memory { shared: Arc::clone(&self.shared), clock: Arc::clone(&self.clock), client: Mutex::new(Some(shared.last)) }
    }

    /// Ends the claims of this client though it lives, as a database ends the claims of an owner without a sign of life. For tests.
    pub fn end_claims(&self) {
        let _ = self.ask(StoreCall::Release { names: None });
    }

    fn ask(&self, call: StoreCall) -> Result<StoreAnswer, Error> {
        let client = lock(&self.client).ok_or_else(|| Error::Misuse("this client of the store is closed".to_owned()))?;
        Ok(self.ask_as(client, call))
    }

    fn ask_as(&self, client: u32, call: StoreCall) -> StoreAnswer {
        let now = i64::try_from((self.clock)()).unwrap_or(i64::MAX);
        lock(&self.shared).memory.call_of(client, call, now, now)
    }
}

fn named(name: &str) -> Name {
    Name::from(name.to_owned())
}

fn written(answer: &StoreAnswer) -> Written {
    if *answer == StoreAnswer::Done { Written::Done } else { Written::Lost }
}

impl Store for Memory {
    fn claim(&self, names: &[&str], most: usize) -> Result<Claim, Error> {
        let names = parse_all(names)?.iter().map(|name| named(name.as_str())).collect();
        match self.ask(StoreCall::Claim { names, most: u32::try_from(most).unwrap_or(u32::MAX) })? {
            StoreAnswer::Claimed(names) => Ok(Claim::Claimed(names.into_iter().map(|(name, data)| (name.to_string(), data)).collect())),
            StoreAnswer::Busy(data) => Ok(Claim::Busy(data)),
            _ => Ok(Claim::Claimed(Vec::new())),
        }
    }

    fn put(&self, name: &str, data: &[u8], how: &Put) -> Result<Written, Error> {
        parse_all(&[name])?;
        let keep_for = how.keep_for.map(|length| i64::try_from(millis(length)).unwrap_or(i64::MAX));
        let put = StoreCall::Put { name: named(name), data: data.to_owned(), new: how.new, keep_for, release: how.release };
        Ok(written(&self.ask(put)?))
    }

    fn delete(&self, name: &str) -> Result<Written, Error> {
        parse_all(&[name])?;
        Ok(written(&self.ask(StoreCall::Delete { name: named(name) })?))
    }

    fn release(&self, names: Option<&[&str]>) -> Result<(), Error> {
        let names = names.map(parse_all).transpose()?;
        let names = names.map(|names| names.iter().map(|name| named(name.as_str())).collect());
        self.ask(StoreCall::Release { names }).map(|_| ())
    }

    fn list(&self, space: &str, after: Option<&str>, open: bool) -> Result<Page, Error> {
        check_space(space)?;
        match self.ask(StoreCall::List { space: Space(space.to_owned()), after: after.map(named), open })? {
            StoreAnswer::Listed { entries, more } => {
                let entries =
                    entries.into_iter().map(|listed| Entry { name: listed.name.to_string(), data: listed.data, whose: listed.whose });
                Ok(Page { entries: entries.collect(), more })
            }
            _ => Ok(Page::default()),
        }
    }

    fn spend(&self, spend: &Spend<'_>) -> Result<Spent, Error> {
        check_spend(spend)?;
        let Spend { space, day, entry, amount, cap } = *spend;
        let money = hopline::contract::Decimal;
        let call =
            StoreCall::Spend { space: Space(space.to_owned()), day, entry: entry.to_owned(), amount: money(amount), cap: cap.map(money) };
        match self.ask(call)? {
            StoreAnswer::Over { day, total } => Ok(Spent::Over { day, total: total.0 }),
            StoreAnswer::Granted { day } => Ok(Spent::Granted { day }),
            answer => Err(Error::Failed(format!("the memory answered {answer:?}"))),
        }
    }

    fn close(&self) {
        if let Some(client) = lock(&self.client).take() {
            self.ask_as(client, StoreCall::Release { names: None });
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

/// A panic in a caller's clock leaves no change half made.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
