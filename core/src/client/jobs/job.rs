//! A job as the client keeps it: its machine, who waits for it, what it waits for, and the record that it is kept under.

use std::sync::Arc;

use arcstr::ArcStr;

use crate::client::jobs::places::QueueTurn;
use crate::collections::SmallSet;
use crate::contract::{ANY, Safety};
use crate::engine::{Job, Phase, Place, RecordId, SessionOptions, Subject, WaitOptions};
use crate::options::CallOptions;
use crate::policy::{Error, RetryPolicy};
use crate::state::{CommandId, Name, RequestIdentity, SavedCall, StepId, Version};
use crate::time::{Clock, Millis};

/// The thing that a job waits for.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Parked {
    /// A time.
    Waking,
    /// A place among the sends that are out; its time came then.
    Queued { place: Place, turn: QueueTurn, due: Millis },
    /// The store has the result of an earlier renewal under another name: its record is where this one's will be.
    Moving { from: Name, to: Name },
    /// The store has its record.
    Storing,
    /// The store has the marker that says where its record will be.
    Marking,
    /// The count under the day's cap.
    Counting,
    /// An answer.
    Sending(StepId),
    /// A login.
    LoggingIn,
    /// The service's time.
    ReadingTime,
}

/// The record of a job: its name and its use.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct JobRecord {
    pub(crate) name: Option<Name>,
    /// The caller's names for it.
    pub(crate) bought_as: Option<Arc<RequestIdentity>>,
    /// The name of its session's record, if one was put for it.
    pub(crate) session_name: Option<Name>,
    /// The version of what is in the store under its name, or may be.
    pub(crate) last_put: Option<Version>,
    /// True if the name was lost to another client: nothing more is sent or put for it.
    pub(crate) taken_over: bool,
    /// Of a job that only reads the accepted result of an intent: what its record and this client knew of that. Whatever the read brings,
    /// the intent stays accepted.
    pub(crate) recalls: Option<Phase>,
    /// Boxed, as most jobs have none of it.
    pub(crate) rare: Option<Box<JobExtras>>,
}

/// The members that few jobs have.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct JobExtras {
    /// Another name whose record goes when the result was taken: that of the session it ended.
    pub(crate) also_delete: Option<Name>,
    /// Further names that are let go of with it: doubts about the session that it ended, the name of the session's renewals.
    pub(crate) dropped: Vec<Name>,
    /// Of a termination that goes on without its name: that name, where its record may be left. A termination may lose several.
    pub(crate) left_behind: Vec<Name>,
    /// Of a renewal that has a name of its caller's: where the marker is that says so.
    pub(crate) marker: Option<Name>,
    /// Of a renewal: whether its session was ended meanwhile.
    pub(crate) session_over: bool,
    /// Of a setting: whether a newer one that sets its members was accepted meanwhile.
    pub(crate) set_anew: bool,
    /// The changes under the day's cap that were not answered yet.
    pub(crate) spends: Vec<u32>,
    pub(crate) doubt_since: Option<Millis>,
    /// Of an order that was placed: the call that placed it.
    pub(crate) placed: Option<SavedCall>,
}

/// A job.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Entry {
    pub(crate) job: Job,
    pub(crate) parked: Parked,
    /// The place that it has.
    pub(crate) place: Option<Place>,
    pub(crate) subject: Subject,
    pub(crate) wants: WaitOptions,
    /// The commands that wait for the end.
    pub(crate) waiting: SmallSet<CommandId>,
    /// True if a caller waits for the job; false after the last one has cancelled.
    pub(crate) wanted: bool,
    pub(crate) timer: Option<Millis>,
    pub(crate) record: JobRecord,
}

impl JobRecord {
    /// The members that few jobs have.
    pub(crate) fn rare(&mut self) -> &mut JobExtras {
        self.rare.get_or_insert_default()
    }

    /// Returns true if a newer setting that sets its members was accepted meanwhile.
    pub(crate) fn is_set_anew(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.set_anew)
    }

    /// Its record, as it was put last.
    pub(crate) fn id(&self) -> Option<RecordId> {
        Some(self.name.as_ref()?.at(self.last_put?))
    }
}

impl Entry {
    pub(crate) fn new(job: Job, subject: Subject, options: &CallOptions) -> Self {
        let credentials = options.credentials.unwrap_or_else(|| job.is_of_session());
        let session_options = SessionOptions { credentials, auto_rotate: options.auto_rotate, ends: options.ends.clone().into() };
        let wants = WaitOptions { session_options, deadline_ms: options.deadline(), since: None, queued: 0 };
        Entry {
            job,
            parked: Parked::Waking,
            place: None,
            subject,
            wants,
            waiting: SmallSet::default(),
            wanted: true,
            timer: None,
            record: JobRecord::default(),
        }
    }

    /// The part of its record that is the call itself.
    pub(crate) fn saved_call(&self, clock: &Clock) -> Option<SavedCall> {
        let write = self.job.write()?;
        let (endpoint, built, ledger) = (write.call.exchange.endpoint, &write.call.exchange.built, &write.call.ledger);
        // A request that is never sent again needs no body, and the body of a caller's own request may hold anything.
        let bodiless = built.secret || endpoint.safety == Safety::AtMostOnce;
        Some(SavedCall {
            operation: endpoint.name.to_owned(),
            any: (endpoint.name == ANY).then_some((endpoint.method, endpoint.safety)),
            target: if built.secret { endpoint.path.to_owned() } else { built.target.clone() },
            body: if bodiless { None } else { built.body.clone() },
            secret: built.secret,
            session_id: self.subject.session_id.as_ref().map(ArcStr::to_string),
            key: ledger.key.clone(),
            given: ledger.given,
            may_have_sold: ledger.may_have_sold,
            unanswered: ledger.unanswered,
            key_settled: write.key.settled,
            follows: self.job.follows(),
            credentials: self.wants.session_options.credentials,
            auto_rotate: self.wants.session_options.auto_rotate,
            ends: self.wants.session_options.ends.to_vec(),
            age: write.key.saved_age(clock),
            doubt_since: self.record.rare.as_ref().and_then(|rare| rare.doubt_since),
            counted: write.terms.counted.clone(),
            match_fields: built.match_fields.clone(),
            order_no: None,
            session_over: self.record.rare.as_ref().is_some_and(|rare| rare.session_over),
            refused: false,
            choice: write.terms.choice.as_ref().map(|choice| choice.saved.clone()),
        })
    }

    /// The error for a command that no longer waits for it.
    pub(crate) fn cancelled_error(&self) -> Error {
        self.job.cancelled_error(&self.subject)
    }

    /// Takes in the options of a start that joins it: whatever more is wanted of the session. If the job goes on only for
    /// that start, all of them count, since those of the first start are not kept in records.
    pub(crate) fn join(&mut self, options: &CallOptions, policy: RetryPolicy) {
        let credentials = options.credentials.unwrap_or_else(|| self.job.is_of_session());
        self.wants.session_options.want(credentials, options.auto_rotate);
        self.wants.session_options.want_ends(&options.ends);
        match self.wanted {
            true => self.job.lower_limit(options.max_unit_price),
            false => self.continue_for(options, policy),
        }
    }

    /// Continues for that start alone, with all of its options.
    pub(crate) fn continue_for(&mut self, options: &CallOptions, policy: RetryPolicy) {
        self.wants.since = None;
        self.wants.deadline_ms = options.deadline();
        self.job.take_options(headers(options), policy, options.max_unit_price, options.expected_charge_usd);
    }
}

pub(crate) fn headers(options: &CallOptions) -> Vec<(String, String)> {
    options.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.reveal().to_owned())).collect()
}
