//! The size of a fleet, and the outcome of its life.

use std::time::Duration;

use hopline::client::Millis;

/// How many of each there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// The workers.
    pub workers: u32,
    /// The sessions of their pools.
    pub sessions: u32,
    /// The pools, each of as many workers.
    pub pools: u32,
}

/// The events of a part of a life.
#[derive(Debug, Clone, Copy, Default)]
pub struct Phase {
    /// How long it takes, in virtual time.
    pub lasts: Millis,
    /// The calls of the store by what they are for: purchases and takeovers, the pool's own record, and signs of life.
    pub statements: Statements,
    /// The largest number of calls within a second.
    pub busiest: u64,
    /// Inputs of clients: answers, times, and what callers say.
    pub events: u64,
    /// The processor time that the clients took for it, on this machine.
    pub took: Duration,
    /// Leases that were granted.
    pub leases: u64,
}

/// Statements, by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statements {
    /// Claims, puts and releases of slots.
    pub slots: u64,
    /// Of the day's total.
    pub spends: u64,
    /// Of the record of the pool itself.
    pub record: u64,
    /// Signs of life.
    pub renewals: u64,
}

impl Statements {
    /// All of them.
    pub fn all(self) -> u64 {
        self.slots + self.spends + self.record + self.renewals
    }
}

/// The outcome of a life.
#[derive(Debug, Clone)]
pub struct WorkersLived {
    /// Until each session was bought, and is ready.
    pub bought: Phase,
    /// A minute in which callers use them.
    pub used: Phase,
    /// Until the sessions of the workers that died are with others.
    pub taken: Phase,
    /// Milliseconds from the death of the rack to the read of each of its sessions by another worker, the first one first.
    pub takeovers: Vec<Millis>,
    /// Milliseconds from the death of the rack to the first lease of each worker in its place.
    pub first_leases: Vec<Millis>,
    /// The bytes of all clients, and of the store.
    pub memory: [usize; 2],
}
