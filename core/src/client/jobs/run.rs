//! The only place where what a job asks for is carried out, and where it is told what came of it.

use crate::client::deferred::Deferred;
use crate::client::jobs::entries::LentJob;
use crate::client::jobs::job::Parked;
use crate::client::outbox::Pending;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::engine::{Action, Cx, EventKind, Grant, Input, Job, Need, Note, Stored, Wake};
use crate::policy::{Rule, jittered};
use crate::state::{CommandId, JobId, SharedKind, WriteResult};
use crate::time::Millis;
use crate::wire::Request;

impl Router {
    /// Tells a job what came of what it waited for, and carries out what it asks for next.
    pub(crate) fn tell(&mut self, id: JobId, input: Input<'_>) {
        self.advance_job(id, |job, cx| job.handle(input, cx));
    }

    /// Advances a job, and then carries out what it asks for.
    pub(crate) fn advance_job(&mut self, id: JobId, act: impl FnOnce(&mut Job, &mut Cx<'_>) -> Action) {
        let from = self.deferred.len();
        match self.with(id, act) {
            // The work from its notes comes first.
            Some(action) if self.deferred.len() > from => self.deferred.push(Deferred::Act(id, action)),
            Some(action) => self.carry_out(id, action),
            None => {}
        }
    }

    /// Lets a job do something, and takes in what it has to say beside.
    pub(crate) fn with<T>(&mut self, id: JobId, act: impl FnOnce(&mut Job, &mut Cx<'_>) -> T) -> Option<T> {
        let LentJob { job, subject, wants, wanted, last_session } = self.jobs.lend(id)?;
        let day = self.spending.today(self.shared.clock.unix(), subject.intent.as_deref());
        let known = subject.session_id.as_deref().and_then(|session| self.sessions.known(session));
        let has_session = &|session: &str| last_session == Some(session) || self.sessions.is_had(session);
        let mut notes = Vec::new();
        let mut cx =
            Cx { shared: &mut self.shared, service: &self.service, notes: &mut notes, subject, wanted, wants, known, has_session, day };
        let result = act(job, &mut cx);
        notes.into_iter().for_each(|note| self.take_note(id, note));
        Some(result)
    }

    /// Carries out what a job asks for.
    pub(crate) fn carry_out(&mut self, id: JobId, action: Action) {
        let is_taken_over = self.jobs.get(id).is_some_and(|entry| entry.record.taken_over);
        match action {
            Action::Send(_) | Action::Put | Action::Wake(_) | Action::Need(_) if is_taken_over => self.end_taken_over(id),
            Action::Send(request) => self.push_send(id, request),
            Action::Put => {
                self.jobs.park(id, Parked::Storing);
                match self.renewals_to_claim(id) {
                    Some(name) => self.request_name(&name, NameRequest::new(None, RequestKind::Renewal(id))),
                    None => self.put_job(id, Some(id)),
                }
            }
            Action::Wake(wake) => self.wake(id, wake),
            Action::Need(Need::Token) => {
                self.jobs.free_place(id);
                self.jobs.park(id, Parked::LoggingIn);
                match self.shared.tokens.refused.clone() {
                    Some(error) => self.deferred.push(Deferred::Tell(id, Input::Granted(Err(error)))),
                    None => self.request_shared(SharedKind::Login, id),
                }
            }
            Action::Need(Need::ServerTime) => {
                self.jobs.free_place(id);
                self.jobs.park(id, Parked::ReadingTime);
                match self.shared.clock.knows_server() {
                    true => self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(Grant::ServerTime)))),
                    false => self.set_timer(id, self.now()),
                }
            }
            Action::Need(Need::Count { entry, usd }) => self.count(id, entry, usd),
            Action::Erase(error) => self.finish(id, Err(error)),
            Action::Doubt(error) => self.doubt(id, error),
            Action::Rest(error) => self.rest(id, error),
            Action::End(result) => self.finish(id, result.map(|answered| *answered)),
        }
    }

    fn push_send(&mut self, id: JobId, request: Request) {
        let Some(entry) = self.jobs.get(id) else { return };
        let command = entry.waiting.first().unwrap_or(CommandId(0));
        let step = self.outbox.send(Pending::Send(id), command, request);
        self.jobs.park(id, Parked::Sending(step));
    }

    /// Wakes a job then. As a throttle ends, one call goes on at once; the others that wait for that moment are spread over the first
    /// backoff after it, where they may be.
    fn wake(&mut self, id: JobId, wake: Wake) {
        self.jobs.park(id, Parked::Waking);
        let others = || self.timers.has_other_job(wake.at, id);
        let at = match wake.latest {
            Some(latest) if wake.at == self.shared.gate.until() && others() => {
                let after = jittered(self.service.retry.ceiling(0, true), self.shared.rng.jitter());
                wake.at.saturating_add(after).min(latest)
            }
            Some(latest) => wake.at.min(latest),
            None => wake.at,
        };
        if at > self.now() {
            self.jobs.free_place(id);
        }
        self.set_timer(id, at);
    }

    /// Moves on a job whose time has come, once it has a place; `due` is when it was to come.
    pub(crate) fn advance(&mut self, id: JobId, due: Millis) {
        match self.jobs.woke(id, self.shared.clock.monotonic()).cloned() {
            Some(Parked::Waking) if self.jobs.take_place(id, due, self.shared.clock.monotonic()) => self.tell(id, Input::Due(due)),
            Some(Parked::ReadingTime) => self.request_shared(SharedKind::ServerTime, id),
            Some(Parked::LoggingIn) => self.request_shared(SharedKind::Login, id),
            _ => {}
        }
    }

    /// Gives a free place to the next job. Returns true if there was one.
    pub(crate) fn give_place(&mut self) -> bool {
        let Some((id, due)) = self.jobs.give_place(self.shared.clock.monotonic()) else { return false };
        self.tell(id, Input::Due(due));
        true
    }

    /// The put that a job waited for was answered.
    pub(crate) fn stored(&mut self, id: JobId, written: WriteResult) {
        let parked = self.jobs.get(id).map(|entry| entry.parked.clone());
        match (&parked, written) {
            (Some(Parked::Marking), WriteResult::Done) => {
                self.jobs.park(id, Parked::Storing);
                return self.put_job(id, Some(id));
            }
            (Some(Parked::Moving { from, to }), _) => return self.result_moved(id, from, to, written),
            _ => {}
        }
        if matches!(parked, Some(Parked::Storing | Parked::Marking)) {
            match written {
                WriteResult::Lost if self.jobs.goes_on_unnamed(id) => self.tell(id, Input::Stored(Stored::Failed)),
                WriteResult::Lost if self.holds(Rule::LostNameEnds) => self.end_taken_over(id),
                WriteResult::Done | WriteResult::Lost => self.tell(id, Input::Stored(Stored::Done)),
                WriteResult::Failed | WriteResult::Never => self.tell(id, Input::Stored(Stored::Failed)),
            }
        }
    }

    /// The name that a job made up is there already: the host has given the same bytes as to a client before. From here on names and keys
    /// are others, and what was counted for this one is that client's.
    pub(crate) fn rename(&mut self, id: JobId) {
        self.shared.rng.turn();
        if self.jobs.get(id).is_some() {
            self.jobs.rename(id, || self.shared.rng.key(None));
            self.wake(id, Wake::at(self.now()));
        }
    }

    /// Takes a note of a job.
    fn take_note(&mut self, id: JobId, note: Note) {
        match note {
            Note::Event(EventKind::Charged { idempotency_key, session_id, order_no, charged_usd }) => {
                if !self.spending.is_first_charge(idempotency_key.as_deref(), self.now()) {
                    return;
                }
                let is_named = self.jobs.get(id).is_some_and(|entry| entry.record.bought_as.is_some());
                session_id.iter().filter(|_| is_named).for_each(|session| self.sessions.have(session));
                if let Some(usd) = charged_usd.as_deref().and_then(|usd| usd.parse().ok()) {
                    self.tell_pool_of_charge(id, usd);
                }
                self.notify(id, EventKind::Charged { idempotency_key, session_id, order_no, charged_usd });
            }
            Note::Event(what) => self.notify(id, what),
            Note::Bought(bought) => self.bought(id, *bought),
            Note::Shown(facts, phase) => {
                if let (Some((session_id, status)), Some(phase)) = (self.learn_of(id, &facts), phase) {
                    self.notify(id, EventKind::Status { session_id, status, phase });
                }
            }
            Note::Learnt(facts) => self.learn_and_save(&facts),
            Note::Moved => {
                let now = self.now();
                let session = self.jobs.get(id).and_then(|entry| entry.subject.session_id.as_ref());
                session.into_iter().for_each(|session| self.sessions.exit_changed(session, now));
            }
            Note::Gone => self.gone(id),
            Note::Placed(order_no) => self.placed(id, &order_no),
            Note::OrderShown => self.jobs.order_shown(id),
            Note::Charged(counted, charge) => {
                let spends = self.spend(|spending, actions| spending.charged(counted, charge, actions));
                self.jobs.wait_for(id, spends);
            }
            Note::Freed(counted) => {
                let spends = self.spend(|spending, actions| spending.uncount(counted, actions));
                self.jobs.wait_for(id, spends);
            }
            Note::BackendReady(ready) => self.account.set_backend_ready(ready),
        }
    }
}
