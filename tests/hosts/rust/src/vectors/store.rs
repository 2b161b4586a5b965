//! The store of a case: what a store would answer, so that a script names only what it is about.

use std::collections::BTreeMap;

use hopline::client::{Listed, Name, StoreAnswer, StoreCall, Whose};
use hopline::contract::Decimal;

const DAY: i64 = 24 * 3600 * 1000;
const PAGE: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Store {
    kept: BTreeMap<Name, Kept>,
    /// The records that were put or deleted without confirmation: they may be on the disk.
    unsure: BTreeMap<Name, Option<Vec<u8>>>,
    day: i64,
    entries: BTreeMap<(i64, String), Decimal>,
}

#[derive(Debug)]
struct Kept {
    data: Vec<u8>,
    until: Option<i64>,
    owned: bool,
}

impl Store {
    /// The answer of the store.
    pub(super) fn call(&mut self, call: &StoreCall, unix: i64) -> StoreAnswer {
        self.kept.retain(|_, kept| kept.owned || kept.until.is_none_or(|until| until > unix));
        match call {
            StoreCall::Claim { names, .. } => StoreAnswer::Claimed(
                names
                    .iter()
                    .map(|name| {
                        let data = self.kept.get_mut(name).map(|kept| {
                            kept.owned = true;
                            kept.data.clone()
                        });
                        (name.clone(), data)
                    })
                    .collect(),
            ),
            StoreCall::Put { name, new: true, .. } if self.kept.get(name).is_some_and(|kept| !kept.owned) => {
                self.unsure.remove(name);
                StoreAnswer::Lost
            }
            StoreCall::Put { name, data, keep_for, release, .. } => {
                self.unsure.remove(name);
                let until = keep_for.map(|keep_for| unix + keep_for);
                self.kept.insert(name.clone(), Kept { data: data.clone(), until, owned: !release });
                StoreAnswer::Done
            }
            StoreCall::Delete { name } => {
                self.unsure.remove(name);
                self.kept.remove(name);
                StoreAnswer::Done
            }
            StoreCall::Release { names } => {
                let is_meant = |name: &Name| names.as_ref().is_none_or(|names| names.contains(name));
                self.kept.iter_mut().filter(|(name, _)| is_meant(name)).for_each(|(_, kept)| kept.owned = false);
                StoreAnswer::Done
            }
            StoreCall::List { space, after, open } => {
                let behind = self.kept.iter().filter(|(name, _)| after.as_ref().is_none_or(|after| *name > after));
                let found: Vec<Listed> = behind
                    .filter(|(name, kept)| name.as_str().starts_with(&format!("{}.", space.0)) && !(*open && kept.until.is_some()))
                    .map(|(name, kept)| {
                        let whose = if kept.owned { Whose::Mine } else { Whose::Free };
                        Listed { name: name.clone(), data: kept.data.clone(), whose }
                    })
                    .collect();
                let more = found.len() > PAGE;
                StoreAnswer::Listed { entries: found.into_iter().take(PAGE).collect(), more }
            }
            StoreCall::Spend { day, entry, amount, cap, .. } => {
                let today = self.today(unix);
                let day = day.unwrap_or(today);
                let of_day = self.entries.iter().filter(|((known, other), _)| *known == day && other != entry);
                let total = of_day.fold(Decimal::from(0).0, |sum, (_, usd)| sum + usd.0);
                let before = self.entries.get(&(day, entry.clone()));
                let grows = before.is_none_or(|before| amount > before);
                if grows && cap.is_some_and(|cap| total + amount.0 > cap.0) {
                    return StoreAnswer::Over { day, total: Decimal(total) };
                }
                self.entries.insert((day, entry.clone()), *amount);
                StoreAnswer::Granted { day }
            }
        }
    }

    /// The day by a clock that never goes back.
    pub(super) fn today(&mut self, unix: i64) -> i64 {
        self.day = self.day.max(unix.div_euclid(DAY));
        self.day
    }

    /// A call was made, and nobody knows yet what came of it.
    pub(super) fn doubt(&mut self, call: &StoreCall) {
        match call {
            StoreCall::Put { name, data, .. } => drop(self.unsure.insert(name.clone(), Some(data.clone()))),
            StoreCall::Delete { name } => drop(self.unsure.insert(name.clone(), None)),
            _ => {}
        }
    }

    /// Another client has these names from now on.
    pub(super) fn take_away(&mut self, names: &[Name]) {
        self.kept.iter_mut().filter(|(name, _)| names.contains(name)).for_each(|(_, kept)| kept.owned = false);
    }

    /// The process dies: what it had is free, and these writes are on the disk though nobody confirmed them.
    pub(super) fn crash(&mut self, also: &[Name]) -> Result<(), String> {
        self.kept.values_mut().for_each(|kept| kept.owned = false);
        for name in also {
            match self.unsure.remove(name).ok_or_else(|| format!("every write of `{name}` was confirmed"))? {
                Some(data) => drop(self.kept.insert(name.clone(), Kept { data, until: None, owned: false })),
                None => drop(self.kept.remove(name)),
            }
        }
        self.unsure.clear();
        Ok(())
    }

    pub(super) fn data(&self, name: &Name) -> Option<Vec<u8>> {
        self.kept.get(name).map(|kept| kept.data.clone())
    }

    pub(super) fn plant(&mut self, name: Name, data: Vec<u8>) {
        let (until, owned) = self.kept.get(&name).map_or((None, false), |kept| (kept.until, kept.owned));
        self.kept.insert(name, Kept { data, until, owned });
    }
}
