//! Shared requests: requests of the client's own that jobs wait for, a login or the service's time. One of each is under way at a time, and
//! its send names one of the commands that wait for it.

use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::collections::ThinVec;
use crate::engine::{Action, Cx, Exchange, ExchangeResult, FailedSend, SendResult, SessionOptions, Subject, WaitOptions};
use crate::policy::{Again, Error};
use crate::state::{CommandId, SharedRequest, StepId};
use crate::time::Millis;

/// The options that a shared request does not have.
const NO_WANTS: WaitOptions = WaitOptions {
    session_options: SessionOptions { credentials: false, auto_rotate: false, ends: ThinVec::EMPTY },
    deadline_ms: 0,
    since: None,
    queued: 0,
};

impl Router {
    pub(crate) fn shared_request(&mut self, which: Pending) -> &mut SharedRequest {
        if which == Pending::Login { &mut self.shared_requests.login } else { &mut self.shared_requests.time }
    }

    /// Lets the part of a shared request do something.
    fn with_shared_request<T>(&mut self, act: impl FnOnce(&mut Cx<'_>) -> T) -> T {
        let (mut notes, mut subject) = (Vec::new(), Subject::default());
        act(&mut Cx {
            shared: &mut self.shared,
            service: &self.service,
            notes: &mut notes,
            subject: &mut subject,
            wanted: true,
            wants: &NO_WANTS,
            known: None,
            has_session: &|_| false,
            day: None,
        })
    }

    /// Sends it, for a command that waits.
    pub(crate) fn send_shared_request(&mut self, which: Pending, mut exchange: Exchange, command: CommandId) {
        let Action::Send(request) = self.with_shared_request(|cx| exchange.send(None, Millis::MAX, cx)) else { return };
        let (id, now) = (self.outbox.send(which.clone(), command, request), self.now());
        let request = self.shared_request(which);
        exchange.late = request.late;
        request.attempts.sent(now);
        request.sends = request.sends.saturating_add(1);
        request.out.push((id, exchange));
    }

    /// Takes the outcome of the request.
    pub(crate) fn on_shared_response(
        &mut self,
        which: Pending,
        step: StepId,
        received: SendResult<'_>,
    ) -> Option<(Exchange, ExchangeResult)> {
        let out = &mut self.shared_request(which.clone()).out;
        let at = out.iter().position(|(id, _)| *id == step)?;
        let (_, mut exchange) = out.remove(at);
        let heard = self.with_shared_request(|cx| exchange.take_in(received, cx));
        let request = self.shared_request(which);
        request.late = exchange.late;
        if matches!(heard, ExchangeResult::Late) {
            request.attempts.unsent();
            request.sends = request.sends.saturating_sub(1);
        }
        Some((exchange, heard))
    }

    /// When it is sent again, if it is.
    pub(crate) fn repeat_shared_request(&mut self, which: Pending, exchange: &Exchange, passing: bool, asked: Millis) -> Option<Millis> {
        let again = if passing { Again::Same } else { Again::No };
        let now = self.now();
        let mut attempts = self.shared_request(which.clone()).attempts;
        let delay = self.with_shared_request(|cx| attempts.next_delay(again, asked, exchange.sent_at(), false, cx));
        let at = delay.map(|delay| now.saturating_add(delay));
        let request = self.shared_request(which);
        request.attempts = attempts;
        request.not_before = at.or(request.not_before);
        at
    }

    /// Ends a request that succeeded: its quota is given back.
    pub(crate) fn shared_request_succeeded(&mut self, which: Pending) {
        let attempts = self.shared_request(which.clone()).attempts;
        self.with_shared_request(|cx| attempts.succeeded(cx));
        let now = self.now();
        self.shared_request(which).done(0, now);
    }

    /// Puts what the service said into an error, without a secret.
    pub(crate) fn describe_shared_request(&mut self, exchange: &Exchange, error: &mut Error, failing: &FailedSend) {
        self.with_shared_request(|cx| exchange.describe(error, failing, cx));
    }
}
