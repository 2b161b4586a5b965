//! The caller's own names for writes.

use super::journal::JobId;
use crate::contract::Json;
use crate::engine::RecordId;
use crate::time::Millis;
use crate::wire::Facts;

/// The longest answer that an accepted intent is remembered with, in bytes; of a longer one only the facts are kept.
pub(crate) const KEPT_RAW: usize = 4096;

/// What is known of an intent.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Intent {
    /// A job is at it, or holds it.
    Active(JobId),
    /// It was accepted.
    Accepted(Box<Accepted>),
}

/// An accepted intent.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Accepted {
    pub(crate) fingerprint: String,
    pub(crate) operation: &'static str,
    pub(crate) facts: Facts,
    pub(crate) raw: Option<Json>,
    pub(crate) record: Option<RecordId>,
    /// Of `open_session`: the session lives on under this id.
    pub(crate) opened: bool,
    /// When it was accepted, by this client's wall clock: which of two is the later one.
    pub(crate) at: Millis,
    /// When it was finished, by the service's clock: when it was accepted, and of a session, when that was seen to be over.
    pub(crate) finished_at: Option<Millis>,
    /// From when its 30 days count, monotonic; none while its session lives.
    pub(crate) since: Option<Millis>,
}
