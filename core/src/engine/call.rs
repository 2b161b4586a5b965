//! A call with all its attempts: when it may be sent, how each send ended, and whether it is sent again.

use super::answer::Answered;
use super::attempts::{Attempts, Window};
use super::choice::chooses_after;
use super::context::Cx;
use super::event::EventKind;
use super::exchange::{Exchange, ExchangeResult, FailedSend};
use super::gate::Wake;
use super::machine::{Action, Input, Need, Note, SendResult};
use crate::contract::agent::GetSession;
use crate::contract::{Api, Endpoint, Operation, Safety};
use crate::policy::{Advice, Again, Effect, Error, JudgeContext, Judgement, Kind, Ledger, RetryPolicy, SendFailure, judge};
use crate::time::Millis;
use crate::wire::Content;

/// The message for a call that was not sent, since a throttle is longer than it may take.
pub(crate) const TOO_LONG: &str = "can't go on, since the service asked for a wait beyond the deadline";

/// A call.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Call {
    pub(crate) exchange: Exchange,
    pub(crate) attempts: Attempts,
    /// Of a write: the ledger of its key, or of its sends without one.
    pub(crate) ledger: Ledger,
    /// True if the caller set a limit for the price.
    pub(crate) has_price_limit: bool,
    /// Of a purchase whose product was chosen: true if it may choose again.
    pub(crate) chooses: Option<bool>,
    /// The result to report if nothing more is sent.
    last: Option<(Judgement, Error)>,
}

/// The state of a call after an input.
pub(crate) enum CallOutcome {
    /// The call waits for something, and goes on by itself.
    Pending(Action),
    /// The call succeeded.
    Success(Box<Answered>),
    /// The call failed, and nothing more is sent.
    Failed(Judgement, Error),
    /// No caller waits any more, and no further send is made.
    Cancelled,
}

impl Call {
    pub(crate) fn new(exchange: Exchange, policy: RetryPolicy) -> Self {
        let policy = limited(exchange.endpoint, policy);
        Call {
            exchange,
            attempts: Attempts::new(policy),
            ledger: Ledger::new(None, false),
            has_price_limit: false,
            chooses: None,
            last: None,
        }
    }

    /// Takes the options of another caller that goes on with the call.
    pub(crate) fn take_options(&mut self, headers: Vec<(String, String)>, policy: RetryPolicy) {
        (self.exchange.headers, self.exchange.timeout_ms) = (headers, policy.timeout_ms);
        self.attempts.policy = limited(self.exchange.endpoint, policy);
    }

    /// Begins the call anew, with all of its attempts.
    pub(crate) fn begin_anew(&mut self, cx: &mut Cx<'_>) {
        cx.subject.begin_anew();
        self.attempts.begin_anew();
        self.exchange.begin_anew();
        self.last = None;
    }

    /// Returns true if the call may have had an effect.
    pub(crate) fn is_open(&self) -> bool {
        self.ledger.is_open() && !self.exchange.is_safe()
    }

    /// Returns the reason why the call can't be sent now, if there is one. The send was due at `due`.
    pub(crate) fn blocked_by(&mut self, due: Millis, cx: &mut Cx<'_>) -> Option<CallOutcome> {
        match self.attempts.window(due, self.exchange.is_keyed(), cx) {
            Window::Open => None,
            Window::Throttled => {
                let until = cx.shared.gate.until();
                Some(CallOutcome::Pending(Action::Wake(Wake::spread(until, self.attempts.window_end(cx).max(until)))))
            }
            Window::Over => self.last.clone().map(|(judgement, error)| CallOutcome::Failed(judgement, after_first(error, cx))),
            // The error comes now, not after an hour.
            Window::TooLong => {
                let wait = cx.shared.gate.until().saturating_sub(cx.now());
                let retry_at = Some(cx.shared.clock.unix().saturating_add(wait));
                let (judgement, mut error) = match self.last.clone() {
                    Some((judgement, error)) => (judgement, after_first(error, cx)),
                    None => self.ending(Kind::Unavailable, TOO_LONG, Advice::Wait, cx),
                };
                error.retry_at = retry_at;
                Some(CallOutcome::Failed(judgement, error))
            }
        }
    }

    /// An end of this call without an answer: in doubt, if one of its sends may have had an effect.
    pub(crate) fn ending(&self, kind: Kind, what: &str, advice: Advice, cx: &Cx<'_>) -> (Judgement, Error) {
        let open = self.is_open();
        let (kind, effect) = if open { (Kind::InDoubt, Effect::Unknown) } else { (kind, Effect::None) };
        let error = cx.subject.error(kind, effect, what, advice);
        (Judgement { again: Again::No, kind, effect, advice, keep: open }, if open { error.not_again() } else { error })
    }

    /// Returns the need that comes before the send, if there is one.
    pub(crate) fn need(&self, cx: &mut Cx<'_>) -> Option<Need> {
        self.exchange.needs_token(cx).then_some(Need::Token)
    }

    /// Ends the call after a failed login.
    pub(crate) fn not_logged_in(&self, error: &Error, cx: &Cx<'_>) -> CallOutcome {
        let why = match error.kind {
            Kind::Refused => "the login was refused",
            _ => "the login failed",
        };
        let (judgement, ended) = self.ending(error.kind, &format!("was not sent, because {why}: {}", error.what), error.advice, cx);
        let error = ended.with(|new| {
            new.code = error.code.clone();
            new.field = error.field.clone();
            new.status = error.status;
            new.text = error.text.clone();
            new.retry_at = error.retry_at;
            new.cause = Some(error.clone());
        });
        CallOutcome::Failed(judgement, error)
    }

    /// Sends the call.
    pub(crate) fn send(&mut self, late: Millis, cx: &mut Cx<'_>) -> Action {
        self.attempts.sent(cx.job_time());
        cx.subject.attempts = cx.subject.attempts.saturating_add(1);
        self.ledger.sends = self.ledger.sends.saturating_add(1);
        self.exchange.is_first = self.ledger.sends == 1 && !self.ledger.given;
        self.exchange.send(self.ledger.key.as_deref(), late, cx)
    }

    /// Takes back the last send, which did not happen or does not count.
    fn unsent(&mut self) {
        self.attempts.unsent();
        self.ledger.sends = self.ledger.sends.saturating_sub(1);
    }

    /// Takes the outcome of a send. A failure is returned, for the caller to judge.
    pub(crate) fn on_response(&mut self, received: SendResult<'_>, cx: &mut Cx<'_>) -> Result<CallOutcome, Box<FailedSend>> {
        match self.exchange.take_in(received, cx) {
            ExchangeResult::Success(answered) => {
                self.ledger.unanswered = false;
                self.attempts.succeeded(cx);
                Ok(CallOutcome::Success(answered))
            }
            ExchangeResult::Late => {
                self.unsent();
                cx.subject.attempts = cx.subject.attempts.saturating_sub(1);
                Ok(CallOutcome::Pending(Action::Wake(Wake::at(cx.now()))))
            }
            ExchangeResult::Unfit(rule) if cx.wanted => {
                self.unsent();
                cx.subject.attempts = cx.subject.attempts.saturating_sub(1);
                let error = unfit(&rule, Effect::None, cx);
                let (judgement, error) = self.not_sent(error, cx);
                Ok(CallOutcome::Failed(judgement, error))
            }
            ExchangeResult::Unfit(_) => Ok(CallOutcome::Cancelled),
            ExchangeResult::Failure(failing) => {
                if self.exchange.renews(&failing, self.attempts.policy.attempts > 1, cx) {
                    self.unsent();
                    return Ok(CallOutcome::Pending(Action::Wake(Wake::at(cx.now()))));
                }
                Err(failing)
            }
        }
    }

    /// Ends the call without its next send. If an earlier send may have had an effect, the call is in doubt; if that was with another key,
    /// which has an answer, that key is not sent any more.
    pub(crate) fn not_sent(&self, mut error: Error, cx: &Cx<'_>) -> (Judgement, Error) {
        let keep = self.ledger.unanswered;
        if self.is_open() {
            error = after_first(error, cx).not_again();
            error.kind = Kind::InDoubt;
            error.effect = Effect::Unknown;
            error.advice = if keep { Advice::Resume } else { Advice::CheckAccount };
        }
        (Judgement { again: Again::No, kind: error.kind, effect: error.effect, advice: error.advice, keep }, error)
    }

    /// Judges a send that did not succeed, and builds the error to report if nothing more is sent.
    pub(crate) fn judge(&mut self, failing: &FailedSend, cx: &mut Cx<'_>) -> (Judgement, Error) {
        let heard = match (failing.answer.as_ref().map(|answer| (&answer.content, answer.status)), failing.lost) {
            (Some((_, status)), _) if failing.by_backend => SendFailure::Backend { status },
            (Some((Content::Failure(_), status)), _) if cx.service.api == Api::Reseller => {
                SendFailure::Refusal { status, undone: failing.undone }
            }
            (Some((Content::Failure(failure), status)), _) => SendFailure::Failure { code: &failure.code, status },
            (Some((content, status)), _) => {
                SendFailure::Page { status, broke_off: matches!(content, Content::NoEnvelope { flaw, .. } if flaw.may_pass()) }
            }
            (None, Some((_, sent))) => SendFailure::Lost(sent),
            (None, None) => SendFailure::Lost(crate::policy::Sent::Maybe),
        };
        let asked = JudgeContext::new(self.exchange.endpoint, self.attempts.policy.retry_paid, cx.shared.rules);
        let chooses = self.chooses == Some(true) && failing.code().is_some_and(chooses_after);
        let asked = JudgeContext { capped: self.has_price_limit && self.chooses.is_none(), chooses, ..asked };
        let request_id = failing.answer.as_ref().and_then(|answer| answer.request_id.as_deref());
        let mut judgement = judge(asked, &mut self.ledger, heard, request_id);
        if failing.token_refused && judgement.kind == Kind::Refused {
            judgement.advice = Advice::Reauthenticate;
        }
        let what = failing.what(cx.service.api);
        let mut error = cx.subject.error(judgement.kind, judgement.effect, what, judgement.advice);
        self.exchange.describe(&mut error, failing, cx);
        if judgement.again == Again::NewKey && self.ledger.given {
            judgement.again = Again::No;
            error.what.push_str(", and the key that the caller gave is never replaced");
        }
        (judgement, error)
    }

    /// Sends the call again, or ends it.
    pub(crate) fn go_on(&mut self, failing: &FailedSend, judgement: Judgement, mut error: Error, cx: &mut Cx<'_>) -> Retry {
        // The service accepted the call. Only the same key may still bring the result, and only a waiting caller needs it.
        let asks_again = cx.wanted && matches!(judgement.again, Again::Same | Again::Throttled | Again::AwaitEarlier);
        if !asks_again && let Some(answered) = self.accepted_without_id() {
            return Retry::Final(CallOutcome::Success(answered));
        }
        cx.subject.cause.get_or_insert_with(|| error.clone());
        if !cx.wanted {
            return Retry::Final(CallOutcome::Cancelled);
        }
        let throttled = judgement.again == Again::Throttled;
        // Without the service's own wait, the next send would have come after this at the latest.
        let wait = if throttled { self.attempts.ceiling(true) } else { 0 };
        let (sent_at, is_keyed) = (self.exchange.sent_at(), self.exchange.is_keyed());
        match self.attempts.next_delay(judgement.again, failing.asks_to_wait(), sent_at, is_keyed, cx) {
            Some(delay) => {
                if throttled {
                    cx.shared.hold_back(delay);
                    // The time from which the call may be resumed.
                    error.retry_at.get_or_insert(cx.shared.clock.unix().saturating_add(delay));
                }
                let again = Repeat { new_key: judgement.again == Again::NewKey, delay, error: error.clone() };
                self.last = Some((judgement, error));
                Retry::Again(again)
            }
            // The service accepted the call, and no further send finds out the id.
            None if let Some(answered) = self.accepted_without_id() => Retry::Final(CallOutcome::Success(answered)),
            None => {
                let wait = wait.max(cx.shared.gate.until().saturating_sub(cx.now()));
                if wait > 0 {
                    error.retry_at.get_or_insert(cx.shared.clock.unix().saturating_add(wait));
                }
                Retry::Final(CallOutcome::Failed(judgement, after_first(error, cx)))
            }
        }
    }

    /// Takes an earlier answer that accepted the call without an id, if there was one: then that is the final answer.
    fn accepted_without_id(&mut self) -> Option<Box<Answered>> {
        let answered = self.exchange.without_id.take()?;
        self.ledger.unanswered = false;
        Some(answered)
    }

    /// Waits until the next send.
    pub(crate) fn repeat(&self, again: Repeat, cx: &mut Cx<'_>) -> Action {
        let Repeat { delay, mut error, .. } = again;
        error.cause = None;
        cx.note(EventKind::Repeating { attempts: cx.subject.attempts, delay_ms: delay, because: error });
        let at = cx.now().saturating_add(delay);
        Action::Wake(Wake::spread(at, self.attempts.window_end(cx).max(at)))
    }

    /// Advances a call that only reads with one input. No record is stored for it, and it may be sent again at any time.
    pub(crate) fn read(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> CallOutcome {
        match input {
            Input::Due(_) | Input::Granted(_) if !cx.wanted => CallOutcome::Cancelled,
            Input::Due(due) => self.read_due(due, cx),
            Input::Granted(Ok(_)) | Input::Stored(_) => CallOutcome::Pending(Action::Wake(Wake::at(cx.now()))),
            Input::Granted(Err(error)) => self.not_logged_in(&error, cx),
            Input::Response(received) => self.read_response(received, cx),
        }
    }

    fn read_due(&mut self, due: Millis, cx: &mut Cx<'_>) -> CallOutcome {
        if let Some(blocked_by) = self.blocked_by(due, cx) {
            return blocked_by;
        }
        CallOutcome::Pending(match self.need(cx) {
            Some(need) => Action::Need(need),
            None => self.send(Millis::MAX, cx),
        })
    }

    fn read_response(&mut self, received: SendResult<'_>, cx: &mut Cx<'_>) -> CallOutcome {
        let failing = match self.on_response(received, cx) {
            Ok(called) => return called,
            Err(failing) => failing,
        };
        let (judgement, error) = self.judge(&failing, cx);
        match self.go_on(&failing, judgement, error, cx) {
            Retry::Final(called) => called,
            Retry::Again(again) => CallOutcome::Pending(self.repeat(again, cx)),
        }
    }

    /// Notes a session's state from the answer to a read.
    pub(crate) fn learn(&self, answered: &Answered, cx: &mut Cx<'_>) {
        if self.exchange.endpoint.name == GetSession::ENDPOINT.name {
            cx.notes.push(Note::Learnt(answered.facts.clone()));
        }
    }
}

/// The caller's policy, limited to the most that the contract allows.
fn limited(endpoint: &Endpoint, policy: RetryPolicy) -> RetryPolicy {
    match endpoint.safety {
        Safety::TwiceAtMost => RetryPolicy { attempts: policy.attempts.min(2), ..policy },
        _ => policy,
    }
}

/// Sets the first failure as the cause of a later one.
fn after_first(mut error: Error, cx: &Cx<'_>) -> Error {
    error.cause = cx.subject.cause.clone().filter(|cause| cause.what != error.what || cause.effect != error.effect);
    error
}

/// The next step of a call that failed.
pub(crate) enum Retry {
    Final(CallOutcome),
    Again(Repeat),
}

/// A further send.
pub(crate) struct Repeat {
    pub(crate) new_key: bool,
    delay: Millis,
    error: Error,
}

/// The error for a header of the caller's own that can't be sent.
pub(crate) fn unfit(rule: &str, effect: Effect, cx: &Cx<'_>) -> Error {
    let mut error = cx.subject.error(Kind::Invalid, effect, format!("`headers` {rule}"), Advice::ChangeRequest);
    error.field = Some("headers".to_owned());
    error
}

#[cfg(test)]
mod tests;
