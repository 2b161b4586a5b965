//! The end of a session. A second DELETE that finds no session says nothing of the first one: then the session is read.

use super::change::too_long;
use crate::engine::answer::{Answered, Phase};
use crate::engine::call::unfit;
use crate::engine::confirm::{Confirm, Confirmed};
use crate::engine::machine::{Action, Cx, Input, Note, Part};
use crate::engine::session::phase_of;
use crate::engine::write::{Write, Written};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::wire::Facts;

/// The end of a session.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Terminate {
    pub(crate) write: Write,
    confirm: Option<Confirm>,
}

impl Terminate {
    pub(crate) fn new(write: Write) -> Self {
        Terminate { write, confirm: None }
    }

    /// Goes on after a doubt, with another DELETE.
    pub(crate) fn resume(&mut self, cx: &mut Cx<'_>) -> Action {
        self.confirm = None;
        self.write.resume(cx)
    }

    /// Whatever it is told.
    pub(crate) fn told(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if self.confirm.is_some() {
            return self.confirming(input, cx);
        }
        match self.write.told(input, cx) {
            Part::Asks(action) => action,
            Part::Done(Written::Accepted(answered)) => gone(*answered, cx),
            Part::Done(Written::NotThere(error)) => self.not_there(error, cx),
        }
    }

    /// There is no such session, or it is over: an earlier send did it, if the session was ever there.
    fn not_there(&mut self, error: Error, cx: &mut Cx<'_>) -> Action {
        // Only a read can say so: if that fails, it is as open as before.
        self.write.call.ledger.unanswered = true;
        if !cx.wanted {
            return self.write.stop(cx);
        }
        let session_id = cx.subject.session_id.clone();
        let missing = error.code.as_deref() == Some("SESSION_NOT_FOUND");
        if missing && cx.known.is_some_and(|known| known.seen) {
            let facts = Facts { session_id, request_id: error.into_report().request_id, ..Facts::default() };
            return gone(Answered { phase: Some(Phase::Ended), ..Answered::of(facts) }, cx);
        }
        let call = &self.write.call;
        self.confirm = Some(Confirm::new(session_id.unwrap_or_default(), call.exchange.headers.clone(), &call.attempts));
        Confirm::begin(cx)
    }

    /// The session is read.
    fn confirming(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if !cx.wanted && !matches!(input, Input::Response(_)) {
            return self.write.stop(cx);
        }
        let Some(confirm) = &mut self.confirm else { return Confirm::begin(cx) };
        let confirmed = match confirm.told(input, false, cx) {
            Part::Asks(action) => return action,
            Part::Done(confirmed) => confirmed,
        };
        let doubt = |what: String, cx: &Cx<'_>| cx.subject.error_of_read(Kind::InDoubt, Effect::Unknown, what, Advice::Resume);
        match confirmed {
            Confirmed::Failed(failing) if failing.code() == Some("SESSION_NOT_FOUND") => {
                let facts = Facts { session_id: cx.subject.session_id.clone(), ..Facts::default() };
                gone(Answered { phase: Some(Phase::Ended), ..Answered::of(facts) }, cx)
            }
            Confirmed::Shown(answered) => {
                let phase = phase_of(answered.facts.status.as_deref(), &cx.wants.ends);
                cx.notes.push(Note::Shown(answered.facts.clone(), None));
                match phase {
                    _ if !cx.wanted => self.write.stop(cx),
                    // Whatever it was that ended it: nothing is left to terminate.
                    Phase::Ended => gone(Answered { phase: Some(phase), ..*answered }, cx),
                    _ => {
                        let what = "may have been done, but the session is still there";
                        Action::Doubt(cx.subject.error(Kind::InDoubt, Effect::Unknown, what, Advice::Resume))
                    }
                }
            }
            _ if !cx.wanted => self.write.stop(cx),
            Confirmed::Failed(failing) => {
                let mut error = doubt(failing.what(cx.service.api), cx);
                confirm.describe(&mut error, &failing, cx);
                Action::Doubt(error)
            }
            Confirmed::TooLong(wait) => Action::Doubt(too_long(Kind::InDoubt, Effect::Unknown, Advice::Resume, wait, cx)),
            Confirmed::Unfit(rule) => {
                let mut error = unfit(&rule, Effect::Unknown, cx);
                (error.kind, error.advice) = (Kind::InDoubt, Advice::Resume);
                Action::Doubt(error)
            }
        }
    }
}

/// The session is terminated: it is followed no more.
fn gone(answered: Answered, cx: &mut Cx<'_>) -> Action {
    cx.notes.push(Note::Gone);
    Action::End(Ok(Box::new(answered)))
}
