//! Jobs that begin, that are woken, and whose events are passed on. `run` advances them.

use arcstr::ArcStr;

use crate::client::jobs::job::Entry;
use crate::client::router::Router;
use crate::client::text::event::Event;
use crate::engine::{EventKind, RecordId};
use crate::policy::Error;
use crate::state::{CommandId, JobId, Name};
use crate::time::Millis;

impl Router {
    pub(crate) fn notify(&mut self, id: JobId, what: EventKind) {
        if let Some(Entry { waiting, subject, .. }) = self.jobs.get(id) {
            let event = Event {
                command: waiting.first(),
                operation: subject.operation,
                intent: subject.intent.as_ref().map(ArcStr::to_string),
                what,
            };
            self.outbox.notify(event);
        }
    }

    pub(crate) fn set_timer(&mut self, id: JobId, at: Millis) {
        #[cfg(test)]
        {
            self.timers.set += 1;
        }
        self.jobs.set_timer(id, at, &mut self.timers);
    }

    /// Queues a job.
    pub(crate) fn begin(&mut self, entry: Entry, command: CommandId) -> JobId {
        let session = entry.subject.session_id.clone();
        let id = self.jobs.begin(entry, command);
        self.commands.set_job(command, Some(id));
        session.iter().for_each(|session| self.sessions.join(session, id));
        self.set_timer(id, NOW);
        id
    }

    /// The error for a command that no longer waits for a job.
    pub(crate) fn cancelled_error(&self, entry: &Entry) -> Error {
        entry.cancelled_error().with(|new| new.record = self.record_of(entry).map(|record| record.0))
    }

    /// The record of a job that is at work, or of the session that it is about, where something was put there.
    pub(crate) fn record_of(&self, entry: &Entry) -> Option<RecordId> {
        self.kept_under(entry).filter(|name| self.journal.is_put(name)).and_then(|name| self.journal.record_of(&name))
    }

    /// The name of a job's record, or of its session's.
    pub(crate) fn kept_under(&self, entry: &Entry) -> Option<Name> {
        let of_session = || self.sessions.name(entry.subject.session_id.as_deref()?).cloned();
        entry.record.name.clone().or_else(of_session)
    }

    /// The job that opens a session, while it is at it.
    pub(crate) fn opening(&self, session: &str) -> Option<JobId> {
        self.sessions.changing(session).find(|id| self.jobs.follows(*id))
    }
}

/// Due at once.
const NOW: Millis = Millis::MIN;
