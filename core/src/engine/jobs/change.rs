//! A rotation or a renewal of a session. The answer to a key that may have been sent before can be a replay of how the session was,
//! so then the session is read once more.

use crate::engine::answer::Answered;
use crate::engine::call::unfit;
use crate::engine::confirm::{Confirm, Confirmed};
use crate::engine::machine::{Action, Cx, Input, Note, Part};
use crate::engine::session::phase_of;
use crate::engine::write::{Write, Written};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::time::Millis;

/// A change of a session.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Change {
    pub(crate) write: Write,
    confirm: Option<Confirm>,
}

impl Change {
    pub(crate) fn new(write: Write) -> Self {
        Change { write, confirm: None }
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.confirm.is_some()
    }

    /// Whatever it is told.
    pub(crate) fn told(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if self.confirm.is_some() {
            return self.confirming(input, cx);
        }
        match self.write.told(input, cx) {
            Part::Asks(action) => action,
            Part::Done(Written::Accepted(answered)) => self.changed(*answered, cx),
            Part::Done(Written::NotThere(error)) => Action::End(Err(error)),
        }
    }

    fn changed(&mut self, answered: Answered, cx: &mut Cx<'_>) -> Action {
        cx.notes.push(Note::Moved);
        if self.write.was_resent() && cx.wanted {
            let (call, session_id) = (&self.write.call, cx.subject.session_id.clone().unwrap_or_default());
            self.confirm = Some(Confirm::new(session_id, call.exchange.headers.clone(), &call.attempts));
            return Confirm::begin(cx);
        }
        cx.notes.push(Note::Learnt(answered.facts.clone()));
        Action::End(Ok(Box::new(answered)))
    }

    /// The session is read.
    fn confirming(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        let Some(confirm) = &mut self.confirm else { return Confirm::begin(cx) };
        if !cx.wanted && !matches!(input, Input::Response(_)) {
            return let_go(cx);
        }
        let confirmed = match confirm.told(input, cx.wants.credentials, cx) {
            Part::Asks(action) => return action,
            Part::Done(confirmed) => confirmed,
        };
        match confirmed {
            Confirmed::Shown(answered) => {
                let phase = phase_of(answered.facts.status.as_deref(), &cx.wants.ends);
                cx.notes.push(Note::Shown(answered.facts.clone(), None));
                if cx.wanted { Action::End(Ok(Box::new(Answered { phase: Some(phase), ..*answered }))) } else { let_go(cx) }
            }
            _ if !cx.wanted => let_go(cx),
            Confirmed::Failed(failing) => {
                let kind = if failing.passing || failing.is_page_of_success() { Kind::Unavailable } else { Kind::Refused };
                let mut error = cx.subject.error_of_read(kind, Effect::Done, failing.what(cx.service.api), Advice::ReadSession);
                confirm.describe(&mut error, &failing, cx);
                Action::End(Err(error))
            }
            Confirmed::TooLong(wait) => Action::End(Err(too_long(Kind::Unavailable, Effect::Done, Advice::ReadSession, wait, cx))),
            Confirmed::Unfit(rule) => Action::End(Err(unfit(&rule, Effect::Done, cx))),
        }
    }
}

/// Nobody waits for it any more: the session lives on.
fn let_go(cx: &Cx<'_>) -> Action {
    let what = "waiting for the session was given up; the session lives on";
    Action::End(Err(cx.subject.error_of_read(Kind::Cancelled, Effect::Done, what, Advice::ReadSession)))
}

/// The service asks to wait before the read longer than a call may take.
pub(super) fn too_long(kind: Kind, effect: Effect, advice: Advice, wait: Millis, cx: &Cx<'_>) -> Error {
    let what = "could not be confirmed by a read, since the service asked to wait longer than it may take";
    let mut error = cx.subject.error_of_read(kind, effect, what, advice);
    error.retry_at = Some(cx.clock.unix().saturating_add(wait));
    error
}
