//! A shared request: a request of the client's own that jobs wait for, such as a login or a read of the service's time.

use super::ids::StepId;
use crate::engine::{Attempts, Exchange, Gate, TRUSTED};
use crate::policy::RetryPolicy;
use crate::time::Millis;

/// A shared request.
#[derive(Debug, Clone, Hash)]
pub(crate) struct SharedRequest {
    pub(crate) attempts: Attempts,
    pub(crate) sends: u32,
    /// The number of sends that the host got to too late.
    pub(crate) late: u32,
    /// The sends that are out. There may be more than one only where a rule was taken away.
    pub(crate) out: Vec<(StepId, Exchange)>,
    /// The earliest time of the next send, monotonic.
    pub(crate) not_before: Option<Millis>,
}

impl SharedRequest {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        SharedRequest { attempts: Attempts::of_shared_request(policy), sends: 0, late: 0, out: Vec::new(), not_before: None }
    }

    pub(crate) fn is_out(&self) -> bool {
        !self.out.is_empty()
    }

    pub(crate) fn sends(&self) -> u32 {
        self.sends
    }

    /// The time of the next send, if it has to wait.
    pub(crate) fn not_before(&self, gate: Gate, now: Millis) -> Option<Millis> {
        Some(gate.until().max(self.not_before.unwrap_or(Millis::MIN))).filter(|at| *at > now)
    }

    /// Ends the request; the next one waits only for as long as the service asked, unless that time is absurdly long.
    pub(crate) fn done(&mut self, asked: Millis, now: Millis) {
        self.begin_anew();
        self.not_before = Some(now.saturating_add(asked)).filter(|_| (1..=TRUSTED).contains(&asked));
    }

    /// Forgets the attempts, since no job waits any more.
    pub(crate) fn begin_anew(&mut self) {
        (self.sends, self.late) = (0, 0);
        self.attempts.begin_anew();
    }
}
