//! The queue of commands for a name. The name is claimed once for all of them, and each is let in with the data found under it, in the
//! order in which they came. A command that comes while a job works under the name joins that job.

use arcstr::ArcStr;

use crate::client::begin::same_request::other_than_job;
use crate::client::deferred::Deferred;
use crate::client::end::commands::PendingWrite;
use crate::client::requests::{NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::client::types::busy;
use crate::policy::{Advice, Kind};
use crate::state::{Data, JobId, Name, RequestIdentity, User};

impl Router {
    /// Lets in the first of those who wait for a name, and then the others: at once where it is this client's, else once it is claimed,
    /// and not while it is on its way out.
    pub(crate) fn attend(&mut self, name: &Name) {
        if !self.name_requests.are_for(name) || self.journal.is_leaving(name) {
            return;
        }
        match self.journal.user(name).cloned() {
            Some(User::Job(id) | User::Marker(id)) => self.join_next(name, id),
            Some(User::Session(session)) => match self.opening(&session) {
                Some(id) => self.join_next(name, id),
                None => self.let_in_to_session(name, &session),
            },
            Some(User::Pool(_)) => {
                let found = self.take_slot(name);
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
            }
            // A result that nobody takes holds no other renewal back. A doubt does, which is found in the store.
            Some(User::Result) if self.is_next_a_renewal(name) => {
                self.journal.give(name, None);
                match self.untaken(name) {
                    Some(data) => self.deferred.push(Deferred::LetIn(name.clone(), Box::new(StoredRecord::Readable(Box::new(data))))),
                    None => self.release(name),
                }
            }
            Some(User::Result) => match self.next_request(name) {
                // The record stays until its result is taken, and is no renewal in doubt.
                Some(NameRequest { purpose: RequestKind::Marked(id, marker), .. }) => {
                    self.admit_marked(name, id, &marker, &StoredRecord::Empty);
                }
                request => {
                    let what = "another call of this client has just ended with this record, and its result has not been taken";
                    request.into_iter().for_each(|request| self.turn_away(request, Kind::Misuse, what, Advice::Wait));
                }
            },
            None => return self.claim_for_requests(name),
        }
        self.deferred.push(Deferred::Attend(name.clone()));
    }

    /// A job is at work under the name, or opens the session whose name it is.
    fn join_next(&mut self, name: &Name, id: JobId) {
        if let Some(request) = self.next_request(name) {
            self.join(id, request);
        }
    }

    /// The name is a session's.
    fn let_in_to_session(&mut self, name: &Name, session: &str) {
        match self.sessions.kept(session).filter(|kept| kept.name.as_ref() == Some(name)) {
            Some(kept) => {
                let data = self.session_data(kept);
                let put_at = self.journal.named_at(name);
                let found = StoredRecord::Readable(Box::new(Data { at: put_at.unwrap_or(data.at), ..data }));
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
            }
            // Only the store has the data under the name.
            None => {
                self.journal.give(name, None);
                self.release(name);
            }
        }
    }

    fn is_next_a_renewal(&self, name: &Name) -> bool {
        self.name_requests.iter(name).next().is_some_and(|request| matches!(request.purpose, RequestKind::Renewal(_)))
    }

    /// Lets in the next of those who wait. Where nobody does, what nobody uses is let go of.
    pub(crate) fn let_in(&mut self, name: Name, found: Box<StoredRecord>) {
        if let Some(request) = self.next_request(&name) {
            self.receive(&name, request, &found);
            self.deferred.push(Deferred::WasLetIn(name, found));
        } else if self.journal.user(&name).is_none() && !self.journal.is_leaving(&name) {
            self.release(&name);
        }
    }

    /// One was let in. The next one is, unless this one has begun something under the name.
    pub(crate) fn was_let_in(&mut self, name: Name, found: Box<StoredRecord>) {
        if self.journal.user(&name).is_some() {
            // The name is not released, so no command waits for that.
            self.answered(&PendingWrite::Name(name.clone()), None);
        }
        if !self.journal.is_busy(&name) && matches!(self.journal.user(&name), None | Some(User::Session(_))) {
            self.deferred.push(Deferred::LetIn(name, found));
        }
    }

    fn receive(&mut self, name: &Name, request: NameRequest, found: &StoredRecord) {
        let request = if matches!(found, StoredRecord::Unreadable(..)) { self.begin_all_the_same(request) } else { Some(request) };
        let Some(NameRequest { command, purpose }) = request else { return };
        match (purpose, command) {
            (RequestKind::Start(start), Some(command)) => self.admit_start(name, command, *start, found),
            (RequestKind::Resume(resume), Some(command)) => self.admit_resume(name, command, *resume, found),
            (RequestKind::Act(act), Some(command)) => self.act(name, command, *act, found),
            (RequestKind::Retry(start), Some(command)) => self.retry_first(name, command, *start, found),
            (RequestKind::DropDoubt, _) => self.drop_doubt(name, found),
            (RequestKind::Renewal(id), _) => self.admit_renewal(name, id, found),
            (RequestKind::Marked(id, marker), _) => self.admit_marked(name, id, &marker, found),
            (RequestKind::DropMarker(own), _) => self.drop_marker(name, &own, found),
            (RequestKind::SessionOver(session), _) => self.session_is_over(name, &session, found),
            (RequestKind::Reclaim(session, _), _) => self.reclaimed(name, &session, found),
            (_, None) => {}
        }
    }

    /// The time has come to ask again for a name, or to try again to write what could not be written.
    pub(crate) fn wake_name(&mut self, name: &Name) {
        self.timers.name_woke(name);
        self.journal.wake(name);
        self.push_next(name);
        self.attend(name);
    }

    /// A job is at work under the name: who wants the same joins it.
    pub(crate) fn join(&mut self, id: JobId, request: NameRequest) {
        match &request.purpose {
            RequestKind::Renewal(other) => return self.renewal_is_busy(*other, None),
            RequestKind::Marked(other, marker) => return self.renewal_is_busy(*other, Some(marker)),
            _ => {}
        }
        let Some(command) = request.command else { return };
        let Some(entry) = self.jobs.get(id) else {
            // Its record is being written for the last time.
            let (operation, ..) = request.subject();
            return self.complete(command, Err(busy(operation, "it has just ended and is still being stored")));
        };
        match request.purpose {
            RequestKind::Start(start) => {
                let fingerprint = |known: &RequestIdentity| known.fingerprint;
                let is_another = entry.record.bought_as.as_deref().map(fingerprint) != start.bought_as.as_ref().map(fingerprint);
                if is_another && !entry.record.name.as_ref().is_some_and(Name::is_of_a_pool) {
                    let status = entry.subject.session_id.as_ref().and_then(|session| self.sessions.status(session)).map(ArcStr::as_str);
                    let error = other_than_job(&start, entry, status, self.record_of(entry));
                    return self.complete(command, Err(error));
                }
                if let Some(error) = self.unusable_job(&start, entry) {
                    return self.complete(command, Err(error));
                }
                self.join_job(id, command, &start.options);
            }
            RequestKind::Resume(resume) => self.join_job(id, command, &resume.options),
            RequestKind::Act(act) => self.act_on_job(command, *act),
            // The rotation is under way again, which is reported like any other change.
            RequestKind::Retry(start) => self.enter(command, *start),
            _ => {}
        }
    }
}
