//! A store for a million records: what the store of the proof does, by hashes, with claims that end with their owners' signs of life.

use hopline::client::{Millis, Name, Space, StoreAnswer, StoreCall};
use hopline::contract::Decimal;
use rustc_hash::FxHashMap;

/// Claims end so long after the owner's last call or renewal.
pub(super) const CLAIM_TTL: Millis = 60_000;
/// A client renews its claims so often.
pub(super) const RENEWAL: Millis = 15_000;
const DAY: Millis = 24 * 3_600_000;

/// A client of the store.
#[derive(Debug, Clone, Copy)]
struct Owner {
    /// When it called last.
    called: Millis,
    /// When it died: it renews nothing since then.
    died: Option<Millis>,
}

#[derive(Debug)]
struct Kept {
    data: Option<Box<[u8]>>,
    owner: Option<u32>,
}

/// The store, and how many statements it has carried out.
#[derive(Debug, Default)]
pub(super) struct Store {
    kept: FxHashMap<Name, Kept>,
    owners: FxHashMap<u32, Owner>,
    entries: FxHashMap<(i64, Space, String), Decimal>,
    sums: FxHashMap<(i64, Space), rust_decimal::Decimal>,
}

impl Store {
    pub(super) fn begins(&mut self, client: u32, now: Millis) {
        self.owners.insert(client, Owner { called: now, died: None });
    }

    pub(super) fn dies(&mut self, client: u32, now: Millis) {
        self.owners.entry(client).and_modify(|owner| owner.died = Some(now));
    }

    fn is_living(&self, client: u32, now: Millis) -> bool {
        let Some(owner) = self.owners.get(&client) else { return false };
        owner.died.is_none_or(|died| now < last_sign(*owner, died) + CLAIM_TTL)
    }

    /// True if a client that lives, and is not this one, owns what is kept under a name.
    fn is_others(&self, kept: &Kept, client: u32, now: Millis) -> bool {
        kept.owner.is_some_and(|owner| owner != client && self.is_living(owner, now))
    }

    /// The sum of all days.
    pub(super) fn spent(&self) -> rust_decimal::Decimal {
        self.sums.values().sum()
    }

    pub(super) fn call(&mut self, call: &StoreCall, client: u32, now: Millis) -> StoreAnswer {
        self.owners.entry(client).and_modify(|owner| owner.called = now);
        match call {
            StoreCall::Claim { names, most } => self.claim(names, *most as usize, client, now),
            StoreCall::Put { name, data, new, release, .. } => {
                let may = match self.kept.get(name) {
                    Some(kept) => kept.owner == Some(client) || (*new && kept.data.is_none() && !self.is_others(kept, client, now)),
                    None => *new,
                };
                if !may {
                    return StoreAnswer::Lost;
                }
                let kept = Kept { data: Some(data.as_slice().into()), owner: Some(client).filter(|_| !release) };
                self.kept.insert(name.clone(), kept);
                StoreAnswer::Done
            }
            StoreCall::Delete { name } => match self.kept.get(name) {
                Some(kept) if kept.owner != Some(client) && kept.data.is_some() => StoreAnswer::Lost,
                _ => {
                    self.kept.remove(name);
                    StoreAnswer::Done
                }
            },
            StoreCall::Release { names: Some(names) } => {
                names.iter().for_each(|name| self.release(name, client));
                StoreAnswer::Done
            }
            StoreCall::Spend { space, day, entry, amount, cap } => {
                let day = day.unwrap_or(now.div_euclid(DAY));
                let sum = self.sums.entry((day, space.clone())).or_default();
                let place = (day, space.clone(), entry.clone());
                let before = self.entries.get(&place).map_or(rust_decimal::Decimal::ZERO, |before| before.0);
                let after = *sum - before + amount.0;
                if amount.0 > before && cap.is_some_and(|cap| after > cap.0) {
                    return StoreAnswer::Over { day, total: Decimal(*sum) };
                }
                *sum = after;
                self.entries.insert(place, *amount);
                StoreAnswer::Granted { day }
            }
            // No pool asks for these unless it is closed, or somebody lists what is saved.
            StoreCall::Release { names: None } | StoreCall::List { .. } => StoreAnswer::Failed,
        }
    }

    fn claim(&mut self, names: &[Name], most: usize, client: u32, now: Millis) -> StoreAnswer {
        let free = |name: &&Name| self.kept.get(*name).is_none_or(|kept| !self.is_others(kept, client, now));
        let mut free: Vec<&Name> = names.iter().filter(free).collect();
        free.sort_by_key(|name| {
            let kept = self.kept.get(*name);
            (kept.is_none_or(|kept| kept.owner != Some(client)), kept.is_none_or(|kept| kept.data.is_none()))
        });
        free.truncate(most);
        if free.is_empty() {
            let data = names.first().and_then(|name| self.kept.get(name)?.data.clone());
            return StoreAnswer::Busy(data.map(Vec::from));
        }
        let mut given = Vec::with_capacity(free.len());
        for name in free {
            let kept = self.kept.entry(name.clone()).or_insert(Kept { data: None, owner: None });
            kept.owner = Some(client);
            given.push((name.clone(), kept.data.clone().map(Vec::from)));
        }
        StoreAnswer::Claimed(given)
    }

    fn release(&mut self, name: &Name, client: u32) {
        let Some(kept) = self.kept.get_mut(name).filter(|kept| kept.owner == Some(client)) else { return };
        kept.owner = None;
        if kept.data.is_none() {
            self.kept.remove(name);
        }
    }
}

/// The last sign of life of a client that has died then: a call, or a renewal.
fn last_sign(owner: Owner, died: Millis) -> Millis {
    owner.called + (died - owner.called) / RENEWAL * RENEWAL
}
