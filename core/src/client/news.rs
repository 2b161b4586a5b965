//! What pools hear of the client below them.

use crate::state::{CommandId, Name};

/// A number that names a pool inside the client.
pub(crate) type PoolNo = u32;

/// What a pool is to hear.
#[derive(Debug, Clone, Hash)]
pub(crate) struct News {
    pub(crate) pool: PoolNo,
    pub(crate) what: NewsOf,
}

#[derive(Debug, Clone, Hash)]
pub(crate) enum NewsOf {
    /// These slots of those that it asked for are this client's. Each is to be [opened](super::Client::open_slot) or let go of.
    Claimed(Vec<(Name, Slot)>),
    /// The store could not be asked.
    NotClaimed,
    /// A command of the pool's has ended.
    Ended(CommandId),
}

/// What is under a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Nothing that is not over: a purchase may take its place.
    Free,
    /// A session that was not over, or a purchase that may have been made: [opening](super::Client::open_slot) it buys nothing new.
    Taken,
    /// What nobody can use or replace before a person has looked at it.
    Stuck,
}
