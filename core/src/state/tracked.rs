//! One session: the facts about it, who has it, and the jobs that work on it.

use std::sync::Arc;

use arcstr::{ArcStr, literal};

use super::fingerprint::{Fingerprint, MemberDigests};
use super::ids::CommandId;
use super::names::Name;
use super::observed::Observed;
use super::record::{LaterPurchase, SavedSession};
use super::slot::JobId;
use crate::collections::SmallSet;
use crate::engine::{Known, Phase, SessionOptions, is_over_for_good, phase_of, refuses_renewal, refuses_rotation};

/// A session that this client follows.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Tracked {
    /// The name of its record, if this client has it.
    pub(super) name: Option<Name>,
    /// The identity of its purchase, if its caller can find it by a name of their own.
    pub(super) bought_as: Option<Arc<RequestIdentity>>,
    /// True if a caller has a handle of the session, from `open_session` or `resume`.
    pub(super) held: bool,
    /// The commands that have ended with the session and were not taken yet.
    pub(super) promised: SmallSet<CommandId>,
    pub(super) shown: Shown,
    /// The combined options of all callers that opened the session or wait for it.
    pub(super) session_options: SessionOptions,
    /// True if the name was released when the session was over: if the session becomes usable again, as a renewed one does, the name is
    /// claimed again.
    pub(super) lapsed: bool,
    /// The doubts about changes of the session that cost nothing.
    pub(super) free_doubts: FreeDoubts,
    /// The jobs that work on the session.
    pub(super) jobs: SmallSet<JobId>,
    /// Those of them that change it: one, unless more came out of records.
    pub(super) changing: SmallSet<JobId>,
    pub(super) observed: Observed,
    /// What its pool remembers of it.
    pub(super) pool_notes: Option<ArcStr>,
}

/// The names of changes that cost nothing and were left in doubt. These doubts refuse nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct FreeDoubts {
    /// The rotation in doubt that the next rotation sends once more first, so that a late copy of it changes no exit while it is used.
    pub(super) rotation: Option<Name>,
    /// The termination in doubt, whose record a successful termination deletes.
    pub(super) termination: Option<Name>,
}

impl FreeDoubts {
    pub(super) fn into_names(self) -> impl Iterator<Item = Name> {
        self.rotation.into_iter().chain(self.termination)
    }
}

/// The state of a session, as far as the service or a record has shown it.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Shown {
    pub(super) session_type: Option<ArcStr>,
    pub(super) status: Option<ArcStr>,
    /// The charge of the purchase in USD, if the service stated it.
    pub(super) charged_usd: Option<ArcStr>,
    /// The protocol of the proxy, as the purchase named it.
    pub(super) protocol: Option<ArcStr>,
    /// True if a read has shown the session.
    pub(super) seen: bool,
    /// True if a person named the session, and the service has not confirmed it yet.
    pub(super) unconfirmed: bool,
    /// True if it counts as over because one answer did not find it.
    pub(super) not_found: bool,
}

impl Shown {
    /// Takes the state that the service has shown. Returns true if the session was only named by a person until now.
    pub(super) fn take_in(&mut self, status: Option<&str>, session_type: Option<&str>) -> bool {
        (self.seen, self.not_found) = (true, false);
        self.status = status.map(word).or(self.status.take());
        self.session_type = session_type.map(word).or(self.session_type.take());
        std::mem::take(&mut self.unconfirmed)
    }
}

/// A status or a type. The contract's own words, which thousands of sessions have, are not copied.
pub(super) fn word(word: &str) -> ArcStr {
    match word {
        "dynamic" => literal!("dynamic"),
        "static" => literal!("static"),
        "http" => literal!("http"),
        "creating" => literal!("creating"),
        "active" => literal!("active"),
        "expired" => literal!("expired"),
        "terminated" => literal!("terminated"),
        other => other.into(),
    }
}

/// The caller's names for a purchase.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RequestIdentity {
    pub(crate) name: Name,
    /// The intent, or the caller's own key.
    pub(crate) intent: Option<ArcStr>,
    pub(crate) key: Option<ArcStr>,
    /// A digest that distinguishes its request from another one.
    pub(crate) fingerprint: Fingerprint,
    /// Digests that say where another request differs.
    pub(crate) members: MemberDigests,
    /// Its place among the purchases of its intent, if there was an earlier one.
    pub(crate) later: Option<Box<LaterPurchase>>,
}

impl Tracked {
    /// Returns true if this client has the session: its record, or a caller with a handle.
    pub(super) fn is_had(&self) -> bool {
        self.name.is_some() || self.held
    }

    /// The facts that a job may use.
    pub(super) fn known(&self) -> Known<'_> {
        let intent = self.bought_as.as_ref().and_then(|known| known.intent.as_deref());
        Known {
            status: self.shown.status.as_deref(),
            session_type: self.shown.session_type.as_deref(),
            seen: self.shown.seen,
            named: self.shown.unconfirmed.then_some(intent),
        }
    }

    /// Returns true if this client has the session under that name, or had it and claims it again.
    pub(super) fn may_be_under(&self, name: &Name) -> bool {
        self.name.as_ref().is_none_or(|known| known == name)
    }

    pub(super) fn phase(&self) -> Phase {
        phase_of(self.shown.status.as_deref(), &self.session_options.ends)
    }

    pub(super) fn is_over(&self) -> bool {
        self.phase() == Phase::Ended
    }

    /// Returns true if a caller has a handle of the session, or is about to get one. A session that is over for good and was released does
    /// not count.
    pub(super) fn is_held(&self) -> bool {
        (self.held || !self.promised.is_empty()) && !(self.lapsed && self.is_over_for_good())
    }

    pub(super) fn is_over_for_good(&self) -> bool {
        !self.shown.not_found && is_over_for_good(self.shown.status.as_deref(), self.shown.session_type.as_deref())
    }

    /// Removes a job that has ended.
    pub(super) fn without_job(&mut self, id: JobId) {
        self.jobs.remove(&id);
        self.changing.remove(&id);
    }

    /// The facts to keep once this client has released the session: that it may become usable again, and the doubts about its free changes.
    pub(super) fn without_name(self) -> Option<Tracked> {
        if self.lapsed && !self.is_over_for_good() && !self.shown.not_found {
            return Some(self);
        }
        let free_doubts = self.free_doubts;
        (free_doubts != FreeDoubts::default()).then(|| Tracked { free_doubts, ..Tracked::default() })
    }

    /// The reason to refuse a change of the session without a request, from what is known.
    pub(super) fn forbids(&self, operation: &str) -> Option<String> {
        let (kind, status) = (self.shown.session_type.as_deref(), self.shown.status.as_deref());
        match (operation, kind, status) {
            ("rotate_session", Some(kind), _) if kind != "dynamic" => {
                Some(format!("names a {kind} session, and only a dynamic one can be rotated"))
            }
            ("rotate_session", _, Some(status)) if refuses_rotation(status) => {
                Some(format!("names a session that is {status}, and only an active one can be rotated"))
            }
            ("renew_session", Some(kind), _) if kind != "static" => {
                Some(format!("names a {kind} session, and only a static one can be renewed"))
            }
            ("renew_session", _, Some(status)) if refuses_renewal(status) => {
                Some(format!("names a session that is {status}, and only an active or expired one can be renewed"))
            }
            _ => None,
        }
    }

    /// The session as its record has it.
    pub(super) fn saved(&self, id: &str) -> SavedSession {
        let text = |word: &Option<ArcStr>| word.as_ref().map(ArcStr::to_string);
        SavedSession {
            id: id.to_owned(),
            session_type: text(&self.shown.session_type),
            status: text(&self.shown.status),
            credentials: self.session_options.credentials,
            auto_rotate: self.session_options.auto_rotate,
            ends: self.session_options.ends.to_vec(),
            unconfirmed: self.shown.unconfirmed,
            charged_usd: text(&self.shown.charged_usd),
            protocol: text(&self.shown.protocol),
            pool_notes: text(&self.pool_notes),
            was: None,
        }
    }
}
