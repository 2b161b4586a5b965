//! The login of the reseller API: one for any number of calls, again when its token is refused or about to end, and never
//! again by itself once the service has refused it.

use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;

use super::job::{Job, On, State};
use super::outcome::{fill, what};
use super::store::JobId;
use super::types::{Millis, Outcome, Step, StepId};
use super::{Client, CommandId, Pending};
use crate::contract::reseller::Login as LoginRequest;
use crate::contract::{Api, Auth, Operation, Safety, Secret};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule, failure_status, jittered};
use crate::wire::{Answer, Failure, Verdict, build};

/// How many tokens are remembered after their time, so that no error repeats one.
const FORMER: usize = 4;
/// A token is renewed this long before its own `exp`.
const EARLY: Millis = 60_000;

/// What is known of the login.
#[derive(Clone, Default, Hash)]
pub(super) struct Login {
    /// The username and the password, where the client was given them.
    pub(super) credentials: Option<(Secret, Secret)>,
    /// The token, and when it is to be renewed, Unix milliseconds.
    token: Option<(Secret, Option<Millis>)>,
    /// Whether the end of the first token is still to be read: a client is made before it is told the time.
    unread: bool,
    /// The last few before it: a late answer may repeat the one that it was asked with.
    former: VecDeque<Secret>,
    /// How many tokens there were: tells the one that was refused from a newer one.
    generation: u32,
    out: Option<StepId>,
    asked: u32,
    not_before: Option<Millis>,
    /// Why the service refused the credentials: it is not asked again with them.
    refused: Option<Error>,
}

impl Login {
    pub(super) fn new(credentials: Option<(Secret, Secret)>, token: Option<Secret>) -> Self {
        Login { credentials, unread: token.is_some(), token: token.map(|token| (token, None)), ..Login::default() }
    }

    pub(super) fn token(&self) -> Option<&Secret> {
        self.token.as_ref().map(|(token, _)| token)
    }

    /// The tokens that an answer may repeat.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &Secret> {
        self.token().into_iter().chain(&self.former)
    }

    /// Gives up the token.
    fn drop_token(&mut self) {
        if let Some((token, _)) = self.token.take() {
            self.former.push_front(token);
            self.former.truncate(FORMER);
        }
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }
}

/// When a token ends by its own word, Unix milliseconds. Nobody has checked it: it only tells when to log in early.
fn expiry(token: &str) -> Option<Millis> {
    #[derive(Deserialize)]
    struct Claims {
        exp: f64,
    }
    let payload = token.split('.').nth(1).filter(|payload| payload.len() <= 1 << 16)?;
    let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()?;
    Some((claims.exp * 1000.0) as Millis)
}

/// What a login is called.
pub(super) const LOGIN: &str = LoginRequest::ENDPOINT.name;

impl Client {
    /// The token that is used at present: for a safe place of the host's, to start from next time.
    pub fn token(&self) -> Option<&Secret> {
        self.login.token()
    }

    /// Takes a token into use. One whose own `exp` is past already is used until it is refused.
    pub(super) fn take_token(&mut self, token: Secret) {
        let unix = self.clock.unix();
        let renew_at = expiry(token.reveal()).map(|ends| ends.saturating_sub(EARLY)).filter(|at| *at > unix);
        self.login.generation = self.login.generation.wrapping_add(1);
        self.login.drop_token();
        self.login.token = Some((token, renew_at));
        self.login.refused = None;
    }

    /// What a login brought, whoever asked for it: returns whether there was a token in it.
    pub(super) fn logged_in(&mut self, data: &str) -> bool {
        // Of the answer only the token: whatever else is odd in it, there is a login.
        #[derive(Deserialize)]
        struct Token {
            token: Secret,
        }
        let token = serde_json::from_str::<Token>(data).map(|result| result.token);
        let token = token.ok().filter(|token| !token.reveal().is_empty() && token.reveal().bytes().all(|byte| byte.is_ascii_graphic()));
        token.map(|token| self.take_token(token)).is_some()
    }

    /// Whether the token was refused to another call while this one was being saved.
    pub(super) fn lacks_token(&self, job: &Job) -> bool {
        job.endpoint.auth == Auth::Bearer && self.login.token.is_none() && self.login.credentials.is_some()
    }

    /// Whether a job has to wait for a login before it is sent; then one is under way.
    pub(super) fn login_due(&mut self, id: JobId) -> bool {
        let unix = self.clock.unix();
        if std::mem::take(&mut self.login.unread) {
            self.login.token.take().into_iter().for_each(|(token, _)| self.take_token(token));
        }
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let usable = self.login.token.as_ref().is_some_and(|(_, renew_at)| renew_at.is_none_or(|at| unix < at));
        if job.endpoint.auth != Auth::Bearer || usable || self.login.credentials.is_none() {
            return false;
        }
        job.go(On::Login);
        match self.login.refused.clone() {
            Some(error) => self.not_logged_in(id, &error),
            None => self.ask_login(id),
        }
        true
    }

    /// Whether an answer refuses the token of a job, so that a newer one may help; then the job is on its way to it.
    pub(super) fn renews(&mut self, id: JobId, answer: &Answer) -> bool {
        let (now, rules, token_refused) = (self.clock.monotonic(), self.rules, self.refuses_token(answer));
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        let refused = match &answer.verdict {
            // Under a 5xx nobody knows how far it came: no code makes a write go out again.
            Verdict::Failure(Failure { code, .. }) => {
                token_refused && (failure_status(code, answer.status) < 500 || job.endpoint.safety == Safety::Safe)
            }
            // Without the envelope nobody knows who answered: only what changes nothing is sent again.
            _ => answer.status == 401 && (job.endpoint.safety == Safety::Safe || !rules.holds(Rule::TokenRefusalHasEnvelope)),
        };
        if !refused || job.endpoint.auth != Auth::Bearer {
            return false;
        }
        let newest = job.token == self.login.generation || !rules.holds(Rule::NewerTokenStays);
        if newest && self.login.credentials.is_some() {
            self.login.drop_token();
        }
        let renewed = job.renewed && rules.holds(Rule::RenewOnce);
        if self.login.credentials.is_none() || renewed || job.cancelled || job.policy.attempts <= 1 {
            return false;
        }
        job.renewed = true;
        job.tally.counted = job.tally.counted.saturating_sub(1);
        job.ledger.sends = job.ledger.sends.saturating_sub(1);
        job.go(On::Again);
        self.set_timer(id, now);
        true
    }

    /// Whether an answer with the envelope says that the token is no good.
    pub(super) fn refuses_token(&self, answer: &Answer) -> bool {
        let Verdict::Failure(Failure { code, .. }) = &answer.verdict else { return false };
        self.api == Api::Reseller && (answer.status == 401 || self.token_codes.iter().any(|known| known == code))
    }

    /// Asks for a token for a job, unless somebody has. Each job that has to wait wakes by itself, so that giving up one of them
    /// leaves nobody behind.
    pub(super) fn ask_login(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let not_before = self.hold_until.max(self.login.not_before.unwrap_or(Millis::MIN));
        if self.login.out.is_some() && self.rules.holds(Rule::OneLogin) {
            return;
        }
        if not_before > now {
            let wait = not_before.saturating_sub(now);
            if wait <= self.retry.window_ms {
                return self.set_timer(id, not_before);
            }
            // Longer than a call may take: that is said now, not after an hour.
            let what = "must wait longer than it may take, since the service asked for it";
            let mut error = Error::new(Kind::Unavailable, Effect::None, LoginRequest::ENDPOINT.name, what, Advice::Wait);
            error.retry_at = Some(self.clock.unix().saturating_add(wait));
            return self.no_login(&error);
        }
        let Some((username, password)) = self.login.credentials.clone() else { return };
        let Some(command) = self.jobs.get(&id).map(|job| job.waiting.first().copied()) else { return };
        let params = serde_json::to_string(&LoginRequest { username, password }).unwrap_or_default();
        let Ok(built) = build(LoginRequest::ENDPOINT, &params) else { return };
        let endpoint = LoginRequest::ENDPOINT;
        let request = self.lay_out(endpoint.method, endpoint.auth, &built, Vec::new(), self.retry.timeout_ms, Millis::MAX);
        self.login.asked = self.login.asked.saturating_add(1);
        let step = self.step_id();
        self.login.out = Some(step);
        self.pending.insert(step, Pending::Login);
        self.steps.push_back(Step::Send { id: step, command: command.unwrap_or(CommandId(0)), request });
    }

    fn waiting_for_login(&self) -> Vec<JobId> {
        self.jobs.values().filter(|job| job.state == State::LoggingIn).map(|job| job.id).collect()
    }

    /// Whoever waits for the login wakes then.
    fn set_login_timers(&mut self, at: Millis) {
        self.waiting_for_login().into_iter().for_each(|id| self.set_timer(id, at));
    }

    /// What came of the login, for all that wait for it.
    pub(super) fn told_login(&mut self, outcome: Outcome<'_>) {
        self.login.out = None;
        let (now, unix, random) = (self.clock.monotonic(), self.clock.unix(), self.entropy.jitter());
        let answer = self.classified(&outcome);
        if let Some(Answer { verdict: Verdict::Success(data), .. }) = &answer
            && self.logged_in(data.text())
        {
            (self.login.asked, self.login.not_before) = (0, None);
            return self.go_on_with_token();
        }
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        let said = what(self.api, answer.as_ref(), lost);
        // A 401 without an envelope refuses the credentials all the same: sent again, they might lock the account.
        let refuses = |answer: &Answer| self.is_refusal(answer) || answer.status == 401;
        let refused = answer.as_ref().is_some_and(refuses);
        let passing = answer.as_ref().is_none_or(|answer| self.is_passing(answer));
        let asked = answer.as_ref().and_then(|answer| answer.retry_after).unwrap_or(0);
        if answer.as_ref().is_some_and(|answer| self.is_throttle(answer)) {
            self.hold_until = self.hold_until.max(now.saturating_add(asked));
        }
        if passing && self.login.asked < self.retry.attempts && asked <= self.retry.window_ms {
            let delay = jittered(self.retry.ceiling(self.login.asked.saturating_sub(1), false), random).max(asked);
            self.login.not_before = Some(now.saturating_add(delay));
            if self.waiting_for_login().is_empty() {
                self.login.asked = 0;
            }
            return self.set_login_timers(now.saturating_add(delay));
        }
        let (kind, advice) = match () {
            () if refused => (Kind::Refused, Advice::Reauthenticate),
            () if passing => (Kind::Unavailable, Advice::RetryLater),
            () => (Kind::Protocol, Advice::CheckBaseUrl),
        };
        let mut error = Error::new(kind, Effect::None, LoginRequest::ENDPOINT.name, said, advice);
        error.attempts = self.login.asked;
        if let Some(answer) = &answer {
            fill(&mut error, answer, &self.hidden(), unix);
        }
        self.login.asked = 0;
        self.login.not_before = (asked > 0).then(|| now.saturating_add(asked));
        if refused && self.rules.holds(Rule::RefusedLoginRests) {
            self.login.refused = Some(error.clone());
        }
        self.no_login(&error);
    }

    /// The login can't be sent at all.
    pub(super) fn login_unfit(&mut self, error: &Error) {
        (self.login.out, self.login.asked) = (None, 0);
        self.no_login(error);
    }

    /// Whoever waits for the login is sent with the token that there is.
    fn go_on_with_token(&mut self) {
        let now = self.clock.monotonic();
        for id in self.waiting_for_login() {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.go(On::Again);
            }
            self.set_timer(id, now);
        }
    }

    /// There is no new token. An old one that was only to be renewed early is used until it is refused.
    fn no_login(&mut self, error: &Error) {
        if let Some((_, renew_at)) = &mut self.login.token {
            *renew_at = None;
            return self.go_on_with_token();
        }
        self.waiting_for_login().into_iter().for_each(|id| self.not_logged_in(id, error));
    }

    /// Whether the service has refused what it was sent, rather than failed at it.
    fn is_refusal(&self, answer: &Answer) -> bool {
        let Verdict::Failure(Failure { code, .. }) = &answer.verdict else { return false };
        failure_status(code, answer.status) < 500 && !self.is_throttle(answer)
    }

    /// Ends a job that can't be sent, since there is no token for it.
    fn not_logged_in(&mut self, id: JobId, error: &Error) {
        let Some(job) = self.jobs.get(&id) else { return };
        let open = job.ledger.is_open() && !job.is_safe();
        let why = match error.kind {
            Kind::Refused => "the login was refused",
            _ => "there could be no login",
        };
        let what = format!("was not sent, because {why}: {}", error.what);
        let (kind, effect) = if open { (Kind::InDoubt, Effect::Unknown) } else { (error.kind, Effect::None) };
        let report = Report {
            code: error.code.clone(),
            field: error.field.clone(),
            status: error.status,
            text: error.text.clone(),
            retry_at: error.retry_at,
            cause: Some(error.clone()),
            ..job.error(kind, effect, what, error.advice).into_report()
        };
        let error = Error::from(report);
        if open { self.doubt(id, error) } else { self.refuse(id, error) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallOptions, ClientOptions, FailureKind, Now, Sent};
    use super::*;

    #[test]
    fn the_work_of_calls_that_wait_for_one_login_grows_with_their_number_and_not_faster() {
        let options = ClientOptions {
            api: Api::Reseller,
            base_url: "https://api.example/api".into(),
            username: Some(Secret::new("reseller")),
            password: Some(Secret::new("word")),
            ..ClientOptions::default()
        };
        let mut client = Client::new(options, [7; 16]).expect("the options are sound");
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
        assert!(client.timers_set <= 3 * 1000, "{} timers were set for 1000 calls", client.timers_set);
    }

    #[test]
    fn the_end_of_a_token_is_read_where_it_can_be() {
        let token = |payload: &str| format!("h.{}.s", URL_SAFE_NO_PAD.encode(payload));
        assert_eq!(expiry(&token(r#"{"exp":1700000000,"sub":1}"#)), Some(1_700_000_000_000));
        assert_eq!(expiry(&token(r#"{"exp":1700000000.5}"#)), Some(1_700_000_000_500));
        for odd in ["", "opaque", "a.b", "a.!!.c", &token("{}"), &token(r#"{"exp":"soon"}"#), &token("[]")] {
            assert_eq!(expiry(odd), None, "{odd}");
        }
        assert_eq!(expiry(&token(r#"{"exp":1e300}"#)), Some(Millis::MAX));
    }
}
