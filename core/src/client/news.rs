//! The events of the client for its pools.

use crate::contract::Decimal;
pub(crate) use crate::state::PoolNo;
use crate::state::{CommandId, Listed, Name};

/// A number that a pool gives to what it begins.
pub(crate) type WorkNo = u32;

/// An event for a pool.
#[derive(Debug, Clone, Hash)]
pub(crate) struct PoolEvent {
    pub(crate) pool: PoolNo,
    pub(crate) what: PoolEventKind,
}

#[derive(Debug, Clone, Hash)]
pub(crate) enum PoolEventKind {
    /// The store was asked for these slots, and those that were found are this client's: each is to be
    /// [opened](super::Client::open_slot) or let go of.
    Claimed { asked: Vec<Name>, found: Vec<(Name, SlotState)> },
    /// The store could not be asked.
    NotClaimed,
    /// Work of the pool's has ended, with the result of this command.
    Ended(WorkNo, CommandId),
    /// A purchase of the pool's was charged so much, in USD.
    Charged(Decimal),
    /// The pool's record was claimed, or could not be.
    Found(PoolFound),
    /// The record was put or released; false if it was lost, or the outcome is unknown.
    Put(bool),
    /// A page of what the store holds, and whether more comes behind it; none where it could not be read.
    Listed(Option<(Vec<Listed>, bool)>),
}

/// The result of claiming a pool's record.
#[derive(Debug, Clone, Hash)]
pub(crate) enum PoolFound {
    /// This client owns it; holds its data.
    Mine(Option<Vec<u8>>),
    /// Another client has it for now.
    Others(Option<Vec<u8>>),
    /// The outcome is unknown.
    Failed,
}

/// The content of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SlotState {
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
    /// A record that needs a person before the slot can be used or replaced.
    Stuck,
}
