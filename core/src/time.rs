//! The time that the host gives: how much has certainly passed, and the service's clock.

use serde::{Deserialize, Serialize};

/// Milliseconds.
pub type Millis = i64;

/// The time, from the host: both clocks, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// Milliseconds since 1970; the clock may jump.
    pub unix: Millis,
    /// Milliseconds since any start; the clock never goes back.
    pub monotonic: Millis,
}

/// A UTC day.
pub(crate) const DAY: Millis = 24 * 3600 * 1000;

/// A moment, by the clocks of the client that wrote it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct At {
    /// Unix milliseconds.
    pub(crate) unix: Millis,
    /// The client's number.
    pub(crate) client: u32,
    /// The client's age.
    pub(crate) elapsed: Millis,
}

/// A restored gap may be negative by this much before the clocks are distrusted.
const SKEW: Millis = 5 * 60 * 1000;

/// The time that has passed for this client. A key must never appear younger than it is, so each step is the larger one of the two clocks',
/// and never negative.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct Clock {
    /// The number of the client, for the moments that it writes.
    client: u32,
    last: Option<Now>,
    elapsed: Millis,
    /// The service's clock, and the client's age when it was read.
    server: Option<(Millis, Millis)>,
}

impl Clock {
    pub(crate) fn of(client: u32) -> Self {
        Clock { client, ..Clock::default() }
    }

    /// The present moment, for a record.
    pub(crate) fn at(&self) -> At {
        At { unix: self.unix(), client: self.client, elapsed: self.elapsed }
    }

    /// Advances the clock to a new time.
    pub(crate) fn tick(&mut self, now: Now) {
        if let Some(last) = self.last {
            let advance = now.unix.saturating_sub(last.unix).max(now.monotonic.saturating_sub(last.monotonic)).max(0);
            self.elapsed = self.elapsed.saturating_add(advance);
        }
        self.last = Some(now);
    }

    /// Milliseconds since the first tick.
    pub(crate) fn elapsed(&self) -> Millis {
        self.elapsed
    }

    /// The time that the host gave last.
    pub(crate) fn now(&self) -> Now {
        self.last.unwrap_or_default()
    }

    pub(crate) fn unix(&self) -> Millis {
        self.now().unix
    }

    pub(crate) fn monotonic(&self) -> Millis {
        self.now().monotonic
    }

    /// Sets the service's clock from the response to a safe read.
    pub(crate) fn observe_server_time(&mut self, server: Millis) {
        self.server = Some((server, self.elapsed));
    }

    pub(crate) fn knows_server(&self) -> bool {
        self.server.is_some()
    }

    /// The time since a moment: exact for this client's own moments; for another client's it is the larger of the local clock's and the
    /// service's. `None` if either clock puts the moment in the future, or the service's time is not known.
    pub(crate) fn since(&self, then: At) -> Option<Millis> {
        let ours = self.unix().saturating_sub(then.unix);
        if let Some(gap) = self.own_gap(then) {
            return Some(gap);
        }
        let (server, at) = self.server?;
        let server_now = server.saturating_add(self.elapsed.saturating_sub(at));
        let theirs = server_now.saturating_sub(then.unix);
        (ours >= -SKEW && theirs >= -SKEW).then_some(ours.max(theirs).max(0))
    }

    /// The time since a moment of this client. A client that was given the same entropy may only look like this one: then less time has
    /// passed for it than by the wall clock.
    pub(crate) fn own_gap(&self, then: At) -> Option<Millis> {
        let (gap, ours) = (self.elapsed.saturating_sub(then.elapsed), self.unix().saturating_sub(then.unix));
        (then.client == self.client && gap >= 0 && gap >= ours).then_some(gap)
    }

    /// The time since a moment, by the local clock alone if the service's time is not known.
    pub(crate) fn about_since(&self, then: At) -> Option<Millis> {
        let ours = self.unix().saturating_sub(then.unix);
        let by_ours = || (self.server.is_none() && ours >= -SKEW).then_some(ours.max(0));
        self.since(then).or_else(by_ours)
    }

    /// The least time since a moment, by every known clock.
    pub(crate) fn at_least_since(&self, then: At) -> Millis {
        let ours = self.unix().saturating_sub(then.unix);
        let theirs = self.server.map(|(server, at)| server.saturating_add(self.elapsed.saturating_sub(at)).saturating_sub(then.unix));
        self.own_gap(then).unwrap_or_else(|| ours.min(theirs.unwrap_or(ours)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix: Millis, monotonic: Millis) -> Now {
        Now { unix, monotonic }
    }

    #[test]
    fn an_age_never_shrinks_and_follows_the_faster_clock() {
        let mut clock = Clock::default();
        let mut seen = Vec::new();
        for now in [at(1000, 0), at(1500, 900), at(0, 1000), at(5000, 1000), at(5000, 500)] {
            clock.tick(now);
            seen.push(clock.elapsed());
        }
        assert_eq!(seen, [0, 900, 1000, 6000, 6000]);
    }

    #[test]
    fn a_gap_is_unknown_without_the_services_time_or_when_a_clock_went_back() {
        let mut clock = Clock::default();
        clock.tick(at(10_000_000, 0));
        let saved = |unix| At { unix, client: 7, elapsed: 0 };
        assert_eq!(clock.since(saved(9_000_000)), None);
        clock.observe_server_time(11_000_000);
        assert_eq!(clock.since(saved(9_000_000)), Some(2_000_000));
        assert_eq!(clock.since(saved(10_200_000)), Some(800_000));
        assert_eq!(clock.since(saved(10_400_000)), None);
        clock.observe_server_time(1);
        assert_eq!(clock.since(saved(9_000_000)), None);
    }

    #[test]
    fn a_client_knows_how_long_ago_its_own_moments_were() {
        let mut clock = Clock::of(7);
        clock.tick(at(10_000_000, 0));
        let then = clock.at();
        clock.tick(at(10_001_000, 5_000));
        assert_eq!((clock.since(then), clock.at_least_since(then)), (Some(5_000), 5_000));
        let other = At { client: 8, ..then };
        assert_eq!((clock.since(other), clock.at_least_since(other)), (None, 1_000));
    }

    /// A host whose generator gives the same bytes after a crash.
    #[test]
    fn a_client_that_only_looks_like_the_one_that_wrote_it_down_does_not_know() {
        let mut clock = Clock::of(7);
        clock.tick(at(90_000_000, 0));
        clock.tick(at(90_000_000, 4_000));
        assert_eq!(clock.since(At { unix: 10_000_000, client: 7, elapsed: 1_000 }), None);
    }
}
