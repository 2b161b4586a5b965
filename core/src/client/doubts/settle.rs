//! Closing a doubt by hand: somebody has looked at the account, and says what happened.

use crate::client::begin::next_purchase::back_to_last;
use crate::client::doubts::became::what_became;
use crate::client::end::commands::FinalWrite;
use crate::client::end::results::said;
use crate::client::names::deletion::{Deletion, REMEMBERED, done_kept_for};
use crate::client::requests::Settlement;
use crate::client::router::Router;
use crate::contract::Operation;
use crate::contract::agent::{CreateSession, RenewSession, TerminateSession};
use crate::engine::{RecordId, requested_protocol, requested_type};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{CommandId, Data, Done, Name, SavedCall, SavedSession};
use crate::time::Millis;
use crate::wire::{Built, Facts};

/// A message may be under way for so long after it was last sent, and its sender may have slept until then.
pub(crate) const UNDER_WAY: Millis = 60 * 60 * 1000;

/// The open question of a record that can be settled.
enum Open<'a> {
    Doubt(&'a SavedCall),
    /// A session that only a person named: the service has not shown it yet.
    Session(&'a SavedSession),
    /// Something that a person said has happened, without an answer of the service.
    Said(&'a Done),
}

impl Router {
    pub(crate) fn settle_found(
        &mut self,
        name: &Name,
        command: CommandId,
        settlement: Settlement,
        data: &Data,
        others: &[(String, String, RecordId)],
    ) {
        let open = match (&data.call, &data.session, &data.done) {
            (Some(call), ..) if call.is_in_doubt() || call.unanswered => Open::Doubt(call),
            (_, Some(session), _) if session.unconfirmed => Open::Session(session),
            (.., Some(done)) if done.facts.settled => Open::Said(done),
            _ => return self.finish_request(command, Ok(said(false)), None, name),
        };
        match (settlement, open) {
            (Settlement::NotHappened { early }, open) => {
                let left = UNDER_WAY.saturating_sub(self.clock().at_least_since(data.at));
                if left > 0 && !early && self.holds(Rule::HourBeforeNone) {
                    let what = "may still be under way: settle it as not happened after an hour, or now with `early` if you are certain";
                    let error = Error::new(Kind::Refused, Effect::None, "settle", what, Advice::Wait);
                    let retry_at = Some(self.unix().saturating_add(left));
                    return self.finish_request(command, Err(error.with(|new| new.retry_at = retry_at)), None, name);
                }
                let counted = if let Open::Doubt(call) = &open { call.counted.clone() } else { Vec::new() };
                if let Open::Session(session) = &open {
                    self.give_up_session(&session.id, name);
                }
                match data.later.clone() {
                    // The intent stands for the session before, which is over.
                    Some(later) => self.put_once(name, back_to_last(Data { at: self.clock().at(), ..data.clone() }, later), REMEMBERED),
                    None => self.delete(name, Deletion::Settled),
                }
                self.acted(name, command, FinalWrite::Erase, counted);
            }
            (Settlement::Happened, Open::Doubt(call)) if call.order_no.is_none() => {
                let facts = Facts { session_id: call.session_id.clone(), settled: true, ..Facts::default() };
                if call.operation == TerminateSession::ENDPOINT.name {
                    let gone = call.session_id.as_ref().and_then(|session| self.terminated(session));
                    gone.iter().for_each(|name| self.delete(name, Deletion::Terminated));
                }
                self.close(name, command, data, call, facts);
            }
            // The record has more already, by an earlier name or settlement.
            (Settlement::Happened, _) => self.finish_request(command, Ok(said(false)), None, name),
            (Settlement::Became(became), open) => self.settle_as(name, command, &became, data, open, others),
        }
    }

    /// Settles the operation as happened, with this result.
    fn settle_as(
        &mut self,
        name: &Name,
        command: CommandId,
        became: &str,
        data: &Data,
        open: Open<'_>,
        others: &[(String, String, RecordId)],
    ) {
        let refuse = |rule: &str| Err(Error::invalid("settle", "became", rule));
        let (operation, given) = match &open {
            Open::Doubt(call) => (call.operation.as_str(), call.given),
            Open::Session(_) => (CreateSession::ENDPOINT.name, false),
            Open::Said(done) => (done.operation.as_str(), false),
        };
        if data.later.as_ref().is_some_and(|later| later.last_session_id == became) {
            return self.finish_request(command, refuse("is what the purchase before this one became, under the same intent"), None, name);
        }
        let facts = match what_became(operation, became) {
            Ok(facts) => facts,
            Err(rule) => return self.finish_request(command, refuse(&rule), None, name),
        };
        let known = |other: &&(String, String, RecordId)| {
            other.0 == operation && other.1 == became && Name::of(&other.2).is_none_or(|(other, _)| other != *name)
        };
        // Only a key of the caller's can have bought what another purchase bought, too.
        if others.iter().any(|other| known(&other)) && !given {
            let rule = "is what another record stands for, and no two operations became the same";
            return self.finish_request(command, refuse(rule), None, name);
        }
        let follows = match &open {
            Open::Doubt(call) => call.follows.then_some(Some(*call)),
            Open::Session(_) => Some(None),
            Open::Said(done) => done.follows.then_some(None),
        };
        let next = match (follows, facts.session_id.clone(), facts.order_no.clone(), &open) {
            (_, Some(id), _, Open::Session(session)) => Data { session: Some(SavedSession { id, ..(*session).clone() }), ..data.clone() },
            (Some(call), Some(id), ..) => Data { call: None, done: None, session: Some(named_session(id, call)), ..data.clone() },
            (Some(Some(call)), _, Some(order_no), _) => {
                let call = SavedCall { order_no: Some(order_no), unanswered: true, doubt_since: None, ..call.clone() };
                Data { call: Some(call), ..data.clone() }
            }
            (.., Open::Doubt(call)) => return self.close(name, command, data, call, facts),
            (.., Open::Said(done)) => Data { done: Some(Done { facts, ..(*done).clone() }), ..data.clone() },
            (.., Open::Session(_)) => return self.finish_request(command, Ok(said(false)), None, name),
        };
        if let Open::Session(session) = &open {
            self.give_up_session(&session.id, name);
        }
        let keep_for = next.done.as_ref().and_then(done_kept_for);
        self.put(name, Data { at: self.clock().at(), ..next }, keep_for, true, None);
        self.acted(name, command, FinalWrite::Put, Vec::new());
    }

    /// Settles the operation as happened, with these facts.
    fn close(&mut self, name: &Name, command: CommandId, data: &Data, call: &SavedCall, facts: Facts) {
        if !name.is_findable() {
            self.delete(name, Deletion::Settled);
            return self.acted(name, command, FinalWrite::Erase, Vec::new());
        }
        if let Some(session) = call.session_id.as_deref().filter(|_| call.operation == RenewSession::ENDPOINT.name) {
            self.drop_marker_to(name.clone(), session);
        }
        let done = Done { operation: call.operation.clone(), facts, follows: call.follows, answer: None };
        let keep_for = done_kept_for(&done);
        let data = Data { done: Some(done), call: None, at: self.clock().at(), ..data.clone() };
        self.put(name, data, keep_for, true, None);
        self.acted(name, command, FinalWrite::Put, Vec::new());
    }
}

/// A session that a person named, as it was asked for where the call is known.
fn named_session(id: String, call: Option<&SavedCall>) -> SavedSession {
    SavedSession {
        id,
        session_type: call.and_then(|call| requested_type(&Built { body: call.body.clone(), ..Built::at(&call.target) })),
        protocol: call.and_then(|call| requested_protocol(call.body.as_deref())),
        credentials: call.is_some_and(|call| call.credentials),
        auto_rotate: call.is_some_and(|call| call.auto_rotate),
        ends: call.map(|call| call.ends.clone()).unwrap_or_default(),
        unconfirmed: true,
        ..SavedSession::default()
    }
}
