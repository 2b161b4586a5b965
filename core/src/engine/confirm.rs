//! A read that confirms the result of a change of a session.

use super::answer::Answered;
use super::attempts::Attempts;
use super::context::Cx;
use super::exchange::{Exchange, ExchangeResult, FailedSend};
use super::gate::Wake;
use super::machine::{Action, Input, Part};
use super::poller::Poller;
use super::session::read_of;
use crate::contract::Operation;
use crate::contract::agent::GetSession;
use crate::policy::{Error, RetryPolicy};
use crate::time::Millis;
use crate::wire::Built;

/// The read of a session, with as many attempts as a call has, and two at least.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Confirm {
    session_id: String,
    exchange: Exchange,
    policy: RetryPolicy,
    poller: Poller,
    failures: u32,
}

/// The result of the read.
pub(crate) enum Confirmed {
    /// The session as the service shows it.
    Shown(Box<Answered>),
    /// The session could not be read.
    Failed(Box<FailedSend>),
    /// The service asks for a wait, in milliseconds, that is longer than a call may take.
    TooLong(Millis),
    /// The read can't be sent; holds the reason, as the end of a sentence.
    Unfit(String),
}

impl Confirm {
    pub(crate) fn new(session_id: String, headers: Vec<(String, String)>, attempts: &Attempts) -> Self {
        let endpoint = GetSession::ENDPOINT;
        let exchange = Exchange::new(endpoint, Built::at(endpoint.path), headers, attempts.policy.timeout_ms);
        Confirm { session_id, exchange, policy: attempts.policy, poller: Poller::default(), failures: 0 }
    }

    /// Takes the options of another caller that waits for it.
    pub(crate) fn take_options(&mut self, headers: Vec<(String, String)>, policy: RetryPolicy) {
        (self.exchange.headers, self.exchange.timeout_ms) = (headers, policy.timeout_ms);
        self.policy = policy;
    }

    /// Begins at once.
    pub(crate) fn begin(cx: &Cx<'_>) -> Action {
        Action::Wake(Wake::at(cx.now()))
    }

    /// Advances the read with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, credentials: bool, cx: &mut Cx<'_>) -> Part<Confirmed> {
        let Input::Response(received) = input else { return self.due(credentials, cx) };
        match self.exchange.take_in(received, cx) {
            ExchangeResult::Success(answered) => Part::Done(Confirmed::Shown(answered)),
            ExchangeResult::Late => Part::Asks(Action::Wake(Wake::at(cx.now()))),
            ExchangeResult::Unfit(rule) => Part::Done(Confirmed::Unfit(rule)),
            ExchangeResult::Failure(failing) => self.not_read(failing, cx),
        }
    }

    fn due(&mut self, credentials: bool, cx: &mut Cx<'_>) -> Part<Confirmed> {
        let not_before = cx.shared.gate.until().max(self.poller.not_before());
        if not_before > cx.now() {
            return self.wait(not_before, cx);
        }
        if let Some(built) = read_of(&self.session_id, credentials) {
            self.exchange.built = built;
        }
        Part::Asks(self.exchange.send(None, Millis::MAX, cx))
    }

    /// Waits for as long as a call may take; a longer wait is reported at once.
    fn wait(&self, not_before: Millis, cx: &Cx<'_>) -> Part<Confirmed> {
        let wait = not_before.saturating_sub(cx.now());
        if wait > self.policy.window_ms {
            return Part::Done(Confirmed::TooLong(wait));
        }
        Part::Asks(Action::Wake(Wake::spread(not_before, Millis::MAX)))
    }

    fn not_read(&mut self, failing: Box<FailedSend>, cx: &mut Cx<'_>) -> Part<Confirmed> {
        self.failures = self.failures.saturating_add(1);
        let passing = failing.passing || failing.is_page_of_success();
        if !cx.wanted || !passing || self.failures >= self.policy.attempts.max(2) {
            return Part::Done(Confirmed::Failed(failing));
        }
        let at = self.poller.next(failing.asks_to_wait(), cx);
        self.wait(at.max(cx.shared.gate.until()), cx)
    }

    /// Adds the service's own words to an error, without secrets.
    pub(crate) fn describe(&self, error: &mut Error, failing: &FailedSend, cx: &Cx<'_>) {
        self.exchange.describe(error, failing, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    const READ: &str = "send GET /sessions/s-1";

    fn confirm(given: &Given) -> Confirm {
        Confirm::new("s-1".to_owned(), Vec::new(), &Attempts::new(given.service.retry))
    }

    #[test]
    fn the_session_is_read_at_once_and_shown() {
        let mut given = Given::agent();
        let mut confirm = confirm(&given);
        assert_eq!(given.tell(&mut confirm, [due(), success(r#"{"status":"active"}"#)]), [READ, "shown active"]);
    }

    #[test]
    fn a_read_has_as_many_attempts_as_a_call_and_two_at_least() {
        for (attempts, reads) in [(1, 2), (2, 2), (3, 3)] {
            let mut given = Given::agent();
            given.service.retry.attempts = attempts;
            let mut confirm = confirm(&given);
            for _ in 1..reads {
                assert_eq!(given.tell(&mut confirm, [due(), page(200)]), [READ, "wake"]);
            }
            assert_eq!(given.tell(&mut confirm, [due(), failure("INTERNAL_ERROR", 500)]), [READ, "not read: INTERNAL_ERROR"]);
        }
    }

    #[test]
    fn what_is_not_over_soon_ends_it() {
        for (answer, says) in [
            (failure("SESSION_NOT_FOUND", 404), "not read: SESSION_NOT_FOUND"),
            (failure("AUTH_INVALID_KEY", 401), "not read: AUTH_INVALID_KEY"),
            (page(404), "not read: "),
            (unsendable(), "unfit: must not be odd"),
        ] {
            let mut given = Given::agent();
            let mut confirm = confirm(&given);
            assert_eq!(given.tell(&mut confirm, [due(), answer]), [READ, says]);
        }
    }

    #[test]
    fn a_host_that_came_too_late_has_not_used_up_an_attempt() {
        let mut given = Given::agent();
        given.service.retry.attempts = 1;
        let mut confirm = confirm(&given);
        let said = given.tell(&mut confirm, [due(), late(), due(), late(), due(), lost(), due()]);
        assert_eq!(said, [READ, "wake", READ, "wake", READ, "wake", READ]);
    }

    #[test]
    fn the_service_is_waited_for_as_long_as_a_call_may_take_and_longer_is_said_now() {
        let throttled = |seconds| failure("RATE_LIMIT_EXCEEDED", 429).retry_after(seconds);
        let mut given = Given::agent();
        let mut confirm = confirm(&given);
        assert_eq!(given.tell(&mut confirm, [due(), throttled(60)]), [READ, "wake"]);
        assert_eq!(given.wait(), 60_000);
        assert_eq!(given.tell(&mut confirm, [due(), throttled(61)]), [READ, "asks to wait 61000"]);
        // Another call was throttled meanwhile.
        let mut given = Given::agent();
        given.shared.gate.close(61_000, 0);
        let mut confirm = self::confirm(&given);
        assert_eq!(given.tell(&mut confirm, [due()]), ["asks to wait 61000"]);
    }

    #[test]
    fn nobody_waits_for_another_read_of_what_was_given_up() {
        let mut given = Given::agent();
        let mut confirm = confirm(&given);
        given.tell(&mut confirm, [due()]);
        given.wanted = false;
        assert_eq!(given.tell(&mut confirm, [lost()]), ["not read: "]);
    }

    #[test]
    fn who_goes_on_with_it_brings_other_headers_and_attempts() {
        let mut given = Given::agent();
        let mut confirm = confirm(&given);
        confirm.take_options(vec![("x-mine".to_owned(), "7".to_owned())], RetryPolicy { attempts: 2, ..given.service.retry });
        assert_eq!(given.tell(&mut confirm, [due(), lost(), due()]), [READ, "wake", READ]);
        assert_eq!(given.header("x-mine"), Some("7"));
        assert_eq!(given.tell(&mut confirm, [lost()]), ["not read: "]);
    }
}
