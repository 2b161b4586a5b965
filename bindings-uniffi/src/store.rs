//! What crosses about stores: the calls that a client asks for, what a store answers, and the folder store itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hopline::client::{Name, Space, Whose as CoreWhose};
use hopline_store::{Decimal, Store};

/// A call of a store. Each may be repeated and then does nothing new; where it is not certain whether it was done, the answer is
/// `Failed`.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum StoreCall {
    /// From now on this client owns these names, at most `most` of them, those with data first. Answered by `Claimed`, or by `Busy`
    /// where another living client owns all of them.
    Claim {
        /// The names.
        names: Vec<String>,
        /// How many of them, at least 1.
        most: u32,
    },
    /// Stores data under a name, so that it outlasts a crash. Answered by `Done` or `Lost`.
    Put {
        /// The name.
        name: String,
        /// The data.
        data: Vec<u8>,
        /// Whether the name is new: it must not be there, and from now on this client owns it.
        new: bool,
        /// After so many milliseconds the store may drop it, unless somebody owns it then.
        keep_for: Option<i64>,
        /// Whether this client lets go of the name in the same step.
        release: bool,
    },
    /// Deletes the data of a name, which nobody owns afterwards. Answered by `Done`, also where nothing is there, or `Lost`.
    Delete {
        /// The name.
        name: String,
    },
    /// Lets go of names. Answered by `Done`.
    Release {
        /// The names; null for all that this client owns.
        names: Option<Vec<String>>,
    },
    /// The names of a space that have data, in their order, 500 at most; claims nothing. Answered by `Listed`.
    List {
        /// Whose names.
        space: String,
        /// Only names behind this one.
        after: Option<String>,
        /// Whether to leave out what the store may drop some day.
        open: bool,
    },
    /// Sets what an entry counts on a day. Answered by `Granted`, or by `Over` where the entry would grow and the day's sum pass the
    /// cap.
    Spend {
        /// Whose day.
        space: String,
        /// The UTC day, counted from 1970; null for today by the store's own clock.
        day: Option<i64>,
        /// What is counted.
        entry: String,
        /// In USD, a decimal.
        amount: String,
        /// What all entries of the day may come to, in USD, a decimal.
        cap: Option<String>,
    },
}

/// What a store answers.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum StoreAnswer {
    /// It is done.
    Done,
    /// These names are this client's.
    Claimed {
        /// Each with its data.
        names: Vec<ClaimedName>,
    },
    /// Other living clients own all of them.
    Busy {
        /// What the owner of one of them put last; null for nothing.
        data: Option<Vec<u8>>,
    },
    /// Nothing was changed: this client does not own the name, or a new name is there and not its own.
    Lost,
    /// What is there.
    Listed {
        /// At most 500.
        entries: Vec<ListedName>,
        /// Whether more come behind them.
        more: bool,
    },
    /// The entry counts on this day.
    Granted {
        /// The UTC day, counted from 1970.
        day: i64,
    },
    /// Nothing was changed: the others of the day come to so much already.
    Over {
        /// The UTC day, counted from 1970.
        day: i64,
        /// In USD, a decimal.
        total: String,
    },
    /// Perhaps done, perhaps not.
    Failed,
    /// Surely not done: the store could not be opened at all.
    Never,
}

/// A name that a claim brought.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct ClaimedName {
    /// The name.
    pub name: String,
    /// What is under it; null for nothing.
    pub data: Option<Vec<u8>>,
}

/// A name of a list.
#[derive(Clone, PartialEq, Eq, uniffi::Record)]
pub struct ListedName {
    /// The name.
    pub name: String,
    /// What is under it.
    pub data: Vec<u8>,
    /// Who owns it.
    pub whose: Whose,
}

/// Who owns a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, uniffi::Enum)]
pub enum Whose {
    /// This client.
    Mine,
    /// Nobody: it may be claimed.
    Free,
    /// Another living client.
    Other,
}

/// Why a call of a store has no answer. Its message is one sentence, which may name a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, uniffi::Error)]
#[uniffi(flat_error)]
pub enum StoreError {
    /// The folder is a store of another format, or holds something else.
    #[error("{0}")]
    Format(String),
    /// Perhaps done, perhaps not.
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

/// A store in a folder that any number of clients and processes of one machine may share; open it once for each client. A call
/// blocks until the disk has what it did.
#[derive(uniffi::Object)]
pub struct Folder {
    folder: hopline_store::Folder,
    now: Arc<AtomicU64>,
}

#[uniffi::export]
impl Folder {
    /// Opens a folder. One that is missing is made; one that is empty becomes a store.
    #[uniffi::constructor]
    pub fn new(path: &str) -> Result<Self, StoreError> {
        let now = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&now);
        let folder = hopline_store::Folder::with_clock(path, Arc::new(move || clock.load(Ordering::Relaxed)))?;
        Ok(Folder { folder, now })
    }

    /// Does what a client asks for. The time is the system's.
    pub fn call(&self, call: StoreCall, unix_ms: i64) -> Result<StoreAnswer, StoreError> {
        self.now.store(u64::try_from(unix_ms).unwrap_or_default(), Ordering::Relaxed);
        Ok(ask(&self.folder, call)?)
    }

    /// Lets go of everything. Every later call is a misuse.
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
            // A sum that can't be read leaves open what was done.
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
