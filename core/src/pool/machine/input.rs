//! The news of the client below for a pool.

use crate::client::{PoolFound, SlotState, WorkNo};
use crate::contract::Decimal;
use crate::engine::Answered;
use crate::policy::Error;
use crate::pool::others::SeenSlot;
use crate::state::Name;

/// News for a pool.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, which is taken apart at once")]
#[derive(Debug)]
pub(in crate::pool) enum PoolInput {
    /// The store was asked for these of the slots, and gave those that were found.
    Claimed { asked: Vec<Name>, found: Vec<FoundSlot> },
    /// The store could not be asked.
    NotClaimed,
    /// Work of the pool's has ended.
    Ended(WorkNo, Result<Answered, Error>),
    /// A purchase was charged so much, in USD.
    Charged(Decimal),
    /// The pool's record was claimed, or could not be.
    Found(PoolFound),
    /// The pool's record was put or let go of, or may not have been.
    Put(bool),
    /// A page of what the store holds was read, or could not be.
    Listed(Option<ListedPage>),
}

/// A slot that the store gave.
#[derive(Debug)]
pub(in crate::pool) struct FoundSlot {
    pub(in crate::pool) name: Name,
    pub(in crate::pool) state: SlotState,
    /// True if its content is of another request than the pool's.
    pub(in crate::pool) is_of_another: bool,
}

/// The slots of the pool in a page of what the store holds.
#[derive(Debug)]
pub(in crate::pool) struct ListedPage {
    pub(in crate::pool) slots: Vec<(Name, SeenSlot)>,
    /// The name behind which more comes, if any does.
    pub(in crate::pool) after: Option<Name>,
}
