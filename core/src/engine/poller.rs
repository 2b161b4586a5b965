//! Polling: growing waits between two reads, up to a deadline.

use super::context::Cx;
use super::gate::Wake;
use crate::policy::jittered;
use crate::time::Millis;

/// The wait before the first read, in milliseconds; each further wait is half as long again, up to the longest.
const FIRST: Millis = 1000;
const LAST: Millis = 10_000;

/// The schedule of reads.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Poller {
    interval: Millis,
    /// The service asked for no read before this time, monotonic.
    not_before: Millis,
}

impl Default for Poller {
    fn default() -> Self {
        Poller { interval: FIRST, not_before: Millis::MIN }
    }
}

impl Poller {
    /// The next wait between two reads: longer each time, and spread by a tenth.
    pub(crate) fn wait(&mut self, cx: &mut Cx<'_>) -> Millis {
        let interval = self.interval;
        self.interval = (interval * 3 / 2).min(LAST);
        interval - interval / 10 + jittered(interval / 5, cx.shared.rng.jitter())
    }

    /// The earliest time of the next read.
    pub(crate) fn not_before(&self) -> Millis {
        self.not_before
    }

    /// The time of the next read, after an answer that asked for a wait.
    pub(crate) fn next(&mut self, asked_to_wait: Millis, cx: &mut Cx<'_>) -> Millis {
        let wait = self.wait(cx);
        // A read never comes before the time that the service asked for, not even the last one.
        self.not_before = cx.now().saturating_add(asked_to_wait);
        cx.now().saturating_add(wait).max(self.not_before)
    }

    /// Plans the next read as a call of its own, the last one at the deadline.
    pub(crate) fn next_call(&mut self, asked_to_wait: Millis, cx: &mut Cx<'_>) -> Wake {
        let at = self.next(asked_to_wait, cx);
        Wake::at(at.min(cx.deadline().max(cx.now())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn waits_grow_by_half_up_to_ten_seconds_and_are_spread_by_a_tenth() {
        let mut given = Given::agent();
        let mut poller = Poller::default();
        let around = [1000, 1500, 2250, 3375, 5062, 7593, 10_000, 10_000];
        let waits = around.map(|_| poller.wait(&mut given.cx()));
        let fits = |wait: Millis, around: Millis| (around - around / 10..=around + around / 10).contains(&wait);
        assert!(waits.iter().zip(around).all(|(wait, around)| fits(*wait, around)), "{waits:?}");
        let many = [(); 100].map(|()| poller.wait(&mut given.cx()));
        assert!(many.iter().all(|wait| fits(*wait, LAST)), "{many:?}");
        assert!(many.iter().any(|wait| *wait < 9_500) && many.iter().any(|wait| *wait > 10_500), "{many:?}");
    }

    #[test]
    fn what_the_service_asks_for_is_never_undercut_and_counts_for_the_next_read_only() {
        let mut given = Given::agent();
        let mut poller = Poller::default();
        assert_eq!((poller.next(30_000, &mut given.cx()), poller.not_before()), (30_000, 30_000));
        given.pass(30_000);
        assert!((31_350..=31_650).contains(&poller.next(0, &mut given.cx())));
        assert_eq!(poller.not_before(), 30_000);
    }

    #[test]
    fn the_last_read_is_at_the_deadline_and_one_that_is_past_is_now() {
        let mut given = Given::agent();
        given.wants.deadline_ms = 300;
        assert_eq!(Poller::default().next_call(0, &mut given.cx()), Wake::at(300));
        given.pass(400);
        assert_eq!(Poller::default().next_call(0, &mut given.cx()), Wake::at(400));
    }
}
