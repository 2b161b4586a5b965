//! Shared requests: requests of the client's own that jobs wait for, a login or the service's time. One of each is under way at a time, and
//! its send names one of the commands that wait for it.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::Parked;
use crate::client::jobs::login::{judge_login, login_request};
use crate::client::jobs::server_time::{judge_server_time, server_time_request};
use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::collections::ThinVec;
use crate::contract::Operation;
use crate::contract::agent::GetBalance;
use crate::engine::{Cx, EventKind, ExchangeResult, Grant, Input, LOGIN, SendResult, TOO_LONG};
use crate::engine::{SessionOptions, Subject, WaitOptions};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{CommandId, JobId, SharedKind, SharedRequest, StepId};
use crate::time::Millis;

/// The options that a shared request does not have.
const NO_WANTS: WaitOptions = WaitOptions {
    session_options: SessionOptions { credentials: false, auto_rotate: false, ends: ThinVec::EMPTY },
    deadline_ms: 0,
    since: None,
    queued: 0,
};

impl Router {
    pub(crate) fn shared_request(&mut self, kind: SharedKind) -> &mut SharedRequest {
        if kind == SharedKind::Login { &mut self.shared_requests.login } else { &mut self.shared_requests.time }
    }

    /// Lets a shared request do something.
    fn with_shared_request<T>(&mut self, kind: SharedKind, act: impl FnOnce(&mut SharedRequest, &mut Cx<'_>) -> T) -> T {
        let (mut notes, mut subject) = (Vec::new(), Subject::default());
        let requests = &mut self.shared_requests;
        let request = if kind == SharedKind::Login { &mut requests.login } else { &mut requests.time };
        let mut cx = Cx {
            shared: &mut self.shared,
            service: &self.service,
            notes: &mut notes,
            subject: &mut subject,
            wanted: true,
            wants: &NO_WANTS,
            known: None,
            has_session: &|_| false,
            day: None,
        };
        act(request, &mut cx)
    }

    /// Requests it for a job, unless it is out. Each job that has to wait wakes by itself, so that giving up one of them leaves nobody behind.
    pub(crate) fn request_shared(&mut self, kind: SharedKind, id: JobId) {
        let (gate, now) = (self.shared.gate, self.now());
        if self.shared_request(kind).is_out() && (kind == SharedKind::ServerTime || self.holds(Rule::OneLogin)) {
            return;
        }
        if let Some(not_before) = self.shared_request(kind).not_before(gate, now) {
            return self.wait_for_shared(kind, id, not_before);
        }
        let Some(command) = self.jobs.get(id).map(|entry| entry.waiting.first()) else { return };
        let exchange = match kind {
            SharedKind::Login => login_request(&self.shared.tokens, self.service.retry.timeout_ms),
            SharedKind::ServerTime => server_time_request(&self.service),
        };
        let Some(mut exchange) = exchange else { return };
        if kind == SharedKind::ServerTime {
            self.notify(id, EventKind::AskingTime);
        }
        let Some(request) = self.with_shared_request(kind, |shared, cx| shared.request(&mut exchange, cx)) else { return };
        let step = self.outbox.send(Pending::Shared(kind), command.unwrap_or(CommandId(0)), request);
        self.shared_request(kind).sent(step, exchange, now);
    }

    /// It may not be sent before that. Longer than a call may take is not waited for: that is said now, not after an hour.
    fn wait_for_shared(&mut self, kind: SharedKind, id: JobId, not_before: Millis) {
        let wait = not_before.saturating_sub(self.now());
        if wait <= self.retry().window_ms {
            return self.set_timer(id, not_before);
        }
        let operation = if kind == SharedKind::Login { LOGIN } else { GetBalance::ENDPOINT.name };
        let mut error = Error::new(Kind::Unavailable, Effect::None, operation, TOO_LONG, Advice::Wait);
        error.retry_at = Some(self.unix().saturating_add(wait));
        let waiting = if kind == SharedKind::Login { self.waiting_for_shared(kind) } else { vec![id] };
        self.refuse_shared(kind, waiting, &error);
    }

    fn waiting_for_shared(&self, kind: SharedKind) -> Vec<JobId> {
        self.jobs.parked(|parked| match parked {
            Parked::LoggingIn => kind == SharedKind::Login,
            Parked::ReadingTime => kind == SharedKind::ServerTime,
            _ => false,
        })
    }

    /// Takes the outcome of the request, for all jobs that wait for it.
    pub(crate) fn on_shared_response(&mut self, kind: SharedKind, step: StepId, received: SendResult<'_>) {
        let (now, generation) = (self.now(), self.shared.tokens.generation());
        let heard = self.with_shared_request(kind, |request, cx| request.take_in(step, received, cx));
        let Some((exchange, heard)) = heard else { return };
        let waiting = self.waiting_for_shared(kind);
        let has_token = self.shared.tokens.generation() != generation;
        let failure = match kind {
            _ if matches!(heard, ExchangeResult::Late) => return self.wake_all(waiting, now),
            SharedKind::Login => judge_login(heard, has_token, self.shared_request(kind).sends()),
            SharedKind::ServerTime => judge_server_time(exchange.endpoint.name, heard, &self.service),
        };
        let Some(mut failure) = failure else {
            self.with_shared_request(kind, |request, cx| request.succeeded(now, cx));
            return self.grant_shared(kind, waiting);
        };
        let asked = failure.asked();
        let at = self.with_shared_request(kind, |request, cx| {
            if let Some(failing) = &failure.failing {
                exchange.describe(&mut failure.error, failing, cx);
            }
            request.repeat(exchange.sent_at(), failure.passing, asked, now, cx)
        });
        if let Some(at) = at {
            if failure.throttles {
                self.shared.hold_back(at.saturating_sub(now));
            }
            if waiting.is_empty() {
                self.shared_request(kind).begin_anew();
            }
            return self.wake_all(waiting, at);
        }
        self.shared_request(kind).done(asked, now);
        let error = failure.error;
        if kind == SharedKind::Login && error.kind == Kind::Refused && self.holds(Rule::RefusedLoginRests) {
            self.shared.tokens.refused = Some(error.clone());
        }
        self.refuse_shared(kind, waiting, &error);
    }

    fn wake_all(&mut self, waiting: Vec<JobId>, at: Millis) {
        waiting.into_iter().for_each(|id| self.set_timer(id, at));
    }

    /// Continues the jobs that wait for it.
    fn grant_shared(&mut self, kind: SharedKind, waiting: Vec<JobId>) {
        let grant = || if kind == SharedKind::Login { Grant::Token } else { Grant::ServerTime };
        waiting.into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(grant())))));
    }

    /// It was in vain. An old token that was only to be renewed early is used until it is refused.
    fn refuse_shared(&mut self, kind: SharedKind, waiting: Vec<JobId>, error: &Error) {
        if kind == SharedKind::Login && self.shared.tokens.keep_old() {
            return self.grant_shared(kind, waiting);
        }
        waiting.into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Err(error.clone())))));
    }
}
