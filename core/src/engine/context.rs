//! What a machine is given beside its input: the service, the clocks and the rest that all machines of a client share, and what is known of
//! its own job.

use arcstr::ArcStr;

use super::event::EventKind;
use super::gate::{Gate, TRUSTED};
use super::machine::Note;
use super::tokens::Tokens;
use crate::collections::ThinVec;
use crate::contract::{Api, Secret};
use crate::entropy::Entropy;
use crate::policy::{
    Advice, Automatic, Codes, Effect, Error, ErrorFields, Kind, Quota, RetryPolicy, Rule, Rules, code as code_row, is_passing,
    is_passing_read,
};
use crate::time::{Clock, Millis};
use crate::wire::{Answer, BaseUrl, Content, Failure};

/// What all machines of a client have together.
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(crate) struct Means {
    pub(crate) clock: Clock,
    pub(crate) rules: Rules,
    pub(crate) gate: Gate,
    pub(crate) quota: Quota,
    pub(crate) tokens: Tokens,
    pub(crate) dice: Entropy,
}

impl Means {
    /// The service wants nothing for so long.
    pub(crate) fn hold_back(&mut self, wait: Millis) {
        let holds = |rule| self.rules.holds(rule);
        if holds(Rule::ThrottleHoldsAll) && (wait <= TRUSTED || !holds(Rule::LongThrottleIsOwn)) {
            self.gate.close(wait, self.clock.monotonic());
        }
    }
}

/// What a machine is given beside what it is told.
pub(crate) struct Cx<'a> {
    pub(crate) means: &'a mut Means,
    pub(crate) service: &'a Service,
    pub(crate) notes: &'a mut Vec<Note>,
    /// What its errors are about.
    pub(crate) subject: &'a mut Subject,
    /// Whether anybody waits for it still. If not, it asks for no further send and ends by what it knows.
    pub(crate) wanted: bool,
    /// What all who wait for it want together.
    pub(crate) wants: &'a Wants,
    /// What is known of its session.
    pub(crate) known: Option<Known<'a>>,
    /// Whether this client has a session of that id.
    pub(crate) has_session: &'a dyn Fn(&str) -> bool,
    /// The UTC day, where a day's purchases have a cap.
    pub(crate) day: Option<i64>,
}

impl Cx<'_> {
    pub(crate) fn now(&self) -> Millis {
        self.means.clock.monotonic()
    }

    pub(crate) fn note(&mut self, event: EventKind) {
        self.notes.push(Note::Event(event));
    }

    /// The time as it goes by for this job: while it waits for a place, it stands still.
    pub(crate) fn job_time(&self) -> Millis {
        self.now().saturating_sub(self.wants.queued)
    }

    /// Until when its callers wait, monotonic; one last read begins then, and nothing after it.
    pub(crate) fn deadline(&self) -> Millis {
        self.wants.since.unwrap_or(self.job_time()).saturating_add(self.wants.queued).saturating_add(self.wants.deadline_ms)
    }

    pub(crate) fn is_past_deadline(&self) -> bool {
        self.now() >= self.deadline()
    }
}

/// The service that a client speaks to, and how.
#[derive(Clone, Hash)]
pub(crate) struct Service {
    pub(crate) api: Api,
    pub(crate) base: BaseUrl,
    pub(crate) key: Option<Secret>,
    /// What the caller knows of the reseller API's codes.
    pub(crate) codes: Codes,
    /// Whether it is an app's own backend that answers, and refuses in its own words what it does not pass on.
    pub(crate) backend_refuses: bool,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_body: u32,
}

impl Service {
    /// Whether the service says that there is too much.
    pub(crate) fn is_throttle(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            _ if self.is_backends(answer) => answer.status == 429,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code == "RATE_LIMIT_EXCEEDED",
            (Content::Failure(_), Api::Reseller) => answer.status == 429,
            _ => false,
        }
    }

    /// Whether an answer is a failure that may be over soon, so that a read is repeated.
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

    /// Whether an answer with the envelope says that the token is no good.
    pub(crate) fn refuses_token(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.refuse_token(code, answer.status)
    }

    /// Whether an answer is the refusal of an app's own backend: without the envelope, or with a code that the contract does not name.
    pub(crate) fn is_backends(&self, answer: &Answer) -> bool {
        let is_own = match (&answer.content, self.api) {
            (Content::Success(_), _) => false,
            (Content::NoEnvelope { .. }, _) => true,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code_row(code).is_none(),
            (Content::Failure(Failure { code, has_data, .. }), Api::Reseller) => !self.codes.may_be_done(code, *has_data),
        };
        is_own && self.backend_refuses && matches!(answer.status, 401 | 403 | 404 | 413 | 422 | 429)
    }

    /// Of the reseller API: whether an answer with the envelope says that nothing was done.
    pub(crate) fn undoes(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, has_data, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.undo(code, answer.status, *has_data)
    }
}

/// What an error of a job is about, and what it says of the sends so far.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Subject {
    pub(crate) operation: &'static str,
    pub(crate) intent: Option<ArcStr>,
    /// Whether its caller can come to it by a name of their own: an intent, or a key.
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
        Error::from(ErrorFields {
            idempotency_key: self.key.as_ref().map(ArcStr::to_string),
            intent: self.intent.as_ref().map(ArcStr::to_string),
            session_id: self.session_id.as_ref().map(ArcStr::to_string),
            order_no: self.order_no.as_ref().map(ArcStr::to_string),
            attempts: self.attempts,
            cause: self.cause.clone(),
            ..Error::new(kind, effect, self.operation, what, advice).into_fields()
        })
    }

    /// The same of a read that says nothing of the sends before it.
    pub(crate) fn error_of_read(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        let mut error = self.error(kind, effect, what, advice);
        error.cause = None;
        error
    }

    /// A call begins anew: what came of its sends before says nothing any more.
    pub(crate) fn begin_anew(&mut self) {
        (self.attempts, self.cause) = (0, None);
    }
}

/// How long a session or an order is waited for, unless the caller says otherwise.
pub(crate) const DEADLINE: Millis = 5 * 60 * 1000;

/// What callers want of a session or an order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Wishes {
    /// Whether a session's username and password are wanted.
    pub(crate) credentials: bool,
    /// Whether what is seen through the session may rotate it.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end it.
    pub(crate) ends: ThinVec<String>,
}

impl Wishes {
    /// These end it, too.
    pub(crate) fn want_ends(&mut self, ends: &[String]) {
        let more: Vec<String> = ends.iter().filter(|end| !self.ends.contains(end)).cloned().collect();
        more.into_iter().for_each(|end| self.ends.push(end));
    }
}

/// What all who wait for a job want together.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wants {
    pub(crate) wishes: Wishes,
    pub(crate) deadline_ms: Millis,
    /// Since when they wait, by [the job's own time](Cx::job_time): since it was started or resumed.
    pub(crate) since: Option<Millis>,
    /// How long it has waited for a place among the sends that are out, in all.
    pub(crate) queued: Millis,
}

impl Wants {
    /// Whoever waits has begun to wait by now, monotonic.
    pub(crate) fn begin(&mut self, now: Millis) {
        self.since.get_or_insert(now.saturating_sub(self.queued));
    }
}

/// What is known of a session.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known<'a> {
    pub(crate) status: Option<&'a str>,
    pub(crate) session_type: Option<&'a str>,
    /// Whether a read has shown it.
    pub(crate) seen: bool,
    /// Of one that only a person named, and the service has not shown yet: the caller's own name for it.
    pub(crate) named: Option<Option<&'a str>>,
}
