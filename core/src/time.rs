//! Time, as the host tells it: how much has passed for sure, and what the service's clock says.

use serde::{Deserialize, Serialize};

/// Milliseconds.
pub type Millis = i64;

/// The time, from the host: both clocks, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Now {
    /// Since 1970; it may jump.
    pub unix: Millis,
    /// Since any start; it never goes back.
    pub monotonic: Millis,
}

/// A restored gap may come out negative by this much before the clocks are not believed.
const SKEW: Millis = 5 * 60 * 1000;

/// How much time has passed for this client. A key's age must never be told too young, so each advance is the larger of
/// the two clocks', and never less than nothing.
#[derive(Debug, Clone, Copy, Default, Hash)]
pub(crate) struct Clock {
    last: Option<Now>,
    elapsed: Millis,
    /// The service's clock, and how much had passed when it was read.
    server: Option<(Millis, Millis)>,
    /// The same, with the monotonic time when it was read.
    service: Option<(Millis, Millis)>,
}

impl Clock {
    /// Takes the time in.
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

    pub(crate) fn unix(&self) -> Millis {
        self.last.unwrap_or_default().unix
    }

    pub(crate) fn monotonic(&self) -> Millis {
        self.last.unwrap_or_default().monotonic
    }

    /// The monotonic time; `None` before the host has told it. What must not be forgotten too early is aged by it: a wall clock
    /// may leap ahead.
    pub(crate) fn steady(&self) -> Option<Millis> {
        self.last.map(|last| last.monotonic)
    }

    /// The service's time now, by its own clock and the monotonic one.
    pub(crate) fn service(&self) -> Option<Millis> {
        self.service.map(|(server, at)| server.saturating_add(self.monotonic().saturating_sub(at)))
    }

    /// When what is over now is over, by the later of the service's clock and ours: what was wrong with one of them must not make
    /// it old too soon. `None` where the service's is not known.
    pub(crate) fn finished_at(&self) -> Option<Millis> {
        self.service().map(|service| service.max(self.unix()))
    }

    /// Takes in what a safe read said of the service's clock.
    pub(crate) fn hear(&mut self, server: Millis) {
        self.server = Some((server, self.elapsed));
        self.service = Some((server, self.monotonic()));
    }

    pub(crate) fn knows_server(&self) -> bool {
        self.server.is_some()
    }

    /// How long ago a record was saved: the larger of what our clock and the service's say. `None` when either says that
    /// it was saved in the future, or the service's is not known.
    pub(crate) fn since(&self, saved: Millis) -> Option<Millis> {
        let (server, at) = self.server?;
        let server_now = server.saturating_add(self.elapsed.saturating_sub(at));
        let (ours, theirs) = (self.unix().saturating_sub(saved), server_now.saturating_sub(saved));
        (ours >= -SKEW && theirs >= -SKEW).then_some(ours.max(theirs).max(0))
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
        assert_eq!(clock.since(9_000_000), None);
        clock.hear(11_000_000);
        assert_eq!(clock.since(9_000_000), Some(2_000_000));
        assert_eq!(clock.since(10_200_000), Some(800_000));
        assert_eq!(clock.since(10_400_000), None);
        clock.hear(1);
        assert_eq!(clock.since(9_000_000), None);
    }
}
