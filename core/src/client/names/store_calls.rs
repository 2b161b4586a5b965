//! The calls of the store for a name: its claim, the puts of its record, and its release. Records are those of jobs, of sessions, and of
//! finished purchases.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::{REMEMBERED, done_kept_for};
use crate::client::outbox::Pending;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::state::{CommandId, Data, Done, JobId, KeptSession, Name, RequestIdentity, StoreCall, User, WriteResult};
use crate::time::Millis;

impl Router {
    /// Asks the store, or this client's own memory where it has none.
    pub(crate) fn push_store(&mut self, pending: Pending, command: Option<CommandId>, call: StoreCall) {
        self.outbox.ask(pending, command, call, &self.clock());
    }

    /// Puts data under a name of this client's, as soon as no other step of it is out. A waiting job gets the result; without one, the put
    /// is tried again until it is done.
    pub(crate) fn put(&mut self, name: &Name, data: Data, keep_for: Option<Millis>, release: bool, waiter: Option<JobId>) {
        if !self.journal.is_owned(name) {
            return self.put_is_refused(waiter);
        }
        let insists = waiter.is_none();
        self.journal.put(name, data, keep_for, release, (waiter, insists));
        self.push_next(name);
    }

    /// A put goes under no name that is somebody else's: whoever waits for it hears that.
    fn put_is_refused(&mut self, waiter: Option<JobId>) {
        if let Some(id) = waiter {
            self.deferred.push(Deferred::Stored(id, WriteResult::Lost));
        }
    }

    /// Puts data under a name of this client's, lets go of it, and tries that once.
    pub(crate) fn put_once(&mut self, name: &Name, data: Data, keep_for: Millis) {
        if self.journal.is_owned(name) {
            self.journal.put(name, data, Some(keep_for), true, (None, false));
            self.push_next(name);
        }
    }

    /// Lets go of a name, as it is.
    pub(crate) fn release(&mut self, name: &Name) {
        self.journal.release(name);
        self.push_next(name);
    }

    /// The next step of a name, if none is out.
    pub(crate) fn push_next(&mut self, name: &Name) {
        let Some(call) = self.journal.next(name) else { return };
        self.push_store(Pending::Write(name.clone()), None, call);
    }

    /// The name of a job, a new one where it has none.
    pub(crate) fn name_of(&mut self, id: JobId) -> Option<Name> {
        if let Some(name) = &self.jobs.get(id)?.record.name {
            return Some(name.clone());
        }
        let name = self.make_name(Some(User::Job(id)));
        self.jobs.set_name(id, &name);
        Some(name)
    }

    /// A name that nobody has had.
    pub(crate) fn make_name(&mut self, user: Option<User>) -> Name {
        let name = self.new_name();
        self.journal.make(name.clone(), user);
        name
    }

    /// The present record of a job.
    pub(crate) fn job_data(&self, id: JobId) -> Option<Data> {
        let entry = self.jobs.get(id)?;
        let call = entry.record.rare.as_ref().and_then(|rare| rare.placed.clone()).or_else(|| entry.saved_call(&self.clock()));
        let mut data = self.data(entry.record.bought_as.as_deref());
        data.call = call;
        Some(data)
    }

    /// Returns true if the work of a job has been taken over: its name is not its own any more.
    pub(crate) fn is_taken_over(&self, id: JobId, entry: &Entry) -> bool {
        entry.record.taken_over || entry.record.name.as_ref().is_some_and(|name| self.journal.user(name) != Some(&User::Job(id)))
    }

    /// Puts a job's record as it is now. A job whose name was lost puts nothing there, also where this client has claimed it again since.
    pub(crate) fn put_job(&mut self, id: JobId, waiter: Option<JobId>) {
        if self.jobs.get(id).is_some_and(|entry| self.is_taken_over(id, entry)) {
            return self.put_is_refused(waiter);
        }
        let Some(name) = self.name_of(id) else { return };
        if let Some(data) = self.job_data(id) {
            self.put(&name, data, None, false, waiter);
        }
    }

    /// Puts a session as it is; one that is over is let go of. Nothing waits for it.
    pub(crate) fn put_session(&mut self, session: &str) {
        let Some(kept) = self.sessions.kept(session) else { return };
        let Some(name) = kept.name.clone() else { return };
        let lapsed = self.sessions.lapse(session);
        let keep_for = lapsed.filter(|is_for_good| *is_for_good).map(|_| REMEMBERED);
        self.put_kept(&name, kept, keep_for, lapsed.is_some());
    }

    /// Puts the record of a session, and lets go of it where nothing here uses it any more.
    pub(crate) fn put_kept(&mut self, name: &Name, kept: KeptSession, keep_for: Option<Millis>, release: bool) {
        let data = self.session_data(kept);
        self.put(name, data, keep_for, release, None);
        if release {
            self.journal.give(name, None);
        }
    }

    /// The record of a session.
    pub(crate) fn session_data(&self, kept: KeptSession) -> Data {
        let mut data = self.data(kept.bought_as.as_deref());
        data.session = Some(kept.session);
        data
    }

    /// Puts what something ended with, and lets go of its name.
    pub(crate) fn put_done(&mut self, name: &Name, bought_as: Option<&RequestIdentity>, done: Done) {
        let keep_for = done_kept_for(&done);
        let mut data = self.data(bought_as);
        data.done = Some(done);
        self.put(name, data, keep_for, true, None);
    }

    pub(crate) fn data(&self, bought_as: Option<&RequestIdentity>) -> Data {
        self.account.record(self.clock().at(), bought_as)
    }
}

impl Router {
    /// Lets somebody wait for a name.
    pub(crate) fn request_name(&mut self, name: &Name, request: NameRequest) {
        if let Some(command) = request.command {
            self.commands.set_waits_for(command, Some(name.clone()));
        }
        self.name_requests.push(name, request);
        // A write that failed is tried again now, since a command waits for it.
        self.journal.wake(name);
        self.push_next(name);
        match self.journal.user(name) {
            None => self.claim_for_requests(name),
            Some(_) => self.deferred.push(Deferred::Attend(name.clone())),
        }
    }

    /// Claims a name that somebody waits for, unless it is on its way out, or claimed already.
    pub(crate) fn claim_for_requests(&mut self, name: &Name) {
        if self.journal.is_leaving(name) || !self.journal.claim(name) {
            return;
        }
        let command = self.name_requests.iter(name).find_map(|request| self.who_waits(request));
        let call = StoreCall::Claim { names: vec![name.clone()], most: 1 };
        self.push_store(Pending::Claim(name.clone()), command, call);
    }

    /// The command for which somebody waits for a name.
    pub(crate) fn who_waits(&self, request: &NameRequest) -> Option<CommandId> {
        match request.purpose {
            RequestKind::Renewal(id) | RequestKind::Marked(id, _) => self.jobs.command(id),
            _ => request.command,
        }
    }

    pub(crate) fn next_request(&mut self, name: &Name) -> Option<NameRequest> {
        let request = self.name_requests.next(name);
        if let Some(command) = request.as_ref().and_then(|request| request.command) {
            self.commands.set_waits_for(command, None);
        }
        request
    }
}
