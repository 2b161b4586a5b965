//! A read that confirms what a change of a session did.

use super::answer::Answered;
use super::attempts::Attempts;
use super::exchange::{Exchange, Failing, Heard};
use super::gate::Wake;
use super::machine::{Action, Cx, Input, Part};
use super::poller::Poller;
use super::session::read_of;
use crate::contract::Operation;
use crate::contract::agent::GetSession;
use crate::policy::{Error, RetryPolicy};
use crate::time::Millis;
use crate::wire::Built;

/// The read of a session, with so many attempts as a call has, and two at least.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Confirm {
    session_id: String,
    exchange: Exchange,
    policy: RetryPolicy,
    poller: Poller,
    failures: u32,
}

/// What came of it.
pub(crate) enum Confirmed {
    /// The session as it is.
    Shown(Box<Answered>),
    /// It could not be read.
    Failed(Box<Failing>),
    /// The service asks to wait so long, in milliseconds, which is longer than a call may take.
    TooLong(Millis),
    /// It can't be sent: why, as the end of a sentence.
    Unfit(String),
}

impl Confirm {
    pub(crate) fn new(session_id: String, headers: Vec<(String, String)>, attempts: &Attempts) -> Self {
        let endpoint = GetSession::ENDPOINT;
        let exchange = Exchange::new(endpoint, Built::at(endpoint.path), headers, attempts.policy.timeout_ms);
        Confirm { session_id, exchange, policy: attempts.policy, poller: Poller::default(), failures: 0 }
    }

    /// Begins at once.
    pub(crate) fn begin(cx: &Cx<'_>) -> Action {
        Action::Wake(Wake::at(cx.now()))
    }

    /// Whatever it is told.
    pub(crate) fn told(&mut self, input: Input<'_>, credentials: bool, cx: &mut Cx<'_>) -> Part<Confirmed> {
        let Input::Response(received) = input else { return self.due(credentials, cx) };
        match self.exchange.take_in(received, cx) {
            Heard::Success(mut answered) => {
                answered.view = None;
                Part::Done(Confirmed::Shown(answered))
            }
            Heard::Late => Part::Asks(Action::Wake(Wake::at(cx.now()))),
            Heard::Unfit(rule) => Part::Done(Confirmed::Unfit(rule)),
            Heard::Failure(failing) => self.not_read(failing, cx),
        }
    }

    fn due(&mut self, credentials: bool, cx: &mut Cx<'_>) -> Part<Confirmed> {
        let not_before = cx.gate.until().max(self.poller.not_before());
        if not_before > cx.now() {
            return self.wait(not_before, cx);
        }
        if let Some(built) = read_of(&self.session_id, credentials) {
            self.exchange.built = built;
        }
        Part::Asks(self.exchange.send(None, Millis::MAX, cx))
    }

    /// Waits for as long as a call may take. Longer than that is said now.
    fn wait(&self, not_before: Millis, cx: &Cx<'_>) -> Part<Confirmed> {
        let wait = not_before.saturating_sub(cx.now());
        if wait > self.policy.window_ms {
            return Part::Done(Confirmed::TooLong(wait));
        }
        Part::Asks(Action::Wake(Wake::spread(not_before, Millis::MAX)))
    }

    fn not_read(&mut self, failing: Box<Failing>, cx: &mut Cx<'_>) -> Part<Confirmed> {
        self.failures = self.failures.saturating_add(1);
        let passing = failing.passing || failing.is_page_of_success();
        if !cx.wanted || !passing || self.failures >= self.policy.attempts.max(2) {
            return Part::Done(Confirmed::Failed(failing));
        }
        let at = self.poller.next(failing.asks_to_wait(), cx);
        self.wait(at.max(cx.gate.until()), cx)
    }

    /// Puts what the service said into an error, without a secret.
    pub(crate) fn describe(&self, error: &mut Error, failing: &Failing, cx: &Cx<'_>) {
        self.exchange.describe(error, failing, cx);
    }
}
