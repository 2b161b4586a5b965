//! A machine's context as literal values: a test gives it one input after the other and compares its actions.
//!
//! ```text
//! let mut given = Given::agent();
//! let mut write = purchase(&mut given);
//! assert_eq!(given.tell(&mut write, [due(), stored(), lost()]), ["put", "send POST /sessions key 1", "wake"]);
//! ```

mod says;
mod tell;

use arcstr::ArcStr;

use self::says::{Machine, Says, named};
use self::tell::What;
pub(crate) use self::tell::*;
use super::answer::Answered;
use super::call::Call;
use super::context::{Cx, DEADLINE, Known, Service, SessionOptions, Shared, Subject, WaitOptions};
use super::cost::Terms;
use super::exchange::Exchange;
use super::gate::Gate;
use super::machine::{Action, Input, Need, Note, SendResult};
use super::tokens::Tokens;
use super::write::Write;
use crate::collections::ThinVec;
use crate::contract::{Api, Secret, endpoint};
use crate::entropy::Entropy;
use crate::policy::{Codes, Error, Ledger, Quota, RetryPolicy, Rules};
use crate::time::{Clock, Millis, Now};
use crate::wire::{self, BaseUrl, build};

/// The Unix time at which every test begins: the start of a UTC day.
pub(crate) const START: Millis = 1_700_006_400_000;
/// The first UTC day.
pub(crate) const TODAY: i64 = START / 86_400_000;
const BASE: &str = "https://api.example/v1";

/// Everything that a machine borrows. Backoffs are 0, so that every wait that a test sees has another cause.
pub(crate) struct Given {
    pub(crate) shared: Shared,
    now: Now,
    pub(crate) service: Service,
    notes: Vec<Note>,
    pub(crate) subject: Subject,
    pub(crate) wanted: bool,
    pub(crate) wants: WaitOptions,
    /// The status of the session that is known, and whether a read has shown it.
    pub(crate) session: Option<(&'static str, bool)>,
    /// True if a person named the session, and the service has not confirmed it yet.
    pub(crate) named: bool,
    pub(crate) day: Option<i64>,
    /// The time at which the machine wants to wake, if it waits for that.
    wake: Option<Millis>,
    /// The error of the last action, if it ended with one.
    pub(crate) error: Option<Error>,
    pub(crate) answered: Option<Answered>,
    /// The headers, the body and the deadline of the last send.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    pub(crate) send_before: Millis,
}

impl Given {
    pub(crate) fn agent() -> Self {
        Given::of(Api::Agent, Some(Secret::new("the-api-key")), Tokens::default())
    }

    pub(crate) fn reseller() -> Self {
        let credentials = Some((Secret::new("the-username"), Secret::new("the-password")));
        Given::of(Api::Reseller, None, Tokens::new(credentials, Some(Secret::new("token-1"))))
    }

    fn of(api: Api, key: Option<Secret>, tokens: Tokens) -> Self {
        let retry = RetryPolicy { backoff_ms: 0, throttled_backoff_ms: 0, ..RetryPolicy::default() };
        let base = BaseUrl::new(BASE, false).expect("the base URL is sound");
        let codes = Codes { token: vec!["401".to_owned()], doubt: Vec::new(), refusal: Vec::new() };
        let service = Service { api, base, key, codes, backend_refuses: false, retry, max_body: 1 << 20 };
        let (credentials, auto_rotate, ends) = (false, false, ThinVec::EMPTY);
        let (mut clock, now) = (Clock::default(), Now { unix: START, monotonic: 0 });
        clock.tick(now);
        Given {
            shared: Shared {
                clock,
                rules: Rules::default(),
                gate: Gate::default(),
                quota: Quota::new(),
                tokens,
                rng: Entropy::new([0; 16]),
            },
            now,
            service,
            notes: Vec::new(),
            subject: Subject::default(),
            wanted: true,
            wants: WaitOptions {
                session_options: SessionOptions { credentials, auto_rotate, ends },
                deadline_ms: DEADLINE,
                since: Some(0),
                queued: 0,
            },
            session: None,
            named: false,
            day: None,
            wake: None,
            error: None,
            answered: None,
            headers: Vec::new(),
            body: String::new(),
            send_before: 0,
        }
    }

    pub(crate) fn cx(&mut self) -> Cx<'_> {
        let named = self.named.then_some(Some("job-17"));
        let known = self.session.map(|(status, seen)| Known { status: Some(status), session_type: Some("dynamic"), seen, named });
        Cx {
            shared: &mut self.shared,
            service: &self.service,
            notes: &mut self.notes,
            subject: &mut self.subject,
            wanted: self.wanted,
            wants: &self.wants,
            known,
            has_session: &|session| session == "s-had",
            day: self.day,
        }
    }

    /// A request of an operation, with these parameters.
    pub(crate) fn exchange(&mut self, operation: &str, params: &str) -> Exchange {
        let endpoint = endpoint(operation).expect(operation);
        let built = build(endpoint, params).expect(params);
        (self.subject.operation, self.subject.session_id) = (endpoint.name, built.session_id.as_deref().map(ArcStr::from));
        Exchange::new(endpoint, built, Vec::new(), self.service.retry.timeout_ms)
    }

    pub(crate) fn read(&mut self, operation: &str, params: &str) -> Call {
        Call::new(self.exchange(operation, params), self.service.retry)
    }

    /// A write, with a key of its own where it has one.
    pub(crate) fn write(&mut self, operation: &str, params: &str) -> Write {
        self.write_within(operation, params, None, None)
    }

    /// A write with the caller's limit for a unit, and with the caller's estimate of the cost.
    pub(crate) fn write_within(&mut self, operation: &str, params: &str, limit: Option<&str>, said: Option<&str>) -> Write {
        let exchange = self.exchange(operation, params);
        let key = exchange.is_keyed().then(|| self.shared.rng.key(None));
        self.subject.key = key.as_deref().map(ArcStr::from);
        let amount = |text: &str| text.parse().expect(text);
        let terms = Terms::new(exchange.endpoint, &exchange.built, limit.map(amount), said.map(amount));
        Write::new(exchange, self.service.retry, Ledger::new(key, false), terms)
    }

    /// Lets time pass by both clocks.
    pub(crate) fn pass(&mut self, millis: Millis) {
        self.pass_by(millis, millis);
    }

    /// Lets time pass by the wall clock and by the monotonic one.
    pub(crate) fn pass_by(&mut self, unix: Millis, monotonic: Millis) {
        self.now = Now { unix: self.now.unix + unix, monotonic: self.now.monotonic + monotonic };
        self.shared.clock.tick(self.now);
    }

    /// Gives a machine one input after the other. Returns its action after each.
    pub(crate) fn tell<const N: usize>(&mut self, machine: &mut impl Machine, inputs: [Tell; N]) -> [String; N] {
        inputs.map(|input| self.tell_one(machine, input))
    }

    pub(crate) fn tell_one(&mut self, machine: &mut impl Machine, tell: Tell) -> String {
        let now = self.shared.clock.monotonic();
        let due = self.wake.take().unwrap_or(now).max(now);
        let passed = if matches!(tell.what, What::Due) { due - now } else { 0 };
        self.pass(passed + tell.after);
        let retry_after = tell.retry_after.map(|seconds| seconds.to_string());
        let headers: Vec<(&str, &str)> = retry_after.iter().map(|text| ("retry-after", text.as_str())).collect();
        let body = tell.body(self.service.api);
        let received = |status| wire::Received { status, headers: &headers, body: body.as_bytes(), truncated: false };
        let response = |status| Input::Response(SendResult::Response(received(status)));
        let input = match tell.what {
            What::Due => Input::Due(due),
            What::Stored(stored) => Input::Stored(stored),
            What::Granted(granted) => Input::Granted(granted),
            What::Success(_) => response(200),
            What::Failure(_, status) | What::Body(status, _) => response(status),
            What::Failed(kind, sent) => Input::Response(SendResult::Failed(kind, sent)),
            What::Unfit => Input::Response(SendResult::Unfit("must not be odd")),
        };
        let says = machine.handle(input, &mut self.cx());
        self.take(says)
    }

    /// Describes an action that the test itself caused.
    pub(crate) fn say(&mut self, says: impl Into<Says>) -> String {
        self.take(says.into())
    }

    fn take(&mut self, says: Says) -> String {
        let error = |error: &Error| format!("{:?} {:?} {:?}", error.kind, error.effect, error.advice);
        let (said, failed, answered) = match says {
            Says::Asks(Action::Send(request)) => {
                let key = request.header("idempotency-key").map(|key| format!(" key {}", key.rsplit('-').next().unwrap_or_default()));
                let path = request.url.strip_prefix(BASE).expect("it is sent to the service");
                let said = format!("send {} {path}{}", request.method.as_str(), key.unwrap_or_default());
                (self.headers, self.send_before) = (request.headers, request.send_before);
                self.body = String::from_utf8(request.body).expect("a body is JSON");
                (said, None, None)
            }
            Says::Asks(Action::Put) => ("put".to_owned(), None, None),
            Says::Asks(Action::Wake(wake)) => {
                self.wake = Some(wake.latest.map_or(wake.at, |latest| wake.at.min(latest)));
                ("wake".to_owned(), None, None)
            }
            Says::Asks(Action::Need(Need::Count { usd, .. })) => (format!("count {usd}"), None, None),
            Says::Asks(Action::Need(Need::Token)) => ("need a token".to_owned(), None, None),
            Says::Asks(Action::Need(Need::ServerTime)) => ("need the time".to_owned(), None, None),
            Says::Asks(Action::Erase(why)) => (format!("erase: {}", error(&why)), Some(why), None),
            Says::Asks(Action::Doubt(why)) => (format!("doubt: {}", error(&why)), Some(why), None),
            Says::Asks(Action::Rest(why)) => (format!("rest: {}", error(&why)), Some(why), None),
            Says::Asks(Action::End(Err(why))) | Says::Failed(why) => (format!("end: {}", error(&why)), Some(why), None),
            Says::Asks(Action::End(Ok(answered))) | Says::Answered(answered) => {
                let phase = answered.phase.map(|phase| format!(" {phase:?}"));
                (format!("end: done{}", phase.unwrap_or_default()), None, Some(*answered))
            }
            Says::Other(said) => (said, None, None),
        };
        (self.error, self.answered) = (failed, answered);
        said
    }

    /// The machine's wait.
    pub(crate) fn wait(&self) -> Millis {
        self.wake.expect("it waits for a time") - self.shared.clock.monotonic()
    }

    /// The machine's notes since the last call.
    pub(crate) fn notes(&mut self) -> Vec<String> {
        self.notes.drain(..).map(|note| named(&note)).collect()
    }

    /// The sentence of the last error.
    pub(crate) fn what(&self) -> &str {
        self.error.as_ref().map(|error| error.what.as_str()).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
