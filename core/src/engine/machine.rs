//! The words between a machine and whoever runs it: what it asks for, what it is told, what it is given.

use super::answer::{Answered, Phase};
use super::counted::Counted;
use super::event::EventKind;
use super::gate::{Gate, TRUSTED, Wake};
use super::service::{Received, Service};
use super::subject::Subject;
use super::tokens::Tokens;
use super::wants::{Known, Wants};
use crate::contract::Decimal;
use crate::entropy::Entropy;
use crate::policy::{Error, Quota, Rule, Rules};
use crate::time::{Clock, Millis};
use crate::wire::{Facts, Request};

/// What a machine waits for.
#[derive(Debug)]
pub(crate) enum Action {
    /// An answer to this request: [`Input::Response`].
    Send(Request),
    /// Its record in the store, as it is now: [`Input::Stored`].
    Put,
    /// That time: [`Input::Due`].
    Wake(Wake),
    /// Something that outlives jobs: [`Input::Granted`].
    Need(Need),
    /// Nothing more. It had no effect: its record goes, and then this is said.
    Erase(Error),
    /// Nothing more, until somebody resumes or settles it: its effect is not known.
    Doubt(Error),
    /// Nothing more, until somebody resumes it: what it follows lives on.
    Rest(Error),
    /// Nothing more.
    End(Result<Box<Answered>, Error>),
}

/// What came of an action.
pub(crate) enum Input<'a> {
    /// The time has come; it was to come then.
    Due(Millis),
    /// What came of a request.
    Response(Received<'a>),
    /// What came of storing its record.
    Stored(Stored),
    /// Whether there is now what it needed.
    Granted(Result<Grant, Error>),
}

/// What came of storing a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The store has it.
    Done,
    /// Perhaps it has, perhaps not.
    Failed,
}

/// What a machine needed and has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grant {
    /// A token.
    Token,
    /// The service's time.
    ServerTime,
    /// It counts under the cap of this UTC day.
    Counted { day: i64 },
}

/// What a machine needs and does not have by itself.
#[derive(Debug, Clone)]
pub(crate) enum Need {
    /// A token to send with.
    Token,
    /// The service's time.
    ServerTime,
    /// To count so much under the day's cap, in USD.
    Count { entry: String, usd: Decimal },
}

/// What a machine has to say beside what it waits for. Nothing that it does depends on it.
#[derive(Debug)]
pub(crate) enum Note {
    /// Progress.
    Event(EventKind),
    /// A session was bought.
    Bought(Box<Bought>),
    /// A read showed the session that is followed; a new status is an event where a phase is given.
    Shown(Facts, Option<Phase>),
    /// An answer says how a session is.
    Learnt(Facts),
    /// The session has another exit.
    Moved,
    /// The session is no more.
    Gone,
    /// The order was placed under this number.
    Placed(String),
    /// The service shows the order.
    OrderShown,
    /// What a key counts under the day's cap, as it was charged.
    Charged(Vec<Counted>, Decimal),
    /// Keys that count no more.
    Freed(Vec<Counted>),
    /// Whether the account can buy.
    BackendReady(bool),
}

/// A session that was bought.
#[derive(Debug)]
pub(crate) struct Bought {
    pub(crate) facts: Facts,
    /// What was asked for, where the answer does not say what it is.
    pub(crate) session_type: Option<String>,
}

/// What a part of a job says.
#[derive(Debug)]
pub(crate) enum Part<T> {
    /// It waits for something.
    Asks(Action),
    /// It is over.
    Done(T),
}

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
