//! Retries: how often, how soon, and when to stop.

use crate::contract::{at_least_0, at_least_1, options};
use crate::time::Millis;

options! {
    /// The policy of repeats. A caller may change it for a client or for one call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct RetryPolicy {
        /// How often one call is sent at most, the first time included. With 1, nothing is ever sent again.
        attempts: u32 = 4 => Count, |n| at_least_1(*n);
        /// The time from the first send within which another may be made.
        window_ms: Millis = 60_000 => Time, |ms| at_least_1(*ms);
        /// The time that one attempt may take, at most 24 days: the timers of hosts count no further.
        timeout_ms: u32 = 20_000 => Time, |ms| at_least_1(*ms).or_else(|| i32::try_from(*ms).err().map(|_| "must be at most 2147483647"));
        /// The longest wait before the first repeat; each further one may be twice as long.
        backoff_ms: Millis = 500 => Time, |ms| at_least_0(*ms);
        /// The longest wait before the first repeat after the service asked to slow down; each further one may be twice as long.
        throttled_backoff_ms: Millis = 1000 => Time, |ms| at_least_0(*ms);
        /// The longest wait before any repeat, unless the service asks for a longer one.
        max_backoff_ms: Millis = 20_000 => Time, |ms| at_least_0(*ms);
        /// The time to wait, in all, for an earlier request with the same key to end.
        conflict_ms: Millis = 120_000 => Time, |ms| at_least_0(*ms);
        /// If true, a paid operation that the service failed may be bought again with a new key. The service may have sold all the same, and
        /// then charges twice.
        retry_paid: bool = false => Flag;
    }
}

impl RetryPolicy {
    /// The longest wait before repeat number `repeat`, counted from 0.
    pub(crate) fn ceiling(&self, repeat: u32, throttled: bool) -> Millis {
        let first = if throttled { self.throttled_backoff_ms } else { self.backoff_ms };
        Backoff { first, most: self.max_backoff_ms }.wait(repeat)
    }
}

/// Waits that double, up to the longest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Millis,
    pub(crate) most: Millis,
}

impl Backoff {
    /// The wait after that many waits.
    pub(crate) fn wait(self, earlier: u32) -> Millis {
        self.first.saturating_mul(1_i64 << earlier.min(30)).min(self.most)
    }
}

/// Requests that ask whether an earlier one with the same key has ended.
pub(crate) const CONFLICT: Backoff = Backoff { first: 1000, most: 10_000 };

/// `random` of the ceiling, where `random` is uniform over all of `u64`.
pub(crate) fn jittered(ceiling: Millis, random: u64) -> Millis {
    let scaled = (u128::from(random) * u128::from(ceiling.max(0).unsigned_abs())) >> 64;
    Millis::try_from(scaled).unwrap_or(ceiling)
}

/// The budget of the whole client for repeats, so that a failing service is not flooded.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Quota {
    tokens: u32,
}

impl Quota {
    const FULL: u32 = 500;

    pub(crate) fn new() -> Self {
        Quota { tokens: Self::FULL }
    }

    /// Takes the cost of a repeat and returns it, or takes nothing if there is not enough left.
    pub(crate) fn take(&mut self, throttled: bool) -> Option<u32> {
        let cost = if throttled { 5 } else { 14 };
        self.tokens = self.tokens.checked_sub(cost)?;
        Some(cost)
    }

    /// Gives back the cost of a call's repeats after a success, and one more.
    pub(crate) fn refund(&mut self, taken: u32) {
        self.tokens = self.tokens.saturating_add(taken.max(1)).min(Self::FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let policy = RetryPolicy::default();
        let ceilings: Vec<Millis> = (0..8).map(|repeat| policy.ceiling(repeat, false)).collect();
        assert_eq!(ceilings, [500, 1000, 2000, 4000, 8000, 16_000, 20_000, 20_000]);
        assert_eq!(policy.ceiling(u32::MAX, true), 20_000);
        assert_eq!((jittered(1000, 0), jittered(1000, u64::MAX / 2), jittered(1000, u64::MAX)), (0, 499, 999));
        assert_eq!(jittered(-5, u64::MAX), 0);
    }

    #[test]
    fn conflicts_are_asked_about_ever_less_often() {
        let delays: Vec<Millis> = (0..6).map(|earlier| CONFLICT.wait(earlier)).collect();
        assert_eq!(delays, [1000, 2000, 4000, 8000, 10_000, 10_000]);
    }

    #[test]
    fn the_quota_runs_dry_and_success_refills_it() {
        let mut quota = Quota::new();
        let repeats = std::iter::from_fn(|| quota.take(false)).count();
        assert_eq!(repeats, 35);
        assert_eq!((quota.take(true), quota.take(true), quota.take(true)), (Some(5), Some(5), None));
        quota.refund(14);
        assert_eq!(quota.take(false), Some(14));
    }
}
