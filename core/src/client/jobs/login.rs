//! The login of the reseller API, for all jobs that wait for it: one for any number of calls, again when its token is refused or
//! about to end, and never again by itself once the service has refused it.

use crate::contract::reseller::Login as LoginRequest;
use crate::contract::{Api, Operation, json_of};
use crate::engine::{Exchange, ExchangeResult, LOGIN, Tokens};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::SharedFailure;
use crate::wire::build;

/// The request of a login, if the client has a name and a password.
pub(crate) fn login_request(tokens: &Tokens, timeout_ms: u32) -> Option<Exchange> {
    let (username, password) = tokens.credentials.clone()?;
    let built = build(LoginRequest::ENDPOINT, &json_of(&LoginRequest { username, password })).ok()?;
    Some(Exchange::new(LoginRequest::ENDPOINT, built, Vec::new(), timeout_ms))
}

/// The failure of a login after so many sends; `None` if there is a new token.
pub(crate) fn judge_login(heard: ExchangeResult, has_token: bool, sends: u32) -> Option<SharedFailure> {
    let mut failure = match heard {
        ExchangeResult::Success(_) if has_token => return None,
        ExchangeResult::Late => return None,
        ExchangeResult::Unfit(rule) => return Some(SharedFailure::new(Error::invalid(LOGIN, "headers", &rule))),
        ExchangeResult::Success(answered) => {
            let what = "the response was not in the API's format; it may be a gateway's error page";
            let error = Error::new(Kind::Protocol, Effect::None, LOGIN, what, Advice::CheckBaseUrl);
            SharedFailure::new(error.with(|new| new.status = answered.http_status))
        }
        ExchangeResult::Failure(failing) => {
            let (kind, advice) = match () {
                () if failing.is_refusal() => (Kind::Refused, Advice::Reauthenticate),
                () if failing.passing => (Kind::Unavailable, Advice::RetryLater),
                () => (Kind::Protocol, Advice::CheckBaseUrl),
            };
            let error = Error::new(kind, Effect::None, LOGIN, failing.what(Api::Reseller), advice);
            SharedFailure { passing: failing.passing, failing: Some(failing), ..SharedFailure::new(error) }
        }
    };
    failure.error.attempts = sends;
    Some(failure)
}

#[cfg(test)]
mod tests {
    use crate::client::testing::reseller;
    use crate::client::{CallOptions, FailureKind, Now, Outcome, Sent, Step};
    use crate::policy::{Error, Kind};

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
