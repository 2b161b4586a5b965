//! The calls and answers of stores, and the store of a client without one: its own memory.

use super::names::{Name, Space};
use crate::collections::Map;
use crate::contract::{Decimal, closed_enum};
use crate::engine::sum;
use crate::policy::Backoff;
use crate::time::{DAY, Millis};

/// A call of a store. Each may be repeated and then does nothing new; if it is not certain whether a call was done, the answer is
/// [`StoreAnswer::Failed`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreCall {
    /// Makes this client the owner of at most `most` of these names, those with data first. Names that it owns already are given again.
    /// Answered by [`StoreAnswer::Claimed`], or by [`StoreAnswer::Busy`] if another living client owns all of them.
    Claim {
        /// The names.
        names: Vec<Name>,
        /// The most names to claim, at least 1.
        most: u32,
    },
    /// Keeps data under a name, so that it survives a crash: then the old data is there or the new. Answered by [`StoreAnswer::Done`] or
    /// [`StoreAnswer::Lost`].
    Put {
        /// The name.
        name: Name,
        /// The data.
        data: Vec<u8>,
        /// True if the name is new: it must not be there, and from now on this client owns it.
        new: bool,
        /// Milliseconds after which the store may drop the data, unless the name has an owner then.
        keep_for: Option<Millis>,
        /// True if this client releases the name in the same step.
        release: bool,
    },
    /// Deletes the data of a name and releases the name. Answered by [`StoreAnswer::Done`], also if there is no data, or
    /// [`StoreAnswer::Lost`].
    Delete {
        /// The name.
        name: Name,
    },
    /// Releases these names; all names of this client, if none are given. Answered by [`StoreAnswer::Done`].
    Release {
        /// The names.
        names: Option<Vec<Name>>,
    },
    /// Lists the names of a space with their data, in order, at most 500, and claims nothing. Answered by [`StoreAnswer::Listed`].
    List {
        /// The space of the names.
        space: Space,
        /// Only names after this one.
        after: Option<Name>,
        /// True to leave out data that the store may drop some day.
        open: bool,
    },
    /// Sets the amount of an entry on a day. Answered by [`StoreAnswer::Granted`], or by [`StoreAnswer::Over`] if the entry would grow and
    /// the day's sum pass the cap: then nothing is changed.
    Spend {
        /// The space whose day it is.
        space: Space,
        /// The UTC day, counted from 1970. Default: today by the store's own clock.
        day: Option<i64>,
        /// The entry.
        entry: String,
        /// The amount in USD.
        amount: Decimal,
        /// The cap on the sum of the day's entries, in USD.
        cap: Option<Decimal>,
    },
}

impl StoreCall {
    /// Returns true if an answer has only names that this call requests. A store of a caller's own that gives other names is wrong, and the
    /// effect of its call is unknown.
    pub(crate) fn is_fitted_by(&self, answer: &StoreAnswer) -> bool {
        match (self, answer) {
            (StoreCall::Claim { names, most }, StoreAnswer::Claimed(claimed)) => {
                let mut asked: Map<&Name, ()> = names.iter().map(|name| (name, ())).collect();
                let is_in_bounds = !claimed.is_empty() && claimed.len() <= usize::try_from(*most).unwrap_or(usize::MAX);
                is_in_bounds && claimed.iter().all(|(name, _)| asked.remove(name).is_some())
            }
            (StoreCall::List { space, after, .. }, StoreAnswer::Listed { entries, more }) => {
                let mut last = after.as_ref();
                let is_next =
                    |listed: &'_ Listed, last: Option<&Name>| space.has(&listed.name) && last.is_none_or(|last| *last < listed.name);
                let fits = |listed| is_next(listed, last.replace(&listed.name));
                entries.iter().all(fits) && !(*more && entries.is_empty())
            }
            _ => true,
        }
    }
}

/// The answer of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreAnswer {
    /// The call was done.
    Done,
    /// This client owns these names, each with its data.
    Claimed(Vec<(Name, Option<Vec<u8>>)>),
    /// Another living client owns all of the names; holds the data that it put last.
    Busy(Option<Vec<u8>>),
    /// Nothing was changed: this client does not own the name, or a new name is there and not its own.
    Lost,
    /// The names with their data.
    Listed {
        /// The entries, at most 500.
        entries: Vec<Listed>,
        /// True if more follow.
        more: bool,
    },
    /// The entry counts on this day.
    Granted {
        /// The UTC day, counted from 1970.
        day: i64,
    },
    /// Nothing has changed: the entry would grow, and the day's sum pass the cap.
    Over {
        /// The UTC day, counted from 1970.
        day: i64,
        /// The day's sum as it stands, in USD.
        total: Decimal,
    },
    /// The call may or may not have been done.
    Failed,
    /// The call was certainly not done: the host could not open the store at all.
    Never,
}

/// One name of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    /// The name.
    pub name: Name,
    /// The data.
    pub data: Vec<u8>,
    /// The owner.
    pub whose: Whose,
}

closed_enum! {
    /// The owner of a name.
    pub enum Whose {
        /// This client.
        Mine = "mine",
        /// None.
        Free = "free",
        /// Another living client.
        Other = "other",
    }
}

/// Calls of the store that are made again after a failure.
pub(crate) const STORE_AGAIN: Backoff = Backoff { first: 1000, most: 60_000 };

/// The most names of a list.
const PAGE: usize = 500;

/// The number of days for which the spending is kept.
const DAYS: i64 = 35;

/// A store in memory, whose clients are numbers: that of a client without a store, and what `hopline-store` shares among several.
#[derive(Debug, Clone, Default, Hash)]
pub struct Memory {
    kept: Map<Name, Kept>,
    /// The day of the last cleanup.
    swept: i64,
    spent: Map<Space, Spent>,
}

/// A name that is there, or owned, or both.
#[derive(Debug, Clone, Default, Hash)]
struct Kept {
    data: Option<Vec<u8>>,
    until: Option<Millis>,
    owner: Option<u32>,
}

impl Kept {
    /// Returns true if the name may be dropped.
    fn is_past(&self, elapsed: Millis) -> bool {
        self.owner.is_none() && (self.data.is_none() || self.until.is_some_and(|until| until <= elapsed))
    }
}

/// The spending of a space, by day. The latest day is one that the clock has seen, and the clock never goes back before it.
#[derive(Debug, Clone, Default, Hash)]
struct Spent {
    days: Map<i64, Day>,
    latest: i64,
}

#[derive(Debug, Clone, Default, Hash)]
struct Day {
    entries: Map<String, Decimal>,
    total: Decimal,
}

impl Memory {
    /// Carries out a call of the only client. `elapsed` is the client's age.
    pub(crate) fn call(&mut self, call: StoreCall, unix: Millis, elapsed: Millis) -> StoreAnswer {
        self.call_of(0, call, unix, elapsed)
    }

    /// Carries out a call of a client. Data that is kept for a time is kept by the clock of `elapsed`; days are those of `unix`.
    pub fn call_of(&mut self, client: u32, call: StoreCall, unix: Millis, elapsed: Millis) -> StoreAnswer {
        self.sweep(elapsed);
        match call {
            StoreCall::Claim { names, most } => self.claim(client, names, most, elapsed),
            StoreCall::Put { name, data, new, keep_for, release } => {
                let is_free = |kept: &Kept| kept.is_past(elapsed);
                let may = match self.kept.get(&name) {
                    Some(kept) if kept.owner == Some(client) => true,
                    Some(kept) => new && is_free(kept),
                    None => new,
                };
                if !may {
                    return StoreAnswer::Lost;
                }
                let until = keep_for.map(|keep_for| elapsed.saturating_add(keep_for));
                self.kept.insert(name, Kept { data: Some(data), until, owner: (!release).then_some(client) });
                StoreAnswer::Done
            }
            StoreCall::Delete { name } => match self.kept.get(&name) {
                Some(kept) if kept.owner != Some(client) && !kept.is_past(elapsed) && kept.data.is_some() => StoreAnswer::Lost,
                Some(kept) if kept.owner.is_some_and(|owner| owner != client) => StoreAnswer::Done,
                _ => {
                    self.kept.remove(&name);
                    StoreAnswer::Done
                }
            },
            StoreCall::Release { names: Some(names) } => {
                for name in names {
                    let is_idle = self.kept.get_mut(&name).filter(|kept| kept.owner == Some(client)).is_some_and(|kept| {
                        kept.owner = None;
                        kept.is_past(elapsed)
                    });
                    if is_idle {
                        self.kept.remove(&name);
                    }
                }
                StoreAnswer::Done
            }
            StoreCall::Release { names: None } => {
                self.kept.values_mut().filter(|kept| kept.owner == Some(client)).for_each(|kept| kept.owner = None);
                self.kept.retain(|_, kept| !kept.is_past(elapsed));
                StoreAnswer::Done
            }
            StoreCall::List { space, after, open } => {
                let from = after.as_ref().map_or(space.0.as_str(), Name::as_str);
                let behind = self.kept.from(from).filter(|(name, _)| name.as_str() != from);
                let of_space = behind.take_while(|(name, _)| space.has(name) || name.as_str() < space.0.as_str());
                let shown = of_space.filter(|(name, kept)| space.has(name) && !kept.is_past(elapsed) && !(open && kept.until.is_some()));
                let listed = |(name, kept): (&Name, &Kept)| {
                    let whose = match kept.owner {
                        None => Whose::Free,
                        Some(owner) if owner == client => Whose::Mine,
                        Some(_) => Whose::Other,
                    };
                    Some(Listed { name: name.clone(), data: kept.data.clone()?, whose })
                };
                let mut found = shown.filter_map(listed);
                let entries = found.by_ref().take(PAGE).collect();
                StoreAnswer::Listed { entries, more: found.next().is_some() }
            }
            StoreCall::Spend { space, day, entry, amount, cap } => {
                let today = unix.div_euclid(DAY);
                self.spent.get_or_insert_with(space, Spent::default).spend(today, day, entry, amount, cap)
            }
        }
    }

    fn claim(&mut self, client: u32, names: Vec<Name>, most: u32, elapsed: Millis) -> StoreAnswer {
        let is_free = |kept: &Kept| kept.owner.is_none_or(|owner| owner == client);
        let (free, others): (Vec<Name>, Vec<Name>) = names.into_iter().partition(|name| self.kept.get(name).is_none_or(is_free));
        if free.is_empty() && !others.is_empty() && most > 0 {
            return StoreAnswer::Busy(others.iter().find_map(|name| self.kept.get(name)?.data.clone()));
        }
        let is_own = |name: &Name| self.kept.get(name).is_some_and(|kept| kept.owner == Some(client));
        let has_data = |name: &Name| self.kept.get(name).is_some_and(|kept| !kept.is_past(elapsed));
        let (own, free): (Vec<Name>, Vec<Name>) = free.into_iter().partition(is_own);
        let (kept, new): (Vec<Name>, Vec<Name>) = free.into_iter().partition(has_data);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let claimed = own.into_iter().chain(kept).chain(new).take(most).map(|name| {
            let kept = self.kept.get_or_insert_with(name.clone(), Kept::default);
            if kept.is_past(elapsed) {
                *kept = Kept::default();
            }
            kept.owner = Some(client);
            let data = kept.data.clone();
            (name, data)
        });
        StoreAnswer::Claimed(claimed.collect())
    }

    /// Drops expired data, once a day.
    fn sweep(&mut self, elapsed: Millis) {
        let today = elapsed.div_euclid(DAY);
        if today > self.swept {
            self.swept = today;
            self.kept.retain(|_, kept| !kept.is_past(elapsed));
        }
    }
}

impl Spent {
    fn spend(&mut self, today: i64, day: Option<i64>, entry: String, amount: Decimal, cap: Option<Decimal>) -> StoreAnswer {
        self.latest = self.latest.max(today);
        let day = day.unwrap_or(self.latest);
        let Day { entries, total } = self.days.get_or_insert_with(day, Day::default);
        let before = entries.get(&entry).copied().unwrap_or_default();
        let others = Decimal(total.0.saturating_sub(before.0));
        if amount > before && cap.is_some_and(|cap| sum(others, amount) > cap) {
            return StoreAnswer::Over { day, total: *total };
        }
        *total = sum(others, amount);
        entries.insert(entry, amount);
        self.latest = self.latest.max(day);
        while let Some(old) = self.days.first().map(|(first, _)| *first).filter(|first| *first < self.latest.saturating_sub(DAYS)) {
            self.days.remove(&old);
        }
        StoreAnswer::Granted { day }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Api;

    #[test]
    fn what_may_be_dropped_is_dropped_once_a_day_and_never_what_is_owned() {
        let (mut memory, space) = (Memory::default(), Space::of(Api::Agent, ""));
        let put = |memory: &mut Memory, name: Name, keep_for, release, elapsed| {
            let call = StoreCall::Put { name, data: b"{}".to_vec(), new: true, keep_for, release };
            assert_eq!(memory.call(call, 0, elapsed), StoreAnswer::Done);
        };
        for number in 0..100 {
            put(&mut memory, space.intent(&format!("past {number}")), Some(1), true, 0);
        }
        put(&mut memory, space.intent("owned"), Some(1), false, 0);
        put(&mut memory, space.intent("kept"), None, true, 0);
        put(&mut memory, space.intent("later"), Some(2 * DAY), true, DAY - 1);
        assert_eq!(memory.kept.len(), 103);
        memory.call(StoreCall::Release { names: Some(Vec::new()) }, 0, DAY);
        assert_eq!(memory.kept.len(), 3);
    }
}
