//! The store of a world: names with owners, and the charges under the day's cap. Its steps are answered at once; the faults between the
//! call and the answer are chosen elsewhere.

use std::collections::BTreeMap;

use hopline::client::{Listed, Millis, Name, Space, StoreAnswer, StoreCall, Whose};
use hopline::contract::Decimal;

use crate::checker::Total;

const DAY: Millis = 24 * 3_600_000;

/// The record of a name.
#[derive(Debug, Clone, Hash)]
struct Kept {
    data: Vec<u8>,
    until: Option<Millis>,
}

/// A store.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Store {
    kept: BTreeMap<Name, Kept>,
    /// The owner of each name, by the number of the client.
    owners: BTreeMap<Name, u8>,
    /// True if any client may change a record, not only its owner.
    pub(crate) is_open: bool,
    /// The day by the store's own clock, which never goes back, and what its entries count, in thousandths of a dollar.
    day: i64,
    entries: BTreeMap<(i64, Space, String), Decimal>,
}

impl Store {
    /// The record of a name.
    pub(crate) fn data(&self, name: &Name) -> Option<&Vec<u8>> {
        self.kept.get(name).map(|kept| &kept.data)
    }

    /// The names that something is under.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.kept.keys()
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(crate) fn clear(&mut self) {
        *self = Store { day: self.day, ..Store::default() };
    }

    /// A client owns nothing any more: it has died, or its claims have ended while it lives.
    pub(crate) fn ends_claims(&mut self, client: u8) {
        self.owners.retain(|_, owner| *owner != client);
    }

    /// The names that a client owns.
    pub(crate) fn owned_by(&self, client: u8) -> impl Iterator<Item = &Name> {
        self.owners.iter().filter(move |(_, owner)| **owner == client).map(|(name, _)| name)
    }

    /// The client that owns a name.
    pub(crate) fn owner(&self, name: &Name) -> Option<u8> {
        self.owners.get(name).copied()
    }

    /// Puts something into it behind everybody's back.
    pub(crate) fn plant(&mut self, name: Name, data: Vec<u8>) {
        self.kept.insert(name, Kept { data, until: None });
    }

    /// The total of the entries of the newest day.
    pub(crate) fn total(&self) -> Total {
        let of_day = self.entries.iter().filter(|((day, ..), _)| *day == self.day);
        let amount = of_day.fold(rust_decimal::Decimal::ZERO, |sum, (_, usd)| sum + usd.0);
        Total { day: self.day, amount: crate::checker::thousandths(&amount.to_string()).unwrap_or_default() }
    }

    /// The amount of each entry of the newest day.
    pub(crate) fn entries(&self) -> BTreeMap<String, i64> {
        let of_day = self.entries.iter().filter(|((day, ..), _)| *day == self.day);
        let amount = |usd: &Decimal| crate::checker::thousandths(&usd.0.to_string()).unwrap_or_default();
        of_day.map(|((.., entry), usd)| (entry.clone(), amount(usd))).collect()
    }

    /// Executes a call of the client with this number.
    pub(crate) fn call(&mut self, call: &StoreCall, client: u8, now: Millis) -> StoreAnswer {
        self.day = self.day.max(now.div_euclid(DAY));
        let owners = &self.owners;
        self.kept.retain(|name, kept| owners.contains_key(name) || kept.until.is_none_or(|until| until > now));
        let is_mine = |store: &Store, name: &Name| store.owners.get(name) == Some(&client);
        let may_change = |store: &Store, name: &Name| store.is_open || is_mine(store, name);
        match call {
            StoreCall::Claim { names, most } => {
                let free = names.iter().filter(|name| self.owners.get(*name).is_none_or(|owner| *owner == client));
                let mut free: Vec<Name> = free.cloned().collect();
                free.sort_by_key(|name| (!is_mine(self, name), !self.kept.contains_key(name)));
                free.truncate(*most as usize);
                if free.is_empty() {
                    return StoreAnswer::Busy(names.first().and_then(|name| self.data(name).cloned()));
                }
                self.owners.extend(free.iter().map(|name| (name.clone(), client)));
                StoreAnswer::Claimed(free.into_iter().map(|name| (name.clone(), self.data(&name).cloned())).collect())
            }
            StoreCall::Put { name, data, new, keep_for, release } => {
                let is_new = *new && !self.kept.contains_key(name) && !self.owners.contains_key(name);
                if !is_new && !may_change(self, name) {
                    return StoreAnswer::Lost;
                }
                self.kept.insert(name.clone(), Kept { data: data.clone(), until: keep_for.map(|keep_for| now + keep_for) });
                match release {
                    true => _ = self.owners.remove(name),
                    false => _ = self.owners.insert(name.clone(), client),
                }
                StoreAnswer::Done
            }
            StoreCall::Delete { name } => {
                if self.kept.contains_key(name) && !may_change(self, name) {
                    return StoreAnswer::Lost;
                }
                self.kept.remove(name);
                self.owners.remove(name);
                StoreAnswer::Done
            }
            StoreCall::Release { names } => {
                let is_meant = |name: &Name| names.as_ref().is_none_or(|names| names.contains(name));
                self.owners.retain(|name, owner| *owner != client || !is_meant(name));
                StoreAnswer::Done
            }
            StoreCall::List { space, after, open } => {
                let behind = self.kept.iter().filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
                let found = behind.filter(|(name, kept)| name.as_str().starts_with(&space.0) && !(*open && kept.until.is_some()));
                let whose = |name: &Name| match self.owners.get(name) {
                    None => Whose::Free,
                    Some(owner) if *owner == client => Whose::Mine,
                    Some(_) => Whose::Other,
                };
                let listed = found.map(|(name, kept)| Listed { name: name.clone(), data: kept.data.clone(), whose: whose(name) });
                StoreAnswer::Listed { entries: listed.collect(), more: false }
            }
            StoreCall::Spend { space, day, entry, amount, cap } => {
                let day = day.unwrap_or(self.day);
                let of_day = self.entries.iter().filter(|((known, of, _), _)| *known == day && of == space);
                let others = of_day.filter(|((.., other), _)| other != entry);
                let total = others.fold(rust_decimal::Decimal::ZERO, |sum, (_, usd)| sum + usd.0);
                let grows = self.entries.get(&(day, space.clone(), entry.clone())).is_none_or(|before| amount > before);
                if grows && cap.is_some_and(|cap| total + amount.0 > cap.0) {
                    return StoreAnswer::Over { day, total: Decimal(total) };
                }
                self.entries.insert((day, space.clone(), entry.clone()), *amount);
                StoreAnswer::Granted { day }
            }
        }
    }
}
