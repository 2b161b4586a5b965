//! Follows a session: reads it at growing intervals, up to a deadline, whatever the result of a single read.

use super::answer::{Answered, Phase};
use super::call::unfit;
use super::context::{Cx, Known};
use super::exchange::{Exchange, ExchangeResult, FailedSend};
use super::gate::Wake;
use super::machine::{Action, Input, Note};
use super::poller::Poller;
use super::status::phase_of;
use crate::collections::ThinVec;
use crate::contract::agent::{CreateSession, GetSession, Session};
use crate::contract::{Json, Operation, Shaped, json_of};
use crate::json::quoted;
use crate::policy::{Advice, CodeRow, Effect, Error, Kind, SESSION_NOT_FOUND, code};
use crate::time::Millis;
use crate::wire::{Built, Facts, build};

/// The time after a purchase in which the service may not know the session yet.
const NOT_YET_KNOWN: Millis = 10_000;

/// The read of a session.
pub(crate) fn read_of(session_id: &str, credentials: bool) -> Option<Built> {
    let read = GetSession { session_id: session_id.to_owned(), include_credentials: credentials.then_some(true) };
    build(GetSession::ENDPOINT, &json_of(&read)).ok()
}

/// A known session, in the shape of a read.
pub(crate) fn as_a_read(session_id: &str, known: Option<Known<'_>>) -> (Facts, Json) {
    let known = known.unwrap_or_default();
    let status = known.status.unwrap_or_default();
    let shown = [("session_id", Some(session_id)), ("session_type", known.session_type), ("status", Some(status))];
    let shown = shown.into_iter().filter_map(|(name, text)| Some(format!("\"{name}\":{}", quoted(text?))));
    let raw = Json::checked(format!("{{{}}}", shown.collect::<Vec<_>>().join(",")));
    let (status, session_type) = (known.status.map(str::to_owned), known.session_type.map(str::to_owned));
    (Facts { session_id: Some(session_id.to_owned()), status, session_type, ..Facts::default() }, raw)
}

/// A session that is waited for until it is usable, over, or the deadline has come.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Follow {
    /// The caller's own headers.
    headers: ThinVec<(String, String)>,
    timeout_ms: u32,
    /// The number of times that the host got to a read too late.
    late: u32,
    /// The read that is out.
    out: Option<Box<Exchange>>,
    poller: Poller,
    /// True if a caller that waits for the session bought it, now or before.
    bought: bool,
    /// The time of the purchase, or of the first read, monotonic.
    since: Option<Millis>,
    /// True if the read that is out asks for credentials.
    asked_credentials: bool,
}

impl Follow {
    /// Follows the session that its subject names.
    pub(crate) fn new(bought: bool, headers: Vec<(String, String)>, timeout_ms: u32) -> Self {
        let poller = Poller::default();
        Follow { headers: headers.into(), timeout_ms, late: 0, out: None, poller, bought, since: None, asked_credentials: false }
    }

    /// Takes the options of another caller that waits for the session.
    pub(crate) fn take_options(&mut self, headers: Vec<(String, String)>, timeout_ms: u32) {
        (self.headers, self.timeout_ms) = (headers.into(), timeout_ms);
    }

    /// Follows a session that was just bought. If the answer to the purchase has everything that is wanted, no read is made.
    pub(crate) fn bought(&mut self, answered: Answered, resent: bool, cx: &mut Cx<'_>) -> Action {
        self.since = Some(cx.now());
        if !cx.wanted {
            return Action::End(Err(self.cancelled_error(cx)));
        }
        let ready = phase_of(answered.facts.status.as_deref(), &cx.wants.session_options.ends) == Phase::Ready;
        if ready && !resent && !cx.wants.session_options.credentials {
            return self.shown(answered, false, cx);
        }
        let wait = if ready { 0 } else { self.poller.wait(cx) };
        Action::Wake(Wake::at(cx.now().saturating_add(wait).min(cx.deadline())))
    }

    /// The error for a caller that cancels its wait.
    fn cancelled_error(&self, cx: &Cx<'_>) -> Error {
        let what = "waiting for the session was cancelled, and the session continues";
        cx.subject.error_of_read(Kind::Cancelled, self.effect(), what, Advice::ReadSession)
    }

    pub(crate) fn effect(&self) -> Effect {
        if self.bought { Effect::Done } else { Effect::None }
    }

    /// Advances the session with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        let (received, mut exchange) = match (input, self.out.take()) {
            (Input::Response(received), Some(exchange)) => (received, exchange),
            _ if !cx.wanted => return Action::End(Err(self.cancelled_error(cx))),
            _ => return self.due(cx),
        };
        let heard = exchange.take_in(received, cx);
        self.late = exchange.late;
        match heard {
            ExchangeResult::Success(answered) => {
                if !cx.wanted {
                    cx.notes.push(Note::Shown(answered.facts, None));
                    return Action::End(Err(self.cancelled_error(cx)));
                }
                self.shown(*answered, true, cx)
            }
            ExchangeResult::Late => Action::Wake(Wake::at(cx.now())),
            ExchangeResult::Unfit(_) if !cx.wanted => Action::End(Err(self.cancelled_error(cx))),
            ExchangeResult::Unfit(rule) => Action::End(Err(unfit(&rule, self.effect(), cx))),
            ExchangeResult::Failure(failing) => self.not_read(&exchange, &failing, cx),
        }
    }

    /// A read is due.
    fn due(&mut self, cx: &mut Cx<'_>) -> Action {
        let (now, not_before) = (cx.now(), cx.shared.gate.until().max(self.poller.not_before()));
        if not_before > now {
            // The service asked for no read yet; at the deadline the caller gets the last known state without one.
            return match cx.is_past_deadline() {
                true => self.end_with_what_is_known(cx),
                false => Action::Wake(Wake::spread(not_before, cx.deadline())),
            };
        }
        // Credentials exist only once the session is active, so they are requested only then.
        let active = cx.known.is_none_or(|known| phase_of(known.status, &[]) == Phase::Ready);
        self.asked_credentials = cx.wants.session_options.credentials && active;
        self.since.get_or_insert(now);
        let session_id = cx.subject.session_id.as_deref().unwrap_or_default();
        let built = read_of(session_id, self.asked_credentials).unwrap_or_else(|| Built::at(GetSession::ENDPOINT.path));
        let mut exchange = Exchange::new(GetSession::ENDPOINT, built, self.headers.to_vec(), self.timeout_ms);
        exchange.late = self.late;
        let action = exchange.send(None, Millis::MAX, cx);
        self.out = Some(Box::new(exchange));
        action
    }

    /// Takes a state of the session, and decides whether the wait is over.
    fn shown(&mut self, mut answered: Answered, by_read: bool, cx: &mut Cx<'_>) -> Action {
        let phase = phase_of(answered.facts.status.as_deref(), &cx.wants.session_options.ends);
        cx.notes.push(Note::Shown(answered.facts.clone(), Some(phase)));
        match phase {
            Phase::Ready if cx.wants.session_options.credentials && !self.asked_credentials && by_read => Action::Wake(Wake::at(cx.now())),
            Phase::Pending | Phase::Unknown if !cx.is_past_deadline() => self.read_again(0, cx),
            _ => {
                answered.phase = Some(phase);
                Action::End(Ok(Box::new(answered)))
            }
        }
    }

    /// Plans the next read, the last one at the deadline.
    fn read_again(&mut self, asked_to_wait: Millis, cx: &mut Cx<'_>) -> Action {
        let at = self.poller.next(asked_to_wait, cx);
        Action::Wake(Wake::spread(at, cx.deadline().max(cx.now())))
    }

    /// Takes a failed read, which never loses the session: waiting goes on, or ends with a handle.
    fn not_read(&mut self, exchange: &Exchange, failing: &FailedSend, cx: &mut Cx<'_>) -> Action {
        if !cx.wanted {
            return Action::End(Err(self.cancelled_error(cx)));
        }
        let missing = failing.code() == Some(SESSION_NOT_FOUND);
        let bought_just_now = self.since.is_some_and(|at| cx.now().saturating_sub(at) < NOT_YET_KNOWN);
        // The wait for a session goes on through a page of a gateway, too.
        let passing = failing.passing || failing.is_page_of_success() || (missing && self.bought && bought_just_now);
        let named = cx.known.and_then(|known| known.named).filter(|_| missing);
        if passing && named.is_none() {
            return match cx.is_past_deadline() {
                true => self.end_with_what_is_known(cx),
                false => self.read_again(failing.asks_to_wait(), cx),
            };
        }
        let mut what = failing.what(cx.service.api);
        let mut advice = failing.code().and_then(code).map_or(Advice::ReadSession, CodeRow::advice_of_read);
        if self.bought {
            what = format!("was bought, but could not be read: {what}");
            advice = if missing { Advice::CheckAccount } else { Advice::ReadSession };
        }
        let mut error = cx.subject.error_of_read(Kind::Refused, self.effect(), what, advice);
        exchange.describe(&mut error, failing, cx);
        if let Some(intent) = named {
            error.operation = CreateSession::ENDPOINT.name;
            (error.kind, error.effect, error.advice) = (Kind::InDoubt, Effect::Unknown, Advice::CheckAccount);
            error.what =
                "was settled as a session that the service does not show; settle it as another session, or as not happened".to_owned();
            error.intent = intent.map(str::to_owned);
        }
        Action::End(Err(error))
    }

    /// Ends the wait at the deadline without a read: the caller gets the last known state, not an error that drops the session.
    fn end_with_what_is_known(&self, cx: &Cx<'_>) -> Action {
        let (facts, raw) = as_a_read(cx.subject.session_id.as_deref().unwrap_or_default(), cx.known);
        let phase = phase_of(facts.status.as_deref(), &cx.wants.session_options.ends);
        Action::End(Ok(Box::new(Answered { raw, shape: &Session::SHAPE, phase: Some(phase), ..Answered::of(facts) })))
    }
}

#[cfg(test)]
mod tests;
