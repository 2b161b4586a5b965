//! The sends that were given out and not answered yet, begun or not, and their deadlines.

use std::collections::{BTreeMap, BTreeSet};

use crate::client::Millis;
use crate::state::{CommandId, StepId};
use crate::wire::Request;

/// An HTTP client keeps the timeout by itself and can report whether anything was sent, so it may be first.
const GRACE: Millis = 200;

/// A send that is out.
#[derive(Debug)]
struct SendOut {
    command: CommandId,
    /// Until it is given out.
    request: Option<Request>,
    timeout: Millis,
    send_before: Millis,
    ends_session: bool,
    is_begun: bool,
}

/// All sends that are out.
#[derive(Debug)]
pub(super) struct Sends {
    out: BTreeMap<StepId, SendOut>,
    /// Of those that have begun.
    deadlines: BTreeSet<(Millis, StepId)>,
    grace: Millis,
}

impl Default for Sends {
    fn default() -> Self {
        Sends { out: BTreeMap::new(), deadlines: BTreeSet::new(), grace: GRACE }
    }
}

impl Sends {
    pub(super) fn add(&mut self, step: StepId, command: CommandId, request: Request) {
        let (timeout, send_before, ends_session) = (Millis::from(request.timeout_ms), request.send_before, request.ends_session());
        self.out.insert(step, SendOut { command, request: Some(request), timeout, send_before, ends_session, is_begun: false });
    }

    pub(super) fn is_out(&self, step: StepId) -> bool {
        self.out.contains_key(&step)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// The command of a send, and whether the send has begun.
    pub(super) fn get(&self, step: StepId) -> Option<(CommandId, bool)> {
        self.out.get(&step).map(|send| (send.command, send.is_begun))
    }

    pub(super) fn take_request(&mut self, step: StepId) -> Option<Request> {
        self.out.get_mut(&step)?.request.take()
    }

    /// How long the store may take to vouch for its claims. None where it is not asked.
    pub(super) fn patience(&self, step: StepId, now: Millis) -> Option<Millis> {
        let send = self.out.get(&step).filter(|send| !send.ends_session)?;
        Some(send.timeout.min(send.send_before.saturating_sub(now)).max(0))
    }

    /// Returns true if it is too late to begin a send.
    pub(super) fn is_late(&self, step: StepId, now: Millis) -> bool {
        self.out.get(&step).is_some_and(|send| now > send.send_before)
    }

    /// A send begins: from now on it may have been done.
    pub(super) fn begin(&mut self, step: StepId, now: Millis) {
        if let Some(send) = self.out.get_mut(&step) {
            send.is_begun = true;
            self.deadlines.insert((now.saturating_add(send.timeout).saturating_add(self.grace), step));
        }
    }

    /// A send that had begun was not made.
    pub(super) fn undo(&mut self, step: StepId) {
        if let Some(send) = self.out.get_mut(&step) {
            send.is_begun = false;
            self.deadlines.retain(|(_, other)| *other != step);
        }
    }

    /// A send is over. Returns its command, and whether it had begun, if it was out.
    pub(super) fn remove(&mut self, step: StepId) -> Option<(CommandId, bool)> {
        let send = self.out.remove(&step)?;
        if send.is_begun {
            self.deadlines.retain(|(_, other)| *other != step);
        }
        Some((send.command, send.is_begun))
    }

    /// The next deadline.
    pub(super) fn soonest(&self) -> Option<Millis> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// The sends that took too long, even if the HTTP client ignores its timeout.
    pub(super) fn expired(&self, now: Millis) -> Vec<StepId> {
        self.deadlines.iter().take_while(|(at, _)| *at <= now).map(|(_, step)| *step).collect()
    }

    /// All of them.
    pub(super) fn steps(&self) -> Vec<StepId> {
        self.out.keys().copied().collect()
    }

    /// The sends that have not begun and need the store's claims.
    pub(super) fn unsure(&self) -> Vec<StepId> {
        self.out.iter().filter(|(_, send)| !send.is_begun && !send.ends_session).map(|(step, _)| *step).collect()
    }

    pub(super) fn set_grace(&mut self, grace: Millis) {
        self.grace = grace;
    }
}
