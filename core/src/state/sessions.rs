//! What is known of a session, beyond the jobs that are about it.

use std::collections::BTreeSet;

use super::journal::JobId;
use super::observed::Observed;
use crate::engine::{Known, Phase, RecordId, phase_of};
use crate::time::Millis;

/// A session that this client follows.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Tracked {
    pub(crate) record: Option<RecordId>,
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
    /// When it was seen to be over, by the service's clock.
    pub(crate) over_at: Option<Millis>,
    /// Whether its record went as it was over: should it live again, as a renewed one does, it gets another.
    pub(crate) lapsed: bool,
    /// The jobs that change it: one, unless more of them came out of records.
    pub(crate) changing: BTreeSet<JobId>,
    /// The intent it was bought under, and what tells its request from another.
    pub(crate) intent: Option<(String, String)>,
    pub(crate) observed: Observed,
}

impl Tracked {
    /// What a job may know of it.
    pub(crate) fn known(&self) -> Known<'_> {
        let intent = self.intent.as_ref().map(|(name, _)| name.as_str());
        Known {
            status: self.status.as_deref(),
            session_type: self.session_type.as_deref(),
            seen: self.seen,
            named: self.only_named.then(|| (intent, self.record.as_ref().map(|record| record.0.as_str()))),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        phase_of(self.status.as_deref(), &self.ends) == Phase::Ended
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
