//! What a machine is told of those who wait for it, and of what is known already.

use crate::collections::ThinVec;
use crate::time::Millis;

/// How long a session or an order is waited for, unless the caller says otherwise.
pub(crate) const DEADLINE: Millis = 5 * 60 * 1000;

/// What callers want of a session or an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wishes {
    /// Whether a session's username and password are wanted.
    pub(crate) credentials: bool,
    /// Whether what is seen through the session may rotate it.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end it.
    pub(crate) ends: ThinVec<String>,
}

impl Wishes {
    /// These end it, too.
    pub(crate) fn want_ends(&mut self, ends: &[String]) {
        let more: Vec<String> = ends.iter().filter(|end| !self.ends.contains(end)).cloned().collect();
        more.into_iter().for_each(|end| self.ends.push(end));
    }
}

/// What all who wait for a job want together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wants {
    pub(crate) wishes: Wishes,
    pub(crate) deadline_ms: Millis,
    /// Since when they wait, by [the job's own time](super::machine::Cx::job_time): since it was started or resumed.
    pub(crate) since: Option<Millis>,
    /// How long it has waited for a place among the sends that are out, in all.
    pub(crate) queued: Millis,
}

impl Wants {
    /// Whoever waits has begun to wait by now, monotonic.
    pub(crate) fn begin(&mut self, now: Millis) {
        self.since.get_or_insert(now.saturating_sub(self.queued));
    }
}

/// What is known of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) status: Option<&'a str>,
    pub(crate) session_type: Option<&'a str>,
    /// Whether a read has shown it.
    pub(crate) seen: bool,
    /// Of one that only a person named, and the service has not shown yet: the caller's own name for it.
    pub(crate) named: Option<Option<&'a str>>,
}
