//! The store's part of the crossing: the calls of a client, the answers of a store, and the folder store itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hopline::client::{Name, Space, Whose as CoreWhose};
use hopline_store::{Decimal, Store};

/// A call of a store. Each may be repeated and then does nothing new; if it is not certain whether a call was done, the answer is `Failed`.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum StoreCall {
    /// Makes this client the owner of at most `most` of these names, those with data first. Answered by `Claimed`, or by `Busy` if another
    /// living client owns all of them.
    Claim {
        /// The names.
        names: Vec<String>,
        /// The most names to claim, at least 1.
        most: u32,
    },
    /// Stores data under a name, so that it survives a crash. Answered by `Done` or `Lost`.
    Put {
        /// The name.
        name: String,
        /// The data.
        data: Vec<u8>,
        /// True if the name is new: it must not be there, and from now on this client owns it.
        new: bool,
        /// Milliseconds after which the store may drop the data, unless the name has an owner then.
        keep_for: Option<i64>,
        /// True if this client releases the name in the same step.
        release: bool,
    },
    /// Deletes the data of a name and releases the name. Answered by `Done`, also if there is no data, or `Lost`.
    Delete {
        /// The name.
        name: String,
    },
    /// Releases names. Answered by `Done`.
    Release {
        /// The names; null for all that this client owns.
        names: Option<Vec<String>>,
    },
    /// Lists the names of a space that have data, in order, at most 500; claims nothing. Answered by `Listed`.
    List {
        /// The space of the names.
        space: String,
        /// Only names after this one.
        after: Option<String>,
        /// True to leave out data that the store may drop some day.
        open: bool,
    },
    /// Sets the amount of an entry on a day. Answered by `Granted`, or by `Over` if the entry would grow and the day's sum pass the cap.
    Spend {
        /// The space whose day it is.
        space: String,
        /// The UTC day, counted from 1970; null for today by the store's own clock.
        day: Option<i64>,
        /// The entry.
        entry: String,
        /// The amount in USD, a decimal.
        amount: String,
        /// The cap on the sum of the day's entries, in USD, a decimal.
        cap: Option<String>,
    },
}

/// The answer of a store.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum StoreAnswer {
    /// The call was done.
    Done,
    /// These names are this client's.
    Claimed {
        /// The names, each with its data.
        names: Vec<ClaimedName>,
    },
    /// Other living clients own all of them.
    Busy {
        /// The data that the owner of one of them put last; null for none.
        data: Option<Vec<u8>>,
    },
    /// Nothing was changed: this client does not own the name, or a new name is there and not its own.
    Lost,
    /// The names with their data.
    Listed {
        /// The entries, at most 500.
        entries: Vec<ListedName>,
        /// True if more follow.
        more: bool,
    },
    /// The entry counts on this day.
    Granted {
        /// The UTC day, counted from 1970.
        day: i64,
    },
    /// Nothing was changed: the entry would grow, and the day's sum pass the cap.
    Over {
        /// The UTC day, counted from 1970.
        day: i64,
        /// The day's sum in USD, a decimal.
        total: String,
    },
    /// The call may or may not have been done.
    Failed,
    /// The call was certainly not done: the store could not be opened at all.
    Never,
}

/// A claimed name.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct ClaimedName {
    /// The name.
    pub name: String,
    /// The data; null for none.
    pub data: Option<Vec<u8>>,
}

/// A name of a list.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct ListedName {
    /// The name.
    pub name: String,
    /// The data.
    pub data: Vec<u8>,
    /// The owner.
    pub whose: Whose,
}

/// The owner of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Whose {
    /// This client.
    Mine,
    /// None: the name may be claimed.
    Free,
    /// Another living client.
    Other,
}

/// The reason why a call of a store has no answer. Its message is one sentence, which may name a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum StoreError {
    /// The folder is a store of another format, or holds other files.
    #[error("{0}")]
    Format(String),
    /// The call may or may not have been done.
    #[error("{0}")]
    Failed(String),
    /// The call was wrong, or the store is closed.
    #[error("{0}")]
    Misuse(String),
}

impl From<hopline_store::Error> for StoreError {
    fn from(error: hopline_store::Error) -> Self {
        match error {
            hopline_store::Error::Format(sentence) => StoreError::Format(sentence),
            hopline_store::Error::Misuse(sentence) => StoreError::Misuse(sentence),
            error => StoreError::Failed(error.to_string()),
        }
    }
}

/// A store in a folder that any number of clients and processes of one machine may share; open it once for each client. A call blocks until
/// the disk has the change.
#[derive(uniffi::Object)]
pub struct Folder {
    folder: hopline_store::Folder,
    now: Arc<AtomicU64>,
}

#[uniffi::export]
impl Folder {
    /// Opens a folder. A missing folder is made; an empty one becomes a store.
    #[uniffi::constructor]
    pub fn new(path: &str) -> Result<Self, StoreError> {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let folder = hopline_store::Folder::with_clock(path, Arc::new(move || clock.load(Ordering::Relaxed)))?;
        Ok(Folder { folder, now })
    }

    /// Carries out a call of a client. The time is the system's.
    pub fn call(&self, call: StoreCall, unix_ms: i64) -> Result<StoreAnswer, StoreError> {
        self.now.store(u64::try_from(unix_ms).unwrap_or_default(), Ordering::Relaxed);
        Ok(ask(&self.folder, call)?)
    }

    /// Releases everything. Every later call is a misuse.
    pub fn shut_down(&self) {
        self.folder.close();
    }
}

fn ask(folder: &hopline_store::Folder, call: StoreCall) -> Result<StoreAnswer, hopline_store::Error> {
    use hopline_store::{Claim, Put, Spend, Spent};
    Ok(match call {
        StoreCall::Claim { names, most } => match folder.claim(&texts(&names), usize::try_from(most).unwrap_or(usize::MAX))? {
            Claim::Claimed(names) => {
                StoreAnswer::Claimed { names: names.into_iter().map(|(name, data)| ClaimedName { name, data }).collect() }
            }
            Claim::Busy(data) => StoreAnswer::Busy { data },
        },
        StoreCall::Put { name, data, new, keep_for, release } => {
            let keep_for = keep_for.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or_default()));
            folder.put(&name, &data, &Put { new, keep_for, release })?.into()
        }
        StoreCall::Delete { name } => folder.delete(&name)?.into(),
        StoreCall::Release { names } => {
            folder.release(names.as_deref().map(texts).as_deref())?;
            StoreAnswer::Done
        }
        StoreCall::List { space, after, open } => {
            let page = folder.list(&space, after.as_deref(), open)?;
            let listed = |entry: hopline_store::Entry| ListedName { name: entry.name, data: entry.data, whose: entry.whose.into() };
            StoreAnswer::Listed { entries: page.entries.into_iter().map(listed).collect(), more: page.more }
        }
        StoreCall::Spend { space, day, entry, amount, cap } => {
            let (amount, cap) = (money(&amount)?, cap.as_deref().map(money).transpose()?);
            match folder.spend(&Spend { space: &space, day, entry: &entry, amount, cap })? {
                Spent::Granted { day } => StoreAnswer::Granted { day },
                Spent::Over { day, total } => StoreAnswer::Over { day, total: total.to_string() },
            }
        }
    })
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

fn money(text: &str) -> Result<Decimal, hopline_store::Error> {
    Decimal::from_str_exact(text).map_err(|_| hopline_store::Error::Misuse(format!("`{text}` is no amount of money")))
}

impl From<hopline_store::Written> for StoreAnswer {
    fn from(written: hopline_store::Written) -> Self {
        match written {
            hopline_store::Written::Done => StoreAnswer::Done,
            hopline_store::Written::Lost => StoreAnswer::Lost,
        }
    }
}

impl From<hopline_store::Whose> for Whose {
    fn from(whose: hopline_store::Whose) -> Self {
        match whose {
            hopline_store::Whose::Mine => Whose::Mine,
            hopline_store::Whose::Free => Whose::Free,
            hopline_store::Whose::Other => Whose::Other,
        }
    }
}

impl From<hopline::client::StoreCall> for StoreCall {
    fn from(call: hopline::client::StoreCall) -> Self {
        use hopline::client::StoreCall as Core;
        let texts = |names: Vec<Name>| names.into_iter().map(|name| name.to_string()).collect();
        match call {
            Core::Claim { names, most } => StoreCall::Claim { names: texts(names), most },
            Core::Put { name, data, new, keep_for, release } => StoreCall::Put { name: name.to_string(), data, new, keep_for, release },
            Core::Delete { name } => StoreCall::Delete { name: name.to_string() },
            Core::Release { names } => StoreCall::Release { names: names.map(texts) },
            Core::List { space: Space(space), after, open } => StoreCall::List { space, after: after.map(|name| name.to_string()), open },
            Core::Spend { space: Space(space), day, entry, amount, cap } => {
                StoreCall::Spend { space, day, entry, amount: amount.to_string(), cap: cap.map(|cap| cap.to_string()) }
            }
        }
    }
}

impl From<StoreAnswer> for hopline::client::StoreAnswer {
    fn from(answer: StoreAnswer) -> Self {
        match answer {
            StoreAnswer::Done => Self::Done,
            StoreAnswer::Claimed { names } => Self::Claimed(names.into_iter().map(|named| (Name::from(named.name), named.data)).collect()),
            StoreAnswer::Busy { data } => Self::Busy(data),
            StoreAnswer::Lost => Self::Lost,
            StoreAnswer::Listed { entries, more } => Self::Listed { entries: entries.into_iter().map(listed).collect(), more },
            StoreAnswer::Granted { day } => Self::Granted { day },
            // A sum that can't be read leaves the outcome open.
            StoreAnswer::Over { day, total } => {
                money(&total).map_or(Self::Failed, |total| Self::Over { day, total: hopline::contract::Decimal(total) })
            }
            StoreAnswer::Failed => Self::Failed,
            StoreAnswer::Never => Self::Never,
        }
    }
}

fn listed(entry: ListedName) -> hopline::client::Listed {
    let whose = match entry.whose {
        Whose::Mine => CoreWhose::Mine,
        Whose::Free => CoreWhose::Free,
        Whose::Other => CoreWhose::Other,
    };
    hopline::client::Listed { name: Name::from(entry.name), data: entry.data, whose }
}
