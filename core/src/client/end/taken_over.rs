//! The errors of a job whose name another client has taken over and continues.

use crate::client::jobs::job::{Entry, Parked};
use crate::client::router::Router;
use crate::engine::Answered;
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{JobId, Name, User};

const TAKEN_OVER: &str = "another client has taken it over and continues it";

impl Router {
    /// Another client has a name that this one had.
    pub(crate) fn name_is_taken_over(&mut self, user: User, name: &Name) {
        match user {
            User::Job(id) => self.job_is_taken_over(id),
            User::Session(session) => {
                if !self.sessions.may_be_under(&session, name) {
                    return;
                }
                let jobs: Vec<JobId> = self.sessions.jobs(&session).filter(|id| self.jobs.follows(*id)).collect();
                self.give_up_session(&session, name);
                jobs.into_iter().for_each(|id| self.job_is_taken_over(id));
            }
            User::Pool(_) => self.drop_slot(name),
            // Its renewal has its own name still, and whoever has the marker now finds it by that.
            User::Marker(_) | User::Result => {}
        }
    }

    /// Ends the job as soon as nothing of it is out.
    pub(crate) fn job_is_taken_over(&mut self, id: JobId) {
        if self.jobs.goes_on_unnamed(id) {
            return;
        }
        let ends = self.holds(Rule::LostNameEnds);
        match self.jobs.lose_name(id, ends) {
            Some(Parked::Waking | Parked::Queued { .. }) => self.set_timer(id, self.now()),
            Some(Parked::Sending(step)) => _ = self.take_back(id, step),
            _ => {}
        }
    }
}

/// Another client has taken over what a job was about; where its result does not say so yet, it does now.
pub(crate) fn unless_said(entry: &Entry, result: Result<Answered, Error>) -> Result<Answered, Error> {
    let named = entry.record.bought_as.is_some() || entry.subject.intent.is_some();
    match result {
        Err(error) if error.kind == Kind::Busy => Err(error),
        // A read changed nothing, whoever has what it is about.
        Err(error) if error.effect == Effect::None && entry.job.write().is_none() => {
            Err(after(&error, Kind::Busy, Effect::None, TAKEN_OVER, error.advice))
        }
        result => Err(with_record(entry, taken_over(entry.subject.operation, named, &result))),
    }
}

/// A job without a caller's own name can be resumed only by its record.
pub(crate) fn with_record(entry: &Entry, error: Error) -> Error {
    match entry.record.id().filter(|_| error.record.is_none() && entry.record.bought_as.is_none()) {
        Some(record) => error.with(|new| new.record = Some(record.0)),
        None => error,
    }
}

/// The error if another client has taken over the operation, before its result could be stored. A caller with a name for it finds it by
/// that.
pub(crate) fn taken_over(operation: &'static str, named: bool, result: &Result<Answered, Error>) -> Error {
    let (effect, session_id, order_no) = match result {
        Ok(Answered { facts, .. }) => (Effect::Done, &facts.session_id, &facts.order_no),
        Err(error) if error.effect == Effect::Done => (Effect::Done, &error.session_id, &error.order_no),
        Err(error) => (Effect::Unknown, &error.session_id, &error.order_no),
    };
    let advice = match effect {
        _ if named => Advice::WaitForOther,
        Effect::Done if order_no.is_some() => Advice::WaitOrder,
        Effect::Done if session_id.is_some() => Advice::ReadSession,
        Effect::Done => Advice::CheckAccount,
        Effect::Unknown | Effect::None => Advice::Resume,
    };
    match result {
        Ok(answered) => Error::new(Kind::Busy, effect, operation, TAKEN_OVER, advice).with(|new| {
            new.session_id = session_id.clone();
            new.order_no = order_no.clone();
            new.request_id = answered.facts.request_id.clone();
            new.status = answered.http_status;
            new.attempts = answered.attempts;
        }),
        Err(error) => after(error, Kind::Busy, effect, TAKEN_OVER, advice),
    }
}

/// An error of the same operation that came of another one.
pub(crate) fn after(error: &Error, kind: Kind, effect: Effect, what: &str, advice: Advice) -> Error {
    Error::new(kind, effect, error.operation, what, advice).with(|new| {
        new.idempotency_key = error.idempotency_key.clone();
        new.intent = error.intent.clone();
        new.session_id = error.session_id.clone();
        new.order_no = error.order_no.clone();
        new.attempts = error.attempts;
        new.record = error.record.clone();
        new.cause = Some(error.clone());
    })
}
