//! What is known of a session, beyond the jobs that are about it.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::fingerprint::{Fingerprint, MemberDigests};
use super::ids::CommandId;
use super::names::Name;
use super::observed::Observed;
use super::slot::JobId;
use crate::collections::SmallSet;
use crate::engine::{Known, Phase, Wishes, phase_of};

/// A session that this client follows.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Tracked {
    /// What its record is kept under, where this client has it.
    pub(crate) name: Option<Name>,
    /// What it was bought as, where its caller can come to it by a name of their own.
    pub(crate) bought_as: Option<Arc<BoughtAs>>,
    /// Whether a caller has it: `open_session` or `resume` gave it.
    pub(crate) held: bool,
    /// The commands that have ended with it and were not taken yet.
    pub(crate) promised: SmallSet<CommandId>,
    pub(crate) shown: Shown,
    /// What all who opened it or wait for it want of it.
    pub(crate) wishes: Wishes,
    /// Whether its name was let go of as it was over: should it live again, as a renewed one does, it is taken back.
    pub(crate) lapsed: bool,
    /// What is left in doubt of the changes of it that cost nothing.
    pub(crate) free_doubts: FreeDoubts,
    /// The jobs that are about it.
    pub(crate) jobs: SmallSet<JobId>,
    /// Those of them that change it: one, unless more of them came out of records.
    pub(crate) changing: SmallSet<JobId>,
    pub(crate) observed: Observed,
}

/// The names of changes that cost nothing and were left in doubt. They refuse nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct FreeDoubts {
    /// The next rotation sends this one once more first, so that a late copy of it changes no exit under somebody who uses it.
    pub(crate) rotation: Option<Name>,
    /// A termination that is done deletes this one.
    pub(crate) termination: Option<Name>,
}

impl FreeDoubts {
    pub(crate) fn into_names(self) -> impl Iterator<Item = Name> {
        self.rotation.into_iter().chain(self.termination)
    }
}

/// How a session is, as far as the service or a record has said.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Shown {
    pub(crate) session_type: Option<ArcStr>,
    pub(crate) status: Option<ArcStr>,
    /// USD, as its purchase was charged, where the service said so.
    pub(crate) charged_usd: Option<ArcStr>,
    /// Whether a read has shown it.
    pub(crate) seen: bool,
    /// Whether a person named it, and the service has not shown it yet.
    pub(crate) only_named: bool,
}

impl Shown {
    /// The service has shown it so. Returns whether it was only named by a person until now.
    pub(crate) fn take_in(&mut self, status: Option<&str>, session_type: Option<&str>) -> bool {
        self.seen = true;
        self.status = status.map(word).or(self.status.take());
        self.session_type = session_type.map(word).or(self.session_type.take());
        std::mem::take(&mut self.only_named)
    }
}

/// A status or a type. Of those that the contract names, and thousands of sessions have, no copy is made.
pub(crate) fn word(word: &str) -> ArcStr {
    match word {
        "dynamic" => literal!("dynamic"),
        "static" => literal!("static"),
        "creating" => literal!("creating"),
        "active" => literal!("active"),
        "expired" => literal!("expired"),
        "terminated" => literal!("terminated"),
        other => other.into(),
    }
}

/// What a caller calls what was bought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct BoughtAs {
    pub(crate) name: Name,
    /// Their own name for it, or their own key.
    pub(crate) intent: Option<ArcStr>,
    pub(crate) key: Option<ArcStr>,
    /// Tells its request from another one.
    pub(crate) fingerprint: Fingerprint,
    /// Says in what another one differs.
    pub(crate) members: MemberDigests,
}

impl Tracked {
    /// Whether this client has it: its record, or a caller who holds it.
    pub(crate) fn is_had(&self) -> bool {
        self.name.is_some() || self.held
    }

    /// What a job may know of it.
    pub(crate) fn known(&self) -> Known<'_> {
        let intent = self.bought_as.as_ref().and_then(|known| known.intent.as_deref());
        Known {
            status: self.shown.status.as_deref(),
            session_type: self.shown.session_type.as_deref(),
            seen: self.shown.seen,
            named: self.shown.only_named.then_some(intent),
        }
    }

    /// Whether it is this client's under that name, or was and is asked back.
    pub(crate) fn may_be_under(&self, name: &Name) -> bool {
        self.name.as_ref().is_none_or(|known| known == name)
    }

    pub(crate) fn is_over(&self) -> bool {
        phase_of(self.shown.status.as_deref(), &self.wishes.ends) == Phase::Ended
    }

    /// Whether a caller has it, or is about to. Nobody has what is over for good and was let go of.
    pub(crate) fn is_held(&self) -> bool {
        (self.held || !self.promised.is_empty()) && !(self.lapsed && self.is_over_for_good())
    }

    pub(crate) fn is_over_for_good(&self) -> bool {
        is_over_for_good(self.shown.status.as_deref(), self.shown.session_type.as_deref())
    }

    /// A job that was about it has ended.
    pub(crate) fn without_job(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.changing.remove(&id);
    }

    /// What is still to be known of it once nobody here has it: that it may live again, and which free changes of it are in doubt.
    pub(crate) fn without_name(self) -> Option<Tracked> {
        if self.lapsed && !self.is_over_for_good() {
            return Some(self);
        }
        let free_doubts = self.free_doubts;
        (free_doubts != FreeDoubts::default()).then(|| Tracked { free_doubts, ..Tracked::default() })
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
    let (kind, status) = (tracked.shown.session_type.as_deref(), tracked.shown.status.as_deref());
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
