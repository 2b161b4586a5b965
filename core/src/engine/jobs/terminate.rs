//! The end of a session. A second DELETE that finds no session proves nothing about the first one: then the session is read.

use arcstr::ArcStr;

use super::change::too_long;
use crate::engine::answer::{Answered, Phase};
use crate::engine::call::unfit;
use crate::engine::confirm::{Confirm, Confirmed};
use crate::engine::context::Cx;
use crate::engine::machine::{Action, Input, Note, Part};
use crate::engine::status::phase_of;
use crate::engine::write::{Write, WriteOutcome};
use crate::policy::{Advice, Effect, Error, Kind, SESSION_NOT_FOUND};
use crate::wire::Facts;

/// The end of a session.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Terminate {
    pub(crate) write: Write,
    pub(super) confirm: Option<Confirm>,
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

    /// Advances the termination with one input. A doubt without a record ends by advising another termination.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match self.go_on(input, cx) {
            Action::Doubt(mut error) if self.write.unrecorded => {
                error.advice = Advice::TerminateAgain;
                Action::End(Err(error))
            }
            action => action,
        }
    }

    fn go_on(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if self.confirm.is_some() {
            return self.confirming(input, cx);
        }
        match self.write.handle(input, cx) {
            Part::Asks(action) => action,
            Part::Done(WriteOutcome::Accepted(answered)) => gone(answered, cx),
            Part::Done(WriteOutcome::NotThere(error)) => self.not_there(error, cx),
        }
    }

    /// Takes an answer that there is no such session, or that it is over: an earlier send ended it, if the session ever existed.
    fn not_there(&mut self, error: Error, cx: &mut Cx<'_>) -> Action {
        // Only a read can confirm it: if that fails, the effect is as open as before.
        self.write.call.ledger.unanswered = true;
        if !cx.wanted {
            return self.write.stop(cx);
        }
        let session_id = cx.subject.session_id.as_ref().map(ArcStr::to_string);
        if error.is_session_missing() && cx.known.is_some_and(|known| known.seen) {
            let facts = Facts { session_id, request_id: error.into_fields().request_id, ..Facts::default() };
            return gone_by(facts, cx);
        }
        let call = &self.write.call;
        self.confirm = Some(Confirm::new(session_id.unwrap_or_default(), call.exchange.headers.clone(), &call.attempts));
        Confirm::begin(cx)
    }

    /// Advances the read that confirms the end.
    fn confirming(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if !cx.wanted && !matches!(input, Input::Response(_)) {
            return self.write.stop(cx);
        }
        let Some(confirm) = &mut self.confirm else { return Confirm::begin(cx) };
        let confirmed = match confirm.handle(input, false, cx) {
            Part::Asks(action) => return action,
            Part::Done(confirmed) => confirmed,
        };
        let doubt = |what: String, cx: &Cx<'_>| cx.subject.error_of_read(Kind::InDoubt, Effect::Unknown, what, Advice::Resume);
        match confirmed {
            Confirmed::Failed(failing) if failing.code() == Some(SESSION_NOT_FOUND) => {
                let facts = Facts { session_id: cx.subject.session_id.as_ref().map(ArcStr::to_string), ..Facts::default() };
                gone_by(facts, cx)
            }
            Confirmed::Shown(mut answered) => {
                let phase = phase_of(answered.facts.status.as_deref(), &cx.wants.session_options.ends);
                cx.notes.push(Note::Shown(answered.facts.clone(), None));
                match phase {
                    _ if !cx.wanted => self.write.stop(cx),
                    // The session has ended, for whatever reason: nothing is left to terminate.
                    Phase::Ended => {
                        answered.phase = Some(phase);
                        gone(answered, cx)
                    }
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

/// Ends the job of a session that is terminated.
fn gone(answered: Box<Answered>, cx: &mut Cx<'_>) -> Action {
    cx.notes.push(Note::Gone);
    Action::End(Ok(answered))
}

/// Ends the job of a session that the service does not have any more.
fn gone_by(facts: Facts, cx: &mut Cx<'_>) -> Action {
    let mut answered = Answered::of(facts);
    answered.phase = Some(Phase::Ended);
    gone(Box::new(answered), cx)
}

#[cfg(test)]
mod tests {
    use crate::engine::jobs::{Job, Then};
    use crate::engine::testing::*;

    const DELETE: &str = "send DELETE /sessions/s-1";
    const READ: &str = "send GET /sessions/s-1";
    const DOUBT: &str = "doubt: InDoubt Unknown Resume";

    fn terminate(given: &mut Given) -> Job {
        Job::write_then(given.write("terminate_session", r#"{"session_id":"s-1"}"#), Then::End)
    }

    fn missing() -> Tell {
        failure("SESSION_NOT_FOUND", 404)
    }

    /// A DELETE whose answer was lost, and another one that finds no session.
    fn not_there(given: &mut Given) -> (Job, String) {
        let mut job = terminate(given);
        let said = given.tell(&mut job, [due(), stored(), lost(), due(), stored(), missing()]);
        assert_eq!(said[..5], ["put", DELETE, "wake", "put", DELETE], "{said:?}");
        given.notes();
        (job, said[5].clone())
    }

    #[test]
    fn a_session_that_was_terminated_is_followed_no_more() {
        let mut given = Given::agent();
        let mut job = terminate(&mut given);
        assert_eq!(given.tell(&mut job, [due(), stored(), success("{}")]), ["put", DELETE, "end: done"]);
        assert_eq!(given.notes(), ["gone"]);
    }

    #[test]
    fn an_answer_that_says_nothing_is_asked_for_again() {
        for answer in [lost(), unreachable(), broken_off(), page(200), response(204, ""), page(502), failure("INTERNAL_ERROR", 500)] {
            let mut given = Given::agent();
            let mut job = terminate(&mut given);
            assert_eq!(given.tell(&mut job, [due(), stored(), answer, due(), stored()]), ["put", DELETE, "wake", "put", DELETE]);
        }
    }

    #[test]
    fn a_first_delete_that_finds_no_session_is_refused() {
        let mut given = Given::agent();
        let mut job = terminate(&mut given);
        assert_eq!(given.tell(&mut job, [due(), stored(), missing()])[2], "erase: Refused None ChangeRequest");
        assert_eq!(given.notes(), [""; 0]);
    }

    #[test]
    fn a_second_delete_that_finds_no_session_ended_it_if_a_read_ever_showed_it() {
        let mut given = Given::agent();
        given.session = Some(("active", true));
        let mut job = terminate(&mut given);
        let said = given.tell(&mut job, [due(), stored(), lost(), due(), stored(), missing().request_id("req-2")]);
        assert_eq!(said[5], "end: done Ended");
        assert_eq!(given.answered.and_then(|answered| answered.facts.request_id).as_deref(), Some("req-2"));
        let mut given = Given::agent();
        given.session = Some(("active", false));
        assert_eq!(not_there(&mut given).1, "wake");
    }

    #[test]
    fn otherwise_a_read_decides() {
        for (answer, says) in [
            (missing(), "end: done Ended"),
            (success(r#"{"status":"expired"}"#), "end: done Ended"),
            (success(r#"{"status":"active"}"#), DOUBT),
            (success(r#"{"status":"creating"}"#), DOUBT),
            (failure("AUTH_INVALID_KEY", 401), DOUBT),
            (page(404), DOUBT),
            (unsendable(), DOUBT),
            (failure("RATE_LIMIT_EXCEEDED", 429).retry_after(61), DOUBT),
            (lost(), "wake"),
        ] {
            let mut given = Given::agent();
            let mut job = not_there(&mut given).0;
            assert_eq!(given.tell(&mut job, [due(), answer]), [READ, says]);
            assert_eq!(given.notes().contains(&"gone".to_owned()), says == "end: done Ended");
        }
    }

    #[test]
    fn a_store_that_fails_holds_no_end_back_and_a_doubt_without_a_record_is_to_be_ended_again() {
        let mut given = Given::agent();
        let mut job = terminate(&mut given);
        assert_eq!(given.tell(&mut job, [due(), not_stored(), success("{}")]), ["put", DELETE, "end: done"]);
        for (second, says) in [(not_stored(), "end: InDoubt Unknown TerminateAgain"), (stored(), DOUBT)] {
            let mut given = Given::agent();
            given.service.retry.attempts = 2;
            let mut job = terminate(&mut given);
            assert_eq!(given.tell(&mut job, [due(), not_stored(), lost(), due(), second, lost()])[5], says);
        }
    }

    #[test]
    fn a_doubt_that_is_resumed_sends_another_delete() {
        let mut given = Given::agent();
        let mut job = not_there(&mut given).0;
        given.tell(&mut job, [due(), page(404)]);
        let action = job.resume(&mut given.cx());
        assert_eq!(given.say(action), "wake");
        assert_eq!(given.tell(&mut job, [due(), stored(), success("{}")]), ["put", DELETE, "end: done"]);
    }

    #[test]
    fn an_end_that_was_given_up_while_it_is_confirmed_stays_in_doubt_unless_the_read_says_it() {
        let cancelled = "doubt: Cancelled Unknown Resume";
        for (sent, input, says) in [
            (false, due(), cancelled),
            (true, success(r#"{"status":"active"}"#), cancelled),
            (true, success(r#"{"status":"expired"}"#), cancelled),
            (true, lost(), cancelled),
            (true, missing(), "end: done Ended"),
        ] {
            let mut given = Given::agent();
            let mut job = not_there(&mut given).0;
            if sent {
                given.tell(&mut job, [due()]);
            }
            given.wanted = false;
            assert_eq!(given.tell(&mut job, [input]), [says]);
        }
        // The call is cancelled before the second DELETE is answered.
        let mut given = Given::agent();
        let mut job = terminate(&mut given);
        given.tell(&mut job, [due(), stored(), lost(), due(), stored()]);
        given.wanted = false;
        assert_eq!(given.tell(&mut job, [missing()]), [cancelled]);
    }
}
