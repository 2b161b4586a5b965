//! The throttle: while the service is overloaded, the whole client holds back.

use crate::time::Millis;

/// A longer wait than this holds back only the call that was asked to wait: otherwise one wrong number would stop the whole client. 10 min.
pub(crate) const TRUSTED: Millis = 10 * 60 * 1000;

/// The time before which nothing is sent, monotonic.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Gate {
    throttled_until: Millis,
}

impl Default for Gate {
    fn default() -> Self {
        Gate { throttled_until: Millis::MIN }
    }
}

impl Gate {
    pub(crate) fn until(self) -> Millis {
        self.throttled_until
    }

    /// Stops all sends for that long.
    pub(crate) fn close(&mut self, wait: Millis, now: Millis) {
        self.throttled_until = self.throttled_until.max(now.saturating_add(wait));
    }
}

/// The time at which a machine goes on, monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) at: Millis,
    /// The latest time to go on after a throttle. One call goes on as soon as the throttle ends; the others are spread over the first
    /// backoff after it, though not beyond this time, so that they are not throttled together once more.
    pub(crate) latest: Option<Millis>,
}

impl Wake {
    pub(crate) fn at(at: Millis) -> Self {
        Wake { at, latest: None }
    }

    pub(crate) fn spread(at: Millis, latest: Millis) -> Self {
        Wake { at, latest: Some(latest) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    #[test]
    fn a_throttle_is_never_shortened() {
        let mut gate = Gate::default();
        for (wait, until) in [(500, 500), (400, 500), (600, 600)] {
            gate.close(wait, 0);
            assert_eq!(gate.until(), until);
        }
    }

    #[test]
    fn a_wait_that_nobody_can_mean_holds_back_nobody_else() {
        let mut given = Given::agent();
        given.shared.hold_back(TRUSTED + 1);
        assert_eq!(given.shared.gate.until(), Millis::MIN);
        given.shared.hold_back(TRUSTED);
        assert_eq!(given.shared.gate.until(), given.shared.clock.monotonic() + TRUSTED);
    }
}
