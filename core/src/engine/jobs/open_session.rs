//! `open_session`: a session is bought, and followed until it can be used.

use crate::contract::agent::CreateSession;
use crate::engine::answer::Answered;
use crate::engine::event::EventKind;
use crate::engine::machine::{Action, Bought, Cx, Input, Note, Part};
use crate::engine::session::Follow;
use crate::engine::write::{Write, Written};
use crate::policy::{Advice, Effect, Kind};
use crate::wire::Built;

/// The purchase of a session, and what comes after it.
#[derive(Debug, Clone, Hash)]
pub(crate) struct OpenSession {
    pub(crate) write: Write,
    pub(crate) follow: Option<Follow>,
}

impl OpenSession {
    pub(crate) fn new(write: Write) -> Self {
        OpenSession { write, follow: None }
    }

    pub(crate) fn is_following(&self) -> bool {
        self.follow.is_some()
    }

    /// Whatever it is told.
    pub(crate) fn told(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        if let Some(follow) = &mut self.follow {
            return follow.told(input, cx);
        }
        match self.write.told(input, cx) {
            Part::Asks(action) => action,
            Part::Done(Written::Accepted(answered)) => self.bought(*answered, cx),
            Part::Done(Written::NotThere(error)) => Action::End(Err(error)),
        }
    }

    /// It was accepted: from here on the session is what is kept.
    fn bought(&mut self, answered: Answered, cx: &mut Cx<'_>) -> Action {
        let named = answered.facts.session_id.clone().filter(|id| !id.is_empty() && id != "." && id != "..");
        let Some(session_id) = named else {
            let what = "was accepted, but the answer names no session";
            let mut error = cx.subject.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw);
            error.raw = Some(answered.raw);
            return Action::End(Err(error));
        };
        cx.subject.session_id = Some(session_id.clone());
        let session_type = requested_type(&self.write.call.exchange.built);
        cx.notes.push(Note::Bought(Box::new(Bought { facts: answered.facts.clone(), session_type })));
        cx.note(EventKind::Accepted { session_id, estimated_charge_usd: answered.facts.estimated_charge_usd.clone() });
        let exchange = &self.write.call.exchange;
        let mut follow = Follow::known(true, exchange.headers.clone(), exchange.timeout_ms);
        let action = follow.bought(answered, self.write.was_resent(), cx);
        self.follow = Some(follow);
        action
    }
}

/// The type of the session that a request buys.
pub(crate) fn requested_type(built: &Built) -> Option<String> {
    let body = built.body.as_deref()?;
    serde_json::from_str::<CreateSession>(body).ok().map(|request| request.session_type.as_str().to_owned())
}
