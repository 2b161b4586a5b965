#![doc = include_str!("../README.md")]

mod call;
mod error;
mod folder;
mod memory;
mod name;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hopline::client::{StoreAnswer, StoreCall};

pub use error::Error;
pub use folder::Folder;
pub use hopline::client::Whose;
pub use memory::Memory;
pub use rust_decimal::Decimal;

/// The most names that a page of [`Store::list`] has.
pub const PAGE: usize = 500;

/// A key-value store with owners, as one client has it. Each call may be repeated and then does nothing new.
pub trait Store: Send + Sync {
    /// Makes this client the owner of at most `most` of the names that no other living client owns. Names that it already owns come first,
    /// then names that have data.
    fn claim(&self, names: &[&str], most: usize) -> Result<Claim, Error>;

    /// Stores data under a name that this client owns, so that it outlasts a crash. A crash before the answer leaves the old data or the
    /// new.
    fn put(&self, name: &str, data: &[u8], how: &Put) -> Result<Written, Error>;

    /// Deletes the data of a name that this client owns, and releases the name. A name without data counts as deleted.
    fn delete(&self, name: &str) -> Result<Written, Error>;

    /// Releases those of the names that this client owns, or all names (`None`).
    fn release(&self, names: Option<&[&str]>) -> Result<(), Error>;

    /// Returns the names of a space that have data, in order: those after `after`, at most [`PAGE`]. `open` leaves out data with
    /// `keep_for`. Claims nothing.
    fn list(&self, space: &str, after: Option<&str>, open: bool) -> Result<Page, Error>;

    /// Sets what an entry counts on a day, unless it would grow and the day's sum pass the cap.
    fn spend(&self, spend: &Spend<'_>) -> Result<Spent, Error>;

    /// Releases everything. Every later call of this client is [`Error::Misuse`]. Dropping the client does the same.
    fn close(&self);

    /// Carries out a [`Step::Store`](hopline::Step::Store) of a client. An error is [`StoreAnswer::Failed`] to the client; its message is
    /// for people.
    fn call(&self, call: &StoreCall) -> Result<StoreAnswer, Error> {
        call::make(self, call)
    }
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This client owns these names now. Each comes with its data, if it has any.
    Claimed(Vec<(String, Option<Vec<u8>>)>),
    /// Other living clients own all of the names. Holds the data that the owner of one of them put last, to be read only.
    Busy(Option<Vec<u8>>),
}

/// The way in which data is put.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Put {
    /// Makes a name that has no data and that no other client owns, and owns it.
    pub new: bool,
    /// The time for which the store keeps the data once the name has no owner, counted from now. Default: forever.
    pub keep_for: Option<Duration>,
    /// Releases the name in the same step.
    pub release: bool,
}

/// The result of a `put` or `delete`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The change was made.
    Done,
    /// Nothing has changed: this client does not own the name, or with `new` the name was there already.
    Lost,
}

/// Names of a space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// In the order of their bytes.
    pub entries: Vec<Entry>,
    /// True if more names follow.
    pub more: bool,
}

/// A name that has data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: String,
    /// The data that was put last.
    pub data: Vec<u8>,
    /// The owner.
    pub whose: Whose,
}

/// The amount that an entry is to count on a day.
#[derive(Debug, Clone, Copy)]
pub struct Spend<'a> {
    /// The account.
    pub space: &'a str,
    /// The day, in days since 1 January 1970 by UTC. Default: today by the store's clock, which never goes back to an earlier day.
    pub day: Option<i64>,
    /// The entry: hexadecimal digits, such as the hash of a key.
    pub entry: &'a str,
    /// The amount, not below zero.
    pub amount: Decimal,
    /// The most that the day's entries may come to. Default: no cap.
    pub cap: Option<Decimal>,
}

/// The result of a [`Spend`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spent {
    /// The entry counts on that day.
    Granted {
        /// Days since 1 January 1970.
        day: i64,
    },
    /// Nothing has changed: the entry would grow and the day's sum pass the cap.
    Over {
        /// Days since 1 January 1970.
        day: i64,
        /// The day's sum as it stands.
        total: Decimal,
    },
}

/// A clock: milliseconds since 1 January 1970.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// The clock of this machine.
pub fn system_clock() -> Clock {
    Arc::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis))
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

/// The day of a time.
fn day_of(now: u64) -> i64 {
    (now / 86_400_000).cast_signed()
}

/// Returns true if an entry may not be set, since the day's sum would pass the cap. `before` is the entry's present amount, `sum` is the
/// day's.
fn is_over(before: Decimal, sum: Decimal, amount: Decimal, cap: Option<Decimal>) -> bool {
    amount > before && cap.is_some_and(|cap| sum.saturating_sub(before).saturating_add(amount) > cap)
}
