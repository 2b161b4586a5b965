//! `open_session`: buys a session, and follows it until it can be used.

use std::borrow::Cow;

use crate::engine::answer::Answered;
use crate::engine::context::Cx;
use crate::engine::event::EventKind;
use crate::engine::machine::{Action, Bought, Input, Note, Part};
use crate::engine::session::Follow;
use crate::engine::write::{Write, WriteOutcome};
use crate::json::{pick, text_of};
use crate::policy::{Advice, Effect, Kind};
use crate::wire::Built;

/// The purchase of a session, and then its follow-up. Thousands of sessions are waited for at once, and the wait needs nothing of the
/// purchase.
#[derive(Debug, Clone, Hash)]
pub(crate) enum SessionPurchase {
    Buys(Box<Write>),
    Follows(Box<Follow>),
}

impl SessionPurchase {
    pub(crate) fn is_following(&self) -> bool {
        matches!(self, SessionPurchase::Follows(_))
    }

    /// Advances the purchase with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        let write = match self {
            SessionPurchase::Follows(follow) => return follow.handle(input, cx),
            SessionPurchase::Buys(write) => write,
        };
        match write.handle(input, cx) {
            Part::Asks(action) => action,
            Part::Done(WriteOutcome::NotThere(error)) => Action::End(Err(error)),
            Part::Done(WriteOutcome::Accepted(answered)) => match bought(write, *answered, cx) {
                Part::Done((follow, action)) => {
                    *self = SessionPurchase::Follows(Box::new(follow));
                    action
                }
                Part::Asks(end) => end,
            },
        }
    }
}

/// Turns to the session after its purchase was accepted: from here on the session is kept.
fn bought(write: &Write, answered: Answered, cx: &mut Cx<'_>) -> Part<(Follow, Action)> {
    let named = answered.facts.session_id.clone().filter(|id| !id.is_empty() && id != "." && id != "..");
    let Some(session_id) = named else {
        let what = "was accepted, but the answer has no session id";
        let mut error = cx.subject.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw);
        error.raw = Some(answered.raw);
        return Part::Asks(Action::End(Err(error)));
    };
    let exchange = &write.call.exchange;
    cx.subject.session_id = Some(session_id.as_str().into());
    let (session_type, protocol) = (requested_type(&exchange.built), requested_protocol(exchange.built.body.as_deref()));
    cx.notes.push(Note::Bought(Box::new(Bought { facts: answered.facts.clone(), session_type, protocol })));
    cx.note(EventKind::Accepted { session_id, estimated_charge_usd: answered.facts.estimated_charge_usd.clone() });
    let mut follow = Follow::new(true, exchange.headers.clone(), exchange.timeout_ms);
    let action = follow.bought(answered, write.was_resent(), cx);
    Part::Done((follow, action))
}

/// The type of the session that a request buys.
pub(crate) fn requested_type(built: &Built) -> Option<String> {
    let [session_type] = pick(built.body.as_deref()?, ["session_type"])?;
    text_of(session_type?).map(Cow::into_owned)
}

/// The protocol that the body of a purchase names.
pub(crate) fn requested_protocol(body: Option<&str>) -> Option<String> {
    let [protocol] = pick(body?, ["protocol"])?;
    text_of(protocol?).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use crate::engine::jobs::{Job, Then};
    use crate::engine::testing::*;

    const BUY: &str = "send POST /sessions key 1";
    const READ: &str = "send GET /sessions/s-1";

    fn open(given: &mut Given) -> Job {
        let write = given.write("create_session", r#"{"session_type":"dynamic","product_no":"p-1"}"#);
        Job::write_then(write, Then::Follow)
    }

    #[test]
    fn a_session_is_bought_and_read_until_it_can_be_used() {
        let mut given = Given::agent();
        let mut job = open(&mut given);
        let accepted = success(r#"{"session_id":"s-1","status":"creating"}"#);
        assert_eq!(given.tell(&mut job, [due(), stored(), accepted]), ["put", BUY, "wake"]);
        assert_eq!(given.notes(), ["event charged", "bought s-1", "event accepted"]);
        let active = success(r#"{"session_id":"s-1","status":"active"}"#);
        assert_eq!(given.tell(&mut job, [due(), active]), [READ, "end: done Ready"]);
        assert_eq!(given.subject.session_id.as_deref(), Some("s-1"));
    }

    #[test]
    fn an_answer_to_a_later_send_of_its_key_is_read_again() {
        let mut given = Given::agent();
        let mut job = open(&mut given);
        let active = || success(r#"{"session_id":"s-1","status":"active"}"#);
        let said = given.tell(&mut job, [due(), stored(), lost(), due(), stored(), active(), due(), active()]);
        assert_eq!(said[3..], ["put", BUY, "wake", READ, "end: done Ready"]);
    }

    #[test]
    fn a_purchase_whose_answer_names_no_session_is_done_and_says_so() {
        for data in ["{}", r#"{"session_id":""}"#, r#"{"session_id":".."}"#, "[]"] {
            let mut given = Given::agent();
            let mut job = open(&mut given);
            let said = given.tell(&mut job, [due(), stored(), success(data), due(), stored(), success(data)]);
            assert_eq!(said[2..], ["wake", "put", BUY, "end: Decode Done ReadRaw"], "{data}");
            assert_eq!(given.error.as_ref().and_then(|error| error.raw.as_ref()).map(|raw| raw.text()), Some(data));
        }
    }

    #[test]
    fn an_answer_without_an_id_is_the_last_word_where_it_can_not_be_sent_again() {
        let mut given = Given::agent();
        given.service.retry.attempts = 1;
        let mut job = open(&mut given);
        assert_eq!(given.tell(&mut job, [due(), stored(), success("{}")])[2], "end: Decode Done ReadRaw");
        let mut given = Given::agent();
        let mut job = open(&mut given);
        given.tell(&mut job, [due(), stored()]);
        given.wanted = false;
        assert_eq!(given.tell(&mut job, [success("{}")]), ["end: Decode Done ReadRaw"]);
    }

    #[test]
    fn a_session_that_this_client_had_is_believed_only_of_a_later_send() {
        let mut given = Given::agent();
        let mut job = open(&mut given);
        let had = || success(r#"{"session_id":"s-had","status":"creating"}"#);
        let said = given.tell(&mut job, [due(), stored(), had(), due(), stored(), had()]);
        assert_eq!(said, ["put", BUY, "wake", "put", BUY, "wake"]);
        assert_eq!(given.notes().last().map(String::as_str), Some("event accepted"));
        // This also holds if the caller is gone by then: the purchase is in doubt.
        let mut given = Given::agent();
        let mut job = open(&mut given);
        given.tell(&mut job, [due(), stored()]);
        given.wanted = false;
        assert_eq!(given.tell(&mut job, [had()]), ["doubt: Cancelled Unknown Resume"]);
    }

    #[test]
    fn a_purchase_that_is_given_up_on_its_way_is_kept_as_a_session() {
        let mut given = Given::agent();
        let mut job = open(&mut given);
        given.tell(&mut job, [due(), stored()]);
        given.wanted = false;
        let accepted = success(r#"{"session_id":"s-1","status":"creating"}"#);
        assert_eq!(given.tell(&mut job, [accepted]), ["end: Cancelled Done ReadSession"]);
        assert_eq!(given.notes(), ["event charged", "bought s-1", "event accepted"]);
    }

    #[test]
    fn without_following_the_answer_is_the_end() {
        let mut given = Given::agent();
        let write = given.write("create_session", r#"{"session_type":"dynamic","product_no":"p-1"}"#);
        let mut job = Job::write_then(write, Then::End);
        assert_eq!(given.tell(&mut job, [due(), stored(), success(r#"{"session_id":"s-1"}"#)])[2], "end: done");
        assert_eq!(given.notes(), ["event charged"]);
    }
}
