//! The facts that every method may ask for.

use crate::client::router::Router;
use crate::policy::Rule;
use crate::time::Millis;

impl Router {
    /// The monotonic time.
    pub(super) fn now(&self) -> Millis {
        self.shared.clock.monotonic()
    }

    /// The time in Unix milliseconds.
    pub(super) fn unix(&self) -> Millis {
        self.shared.clock.unix()
    }

    /// Returns true unless a test has taken the rule away.
    pub(super) fn holds(&self, rule: Rule) -> bool {
        self.shared.rules.holds(rule)
    }
}
