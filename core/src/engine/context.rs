//! The context of a machine: the service, the clocks and the rest that all machines of a client share, and the facts about its own job.

use arcstr::ArcStr;

use super::event::EventKind;
use super::gate::{Gate, TRUSTED};
use super::machine::Note;
use super::tokens::Tokens;
use crate::collections::ThinVec;
use crate::contract::{Api, Secret};
use crate::entropy::Entropy;
use crate::policy::{
    Advice, Automatic, Codes, Effect, Error, Kind, Quota, RetryPolicy, Rule, Rules, code as code_row, is_passing, is_passing_read,
};
use crate::time::{Clock, Millis};
use crate::wire::{Answer, BaseUrl, Content, Failure};

/// The state that all machines of a client share.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) rules: Rules,
    pub(crate) gate: Gate,
    pub(crate) quota: Quota,
    pub(crate) tokens: Tokens,
    pub(crate) rng: Entropy,
}

impl Shared {
    /// Throttles the client for that long.
    pub(crate) fn hold_back(&mut self, wait: Millis) {
        let holds = |rule| self.rules.holds(rule);
        if holds(Rule::ThrottleHoldsAll) && (wait <= TRUSTED || !holds(Rule::LongThrottleIsOwn)) {
            self.gate.close(wait, self.clock.monotonic());
        }
    }
}

/// The context of a machine, beside its input.
pub(crate) struct Cx<'a> {
    pub(crate) shared: &'a mut Shared,
    pub(crate) service: &'a Service,
    pub(crate) notes: &'a mut Vec<Note>,
    /// The subject of its errors.
    pub(crate) subject: &'a mut Subject,
    /// True if a caller still waits for the job. If not, the machine makes no further send and ends with what it has.
    pub(crate) wanted: bool,
    /// The combined options of all callers that wait for the job.
    pub(crate) wants: &'a WaitOptions,
    /// The facts about its session.
    pub(crate) known: Option<Known<'a>>,
    /// Returns true if this client has a session of that id.
    pub(crate) has_session: &'a dyn Fn(&str) -> bool,
    /// The UTC day, if a day's purchases have a cap.
    pub(crate) day: Option<i64>,
}

impl Cx<'_> {
    pub(crate) fn now(&self) -> Millis {
        self.shared.clock.monotonic()
    }

    pub(crate) fn note(&mut self, event: EventKind) {
        self.notes.push(Note::Event(event));
    }

    /// The job's own time, which stands still while the job waits for a place.
    pub(crate) fn job_time(&self) -> Millis {
        self.now().saturating_sub(self.wants.queued)
    }

    /// The end of the callers' wait, monotonic; one last read begins then, and nothing after it.
    pub(crate) fn deadline(&self) -> Millis {
        self.wants.since.unwrap_or(self.job_time()).saturating_add(self.wants.queued).saturating_add(self.wants.deadline_ms)
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.now() >= self.deadline()
    }
}

/// The service of a client, and how to reach it.
#[derive(Clone, Hash)]
pub(crate) struct Service {
    pub(crate) api: Api,
    pub(crate) base: BaseUrl,
    pub(crate) key: Option<Secret>,
    /// The caller's knowledge of the reseller API's codes.
    pub(crate) codes: Codes,
    /// True if an app's own backend answers, and refuses in its own format the requests that it does not pass on.
    pub(crate) backend_refuses: bool,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_body: u32,
}

impl Service {
    /// The words to add to a failure that a missing API key explains: none on a page or a phone, where no key belongs. JavaScript adds its own
    /// on a server.
    pub(crate) fn lacks_key(&self) -> &'static str {
        let is_meant = cfg!(any(target_arch = "wasm32", target_os = "android", target_os = "ios"));
        if is_meant || self.api != Api::Agent || self.key.is_some() {
            return "";
        }
        ", and this client has no API key: give `api_key`, or set `HOPLINE_API_KEY`"
    }

    /// Returns true if the service refuses a request as one too many.
    pub(crate) fn is_throttle(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            _ if self.is_backends(answer) => answer.status == 429,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code == "RATE_LIMIT_EXCEEDED",
            (Content::Failure(_), Api::Reseller) => answer.status == 429,
            _ => false,
        }
    }

    /// Returns true if an answer is a failure that may be over soon, so that a read is repeated.
    pub(crate) fn is_passing(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            _ if self.is_backends(answer) => answer.status == 429,
            (Content::Failure(Failure { code, .. }), Api::Agent) => match code_row(code) {
                Some(row) => matches!(row.automatic, Automatic::Wait | Automatic::NewKey),
                None => is_passing(answer.status),
            },
            (Content::Failure(_), Api::Reseller) => !self.undoes(answer),
            (Content::NoEnvelope { flaw, .. }, _) => flaw.may_pass() || is_passing_read(answer.status),
            (Content::Success(_), _) => false,
        }
    }

    /// Returns true if an answer with the envelope refuses the token.
    pub(crate) fn refuses_token(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.refuse_token(code, answer.status)
    }

    /// Returns true if an answer is the refusal of an app's own backend: without the envelope, or with a code that the contract does not
    /// name.
    pub(crate) fn is_backends(&self, answer: &Answer) -> bool {
        let is_own = match (&answer.content, self.api) {
            (Content::Success(_), _) => false,
            (Content::NoEnvelope { .. }, _) => true,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code_row(code).is_none(),
            (Content::Failure(Failure { code, has_data, .. }), Api::Reseller) => !self.codes.may_be_done(code, *has_data),
        };
        is_own && self.backend_refuses && matches!(answer.status, 401 | 403 | 404 | 413 | 422 | 429)
    }

    /// Of the reseller API: returns true if an answer with the envelope says that nothing was done.
    pub(crate) fn undoes(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, has_data, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.undo(code, answer.status, *has_data)
    }
}

/// The facts that an error of a job repeats: its names, and its sends so far.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Subject {
    pub(crate) operation: &'static str,
    pub(crate) intent: Option<ArcStr>,
    /// True if the caller can find the job by a name of their own: an intent, or a key.
    pub(crate) named: bool,
    pub(crate) session_id: Option<ArcStr>,
    pub(crate) order_no: Option<ArcStr>,
    pub(crate) key: Option<ArcStr>,
    pub(crate) attempts: u32,
    /// The first failure.
    pub(crate) cause: Option<Error>,
}

impl Subject {
    pub(crate) fn error(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        Error::new(kind, effect, self.operation, what, advice).with(|new| {
            new.idempotency_key = self.key.as_ref().map(ArcStr::to_string);
            new.intent = self.intent.as_ref().map(ArcStr::to_string);
            new.session_id = self.session_id.as_ref().map(ArcStr::to_string);
            new.order_no = self.order_no.as_ref().map(ArcStr::to_string);
            new.attempts = self.attempts;
            new.cause = self.cause.clone();
        })
    }

    /// The error of a read, which is not about the sends before it.
    pub(crate) fn error_of_read(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        let mut error = self.error(kind, effect, what, advice);
        error.cause = None;
        error
    }

    /// Forgets the sends so far, since the call begins anew.
    pub(crate) fn begin_anew(&mut self) {
        (self.attempts, self.cause) = (0, None);
    }
}

/// The wait for a session or an order, unless the caller sets another. 5 min.
pub(crate) const DEADLINE: Millis = 5 * 60 * 1000;

/// A caller's options for a session or an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct SessionOptions {
    /// True if a session's username and password are wanted.
    pub(crate) credentials: bool,
    /// True if observations through the session may rotate it.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end it.
    pub(crate) ends: ThinVec<String>,
}

impl SessionOptions {
    /// Adds the wish for credentials, and for rotations by itself.
    pub(crate) fn want(&mut self, credentials: bool, auto_rotate: bool) {
        self.credentials |= credentials;
        self.auto_rotate |= auto_rotate;
    }

    /// Adds statuses that end it.
    pub(crate) fn want_ends(&mut self, ends: &[String]) {
        let more: Vec<String> = ends.iter().filter(|end| !self.ends.contains(end)).cloned().collect();
        more.into_iter().for_each(|end| self.ends.push(end));
    }
}

/// The combined options of all callers that wait for a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WaitOptions {
    pub(crate) session_options: SessionOptions,
    pub(crate) deadline_ms: Millis,
    /// The moment since when they wait, in [the job's own time](Cx::job_time): its start or resume.
    pub(crate) since: Option<Millis>,
    /// The total time for which the job has waited for a place among the sends that are out.
    pub(crate) queued: Millis,
}

impl WaitOptions {
    /// Begins the wait of the callers, if it has not begun, monotonic.
    pub(crate) fn begin(&mut self, now: Millis) {
        self.since.get_or_insert(now.saturating_sub(self.queued));
    }
}

/// The facts about a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) status: Option<&'a str>,
    pub(crate) session_type: Option<&'a str>,
    /// True if a read has shown the session.
    pub(crate) seen: bool,
    /// The caller's own name for a session that only a person named and the service has not confirmed yet.
    pub(crate) named: Option<Option<&'a str>>,
}
