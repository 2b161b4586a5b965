//! When a record is deleted, and how long a record is kept that nothing deletes. All reasons and all times stand here: no other file
//! deletes a record, and none says how long one is kept.

use crate::client::jobs::job::Entry;
use crate::client::router::Router;
use crate::contract::agent::{CreateSession, TerminateSession};
use crate::contract::{Endpoint, Operation};
use crate::state::{Done, Name, User};
use crate::time::Millis;

/// The reason to delete a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// The write had no effect, and its name is not a pool's slot. The error is reported once the record is gone.
    NoEffect,
    /// A person forgot the record.
    Forgotten,
    /// A person settled a doubt as not happened, or as happened where no caller can find it again.
    Settled,
    /// The result was taken, or dropped: of a write without a name of its caller's, and of a session that is over.
    ResultTaken,
    /// The session was terminated, and its caller has no name for it.
    Terminated,
    /// A change that costs nothing was done, and its caller has no name for it.
    FreeChange,
    /// A doubt has lost its use: the session is over, a newer setting was accepted, or a termination has left the record behind.
    UselessDoubt,
    /// The renewal of which a marker tells has ended.
    Marker,
}

impl Deletion {
    /// Returns true if a failed deletion is tried again until it succeeds. The others are tried once, since a result waits for them, and
    /// says what came of them.
    fn insists(self) -> bool {
        !matches!(self, Deletion::NoEffect | Deletion::Forgotten | Deletion::Settled)
    }
}

impl Router {
    /// Deletes the record under a name of this client's, or releases the name where it has none.
    pub(crate) fn delete(&mut self, name: &Name, why: Deletion) {
        self.journal.delete(name, why.insists());
        self.push_next(name);
    }

    /// Deletes the record of a result, unless something else is under its name by now.
    pub(crate) fn delete_result(&mut self, name: &Name) {
        if self.journal.user(name) == Some(&User::Result) {
            self.delete(name, Deletion::ResultTaken);
        }
    }
}

/// The time for which a finished operation is remembered. 30 days.
pub(crate) const REMEMBERED: Millis = 30 * 24 * 3600 * 1000;

/// The time for which a doubt about a rotation or telemetry, without a name of its caller's, is kept. A day.
const DOUBT_KEPT: Millis = 24 * 3600 * 1000;

/// The time for which a finished operation is kept. A purchase whose session may still be usable is kept forever, so that its intent buys
/// no other.
pub(crate) fn done_kept_for(done: &Done) -> Option<Millis> {
    let is_session = done.operation == CreateSession::ENDPOINT.name;
    (!is_session || done.is_over_for_good()).then_some(REMEMBERED)
}

/// The time for which the doubt of a job is kept: forever, unless the operation is free, no costs go on, and its caller has no name for it.
pub(crate) fn doubt_kept_for(entry: &Entry) -> Option<Millis> {
    let is_passing = |endpoint: &Endpoint| {
        let is_free = endpoint.is_free_change() || endpoint.name == "report_session_event";
        is_free && endpoint.name != TerminateSession::ENDPOINT.name
    };
    let write = entry.job.write().filter(|_| entry.record.bought_as.is_none())?;
    is_passing(write.call.exchange.endpoint).then_some(DOUBT_KEPT)
}

/// The time for which the key of a refused call is kept that may be sent for so long. The record of a slot, or of a later purchase
/// of an intent, tells which purchase is the next one, too.
pub(crate) fn refused_kept_for(name: &Name, is_later: bool, may_be_sent: Millis) -> Millis {
    if name.is_of_a_pool() || is_later { REMEMBERED } else { may_be_sent }
}
