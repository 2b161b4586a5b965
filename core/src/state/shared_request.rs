//! A shared request: a request of the client's own that jobs wait for. One is under way at a time for any number of jobs.

use super::ids::StepId;
use crate::engine::{Action, Attempts, Cx, Exchange, ExchangeResult, FailedSend, Gate, SendResult, TRUSTED};
use crate::policy::{Again, Error, RetryPolicy};
use crate::time::Millis;
use crate::wire::Request;

/// The requests of the client's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SharedKind {
    Login,
    /// A read that says the service's time.
    ServerTime,
}

/// The failure of a shared request.
pub(crate) struct SharedFailure {
    pub(crate) error: Error,
    /// The failed send, whose details the error is to show.
    pub(crate) failing: Option<Box<FailedSend>>,
    /// True if the failure may pass.
    pub(crate) passing: bool,
    /// True if the service takes no requests meanwhile.
    pub(crate) throttles: bool,
}

impl SharedFailure {
    /// A failure that does not pass.
    pub(crate) fn new(error: Error) -> Self {
        SharedFailure { error, failing: None, passing: false, throttles: false }
    }

    /// The time for which the service asks to wait.
    pub(crate) fn asked(&self) -> Millis {
        self.failing.as_ref().map_or(0, |failing| failing.asks_to_wait())
    }
}

/// A shared request.
#[derive(Debug, Clone, Hash)]
pub(crate) struct SharedRequest {
    attempts: Attempts,
    sends: u32,
    /// The number of sends that the host got to too late.
    late: u32,
    /// The sends that are out. There may be more than one only where a rule was taken away.
    out: Vec<(StepId, Exchange)>,
    /// The earliest time of the next send, monotonic.
    not_before: Option<Millis>,
}

impl SharedRequest {
    pub(crate) fn new(policy: RetryPolicy) -> Self {
        SharedRequest { attempts: Attempts::of_shared_request(policy), sends: 0, late: 0, out: Vec::new(), not_before: None }
    }

    pub(crate) fn is_out(&self) -> bool {
        !self.out.is_empty()
    }

    /// The number of sends.
    pub(crate) fn sends(&self) -> u32 {
        self.sends
    }

    /// The time of the next send, if it has to wait.
    pub(crate) fn not_before(&self, gate: Gate, now: Millis) -> Option<Millis> {
        Some(gate.until().max(self.not_before.unwrap_or(Millis::MIN))).filter(|at| *at > now)
    }

    /// The next send, if it can be made. The host is asked for it by the caller.
    pub(crate) fn request(&mut self, exchange: &mut Exchange, cx: &mut Cx<'_>) -> Option<Request> {
        if let Action::Send(request) = exchange.send(None, Millis::MAX, cx) { Some(request) } else { None }
    }

    /// The host was asked to send it.
    pub(crate) fn sent(&mut self, step: StepId, mut exchange: Exchange, now: Millis) {
        exchange.late = self.late;
        self.attempts.sent(now);
        self.sends = self.sends.saturating_add(1);
        self.out.push((step, exchange));
    }

    /// Takes the outcome of a send, if it is out.
    pub(crate) fn take_in(&mut self, step: StepId, received: SendResult<'_>, cx: &mut Cx<'_>) -> Option<(Exchange, ExchangeResult)> {
        let at = self.out.iter().position(|(id, _)| *id == step)?;
        let (_, mut exchange) = self.out.remove(at);
        let heard = exchange.take_in(received, cx);
        self.late = exchange.late;
        if matches!(heard, ExchangeResult::Late) {
            self.attempts.unsent();
            self.sends = self.sends.saturating_sub(1);
        }
        Some((exchange, heard))
    }

    /// The request has failed. Returns when it is sent again, if it is; its failure may pass, and the service asks to wait for so long.
    pub(crate) fn repeat(&mut self, sent_at: Millis, passing: bool, asked: Millis, now: Millis, cx: &mut Cx<'_>) -> Option<Millis> {
        let again = if passing { Again::Same } else { Again::No };
        let at = self.attempts.next_delay(again, asked, sent_at, false, cx).map(|delay| now.saturating_add(delay));
        self.not_before = at.or(self.not_before);
        at
    }

    /// The request has succeeded: its quota is given back.
    pub(crate) fn succeeded(&mut self, now: Millis, cx: &mut Cx<'_>) {
        self.attempts.succeeded(cx);
        self.done(0, now);
    }

    /// Ends the request; the next one waits only for as long as the service asked, unless that time is absurdly long.
    pub(crate) fn done(&mut self, asked: Millis, now: Millis) {
        self.begin_anew();
        self.not_before = Some(now.saturating_add(asked)).filter(|_| (1..=TRUSTED).contains(&asked));
    }

    /// Forgets the attempts, since no job waits any more.
    pub(crate) fn begin_anew(&mut self) {
        (self.sends, self.late) = (0, 0);
        self.attempts.begin_anew();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::Given;
    use crate::policy::{FailureKind, Sent};

    /// One send that has come to this: whether it is to be sent once more without a failure, and the number of sends that count.
    fn sent(outcome: FailureKind) -> (bool, u32) {
        let mut given = Given::agent();
        let (mut request, mut exchange) = (SharedRequest::new(RetryPolicy::default()), given.exchange("get_balance", "{}"));
        assert!(request.request(&mut exchange, &mut given.cx()).is_some() && !request.is_out());
        request.sent(StepId(1), exchange, 0);
        assert!(request.is_out() && request.take_in(StepId(2), SendResult::Failed(outcome, Sent::Never), &mut given.cx()).is_none());
        let heard = request.take_in(StepId(1), SendResult::Failed(outcome, Sent::Never), &mut given.cx());
        assert!(!request.is_out());
        (heard.is_some_and(|(_, heard)| matches!(heard, ExchangeResult::Late)), request.sends())
    }

    #[test]
    fn a_send_that_the_host_got_to_too_late_does_not_count() {
        assert_eq!((sent(FailureKind::Late), sent(FailureKind::Closed)), ((true, 0), (false, 1)));
    }

    #[test]
    fn the_next_request_waits_for_as_long_as_the_service_asked_unless_that_is_absurd() {
        for (asked, not_before) in [(0, None), (500, Some(1500)), (TRUSTED, Some(1000 + TRUSTED)), (TRUSTED + 1, None)] {
            let mut request = SharedRequest::new(RetryPolicy::default());
            request.done(asked, 1000);
            assert_eq!(request.not_before(Gate::default(), 1000), not_before, "{asked}");
        }
    }
}
