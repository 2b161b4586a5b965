//! What is known of a session, beyond the jobs that are about it.

use std::collections::BTreeSet;

use super::ids::CommandId;
use super::journal::JobId;
use super::names::Name;
use super::observed::Observed;
use crate::engine::{Known, Phase, phase_of};

/// A session that this client follows.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Tracked {
    /// What its record is kept under, where this client has it.
    pub(crate) name: Option<Name>,
    /// Whether a caller has it: `open_session` or `resume` gave it.
    pub(crate) held: bool,
    /// The commands that have ended with it and were not taken yet.
    pub(crate) promised: BTreeSet<CommandId>,
    pub(crate) session_type: Option<String>,
    pub(crate) status: Option<String>,
    /// Whether a read has shown it.
    pub(crate) seen: bool,
    /// Whether a person named it, and the service has not shown it yet.
    pub(crate) only_named: bool,
    /// Whether its username and password are wanted.
    pub(crate) credentials: bool,
    /// Whether what is seen through it may rotate it.
    pub(crate) auto_rotate: bool,
    /// Further statuses that end it.
    pub(crate) ends: Vec<String>,
    /// Whether its name was let go of as it was over: should it live again, as a renewed one does, it is taken back.
    pub(crate) lapsed: bool,
    /// The name of a change of it that was left in doubt.
    pub(crate) doubt: Option<Name>,
    /// The jobs that are about it.
    pub(crate) jobs: BTreeSet<JobId>,
    /// Those of them that change it: one, unless more of them came out of records.
    pub(crate) changing: BTreeSet<JobId>,
    /// What it was bought as, where its caller can come to it by a name of their own.
    pub(crate) bought_as: Option<Box<BoughtAs>>,
    pub(crate) observed: Observed,
}

/// What a caller calls what was bought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BoughtAs {
    pub(crate) name: Name,
    /// Their own name for it, or their own key.
    pub(crate) intent: Option<String>,
    pub(crate) key: Option<String>,
    /// Tells its request from another one.
    pub(crate) fingerprint: String,
}

impl Tracked {
    /// What a job may know of it.
    pub(crate) fn known(&self) -> Known<'_> {
        let intent = self.bought_as.as_ref().and_then(|known| known.intent.as_deref());
        Known {
            status: self.status.as_deref(),
            session_type: self.session_type.as_deref(),
            seen: self.seen,
            named: self.only_named.then_some(intent),
        }
    }

    /// Whether it is this client's under that name, or was and is asked back.
    pub(crate) fn may_be_under(&self, name: &Name) -> bool {
        self.name.as_ref().is_none_or(|known| known == name)
    }

    pub(crate) fn is_over(&self) -> bool {
        phase_of(self.status.as_deref(), &self.ends) == Phase::Ended
    }

    /// Whether a caller has it, or is about to. Nobody has what is over for good and was let go of.
    pub(crate) fn is_held(&self) -> bool {
        (self.held || !self.promised.is_empty()) && !(self.lapsed && self.is_over_for_good())
    }

    pub(crate) fn is_over_for_good(&self) -> bool {
        is_over_for_good(self.status.as_deref(), self.session_type.as_deref())
    }

    /// A job that was about it has ended.
    pub(crate) fn without_job(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.changing.remove(&id);
    }

    /// What is still to be known of it once nobody here has it: that it may live again, and which change of it is in doubt.
    pub(crate) fn without_name(self) -> Option<Tracked> {
        if self.lapsed && !self.is_over_for_good() {
            return Some(self);
        }
        self.doubt.is_some().then(|| Tracked { doubt: self.doubt, ..Tracked::default() })
    }
}

/// Whether a session can never be usable again: a static one that has expired can still be renewed.
pub(crate) fn is_over_for_good(status: Option<&str>, session_type: Option<&str>) -> bool {
    match status {
        Some("terminated") => true,
        Some("expired") => session_type == Some("dynamic"),
        _ => false,
    }
}

/// Why a change of a session is refused without a request, as far as is known.
pub(crate) fn forbidden(operation: &str, tracked: &Tracked) -> Option<String> {
    let (kind, status) = (tracked.session_type.as_deref(), tracked.status.as_deref());
    match (operation, kind, status) {
        ("rotate_session", Some(kind), _) if kind != "dynamic" => {
            Some(format!("names a {kind} session, and only a dynamic one can be rotated"))
        }
        ("rotate_session", _, Some(status @ ("creating" | "expired"))) => {
            Some(format!("names a session that is {status}, and only an active one can be rotated"))
        }
        ("renew_session", Some(kind), _) if kind != "static" => {
            Some(format!("names a {kind} session, and only a static one can be renewed"))
        }
        ("renew_session", _, Some(status @ "creating")) => {
            Some(format!("names a session that is {status}, and only an active or expired one can be renewed"))
        }
        _ => None,
    }
}
