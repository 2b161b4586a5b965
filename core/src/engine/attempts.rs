//! The attempts of a call: how many, how soon, and when they stop. This is the only retry schedule of calls.

use super::context::Cx;
use crate::policy::{Again, CONFLICT, RetryPolicy, jittered};
use crate::time::Millis;

/// A delay beyond an attempt's time that means that the host slept.
const SLEPT: Millis = 10_000;

/// One send beyond the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Grace {
    #[default]
    Unused,
    Granted,
    Used,
}

/// The wait for an earlier request with the same key to end.
#[derive(Debug, Clone, Copy, Default, Hash)]
struct Conflicts {
    times: u32,
    /// The beginning of the wait, in the job's own time.
    since: Option<Millis>,
    /// Milliseconds of such waits, which the window does not count.
    waited: Millis,
}

/// The limit on the time within which a call may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Limit {
    /// The window, counted from the first send.
    Window,
    /// The window, or the caller's deadline if that is earlier.
    Deadline,
    /// No wait for the next send is longer than the window: for requests that serve other calls, which have windows of their own.
    EachWait,
}

/// The attempts that a call has used since it was started or resumed.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Attempts {
    pub(crate) policy: RetryPolicy,
    pub(crate) limit: Limit,
    /// The moment of the first send, in the job's own time.
    started: Option<Millis>,
    /// The sends that count toward the limit.
    counted: u32,
    /// The quota that was taken, which success gives back.
    taken: u32,
    conflicts: Conflicts,
    /// The one send that is granted if the window ran out while the host slept.
    grace: Grace,
}

/// The permission for a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    Open,
    /// A send is allowed once the throttle is over.
    Throttled,
    /// No send is allowed, since the throttle is longer than the call may take.
    TooLong,
    /// No further send is allowed.
    Over,
}

impl Attempts {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        let (conflicts, grace) = (Conflicts::default(), Grace::Unused);
        Attempts { policy, limit: Limit::Window, started: None, counted: 0, taken: 0, conflicts, grace }
    }

    /// The attempts of a request that serves other calls.
    pub(crate) fn of_shared_request(policy: RetryPolicy) -> Self {
        Attempts { limit: Limit::EachWait, ..Attempts::new(policy) }
    }

    /// Begins the attempts anew.
    pub(crate) fn begin_anew(&mut self) {
        *self = Attempts { limit: self.limit, ..Attempts::new(self.policy) };
    }

    /// The end of the window, monotonic: counted from the first send, without the time spent on conflicts and on waiting for a place.
    pub(crate) fn window_end(&self, cx: &Cx<'_>) -> Millis {
        let started = self.started.filter(|_| self.limit != Limit::EachWait).unwrap_or(cx.job_time());
        let end = started.saturating_add(cx.wants.queued).saturating_add(self.policy.window_ms).saturating_add(self.conflicts.waited);
        if self.limit == Limit::Deadline { end.min(cx.deadline()) } else { end }
    }

    /// Decides whether a send that was due at that time may be made now.
    pub(crate) fn window(&mut self, due: Millis, is_keyed: bool, cx: &Cx<'_>) -> Window {
        let (now, end, throttled_until) = (cx.now(), self.window_end(cx), cx.shared.gate.until());
        if throttled_until > now {
            let granted = self.grace == Grace::Granted && throttled_until.saturating_sub(now) <= self.policy.window_ms;
            return if throttled_until <= end || granted { Window::Throttled } else { Window::TooLong };
        }
        if self.started.is_none() || now <= end {
            return Window::Open;
        }
        let slept = now.saturating_sub(due) > SLEPT && is_keyed && self.grace == Grace::Unused;
        if !slept && self.grace != Grace::Granted {
            return Window::Over;
        }
        self.grace = Grace::Used;
        Window::Open
    }

    /// Counts a send, at that time of the job's own.
    pub(crate) fn sent(&mut self, at: Millis) {
        self.started.get_or_insert(at);
        self.counted = self.counted.saturating_add(1);
    }

    /// Takes back the count of the last send.
    pub(crate) fn unsent(&mut self) {
        self.counted = self.counted.saturating_sub(1);
    }

    /// The longest wait before the next send, if the service did not ask for a wait.
    pub(crate) fn ceiling(&self, throttled: bool) -> Millis {
        self.policy.ceiling(self.counted.saturating_sub(1), throttled)
    }

    /// Returns the delay before the next send, if there may be one.
    pub(crate) fn next_delay(
        &mut self,
        again: Again,
        asks_to_wait: Millis,
        sent_at: Millis,
        is_keyed: bool,
        cx: &mut Cx<'_>,
    ) -> Option<Millis> {
        let (now, random, end) = (cx.now(), cx.shared.rng.jitter(), self.window_end(cx));
        match again {
            Again::No => None,
            Again::AwaitEarlier if self.policy.attempts <= 1 => None,
            Again::AwaitEarlier => {
                self.counted = self.counted.saturating_sub(1);
                let since = *self.conflicts.since.get_or_insert(cx.job_time());
                let delay = CONFLICT.wait(self.conflicts.times).max(asks_to_wait);
                self.conflicts.times = self.conflicts.times.saturating_add(1);
                self.conflicts.waited = self.conflicts.waited.saturating_add(delay);
                (cx.job_time().saturating_add(delay) <= since.saturating_add(self.policy.conflict_ms)).then_some(delay)
            }
            Again::Same | Again::NewKey | Again::Throttled => {
                let throttled = again == Again::Throttled;
                let delay = jittered(self.ceiling(throttled), random).max(asks_to_wait);
                let over = now.saturating_add(delay) > end;
                // The answer itself may have come after a sleep: then one more send is granted, whatever the window allows.
                let slept = now.saturating_sub(sent_at) > Millis::from(self.policy.timeout_ms) + SLEPT;
                let grace = slept && is_keyed && self.grace == Grace::Unused && delay <= self.policy.window_ms;
                if self.counted >= self.policy.attempts || (over && !grace) {
                    return None;
                }
                let taken = cx.shared.quota.take(throttled)?;
                if over {
                    self.grace = Grace::Granted;
                }
                self.taken = self.taken.saturating_add(taken);
                Some(delay)
            }
        }
    }

    /// Gives back the quota after a success.
    pub(crate) fn succeeded(&self, cx: &mut Cx<'_>) {
        cx.shared.quota.refund(self.taken);
    }
}

#[cfg(test)]
mod tests;
