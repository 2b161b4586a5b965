//! How often a call is sent, how soon again, and when it stops: the only retry schedule of calls.

use super::context::Cx;
use crate::policy::{Again, RetryPolicy, conflict_delay, jittered};
use crate::time::Millis;

/// What comes later than this after its time means that the host slept.
const SLEPT: Millis = 10_000;

/// A send beyond the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
enum Grace {
    #[default]
    Unused,
    Granted,
    Used,
}

/// Waiting for an earlier request with the same key to end.
#[derive(Debug, Clone, Copy, Default, Hash)]
struct Conflicts {
    times: u32,
    /// Since when, by the job's own time.
    since: Option<Millis>,
    /// Milliseconds that were waited so, which the window does not count.
    waited: Millis,
}

/// How long a call may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Limit {
    /// So long from its first send.
    Window,
    /// The same, though no longer than its caller waits.
    Deadline,
    /// No wait for the next send is longer than the window: of what serves other calls, which have windows of their own.
    EachWait,
}

/// What a call has spent of its attempts since it was started or resumed.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Attempts {
    pub(crate) policy: RetryPolicy,
    pub(crate) limit: Limit,
    /// When the first send went out, by the job's own time.
    started: Option<Millis>,
    /// Sends that count toward the limit.
    counted: u32,
    /// Quota taken, to be given back by success.
    taken: u32,
    conflicts: Conflicts,
    /// The one send that is granted when the window ran out while the host slept.
    grace: Grace,
}

/// Whether a send may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Window {
    Open,
    /// It may once the throttle is over.
    Throttled,
    /// It may not, since the throttle is longer than the call may take.
    TooLong,
    /// It may not any more.
    Over,
}

impl Attempts {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        let (conflicts, grace) = (Conflicts::default(), Grace::Unused);
        Attempts { policy, limit: Limit::Window, started: None, counted: 0, taken: 0, conflicts, grace }
    }

    /// Of what serves other calls.
    pub(crate) fn of_errand(policy: RetryPolicy) -> Self {
        Attempts { limit: Limit::EachWait, ..Attempts::new(policy) }
    }

    /// The call is begun anew.
    pub(crate) fn begin_anew(&mut self) {
        *self = Attempts { limit: self.limit, ..Attempts::new(self.policy) };
    }

    /// Until when it may be sent again, monotonic: so long from its first send, without what it spent on conflicts and on waiting for a place.
    pub(crate) fn window_end(&self, cx: &Cx<'_>) -> Millis {
        let started = self.started.filter(|_| self.limit != Limit::EachWait).unwrap_or(cx.job_time());
        let end = started.saturating_add(cx.wants.queued).saturating_add(self.policy.window_ms).saturating_add(self.conflicts.waited);
        if self.limit == Limit::Deadline { end.min(cx.deadline()) } else { end }
    }

    /// Whether a send that was to be made at that time may be made now.
    pub(crate) fn window(&mut self, due: Millis, is_keyed: bool, cx: &Cx<'_>) -> Window {
        let (now, end, throttled_until) = (cx.now(), self.window_end(cx), cx.means.gate.until());
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

    /// It is sent, at that time of the job's own.
    pub(crate) fn sent(&mut self, at: Millis) {
        self.started.get_or_insert(at);
        self.counted = self.counted.saturating_add(1);
    }

    /// The last send does not count.
    pub(crate) fn unsent(&mut self) {
        self.counted = self.counted.saturating_sub(1);
    }

    /// The longest wait before the next send, if the service said nothing of it.
    pub(crate) fn ceiling(&self, throttled: bool) -> Millis {
        self.policy.ceiling(self.counted.saturating_sub(1), throttled)
    }

    /// How long to wait before the next send, if there may be one.
    pub(crate) fn after(&mut self, again: Again, asks_to_wait: Millis, sent_at: Millis, is_keyed: bool, cx: &mut Cx<'_>) -> Option<Millis> {
        let (now, random, end) = (cx.now(), cx.means.dice.jitter(), self.window_end(cx));
        match again {
            Again::No => None,
            Again::AwaitEarlier if self.policy.attempts <= 1 => None,
            Again::AwaitEarlier => {
                self.counted = self.counted.saturating_sub(1);
                let since = *self.conflicts.since.get_or_insert(cx.job_time());
                let delay = conflict_delay(self.conflicts.times).max(asks_to_wait);
                self.conflicts.times = self.conflicts.times.saturating_add(1);
                self.conflicts.waited = self.conflicts.waited.saturating_add(delay);
                (cx.job_time().saturating_add(delay) <= since.saturating_add(self.policy.conflict_ms)).then_some(delay)
            }
            Again::Same | Again::NewKey | Again::Throttled => {
                let throttled = again == Again::Throttled;
                let delay = jittered(self.ceiling(throttled), random).max(asks_to_wait);
                let over = now.saturating_add(delay) > end;
                // The answer itself may have come after a sleep: then one more send is granted, whatever the window says.
                let slept = now.saturating_sub(sent_at) > Millis::from(self.policy.timeout_ms) + SLEPT;
                let grace = slept && is_keyed && self.grace == Grace::Unused && delay <= self.policy.window_ms;
                if self.counted >= self.policy.attempts || (over && !grace) {
                    return None;
                }
                let taken = cx.means.quota.take(throttled)?;
                if over {
                    self.grace = Grace::Granted;
                }
                self.taken = self.taken.saturating_add(taken);
                Some(delay)
            }
        }
    }

    /// It succeeded: what it took of the quota is given back.
    pub(crate) fn succeeded(&self, cx: &mut Cx<'_>) {
        cx.means.quota.refund(self.taken);
    }
}

#[cfg(test)]
mod tests;
