//! The login of the reseller API, for all jobs that wait for it: one for any number of calls, again when its token is refused or
//! about to end, and never again by itself once the service has refused it.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::Parked;
use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::contract::reseller::Login as LoginRequest;
use crate::contract::{Operation, json_of};
use crate::engine::{Exchange, ExchangeResult, Grant, Input, LOGIN, SendResult, TOO_LONG};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{CommandId, JobId, StepId};
use crate::time::Millis;
use crate::wire::build;

impl Router {
    /// Asks for a token for a job, unless somebody has. Each job that has to wait wakes by itself, so that giving up one of them
    /// leaves nobody behind.
    pub(crate) fn log_in(&mut self, id: JobId) {
        if self.shared_requests.login.is_out() && self.holds(Rule::OneLogin) {
            return;
        }
        if let Some(not_before) = self.shared_requests.login.not_before(self.shared.gate, self.now()) {
            let wait = not_before.saturating_sub(self.now());
            if wait <= self.service.retry.window_ms {
                return self.set_timer(id, not_before);
            }
            // Longer than a call may take: that is said now, not after an hour.
            let mut error = Error::new(Kind::Unavailable, Effect::None, LOGIN, TOO_LONG, Advice::Wait);
            error.retry_at = Some(self.unix().saturating_add(wait));
            return self.no_login(&error);
        }
        let Some((username, password)) = self.shared.tokens.credentials.clone() else { return };
        let Some(command) = self.jobs.get(id).map(|entry| entry.waiting.first()) else { return };
        let params = json_of(&LoginRequest { username, password });
        let Ok(built) = build(LoginRequest::ENDPOINT, &params) else { return };
        let exchange = Exchange::new(LoginRequest::ENDPOINT, built, Vec::new(), self.service.retry.timeout_ms);
        self.send_shared_request(Pending::Login, exchange, command.unwrap_or(CommandId(0)));
    }

    fn waiting_for_login(&self) -> Vec<JobId> {
        self.jobs.parked(|parked| matches!(parked, Parked::LoggingIn))
    }

    /// Takes the outcome of the login, for all jobs that wait for it.
    pub(crate) fn on_login(&mut self, step: StepId, received: SendResult<'_>) {
        let generation = self.shared.tokens.generation();
        let Some((exchange, heard)) = self.on_shared_response(Pending::Login, step, received) else { return };
        let (mut error, passing, asked) = match heard {
            ExchangeResult::Success(_) if self.shared.tokens.generation() != generation => {
                self.shared_request_succeeded(Pending::Login);
                return self.go_on_with_token();
            }
            ExchangeResult::Late => return self.set_login_timers(self.now()),
            ExchangeResult::Unfit(rule) => {
                self.shared_requests.login.done(0, self.now());
                return self.no_login(&Error::invalid(LOGIN, "headers", &rule));
            }
            ExchangeResult::Success(answered) => {
                let what = "the response was not in the API's format; it may be a gateway's error page";
                let mut error = Error::new(Kind::Protocol, Effect::None, LOGIN, what, Advice::CheckBaseUrl);
                error.status = answered.http_status;
                (error, false, 0)
            }
            ExchangeResult::Failure(failing) => {
                let (kind, advice) = match () {
                    () if failing.is_refusal() => (Kind::Refused, Advice::Reauthenticate),
                    () if failing.passing => (Kind::Unavailable, Advice::RetryLater),
                    () => (Kind::Protocol, Advice::CheckBaseUrl),
                };
                let mut error = Error::new(kind, Effect::None, LOGIN, failing.what(self.service.api), advice);
                self.describe_shared_request(&exchange, &mut error, &failing);
                (error, failing.passing, failing.asks_to_wait())
            }
        };
        if let Some(at) = self.repeat_shared_request(Pending::Login, &exchange, passing, asked) {
            if self.waiting_for_login().is_empty() {
                self.shared_requests.login.begin_anew();
            }
            return self.set_login_timers(at);
        }
        error.attempts = self.shared_requests.login.sends();
        let now = self.now();
        self.shared_requests.login.done(asked, now);
        if error.kind == Kind::Refused && self.holds(Rule::RefusedLoginRests) {
            self.shared.tokens.refused = Some(error.clone());
        }
        self.no_login(&error);
    }

    /// Sets the timers of the jobs that wait for the login.
    fn set_login_timers(&mut self, at: Millis) {
        self.waiting_for_login().into_iter().for_each(|id| self.set_timer(id, at));
    }

    /// Continues the jobs that wait for the login, with the present token.
    fn go_on_with_token(&mut self) {
        self.waiting_for_login().into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(Grant::Token)))));
    }

    /// There is no new token. An old one that was only to be renewed early is used until it is refused.
    fn no_login(&mut self, error: &Error) {
        if self.shared.tokens.keep_old() {
            return self.go_on_with_token();
        }
        self.waiting_for_login().into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Err(error.clone())))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::reseller;
    use crate::client::{CallOptions, FailureKind, Now, Outcome, Sent, Step};

    #[test]
    fn the_work_of_calls_that_wait_for_one_login_grows_with_their_number_and_not_faster() {
        let mut client = reseller(7, None, false);
        let now = Now { unix: 1_700_000_000_000, monotonic: 0 };
        for n in 0..1000 {
            client.start_json("get_dashboard", "{}", CallOptions::default());
            loop {
                match client.poll(now) {
                    Step::Send { id, request, .. } => {
                        assert!(n == 0 && request.url.ends_with("/auth/login"), "the backoff is waited for");
                        client.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }, now).expect("is out");
                    }
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
        }
        assert!(client.router.timers.set <= 3 * 1000, "{} timers were set for 1000 calls", client.router.timers.set);
    }

    /// How often a login is sent, and what the call that waits for it ends with, where it always comes to this.
    fn logins(outcome: Outcome<'static>) -> (usize, Error) {
        let mut client = reseller(7, None, false);
        let command = client.start_json("get_dashboard", "{}", CallOptions::default());
        let (mut now, mut sends) = (Now { unix: 1_700_000_000_000, monotonic: 0 }, 0);
        loop {
            match client.poll(now) {
                Step::Send { id, .. } => {
                    sends += 1;
                    assert!(sends < 50, "it is sent for ever");
                    client.resolve(id, outcome.clone(), now).expect("is out");
                }
                Step::Wait { until: Some(until) } => now.monotonic = until,
                Step::Wait { until: None } => break,
                _ => {}
            }
        }
        (sends, client.take_answer(command).expect("has completed").expect_err("there is no login"))
    }

    #[test]
    fn a_host_that_is_always_too_late_does_not_log_in_for_ever() {
        let (lost, _) = logins(Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe });
        let (late, error) = logins(Outcome::Failed { kind: FailureKind::Late, sent: Sent::Never });
        assert_eq!((lost, late, error.kind), (4, 12, Kind::Unavailable), "8 that are too late do not count");
    }
}
