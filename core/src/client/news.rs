//! What pools hear of the client below them.

use crate::contract::Decimal;
use crate::state::{CommandId, Listed, Name};

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
    /// A purchase of the pool's was charged so much, in USD.
    Charged(Decimal),
    /// The pool's record was claimed, or could not be.
    Found(PoolFound),
    /// It was put or let go of; false where it was lost, or nobody knows.
    Put(bool),
    /// A page of what the store holds, and whether more comes behind it; none where it could not be read.
    Listed(Option<(Vec<Listed>, bool)>),
}

/// What the claim of a pool's record brought.
#[derive(Debug, Clone, Hash)]
pub(crate) enum PoolFound {
    /// It is this client's, with what is there.
    Mine(Option<Vec<u8>>),
    /// Another client has it for now.
    Others(Option<Vec<u8>>),
    /// Nobody knows.
    Failed,
}

/// What is under a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Slot {
    /// Nothing: a purchase may be made.
    Free,
    /// Nothing that is not over, but there was a session: a purchase may take its place where sessions are replaced.
    Over,
    /// A static session that has expired: it may be renewed; else it is over.
    Expired,
    /// A session that was not over: [opening](super::Client::open_slot) it buys nothing new.
    Taken,
    /// A purchase that may have been made: opening it sends that once more, with its key.
    Doubt,
    /// The same, and nothing more can be sent to find out.
    DoubtForGood,
    /// What nobody can use or replace before a person has looked at it.
    Stuck,
}
