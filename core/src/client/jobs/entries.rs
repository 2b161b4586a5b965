//! The state of jobs: begun, parked, with a timer, a place and waiting commands. `run` advances them.

use arcstr::ArcStr;

use crate::client::jobs::job::{Entry, Parked};
use crate::client::router::Router;
use crate::client::text::event::Event;
use crate::collections::SmallSet;
use crate::engine::{EventKind, RecordId};
use crate::policy::Error;
use crate::state::{CommandId, JobId, Name};
use crate::time::Millis;

impl Router {
    pub(crate) fn park(&mut self, id: JobId, parked: Parked) {
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.parked = parked;
        }
    }

    /// A job waits for no place any more.
    pub(crate) fn leave_places(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        if let Parked::Queued { place, turn, .. } = entry.parked {
            entry.parked = Parked::Waking;
            self.places.leave(place, &turn);
        }
    }

    /// A job that waits for neither an answer nor the store lets others send meanwhile.
    pub(crate) fn free_place(&mut self, id: JobId) {
        if let Some(place) = self.jobs.get_mut(&id).and_then(|entry| entry.place.take()) {
            self.places.free(place);
        }
    }

    pub(crate) fn wait_for(&mut self, id: JobId, spends: Vec<u32>) {
        if let (Some(entry), false) = (self.jobs.get_mut(&id), spends.is_empty()) {
            entry.record.rare.get_or_insert_default().spends.extend(spends);
        }
    }

    pub(crate) fn notify(&mut self, id: JobId, what: EventKind) {
        if let Some(Entry { waiting, subject, .. }) = self.jobs.get(&id).map(|entry| &**entry) {
            let event = Event {
                command: waiting.first(),
                operation: subject.operation,
                intent: subject.intent.as_ref().map(ArcStr::to_string),
                what,
            };
            self.outbox.notify(event);
        }
    }

    pub(crate) fn clear_timer(&mut self, id: JobId) {
        let was = self.jobs.get_mut(&id).and_then(|entry| entry.timer.take());
        self.timers.move_job(id, was, None);
    }

    pub(crate) fn set_timer(&mut self, id: JobId, at: Millis) {
        #[cfg(test)]
        {
            self.timers.set += 1;
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            self.timers.move_job(id, job.timer.replace(at), Some(at));
        }
    }

    /// Lets a termination continue without its name, whichever client owns it now: nothing holds it back. Returns true if the job is one.
    pub(crate) fn goes_on_unnamed(&mut self, id: JobId) -> bool {
        let Some(entry) = self.jobs.get_mut(&id).filter(|entry| entry.job.is_termination()) else { return false };
        if let Some(name) = entry.record.name.take() {
            entry.record.rare.get_or_insert_default().left_behind = Some(name);
        }
        entry.record.bought_as = None;
        true
    }

    /// Queues a job.
    pub(crate) fn begin(&mut self, mut entry: Entry, command: CommandId) -> JobId {
        entry.waiting = SmallSet::one(command);
        let session = entry.subject.session_id.clone();
        let id = self.jobs.insert(Box::new(entry));
        self.commands.set_job(command, Some(id));
        session.iter().for_each(|session| self.sessions.join(session, id));
        self.set_timer(id, NOW);
        id
    }

    /// A job is no more: nothing wakes it, and its place is free.
    pub(crate) fn remove_job(&mut self, id: JobId) -> Option<Entry> {
        self.clear_timer(id);
        self.leave_places(id);
        self.free_place(id);
        self.jobs.remove(&id).map(|entry| *entry)
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
        self.sessions.changing(session).find(|id| self.jobs.get(id).is_some_and(|entry| entry.job.follows()))
    }
}

/// Due at once.
const NOW: Millis = Millis::MIN;
