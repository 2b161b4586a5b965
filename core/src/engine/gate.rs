//! The throttle: while the service says that there is too much, the whole client holds back.

use crate::time::Millis;

/// A longer wait than this is believed for the call that was asked to wait, and holds back no other: one wrong number would stop the client
/// for as long as it says.
pub(crate) const TRUSTED: Millis = 10 * 60 * 1000;

/// Until when nothing is sent, monotonic.
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

    /// Nothing is sent for so long.
    pub(crate) fn close(&mut self, wait: Millis, now: Millis) {
        self.throttled_until = self.throttled_until.max(now.saturating_add(wait));
    }
}

/// When a machine goes on, monotonic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) at: Millis,
    /// As a throttle ends, one call goes on at once; those that give a time here are spread over the first backoff after it, though
    /// not beyond that time, so that they are not throttled together once more.
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
        given.means.hold_back(TRUSTED + 1);
        assert_eq!(given.means.gate.until(), Millis::MIN);
        given.means.hold_back(TRUSTED);
        assert_eq!(given.means.gate.until(), given.means.clock.monotonic() + TRUSTED);
    }
}
