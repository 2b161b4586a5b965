//! The facts that every method may ask for: options, the time, the rules; and what is new from entropy.

use crate::client::router::Router;
use crate::contract::Api;
use crate::options::CallOptions;
use crate::policy::{RetryPolicy, Rule};
use crate::state::Name;
use crate::time::{Clock, Millis, Now};

impl Router {
    /// The monotonic time.
    pub(super) fn now(&self) -> Millis {
        self.shared.clock.monotonic()
    }

    /// The time in Unix milliseconds.
    pub(super) fn unix(&self) -> Millis {
        self.shared.clock.unix()
    }

    /// The clock, as it stands.
    pub(super) fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// The time is this.
    pub(super) fn tick(&mut self, now: Now) {
        self.shared.clock.tick(now);
    }

    pub(super) fn api(&self) -> Api {
        self.service.api
    }

    /// The words to add to a failure that a missing API key explains.
    pub(super) fn lacks_key(&self) -> &'static str {
        self.service.lacks_key()
    }

    /// The policy of repeats of a call with these options.
    pub(super) fn policy(&self, options: &CallOptions) -> RetryPolicy {
        options.policy(&self.service.retry)
    }

    /// The policy of repeats of the client.
    pub(super) fn retry(&self) -> RetryPolicy {
        self.service.retry
    }

    /// A key that nobody has had.
    pub(super) fn new_key(&mut self, intent: Option<&str>) -> String {
        self.shared.rng.key(intent)
    }

    /// A name that nobody has had.
    pub(super) fn new_name(&mut self) -> Name {
        self.account.space().random(&self.shared.rng.record())
    }

    /// A number that nobody can know before.
    pub(super) fn roll(&mut self) -> u64 {
        self.shared.rng.jitter()
    }

    /// Returns true unless a test has taken the rule away.
    pub(super) fn holds(&self, rule: Rule) -> bool {
        self.shared.rules.holds(rule)
    }
}
