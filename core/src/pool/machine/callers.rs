//! Those who wait: for a lease, or for sessions to be ready.

use std::collections::{BTreeMap, BTreeSet};

use crate::pool::leases::WaiterId;
use crate::state::CommandId;
use crate::time::Millis;

/// A caller that waits for a lease.
#[derive(Debug, Clone, Copy, Hash)]
struct LeaseCaller {
    command: CommandId,
    until: Millis,
}

/// A caller that waits for a number of ready sessions.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct ReadyWaiter {
    pub(super) command: CommandId,
    pub(super) count: u32,
    pub(super) until: Millis,
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Callers {
    waiters: BTreeMap<WaiterId, LeaseCaller>,
    by_command: BTreeMap<CommandId, WaiterId>,
    deadlines: BTreeSet<(Millis, WaiterId)>,
    pub(super) for_ready: Vec<ReadyWaiter>,
}

impl Callers {
    pub(super) fn add(&mut self, waiter: WaiterId, command: CommandId, until: Millis) {
        self.waiters.insert(waiter, LeaseCaller { command, until });
        self.by_command.insert(command, waiter);
        self.deadlines.insert((until, waiter));
    }

    pub(super) fn remove(&mut self, waiter: WaiterId) -> Option<CommandId> {
        let LeaseCaller { command, until } = self.waiters.remove(&waiter)?;
        self.by_command.remove(&command);
        self.deadlines.remove(&(until, waiter));
        Some(command)
    }

    pub(super) fn waiter_of(&self, command: CommandId) -> Option<WaiterId> {
        self.by_command.get(&command).copied()
    }

    /// The callers whose time is over.
    pub(super) fn late(&self, now: Millis) -> Vec<WaiterId> {
        self.deadlines.iter().take_while(|(until, _)| *until <= now).map(|(_, waiter)| *waiter).collect()
    }

    /// Those who give up before this time; all, where there is none.
    pub(super) fn gone_by(&self, at: Option<Millis>) -> Vec<WaiterId> {
        self.deadlines.iter().take_while(|(until, _)| at.is_none_or(|at| *until < at)).map(|(_, id)| *id).collect()
    }

    /// Takes those out who wait for no more sessions than these, or whose time is over.
    pub(super) fn take_ready(&mut self, ready: u32, now: Millis) -> Vec<ReadyWaiter> {
        self.for_ready.extract_if(.., |waiter| waiter.count <= ready || waiter.until <= now).collect()
    }

    /// Removes a caller that waits for ready sessions. Returns true if it did wait.
    pub(super) fn leave_ready(&mut self, command: CommandId) -> bool {
        let before = self.for_ready.len();
        self.for_ready.retain(|waiter| waiter.command != command);
        self.for_ready.len() < before
    }

    pub(super) fn next_deadline(&self) -> Option<Millis> {
        let ready = self.for_ready.iter().map(|waiter| waiter.until).min();
        self.deadlines.first().map(|(at, _)| *at).into_iter().chain(ready).min()
    }
}
