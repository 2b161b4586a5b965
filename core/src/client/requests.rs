//! The requests of commands, and of the client itself: for a name, for a list, for a time. Nothing here acts.

use crate::options::CallOptions;
use arcstr::ArcStr;

use crate::contract::agent::RenewSession;
use crate::contract::{Endpoint, Operation};
use crate::engine::{RecordId, Then};
use crate::policy::Effect;
use crate::state::{BadRecord, CommandId, Data, JobId, Name, RequestIdentity};
use crate::time::Millis;
use crate::wire::Built;

/// The data under a name.
#[derive(Debug, Clone, Hash)]
pub(super) enum StoredRecord {
    Empty,
    Readable(Box<Data>),
    /// The record can't be used; holds the caller's own name as far as that can be read.
    Unreadable(BadRecord, Option<String>),
}

/// A setting that is in doubt.
#[derive(Debug, Clone, Hash)]
pub(super) struct SettingInDoubt {
    /// Its job, which tells what began later.
    pub(super) began: JobId,
    pub(super) name: Name,
    /// The members that it sets.
    pub(super) members: Vec<String>,
}

/// A setting that was accepted.
#[derive(Debug, Clone, Hash)]
pub(super) struct AcceptedSetting {
    /// The members that it sets.
    pub(super) members: Vec<String>,
    /// No setting that began later is set anew by it. Unix milliseconds.
    pub(super) began: Millis,
    /// The doubts that were found so far.
    pub(super) undone: Vec<Name>,
}

/// A wait for a name.
#[derive(Debug, Clone, Hash)]
pub(super) struct NameRequest {
    /// The command that waits; `None` for the client itself.
    pub(super) command: Option<CommandId>,
    pub(super) purpose: RequestKind,
}

impl NameRequest {
    pub(super) fn new(command: Option<CommandId>, purpose: RequestKind) -> Self {
        NameRequest { command, purpose }
    }
}

/// The purpose of a wait for a name.
#[derive(Debug, Clone, Hash)]
pub(super) enum RequestKind {
    /// To begin it, or go on with it.
    Start(Box<Start>),
    /// To go on with it.
    Resume(Box<Resume>),
    /// To close a doubt, to forget it, to look for what became of it.
    Act(Box<Act>),
    /// To send a rotation that is in doubt once more, before this one.
    Retry(Box<Start>),
    /// To delete a doubt that is of no use any more: a free change of a session that is over, or a setting that names no other members.
    DropDoubt,
    /// To put a renewal there, unless another one of its session is in doubt.
    Renewal(JobId),
    /// To see whether the renewal that a marker speaks of is in doubt, before another one is put where the marker is.
    Marked(JobId, Name),
    /// To delete a marker that speaks of this name.
    DropMarker(Name),
    /// To say of a renewal in doubt that its session was ended since.
    SessionOver(ArcStr),
    /// To take back a session that lives again, or whose claim has ended; and how often the store has failed meanwhile.
    Reclaim(ArcStr, u32),
}

/// A write that is to begin.
#[derive(Debug, Clone, Hash)]
pub(super) struct Start {
    pub(super) endpoint: &'static Endpoint,
    pub(super) built: Built,
    pub(super) then: Then,
    pub(super) options: CallOptions,
    /// The caller's names for it.
    pub(super) bought_as: Option<RequestIdentity>,
    /// The number of claims that were made in vain, and the time at which it gives up.
    pub(super) patience: Option<(u32, Millis)>,
    /// The session that its intent stood for and that it has found to be over for good.
    pub(super) over: Option<ArcStr>,
}

/// A rotation that begins once an earlier one was sent once more.
#[derive(Debug, Clone, Hash)]
pub(super) struct AfterRetry {
    pub(super) start: Box<Start>,
    /// True if its caller still waits for it.
    pub(super) is_wanted: bool,
}

/// Going on with what there is.
#[derive(Debug, Clone, Hash)]
pub(super) struct Resume {
    pub(super) options: CallOptions,
    /// The intent that it was asked by; then nothing under it is no mistake.
    pub(super) intent: Option<String>,
}

impl Start {
    /// The effect of a write that ends before its name was claimed: under its caller's own name it may have been done before.
    pub(super) fn effect(&self) -> Effect {
        if self.bought_as.is_some() { Effect::Unknown } else { Effect::None }
    }
}

impl NameRequest {
    /// The operation, the caller's own name for it, and its effect as long as the name is not claimed.
    pub(super) fn subject(&self) -> (&'static str, Option<String>, Effect) {
        match &self.purpose {
            RequestKind::Start(start) | RequestKind::Retry(start) => (start.endpoint.name, start.options.intent.clone(), start.effect()),
            // A resumed operation may have taken effect.
            RequestKind::Resume(resume) => ("resume", resume.intent.clone(), Effect::Unknown),
            RequestKind::Act(act) => (act.operation(), None, Effect::None),
            RequestKind::Renewal(_) | RequestKind::Marked(..) => (RenewSession::ENDPOINT.name, None, Effect::None),
            RequestKind::Reclaim(..) | RequestKind::DropDoubt | RequestKind::DropMarker(_) | RequestKind::SessionOver(_) => {
                ("store", None, Effect::None)
            }
        }
    }
}

/// A person's finding about an operation in doubt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// The operation took effect.
    Happened,
    /// The operation took effect, with this result: the id of a session or of a recharge, the number of an order or of a sub-user.
    Became(String),
    /// The operation did not take effect. Refused until an hour after the last send, since it may arrive for that long.
    NotHappened {
        /// True to settle before that.
        early: bool,
    },
}

/// A thing that wakes at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Timer {
    Job(JobId),
    /// A failed write is tried again, and a command whose name is busy claims it again.
    Name(Name),
    Spend(u32),
    /// A session is claimed again, since the store has failed so often.
    Reclaim(Box<(Name, ArcStr, u32)>),
}

/// An act on a record.
#[derive(Debug, Clone, Hash)]
pub(super) struct Act {
    /// The version that was looked at; another one is not touched.
    pub(super) version: Option<String>,
    pub(super) what: ActKind,
    /// The results of other records: the operation, its result, and the record.
    pub(super) others: Vec<(String, String, RecordId)>,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum ActKind {
    Settle(Settlement),
    Forget,
    Reconcile(Box<CallOptions>),
}

impl Act {
    pub(super) fn operation(&self) -> &'static str {
        match self.what {
            ActKind::Settle(_) => "settle",
            ActKind::Forget => "forget",
            ActKind::Reconcile(_) => "reconcile",
        }
    }
}

/// A list that is read.
#[derive(Debug, Clone, Hash)]
pub(super) struct Listing {
    pub(super) command: CommandId,
    pub(super) what: ListingPurpose,
}

#[derive(Debug, Clone, Hash)]
pub(super) enum ListingPurpose {
    /// One page for people.
    Page,
    /// All pages, for what is open.
    Open { found: Vec<Name>, options: Box<CallOptions> },
    /// The found entries are resumed: those that wait, the number under way, and those that have ended.
    Resuming { waiting: Vec<Name>, out: usize, ended: Vec<CommandId>, options: Box<CallOptions> },
    /// All pages, for what other records stand for.
    Others(Name, Box<Act>),
    /// All pages, for doubts that other processes left about settings which an accepted one has set anew.
    Settings(Box<AcceptedSetting>),
}
