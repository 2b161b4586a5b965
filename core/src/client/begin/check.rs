//! The checks before anything is sent, by what the client knows: options that have no meaning, a second change of a session, a key that
//! belongs to another request.

use crate::client::router::Router;
use crate::client::types::busy;
use crate::contract::agent::{CreateSession, TerminateSession};
use crate::contract::{Endpoint, Operation};
use crate::engine::{Exchange, Then};
use crate::entropy::Entropy;
use crate::options::{CallOptions, IfEnded, Use};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::wire::Built;

impl Router {
    /// Options that have no meaning for this operation, and a key that is missing.
    pub(crate) fn check_use(&self, endpoint: &Endpoint, options: &CallOptions) -> Result<(), Error> {
        if endpoint.api != self.api() {
            let what = format!("belongs to the {} API, and this client speaks the {} API", endpoint.api.as_str(), self.api().as_str());
            return Err(Error::new(Kind::Misuse, Effect::None, endpoint.name, what, Advice::ChangeRequest));
        }
        if self.account.is_not_ready() && endpoint.name == "create_session" {
            let what = "was not sent, because the account's backend is not ready for sessions; `get_account` shows when it is";
            return Err(Error::new(Kind::Refused, Effect::None, endpoint.name, what, Advice::RetryLater));
        }
        if options.product.is_some() && endpoint.name != "create_session" {
            return Err(Error::invalid(endpoint.name, "product", "belongs to a purchase of a session"));
        }
        let refusal = options.without_use(Use::Call(endpoint.safety));
        refusal.map_or(Ok(()), |(field, rule)| Err(Error::invalid(endpoint.name, field, rule)))
    }

    /// Only a purchase that its intent finds may be followed by another one, and only where a cap limits how often.
    pub(crate) fn check_if_ended(&self, endpoint: &Endpoint, then: Then, options: &CallOptions) -> Result<(), Error> {
        let opens = endpoint.name == CreateSession::ENDPOINT.name && then == Then::Follow;
        let rule = match options.if_ended {
            None => return Ok(()),
            Some(_) if !opens => "belongs to `open_session`, which may buy",
            Some(_) if options.intent.is_none() => "belongs to a purchase with an `intent`",
            Some(IfEnded::Buy) if !self.spending.has_cap() => {
                "can be `buy` only in a client with `daily_cap_usd`, since each start may buy"
            }
            Some(_) => return Ok(()),
        };
        Err(Error::invalid(endpoint.name, "if_ended", rule))
    }

    /// One change of a session at a time, and only one that its state allows.
    pub(crate) fn check_session(&self, endpoint: &'static Endpoint, session_id: Option<&str>) -> Result<(), Error> {
        let Some(id) = session_id.filter(|_| endpoint.changes_session()) else { return Ok(()) };
        self.check_changing(endpoint, id)?;
        match self.sessions.forbids(id, endpoint.name) {
            Some(rule) => Err(Error::invalid(endpoint.name, "session_id", &rule).with(|new| {
                new.session_id = Some(id.to_owned());
                new.advice = Advice::ReadSession;
            })),
            None => Ok(()),
        }
    }

    /// A key that the caller gives is no key of another write that is under way. Another one with the same given key has the same name,
    /// so it is only looked for where the key is like one that a client made up: the caller has it from an error or an event.
    pub(crate) fn check_key(&self, endpoint: &Endpoint, built: &Built, options: &CallOptions) -> Result<(), Error> {
        let Some(key) = options.idempotency_key.as_ref().filter(|key| Entropy::is_like_a_key(key)) else { return Ok(()) };
        let same = |known: &Built| known.target == built.target && known.body == built.body;
        let other = |known: &Exchange| known.endpoint.method != endpoint.method || !same(&known.built);
        let mut calls = self.jobs.values().filter_map(|entry| entry.job.write()).map(|write| &write.call);
        match calls.any(|call| call.ledger.key.as_ref() == Some(key) && other(&call.exchange)) {
            true => Err(Error::invalid(endpoint.name, "idempotency_key", "belongs to another request that is under way")),
            false => Ok(()),
        }
    }

    /// Another change of the session that is under way, which holds this one back. A termination is held back by nothing.
    pub(crate) fn check_changing(&self, endpoint: &'static Endpoint, session: &str) -> Result<(), Error> {
        if !endpoint.changes_session() || endpoint.name == TerminateSession::ENDPOINT.name {
            return Ok(());
        }
        let Some(other) = self.sessions.changing(session).next() else { return Ok(()) };
        let what = format!("a `{}` of this session is under way", self.jobs.get(other).map_or("change", |entry| entry.subject.operation));
        Err(busy(endpoint.name, &what).with(|new| new.session_id = Some(session.to_owned())))
    }
}

/// Only a session that is opened or waited for can rotate by itself, and none that is known not to be dynamic.
pub(crate) fn check_rotation(operation: &'static str, then: Then, session_type: Option<&str>, options: &CallOptions) -> Result<(), Error> {
    let rule = match session_type {
        _ if !options.auto_rotate => return Ok(()),
        _ if then != Then::Follow => "belongs to a session that is opened or waited for".to_owned(),
        Some(kind) if kind != "dynamic" => format!("is for a dynamic session, and this one is {kind}"),
        _ => return Ok(()),
    };
    Err(Error::invalid(operation, "auto_rotate", &rule))
}
