//! The throttle: while the service says that there is too much, the whole client holds back.

use crate::time::Millis;

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

    /// The service wants nothing before that.
    pub(crate) fn close(&mut self, until: Millis) {
        self.throttled_until = self.throttled_until.max(until);
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
    use super::*;

    #[test]
    fn a_throttle_is_never_shortened() {
        let mut gate = Gate::default();
        gate.close(500);
        gate.close(400);
        assert_eq!(gate.until(), 500);
        gate.close(600);
        assert_eq!(gate.until(), 600);
    }
}
