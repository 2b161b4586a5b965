//! A store in memory that is as plain as possible, and may break one rule.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use hopline_store::{Claim, Clock, Decimal, Entry, Error, Page, Put, Spend, Spent, Store, Whose, Written};

use crate::runner::Subject;

/// A rule that is broken.
macro_rules! mutants {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Mutant { $($(#[$doc])* $name,)* }
        impl Mutant {
            pub(crate) const ALL: &'static [Mutant] = &[$(Mutant::$name,)*];
        }
    };
}

mutants! {
    // The model of the contract.
    PutMakesNames, PutUnfenced, DeleteUnfenced, DamagedIsNothing, PutIsTorn, SpendAdds,
    // Claims.
    ClaimTakesFromTheLiving, ClaimReadsOnly, BusyWithoutData, BusyIfAny, ClaimIgnoresMost, ClaimTakesEmptyFirst, OwnedDoesNotCount,
    OwnedIsBusy, ClaimsLeftoverToo, EmptyIsNothing,
    // Puts.
    NewTakesFromTheFree, NewTakesClaimed, NewDoesNotOwn, ReleaseIsIgnored, ReleaseDespiteLost, ReleaseLetsGoOfAll, ReleasedIsRemembered, PutAppends,
    // Deletes and releases.
    DeleteKeepsOwner, DeleteOfNothingIsLost, DeleteLetsGoOfOthers, ReleaseTakesFromOthers, ReleaseOfAllForEveryone, ReleaseOfSomeIsOfAll,
    // Ends.
    DeadKeepNames, EndLetsGoOfAll, DeadLoseData, FreeIsAnyones, ClaimsOutliveLease,
    // Lists.
    ListClaims, ListShowsClaimed, ListByPrefix, ListFromAfter, PageOfTooMany, NeverMore, AlwaysMoreWhenFull, OpenShowsAll, OpenByPage, EveryoneIsFree, ListUnsorted,
    // Time.
    KeepForIgnored, KeepForDropsOwned, KeepForOfTheFirstPut, KeepForTooLong, KeepForTooShort, KeepForIsOver,
    // Money.
    SpendUnlimited, OverStillCounts, ShrinkIsRefused, CapMustBeAbove, NoCapCountsNothing, TotalWithTheEntry, OneSpaceForAll, ClockGoesBack, DayIsIgnored, DayIsOfTheFirst, GivenDayIsForgotten, OverIsOfToday,
    EntryOfAllDays, MoneyIsFloat, SpendOfOneClient, SpendIsForgotten,
}

/// A store of which clients are numbers.
pub(crate) struct Naive {
    shared: Arc<Mutex<Shared>>,
    clock: Clock,
    mutant: Option<Mutant>,
}

#[derive(Default)]
struct Shared {
    clients: u64,
    living: BTreeSet<u64>,
    records: BTreeMap<String, Record>,
    /// The owner of each name, or the last one if it has ended.
    owners: BTreeMap<String, u64>,
    entries: BTreeMap<(String, i64, String), Decimal>,
    latest: BTreeMap<String, i64>,
    first_day: Option<i64>,
}

#[derive(Clone)]
struct Record {
    data: Vec<u8>,
    keep_until: Option<u64>,
}

pub(crate) struct Client {
    id: u64,
    store: Naive,
}

impl Naive {
    pub(crate) fn new(clock: Clock, mutant: Option<Mutant>) -> Naive {
        Naive { shared: Arc::default(), clock, mutant }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

impl Subject for Naive {
    const CAN: &'static [&'static str] = &["damage", "dies", "leases"];
    type Client = Client;

    fn open(&self) -> Client {
        let mut shared = self.shared.lock().expect("no test panics in it");
        shared.clients += 1;
        let id = shared.clients;
        shared.living.insert(id);
        Client { id, store: Naive { shared: Arc::clone(&self.shared), clock: Arc::clone(&self.clock), mutant: self.mutant } }
    }

    fn die_in_put(&self, client: Client, name: &str, data: &str) {
        if self.is(Mutant::PutIsTorn) {
            let half = data.as_bytes()[..data.len() / 2].to_owned();
            let mut shared = self.shared.lock().expect("no test panics in it");
            shared.records.insert(name.to_owned(), Record { data: half, keep_until: None });
        }
        drop(client);
    }

    fn damage(&self, name: &str, _how: &str) {
        let mut shared = self.shared.lock().expect("no test panics in it");
        if self.is(Mutant::DamagedIsNothing) {
            shared.records.remove(name);
        } else if let Some(record) = shared.records.get_mut(name) {
            record.data = b"damaged".to_vec();
        }
    }

    fn end_claims(&self, client: &Client) {
        if !self.is(Mutant::ClaimsOutliveLease) {
            self.shared.lock().expect("no test panics in it").owners.retain(|_, owner| *owner != client.id);
        }
    }
}

impl Client {
    fn is(&self, mutant: Mutant) -> bool {
        self.store.is(mutant)
    }

    fn inside<T>(&self, call: impl FnOnce(&mut Shared, u64) -> T) -> Result<T, Error> {
        let now = (self.store.clock)();
        let mut shared = self.store.shared.lock().expect("no test panics in it");
        let shared = &mut *shared;
        let Shared { records, owners, living, .. } = shared;
        if !self.is(Mutant::KeepForIgnored) {
            let is_owned =
                |name: &String| owners.get(name).is_some_and(|owner| living.contains(owner)) && !self.is(Mutant::KeepForDropsOwned);
            records.retain(|name, record| is_owned(name) || record.keep_until.is_none_or(|until| now <= until));
        }
        Ok(call(shared, now))
    }

    fn whose(&self, shared: &Shared, name: &str) -> Whose {
        match shared.owners.get(name) {
            Some(owner) if *owner == self.id => Whose::Mine,
            Some(owner) if shared.living.contains(owner) || self.is(Mutant::DeadKeepNames) => Whose::Other,
            _ => Whose::Free,
        }
    }

    fn may_put(&self, shared: &Shared, name: &str, new: bool) -> bool {
        let is_there = shared.records.contains_key(name);
        match self.whose(shared, name) {
            Whose::Mine => true,
            Whose::Free if self.is(Mutant::PutMakesNames) && !is_there => true,
            Whose::Free if self.is(Mutant::FreeIsAnyones) && is_there => true,
            Whose::Free => new && (!is_there || self.is(Mutant::NewTakesFromTheFree)),
            Whose::Other if self.is(Mutant::NewTakesClaimed) && new && !is_there => true,
            Whose::Other => self.is(Mutant::PutUnfenced),
        }
    }

    fn release_one(&self, shared: &mut Shared, name: &str) {
        if self.whose(shared, name) == Whose::Mine || self.is(Mutant::ReleaseTakesFromOthers) {
            shared.owners.remove(name);
        }
    }

    fn end(&self) {
        let mut shared = self.store.shared.lock().expect("no test panics in it");
        shared.living.remove(&self.id);
        if self.is(Mutant::EndLetsGoOfAll) {
            shared.owners.clear();
        }
        if self.is(Mutant::DeadLoseData) {
            let own: Vec<String> = shared.owners.iter().filter(|(_, owner)| **owner == self.id).map(|(name, _)| name.clone()).collect();
            own.iter().for_each(|name| drop(shared.records.remove(name)));
        }
        if self.is(Mutant::SpendIsForgotten) && shared.living.is_empty() {
            shared.entries.clear();
            shared.latest.clear();
        }
    }
}

impl Store for Client {
    fn claim(&self, names: &[&str], most: usize) -> Result<Claim, Error> {
        self.inside(|shared, _| {
            let is_free = |name: &&str| match self.whose(shared, name) {
                Whose::Mine => !self.is(Mutant::OwnedIsBusy),
                Whose::Free => true,
                Whose::Other => self.is(Mutant::ClaimTakesFromTheLiving),
            };
            let mut free: Vec<&str> = names.iter().copied().filter(is_free).collect();
            if free.is_empty() || (self.is(Mutant::BusyIfAny) && free.len() < names.len()) {
                let data = names.iter().find_map(|name| shared.records.get(*name)).map(|record| record.data.clone());
                return Claim::Busy(data.filter(|_| !self.is(Mutant::BusyWithoutData)));
            }
            free.sort_by_key(|name| {
                let is_empty = !shared.records.contains_key(*name);
                let is_mine = self.whose(shared, name) == Whose::Mine && !self.is(Mutant::OwnedDoesNotCount);
                (!is_mine, is_empty != self.is(Mutant::ClaimTakesEmptyFirst))
            });
            let most = if self.is(Mutant::ClaimIgnoresMost) { free.len() } else { most };
            let taken = if self.is(Mutant::ClaimsLeftoverToo) { free.len() } else { most.min(free.len()) };
            if !self.is(Mutant::ClaimReadsOnly) {
                shared.owners.extend(free[..taken].iter().map(|name| ((*name).to_owned(), self.id)));
            }
            let data = |name: &str| shared.records.get(name).map(|record| record.data.clone());
            let shown = |data: &Vec<u8>| !(data.is_empty() && self.is(Mutant::EmptyIsNothing));
            Claim::Claimed(free.into_iter().take(most).map(|name| (name.to_owned(), data(name).filter(shown))).collect())
        })
    }

    fn put(&self, name: &str, data: &[u8], how: &Put) -> Result<Written, Error> {
        self.inside(|shared, now| {
            let remembers = self.is(Mutant::ReleasedIsRemembered) && shared.records.get(name).is_some_and(|record| record.data == data);
            if !self.may_put(shared, name, how.new) {
                if self.is(Mutant::ReleaseDespiteLost) && how.release {
                    shared.owners.remove(name);
                }
                return if remembers { Written::Done } else { Written::Lost };
            }
            let before = shared.records.get(name).cloned();
            let mut keep_until = how.keep_for.map(|length| now + length.as_millis() as u64);
            if self.is(Mutant::KeepForTooLong) {
                keep_until = keep_until.map(|until| until + 1_000);
            }
            if self.is(Mutant::KeepForTooShort) {
                keep_until = keep_until.map(|until| until - 10);
            }
            if self.is(Mutant::KeepForIsOver) {
                keep_until = keep_until.map(|until| until - now);
            }
            if let Some(before) = before.as_ref().filter(|_| self.is(Mutant::KeepForOfTheFirstPut)) {
                keep_until = before.keep_until;
            }
            let mut data = data.to_owned();
            if let Some(before) = before.filter(|before| self.is(Mutant::PutAppends) && before.data.len() > data.len()) {
                data.extend_from_slice(&before.data[data.len()..]);
            }
            shared.records.insert(name.to_owned(), Record { data, keep_until });
            if !(how.new && self.is(Mutant::NewDoesNotOwn)) {
                shared.owners.insert(name.to_owned(), self.id);
            }
            if how.release && self.is(Mutant::ReleaseLetsGoOfAll) {
                shared.owners.retain(|_, owner| *owner != self.id);
            } else if how.release && !self.is(Mutant::ReleaseIsIgnored) {
                shared.owners.remove(name);
            }
            Written::Done
        })
    }

    fn delete(&self, name: &str) -> Result<Written, Error> {
        self.inside(|shared, _| {
            let (whose, is_there) = (self.whose(shared, name), shared.records.contains_key(name));
            if whose != Whose::Mine && is_there && !self.is(Mutant::DeleteUnfenced) {
                return Written::Lost;
            }
            if whose != Whose::Mine && !is_there && self.is(Mutant::DeleteOfNothingIsLost) {
                return Written::Lost;
            }
            shared.records.remove(name);
            if (whose == Whose::Mine || self.is(Mutant::DeleteLetsGoOfOthers)) && !self.is(Mutant::DeleteKeepsOwner) {
                shared.owners.remove(name);
            }
            Written::Done
        })
    }

    fn release(&self, names: Option<&[&str]>) -> Result<(), Error> {
        self.inside(|shared, _| match names {
            Some(names) if !self.is(Mutant::ReleaseOfSomeIsOfAll) => names.iter().for_each(|name| self.release_one(shared, name)),
            _ => shared.owners.retain(|_, owner| *owner != self.id && !self.is(Mutant::ReleaseOfAllForEveryone)),
        })
    }

    fn list(&self, space: &str, after: Option<&str>, open: bool) -> Result<Page, Error> {
        self.inside(|shared, _| {
            let begin = if self.is(Mutant::ListByPrefix) { space.to_owned() } else { format!("{space}.") };
            let after = after.unwrap_or_default();
            let is_after = |name: &str| name > after || (name == after && self.is(Mutant::ListFromAfter));
            let mut names: Vec<String> = shared.records.keys().cloned().collect();
            if self.is(Mutant::ListShowsClaimed) {
                names.extend(shared.owners.keys().filter(|name| !shared.records.contains_key(*name)).cloned());
                names.sort();
            }
            if self.is(Mutant::ListUnsorted) {
                names.sort_by_key(|name| name.chars().rev().collect::<String>());
            }
            names.retain(|name| name.starts_with(&begin) && is_after(name));
            let is_open = |name: &String| shared.records.get(name).is_none_or(|record| record.keep_until.is_none());
            if open && !self.is(Mutant::OpenShowsAll) && !self.is(Mutant::OpenByPage) {
                names.retain(is_open);
            }
            let page = if self.is(Mutant::PageOfTooMany) { 1000 } else { 500 };
            let more = names.len() > page || (names.len() == page && self.is(Mutant::AlwaysMoreWhenFull));
            names.truncate(page);
            if open && self.is(Mutant::OpenByPage) {
                names.retain(is_open);
            }
            if self.is(Mutant::ListClaims) {
                let free: Vec<String> = names.iter().filter(|name| self.whose(shared, name) == Whose::Free).cloned().collect();
                shared.owners.extend(free.into_iter().map(|name| (name, self.id)));
            }
            let whose = |name: &str| if self.is(Mutant::EveryoneIsFree) { Whose::Free } else { self.whose(shared, name) };
            let data = |name: &str| shared.records.get(name).map(|record| record.data.clone()).unwrap_or_default();
            let entries = names.into_iter().map(|name| Entry { data: data(&name), whose: whose(&name), name }).collect();
            Page { entries, more: more && !self.is(Mutant::NeverMore) }
        })
    }

    fn spend(&self, spend: &Spend<'_>) -> Result<Spent, Error> {
        self.inside(|shared, now| {
            let space = if self.is(Mutant::OneSpaceForAll) { String::new() } else { spend.space.to_owned() };
            let space = if self.is(Mutant::SpendOfOneClient) { format!("{space}{}", self.id) } else { space };
            let mut today = (now / 86_400_000) as i64;
            if !self.is(Mutant::ClockGoesBack) {
                today = today.max(shared.latest.get(&space).copied().unwrap_or(today));
            }
            if self.is(Mutant::DayIsOfTheFirst) {
                today = *shared.first_day.get_or_insert(today);
            }
            let day = spend.day.filter(|_| !self.is(Mutant::DayIsIgnored)).unwrap_or(today);
            let counted = if self.is(Mutant::EntryOfAllDays) { 0 } else { day };
            let of_day = shared.entries.iter().filter(|((other, day, _), _)| *other == space && *day == counted);
            let total: Decimal = of_day.map(|(_, amount)| *amount).sum();
            let key = (space.clone(), counted, spend.entry.to_owned());
            let before = shared.entries.get(&key).copied().unwrap_or_default();
            let amount = if self.is(Mutant::SpendAdds) { before + spend.amount } else { spend.amount };
            let (sum, float) = (total - before + amount, |amount: Decimal| amount.to_string().parse::<f64>().unwrap_or_default());
            let passes = |cap: Decimal| match self.store.mutant {
                Some(Mutant::MoneyIsFloat) => float(total) - float(before) + float(amount) > float(cap),
                Some(Mutant::CapMustBeAbove) => sum >= cap,
                Some(Mutant::SpendUnlimited) => false,
                _ => sum > cap,
            };
            if spend.cap.is_some_and(passes) && (amount > before || self.is(Mutant::ShrinkIsRefused)) {
                if self.is(Mutant::OverStillCounts) {
                    shared.entries.insert(key, amount);
                }
                let day = if self.is(Mutant::OverIsOfToday) { today } else { day };
                return Spent::Over { day, total: if self.is(Mutant::TotalWithTheEntry) { sum } else { total } };
            }
            if spend.cap.is_some() || !self.is(Mutant::NoCapCountsNothing) {
                shared.entries.insert(key, amount);
            }
            let latest = shared.latest.entry(space).or_insert(day);
            if spend.day.is_none() || !self.is(Mutant::GivenDayIsForgotten) {
                *latest = day.max(*latest);
            }
            Spent::Granted { day }
        })
    }

    fn close(&self) {
        self.end();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}
