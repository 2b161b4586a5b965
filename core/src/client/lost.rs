//! What is said of a job whose name another client has taken over: that one goes on with it.

use super::job::Entry;
use super::router::Router;
use crate::engine::Answered;
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};
use crate::state::JobId;

const TAKEN_OVER: &str = "another client has taken it over and goes on with it";

impl Router {
    /// Ends a job whose name was lost with what it knows: nothing more is sent or put for it.
    pub(super) fn end_lost(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get(&id) else { return };
        let error = match entry.job.write().filter(|_| !entry.job.was_accepted()) {
            None => unless_said(entry, Err(entry.let_go())).err(),
            Some(write) => {
                let is_open = write.call.is_open();
                let what = "was not sent, because another client has taken it over";
                let error = |effect, advice| entry.subject.error(Kind::Busy, effect, what, advice);
                Some(match (entry.custody.bought_as.is_some(), is_open) {
                    (true, true) => error(Effect::Unknown, Advice::WaitForOther).not_again(),
                    (true, false) => error(Effect::None, Advice::WaitForOther),
                    (false, true) => error(Effect::Unknown, Advice::Resume).not_again(),
                    // Who starts it again does not come to its record, but whoever resumes all does, and sends it.
                    (false, false) if self.may_be_resumed(entry) => error(Effect::Unknown, Advice::Resume),
                    (false, false) => error(Effect::None, Advice::RetryLater),
                })
            }
        };
        if let Some(error) = error {
            self.finish(id, Err(with_record(entry, error)));
        }
    }

    /// Whether the store has a record of this job, or may have one, that whoever finds it can send.
    fn may_be_resumed(&self, entry: &Entry) -> bool {
        entry.custody.last_put.is_some() && entry.saved_call(&self.means.clock).is_some_and(|call| call.can_resume())
    }
}

/// Another client has taken over what a job was about; where its result does not say so yet, it does now.
pub(super) fn unless_said(entry: &Entry, result: Result<Answered, Error>) -> Result<Answered, Error> {
    let named = entry.custody.bought_as.is_some() || entry.subject.intent.is_some();
    match result {
        Err(error) if error.kind == Kind::Busy => Err(error),
        // A read changed nothing, whoever has what it is about.
        Err(error) if error.effect == Effect::None && entry.job.write().is_none() => {
            Err(Error::from(after(&error, Kind::Busy, Effect::None, TAKEN_OVER, error.advice)))
        }
        result => Err(with_record(entry, taken_over(entry.subject.operation, named, &result))),
    }
}

/// What nobody has a name for can be resumed only by its record.
fn with_record(entry: &Entry, error: Error) -> Error {
    match entry.custody.record().filter(|_| error.record.is_none() && entry.custody.bought_as.is_none()) {
        Some(record) => Error::from(ErrorFields { record: Some(record.0), ..error.into_fields() }),
        None => error,
    }
}

/// Another client has taken over what this was about, before it could be written down. Who has a name for it comes to it by that.
pub(super) fn taken_over(operation: &'static str, named: bool, result: &Result<Answered, Error>) -> Error {
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
    Error::from(match result {
        Ok(answered) => ErrorFields {
            session_id: session_id.clone(),
            order_no: order_no.clone(),
            request_id: answered.facts.request_id.clone(),
            status: answered.http_status,
            attempts: answered.attempts,
            ..Error::new(Kind::Busy, effect, operation, TAKEN_OVER, advice).into_fields()
        },
        Err(error) => after(error, Kind::Busy, effect, TAKEN_OVER, advice),
    })
}

/// An error of the same operation that came of another one.
pub(super) fn after(error: &Error, kind: Kind, effect: Effect, what: &str, advice: Advice) -> ErrorFields {
    ErrorFields {
        idempotency_key: error.idempotency_key.clone(),
        intent: error.intent.clone(),
        session_id: error.session_id.clone(),
        order_no: error.order_no.clone(),
        attempts: error.attempts,
        record: error.record.clone(),
        cause: Some(error.clone()),
        ..Error::new(kind, effect, error.operation, what, advice).into_fields()
    }
}
