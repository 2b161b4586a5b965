//! A rotation or a renewal of a session. The answer to a key that may have been sent before can be a replay of the session's earlier state,
//! so then the session is read once more.

use arcstr::ArcStr;

use crate::engine::answer::Answered;
use crate::engine::call::unfit;
use crate::engine::confirm::{Confirm, Confirmed};
use crate::engine::context::Cx;
use crate::engine::machine::{Action, Input, Note, Part};
use crate::engine::status::phase_of;
use crate::engine::write::{Write, WriteOutcome};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::time::Millis;
use crate::wire::is_same_id;

/// A change of a session.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Change {
    pub(crate) write: Write,
    pub(super) confirm: Option<Confirm>,
}

impl Change {
    pub(crate) fn new(write: Write) -> Self {
        Change { write, confirm: None }
    }

    pub(crate) fn is_reading(&self) -> bool {
        self.confirm.is_some()
    }

    /// Advances the change with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if self.confirm.is_some() {
            return self.confirming(input, cx);
        }
        match self.write.handle(input, cx) {
            Part::Asks(action) => action,
            Part::Done(WriteOutcome::Accepted(answered)) => self.changed(*answered, cx),
            Part::Done(WriteOutcome::NotThere(error)) => Action::End(Err(error)),
        }
    }

    fn changed(&mut self, answered: Answered, cx: &mut Cx<'_>) -> Action {
        cx.notes.push(Note::Moved);
        if self.write.was_resent() && cx.wanted {
            let (call, session_id) = (&self.write.call, cx.subject.session_id.as_ref().map(ArcStr::to_string).unwrap_or_default());
            self.confirm = Some(Confirm::new(session_id, call.exchange.headers.clone(), &call.attempts));
            return Confirm::begin(cx);
        }
        // An answer to a renewal that names another session says nothing of that one.
        let names = answered.facts.session_id.as_deref().zip(cx.subject.session_id.as_deref());
        if names.is_some_and(|(said, asked)| is_same_id(asked, said)) {
            cx.notes.push(Note::Learnt(answered.facts.clone()));
        }
        Action::End(Ok(Box::new(answered)))
    }

    /// Advances the read that confirms the change.
    fn confirming(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        let Some(confirm) = &mut self.confirm else { return Confirm::begin(cx) };
        if !cx.wanted && !matches!(input, Input::Response(_)) {
            return end_cancelled(cx);
        }
        let confirmed = match confirm.handle(input, cx.wants.session_options.credentials, cx) {
            Part::Asks(action) => return action,
            Part::Done(confirmed) => confirmed,
        };
        match confirmed {
            Confirmed::Shown(mut answered) => {
                let phase = phase_of(answered.facts.status.as_deref(), &cx.wants.session_options.ends);
                cx.notes.push(Note::Shown(answered.facts.clone(), None));
                answered.phase = Some(phase);
                if cx.wanted { Action::End(Ok(answered)) } else { end_cancelled(cx) }
            }
            _ if !cx.wanted => end_cancelled(cx),
            Confirmed::Failed(failing) => {
                let kind = if failing.passing || failing.is_page_of_success() { Kind::Unavailable } else { Kind::Refused };
                let what = format!("was accepted, but its session could not be read: {}", failing.what(cx.service.api));
                let mut error = cx.subject.error_of_read(kind, Effect::Done, what, Advice::ReadSession);
                confirm.describe(&mut error, &failing, cx);
                Action::End(Err(error))
            }
            Confirmed::TooLong(wait) => Action::End(Err(too_long(Kind::Unavailable, Effect::Done, Advice::ReadSession, wait, cx))),
            Confirmed::Unfit(rule) => Action::End(Err(unfit(&rule, Effect::Done, cx))),
        }
    }
}

/// Ends the wait, since no caller waits any more: the session goes on.
fn end_cancelled(cx: &Cx<'_>) -> Action {
    let what = "waiting for the session was cancelled, and the session continues";
    Action::End(Err(cx.subject.error_of_read(Kind::Cancelled, Effect::Done, what, Advice::ReadSession)))
}

/// The error if the service asks for a longer wait before the read than a call may take.
pub(super) fn too_long(kind: Kind, effect: Effect, advice: Advice, wait: Millis, cx: &Cx<'_>) -> Error {
    let what = "could not be confirmed by a read, since the service asked for a wait beyond the deadline";
    let mut error = cx.subject.error_of_read(kind, effect, what, advice);
    error.retry_at = Some(cx.shared.clock.unix().saturating_add(wait));
    error
}

#[cfg(test)]
mod tests {
    use crate::engine::jobs::{Job, Then};
    use crate::engine::testing::*;

    const ROTATE: &str = "send POST /sessions/s-1/rotate key 1";
    const READ: &str = "send GET /sessions/s-1";

    fn active() -> Tell {
        success(r#"{"session_id":"s-1","status":"active"}"#)
    }

    fn rotate(given: &mut Given) -> Job {
        Job::write_then(given.write("rotate_session", r#"{"session_id":"s-1"}"#), Then::End)
    }

    /// A rotation whose second send was answered.
    fn resent(given: &mut Given) -> Job {
        let mut job = rotate(given);
        let said = given.tell(&mut job, [due(), stored(), lost(), due(), stored(), active()]);
        assert_eq!(said, ["put", ROTATE, "wake", "put", ROTATE, "wake"]);
        assert_eq!(given.notes(), ["event repeating", "moved"]);
        job
    }

    #[test]
    fn the_answer_to_the_first_send_says_how_the_session_is() {
        let mut given = Given::agent();
        let mut job = rotate(&mut given);
        assert_eq!(given.tell(&mut job, [due(), stored(), active()]), ["put", ROTATE, "end: done"]);
        assert_eq!(given.notes(), ["moved", "learnt active"]);
    }

    #[test]
    fn an_answer_to_a_renewal_that_names_another_session_says_nothing_of_that_one() {
        for (answer, learnt) in [
            (r#"{"session_id":"s-1","status":"terminated"}"#, &["event charged", "moved", "learnt terminated"][..]),
            (r#"{"session_id":"s-2","status":"terminated"}"#, &["event charged", "moved"]),
        ] {
            let mut given = Given::agent();
            let mut job = Job::write_then(given.write("renew_session", r#"{"session_id":"s-1","duration":1}"#), Then::End);
            assert_eq!(given.tell(&mut job, [due(), stored(), success(answer)]).last().map(String::as_str), Some("end: done"));
            assert_eq!(given.notes(), learnt, "{answer}");
        }
    }

    #[test]
    fn the_answer_to_a_later_send_may_be_a_replay_so_the_session_is_read() {
        for (answer, says) in [
            (active(), "end: done Ready"),
            (failure("SESSION_NOT_FOUND", 404), "end: Refused Done ReadSession"),
            (page(200), "wake"),
            (unsendable(), "end: Invalid Done ChangeRequest"),
            (failure("RATE_LIMIT_EXCEEDED", 429).retry_after(61), "end: Unavailable Done ReadSession"),
        ] {
            let mut given = Given::agent();
            let mut job = resent(&mut given);
            assert_eq!(given.tell(&mut job, [due(), answer]), [READ, says]);
        }
    }

    #[test]
    fn reads_that_fail_leave_the_change_done() {
        let mut given = Given::agent();
        given.service.retry.attempts = 2;
        let mut job = resent(&mut given);
        assert_eq!(given.tell(&mut job, [due(), lost(), due(), page(200)]), [READ, "wake", READ, "end: Unavailable Done ReadSession"]);
        // The error has the service's answer to the read.
        assert_eq!(given.error.and_then(|error| error.status), Some(200));
    }

    #[test]
    fn credentials_that_are_wanted_are_read_along() {
        let mut given = Given::agent();
        given.wants.session_options.credentials = true;
        let mut job = resent(&mut given);
        assert_eq!(given.tell(&mut job, [due()]), ["send GET /sessions/s-1?include_credentials=true"]);
    }

    #[test]
    fn a_change_that_was_given_up_after_it_was_done_says_so() {
        let cancelled = "end: Cancelled Done ReadSession";
        for (sent, input) in [(false, due()), (true, active()), (true, lost()), (true, unsendable())] {
            let mut given = Given::agent();
            let mut job = resent(&mut given);
            if sent {
                given.tell(&mut job, [due()]);
            }
            given.wanted = false;
            assert_eq!(given.tell(&mut job, [input]), [cancelled]);
        }
        // No caller wants the read: the answer itself is the end.
        let mut given = Given::agent();
        let mut job = rotate(&mut given);
        given.tell(&mut job, [due(), stored(), lost(), due(), stored()]);
        given.wanted = false;
        assert_eq!(given.tell(&mut job, [active()]), ["end: done"]);
    }
}
