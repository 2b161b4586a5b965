//! What a client asks of a store, what a store answers, and the store of a client that has none: its own memory.

use super::names::{Name, Space};
use crate::contract::{Decimal, closed_enum};
use crate::engine::sum;
use crate::map::Map;
use crate::time::{DAY, Millis};

/// A call of a store. Each may be repeated and then does nothing new; where it is not certain whether it was done, the answer is
/// [`StoreAnswer::Failed`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreCall {
    /// From now on this client owns these names, at most `most` of them, those with data first. What it owns already is given again.
    /// Answered by [`StoreAnswer::Claimed`], or by [`StoreAnswer::Busy`] where another living client owns all of them.
    Claim {
        /// The names.
        names: Vec<Name>,
        /// How many of them, at least 1.
        most: u32,
    },
    /// Keeps data under a name, so that it survives a crash: then the old data is there or the new. Answered by
    /// [`StoreAnswer::Done`] or [`StoreAnswer::Lost`].
    Put {
        /// The name.
        name: Name,
        /// The data.
        data: Vec<u8>,
        /// Whether the name is new: it must not be there, and from now on this client owns it.
        new: bool,
        /// After so many milliseconds the store may drop it, unless somebody owns it then.
        keep_for: Option<Millis>,
        /// Whether this client lets go of the name in the same step.
        release: bool,
    },
    /// Deletes what is under a name; then nobody owns it. Answered by [`StoreAnswer::Done`], also where nothing is there, or
    /// [`StoreAnswer::Lost`].
    Delete {
        /// The name.
        name: Name,
    },
    /// Others may claim these names; all that this client owns, where none are given. Answered by [`StoreAnswer::Done`].
    Release {
        /// The names.
        names: Option<Vec<Name>>,
    },
    /// What is under the names of a space, in their order, 500 at most, and claims nothing. Answered by [`StoreAnswer::Listed`].
    List {
        /// Whose names.
        space: Space,
        /// Only names behind this one.
        after: Option<Name>,
        /// Whether to leave out what the store may drop some day.
        open: bool,
    },
    /// Sets what an entry counts on a day. Answered by [`StoreAnswer::Granted`], or by [`StoreAnswer::Over`] where the entry would
    /// grow and the day's sum pass the cap: then nothing is changed.
    Spend {
        /// Whose day.
        space: Space,
        /// The UTC day, counted from 1970; today by the store's own clock where it is left out.
        day: Option<i64>,
        /// What is counted.
        entry: String,
        /// In USD.
        amount: Decimal,
        /// What all entries of the day may come to, in USD.
        cap: Option<Decimal>,
    },
}

/// What a store answers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreAnswer {
    /// It is done.
    Done,
    /// These names are this client's, each with its data.
    Claimed(Vec<(Name, Option<Vec<u8>>)>),
    /// Another living client owns all of them; what it put last.
    Busy(Option<Vec<u8>>),
    /// Nothing was changed: this client does not own the name, or a new name is there and not its own.
    Lost,
    /// What is there.
    Listed {
        /// At most 500.
        entries: Vec<Listed>,
        /// Whether more come behind them.
        more: bool,
    },
    /// The entry counts on this day.
    Granted {
        /// The UTC day, counted from 1970.
        day: i64,
    },
    /// Nothing has changed: the entry would grow, and the day's sum pass the cap.
    Over {
        /// The day's sum as it stands, in USD.
        total: Decimal,
    },
    /// Perhaps done, perhaps not.
    Failed,
}

/// One name of a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listed {
    /// The name.
    pub name: Name,
    /// What is under it.
    pub data: Vec<u8>,
    /// Who owns it.
    pub whose: Whose,
}

closed_enum! {
    /// Who owns a name.
    pub enum Whose {
        /// This client.
        Mine = "mine",
        /// Nobody.
        Free = "free",
        /// Another living client.
        Other = "other",
    }
}

/// How long after so many failures in a row a store is asked again.
pub(crate) fn again_after(failures: u32) -> Millis {
    1000_i64.saturating_mul(1 << failures.min(6)).min(60_000)
}

/// How many names a list has at most.
const PAGE: usize = 500;

/// The names of a client without a store, in its own memory.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Memory {
    kept: Map<Name, Kept>,
    /// On which day of this client's life what may be dropped was dropped last.
    swept: i64,
    /// The day that counts, and its entries. Time that runs backwards does not bring an old day back.
    day: i64,
    entries: Map<(Space, String), Decimal>,
}

#[derive(Debug, Clone, Hash)]
struct Kept {
    data: Vec<u8>,
    until: Option<Millis>,
    owned: bool,
}

impl Kept {
    /// Whether it may be dropped.
    fn is_past(&self, elapsed: Millis) -> bool {
        !self.owned && self.until.is_some_and(|until| until <= elapsed)
    }
}

impl Memory {
    /// `elapsed` is how long the client has lived.
    pub(crate) fn call(&mut self, call: StoreCall, unix: Millis, elapsed: Millis) -> StoreAnswer {
        self.sweep(elapsed);
        match call {
            StoreCall::Claim { mut names, most } => {
                for name in &names {
                    if self.kept.get(name).is_some_and(|kept| kept.is_past(elapsed)) {
                        self.kept.remove(name);
                    }
                }
                names.sort_by_key(|name| !self.kept.contains_key(name));
                names.truncate(usize::try_from(most).unwrap_or(usize::MAX));
                let mut data = |name: &Name| {
                    self.kept.get_mut(name).map(|kept| {
                        kept.owned = true;
                        kept.data.clone()
                    })
                };
                StoreAnswer::Claimed(names.into_iter().map(|name| (name.clone(), data(&name))).collect())
            }
            StoreCall::Put { name, data, new, keep_for, release } => {
                if new && self.kept.contains_key(&name) {
                    return StoreAnswer::Lost;
                }
                let until = keep_for.map(|keep_for| elapsed.saturating_add(keep_for));
                self.kept.insert(name, Kept { data, until, owned: !release });
                StoreAnswer::Done
            }
            StoreCall::Delete { name } => {
                self.kept.remove(&name);
                StoreAnswer::Done
            }
            StoreCall::Release { names } => {
                match names {
                    Some(names) => names.iter().for_each(|name| self.kept.get_mut(name).into_iter().for_each(|kept| kept.owned = false)),
                    None => self.kept.values_mut().for_each(|kept| kept.owned = false),
                }
                StoreAnswer::Done
            }
            StoreCall::List { space, after, open } => {
                let is_there = |kept: &Kept| kept.owned || kept.until.is_none_or(|until| until > elapsed && !open);
                let from = after.as_ref().map_or("", Name::as_str);
                let behind = self.kept.from(from).filter(|(name, _)| name.as_str() != from);
                let mut found = behind.filter(|(name, kept)| space.has(name) && is_there(kept));
                let listed = |(name, kept): (&Name, &Kept)| {
                    let whose = if kept.owned { Whose::Mine } else { Whose::Free };
                    Listed { name: name.clone(), data: kept.data.clone(), whose }
                };
                let entries = found.by_ref().take(PAGE).map(listed).collect();
                StoreAnswer::Listed { entries, more: found.next().is_some() }
            }
            StoreCall::Spend { space, day, entry, amount, cap } => self.spend((space, entry), day, amount, cap, unix),
        }
    }

    /// Drops what may be dropped, once a day.
    fn sweep(&mut self, elapsed: Millis) {
        let today = elapsed.div_euclid(DAY);
        if today > self.swept {
            self.swept = today;
            self.kept.retain(|_, kept| !kept.is_past(elapsed));
        }
    }

    fn spend(&mut self, entry: (Space, String), day: Option<i64>, amount: Decimal, cap: Option<Decimal>, unix: Millis) -> StoreAnswer {
        let today = unix.div_euclid(DAY).max(self.day);
        if today > self.day {
            (self.day, self.entries) = (today, Map::default());
        }
        let day = day.unwrap_or(today);
        if day != self.day {
            return StoreAnswer::Granted { day };
        }
        let is_other = |known: &(Space, String)| known.0 == entry.0 && *known != entry;
        let others = self.entries.iter().filter(|(known, _)| is_other(known)).map(|(_, usd)| *usd).fold(Decimal::from(0), sum);
        let before = self.entries.get(&entry).copied().unwrap_or_default();
        if amount > before && cap.is_some_and(|cap| sum(others, amount) > cap) {
            return StoreAnswer::Over { total: sum(others, before) };
        }
        self.entries.insert(entry, amount);
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
