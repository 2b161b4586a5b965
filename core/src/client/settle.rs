//! A person closes a doubt: it did not happen, or it did and this is what came of it.

use serde::{Deserialize, Serialize};

use super::job::Entry;
use super::root::{Client, Ended};
use crate::contract::Operation;
use crate::contract::agent::{CreateSession, GetSession};
use crate::engine::{Job, RecordId, bad_order_no, requested_type};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{Accepted, Intent, JobId, Owner, SavedCall, SavedSession, Untaken};
use crate::wire::{Facts, build};

/// What a person found out about an operation in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It was done.
    Happened,
    /// It was not done.
    NotHappened,
}

/// What a person may settle.
enum Open {
    /// An operation in doubt.
    Doubt(JobId),
    /// A session that only a person named: the service has not shown it yet.
    Session(String),
    /// The intent of something that a person said has happened, without an answer of the service.
    Intent(String),
}

impl Client {
    /// Closes a doubt by hand. If it did not happen, the intent is free as soon as the record is gone; if the store can't delete
    /// it, it stays in doubt. What only a person named, and the service has not shown, may be settled once more. Returns whether
    /// there was a doubt.
    pub fn settle(&mut self, record: &RecordId, settlement: Settlement) -> bool {
        let (id, entry) = match self.open(record) {
            Some(Open::Doubt(id)) => match self.jobs.get(&id) {
                Some(entry) => (id, entry),
                None => return false,
            },
            // It was named or said already, and that says more.
            Some(_) => return settlement == Settlement::NotHappened && self.forget(record),
            None => return self.forget_untaken(record, |untaken| matches!(untaken, Untaken::Unknown { .. })),
        };
        match settlement {
            // It was named already, and that says more.
            Settlement::Happened if entry.job.order().is_some() => return false,
            Settlement::Happened => {
                let (session_id, terminates) = (entry.subject.session_id.clone(), matches!(entry.job, Job::Terminate(_)));
                self.close_doubt(record, id, Facts { session_id: session_id.clone(), settled: true, ..Facts::default() });
                if let (true, Some(session)) = (terminates, session_id) {
                    self.terminated(&session).iter().for_each(|record| self.delete(record));
                }
            }
            Settlement::NotHappened => {
                let error = entry.subject.error(Kind::Cancelled, Effect::None, "was settled by hand as not happened", Advice::Nothing);
                self.erase(id, error);
            }
        }
        true
    }

    /// Closes a doubt by hand: it happened, and this is what it became: the id of a session or of a recharge, the number of an
    /// order or of a sub-user. A session or static order that was to be waited for goes on with the record: starting the
    /// intent again, or resuming the record, waits for it. Of anything else the intent answers with what it became. What
    /// another record has already is refused. What only a person named, and the service has not shown, can be named anew.
    /// Returns whether there was a doubt.
    pub fn settle_as(&mut self, record: &RecordId, became: &str) -> Result<bool, Error> {
        let refused = |rule: String| Error::invalid("settle", "became", &rule);
        let Some(open) = self.open(record) else {
            // What nobody took has no name that could stand for what it became.
            let Some(Untaken::Unknown { operation, .. }) = self.untaken.get(record) else { return Ok(false) };
            what_became(operation, became).map_err(refused)?;
            return Ok(self.forget_untaken(record, |untaken| matches!(untaken, Untaken::Unknown { .. })));
        };
        let (operation, given) = match &open {
            Open::Doubt(id) => {
                let known = self.jobs.get(id);
                let given = known.and_then(|entry| entry.job.write()).is_some_and(|write| write.call.ledger.given);
                (known.map(|entry| entry.subject.operation).unwrap_or_default(), given)
            }
            Open::Session(_) => (CreateSession::ENDPOINT.name, false),
            Open::Intent(name) => (self.remembered(name).map(|accepted| accepted.operation).unwrap_or_default(), false),
        };
        let facts = what_became(operation, became).map_err(refused)?;
        // Only a key of the caller's can have bought what another purchase bought, too.
        if self.record_of(operation, &facts, Some(record)).is_some() && !given {
            return Err(Error::invalid("settle", "became", "is what another record stands for, and no two operations became the same"));
        }
        match open {
            Open::Doubt(id) => self.name_doubt(record, id, facts),
            Open::Session(session) => self.name_session(record, &session, facts),
            Open::Intent(name) => self.name_intent(record, name, facts),
        }
        Ok(true)
    }

    /// What there is to settle about a record. An order that was accepted is not in doubt; one that a person named can be named
    /// anew for as long as nobody has seen it, and so can a session.
    fn open(&self, record: &RecordId) -> Option<Open> {
        match self.store.owner(record)? {
            Owner::Job(id) => {
                let entry = self.jobs.get(id).filter(|entry| entry.is_resting())?;
                entry.job.order().is_none_or(|order| order.only_named).then_some(Open::Doubt(*id))
            }
            Owner::Session(id) => {
                let known = self.sessions.get(id).filter(|tracked| tracked.only_named && tracked.changing.is_empty());
                known.map(|_| Open::Session(id.clone()))
            }
            Owner::Intent(name) => self.remembered(name).filter(|accepted| accepted.facts.settled).map(|_| Open::Intent(name.clone())),
            Owner::Total | Owner::Result => None,
        }
    }

    fn remembered(&self, intent: &str) -> Option<&Accepted> {
        match self.intents.get(intent)? {
            Intent::Accepted(accepted) => Some(accepted),
            Intent::Active(_) => None,
        }
    }

    /// A doubt became this.
    fn name_doubt(&mut self, record: &RecordId, id: JobId, facts: Facts) {
        let elapsed = self.clock.elapsed();
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        match (&mut entry.job, facts.session_id.clone(), facts.order_no.clone()) {
            (Job::OpenSession(_), Some(session), _) => self.become_session(record, id, session),
            (Job::PlaceOrder(job), _, Some(order_no)) => {
                job.become_order(order_no.clone(), None, true).only_named = true;
                entry.subject.order_no = Some(order_no.clone());
                entry.custody.doubt_since = None;
                let call = entry.custody.placed.take().map(|call| *call).or_else(|| entry.saved_call(elapsed));
                entry.custody.placed = call.map(|call| Box::new(SavedCall { order_no: Some(order_no), unanswered: true, ..call }));
                self.save_job(id, None);
            }
            _ => self.close_doubt(record, id, facts),
        }
    }

    /// A session that only a person named is another one.
    fn name_session(&mut self, record: &RecordId, session: &str, facts: Facts) {
        let (Some(tracked), Some(id)) = (self.sessions.remove(session), facts.session_id) else { return };
        let saved = SavedSession {
            id,
            session_type: tracked.session_type,
            status: None,
            credentials: tracked.credentials,
            auto_rotate: tracked.auto_rotate,
            ends: tracked.ends,
            over_at: None,
            only_named: true,
        };
        self.take_named(record, saved, tracked.intent);
    }

    /// What a person said has happened became this.
    fn name_intent(&mut self, record: &RecordId, name: String, facts: Facts) {
        let Some(accepted) = self.remembered(&name).cloned() else { return };
        match facts.session_id.clone().filter(|_| accepted.opened) {
            Some(id) => {
                let saved = SavedSession { id, only_named: true, ..SavedSession::default() };
                self.take_named(record, saved, Some((name, accepted.fingerprint)));
            }
            None => {
                let accepted = Accepted { facts, ..accepted };
                self.save_accepted(&name, &accepted);
                self.accept(name, accepted);
            }
        }
    }

    /// The record of a purchase in doubt becomes that of its session.
    fn become_session(&mut self, record: &RecordId, id: JobId, session: String) {
        let Some(Entry { job, subject, wants, custody, .. }) = self.jobs.remove(&id).map(|entry| *entry) else { return };
        let saved = SavedSession {
            id: session,
            session_type: job.write().and_then(|write| requested_type(&write.call.exchange.built)),
            status: None,
            credentials: wants.credentials,
            auto_rotate: wants.auto_rotate,
            ends: wants.ends,
            over_at: None,
            only_named: true,
        };
        self.take_named(record, saved, subject.intent.map(|name| (name, custody.fingerprint)));
    }

    /// From here on the record, and its intent, stand for that session.
    fn take_named(&mut self, record: &RecordId, saved: SavedSession, intent: Option<(String, String)>) {
        if let Some((name, _)) = &intent {
            self.forget_intent(name.clone());
        }
        let (session, follows) = (saved.id.clone(), self.follows(&saved.id));
        self.hold_session(record.clone(), saved, intent.clone(), self.clock.unix());
        match intent {
            _ if !follows => self.save_session(&session),
            Some((name, _)) => {
                if let Some(accepted) = self.remembered(&name).cloned() {
                    self.save_accepted(&name, &accepted);
                }
            }
            None => self.delete(record),
        }
    }

    /// Closes a doubt: it happened, and so much is known of it.
    fn close_doubt(&mut self, record: &RecordId, id: JobId, facts: Facts) {
        let Some(Entry { job, subject, custody, .. }) = self.jobs.remove(&id).map(|entry| *entry) else { return };
        if let Some(tracked) = subject.session_id.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.changing.remove(&id);
        }
        let (operation, opened) = (subject.operation, job.follows());
        let Some(name) = subject.intent else { return self.delete(record) };
        let (fingerprint, record, at) = (custody.fingerprint, Some(record.clone()), self.clock.unix());
        let finished_at = self.clock.finished_at();
        let accepted = Accepted { fingerprint, operation, facts, raw: None, record, opened, at, finished_at, since: None };
        self.save_accepted(&name, &accepted);
        self.accept(name, accepted);
    }

    /// Another record that stands for this already. An operation of another name is about it, and did not become it.
    pub(super) fn record_of(&self, operation: &str, facts: &Facts, besides: Option<&RecordId>) -> Option<RecordId> {
        let name = name_of(operation, facts)?;
        let became = |other: &str, facts: &Facts| other == operation && name_of(operation, facts).as_ref() == Some(&name);
        let session = self.sessions.get(&name).filter(|_| operation == CreateSession::ENDPOINT.name);
        let session = session.and_then(|tracked| tracked.record.as_ref());
        let orders = self.jobs.values().filter_map(|entry| {
            let is_it = entry.subject.operation == operation && entry.job.order().is_some_and(|order| order.order_no == name);
            entry.custody.record.as_ref().filter(|_| is_it)
        });
        let accepted = self.intents.values().filter_map(|intent| match intent {
            Intent::Accepted(accepted) if became(accepted.operation, &accepted.facts) => accepted.record.as_ref(),
            _ => None,
        });
        let untaken = self.untaken.iter().filter_map(|(record, untaken)| match untaken {
            Untaken::Done(done) if became(done.operation, &done.facts) => Some(record),
            _ => None,
        });
        let results = self.commands.values().filter_map(|command| match command.ended.as_deref() {
            Some(Ended { result: Ok(answered), left }) if became(command.operation, &answered.facts) => left.own.as_ref(),
            _ => None,
        });
        session.into_iter().chain(orders).chain(accepted).chain(untaken).chain(results).find(|record| Some(*record) != besides).cloned()
    }
}

/// What tells one outcome of an operation from another.
fn name_of(operation: &str, facts: &Facts) -> Option<String> {
    match operation {
        "create_session" => facts.session_id.clone(),
        "create_static_order" | "create_dynamic_order" => facts.order_no.clone(),
        "create_recharge" => facts.order_id.clone(),
        "create_user" => facts.id.map(|id| id.to_string()),
        _ => None,
    }
}

/// Whether what an operation became has a name to settle it as.
pub(super) fn becomes(operation: &str) -> bool {
    matches!(operation, "create_session" | "create_static_order" | "create_dynamic_order" | "create_recharge" | "create_user")
}

/// What is known of an operation that became this, or why it can't be.
fn what_became(operation: &str, became: &str) -> Result<Facts, String> {
    if became.trim() != became {
        return Err("must not begin or end with a space".to_owned());
    }
    let name = || Some(became.to_owned());
    let number = || bad_order_no(became).map_or_else(|| Ok(name()), |rule| Err(rule.to_owned()));
    match operation {
        "create_session" => {
            let params = serde_json::json!({ "session_id": became }).to_string();
            build(GetSession::ENDPOINT, &params).map_err(|refusal| refusal.rule)?;
            // A session is more than its id, so there is no answer to read.
            Ok(Facts { session_id: name(), settled: true, ..Facts::default() })
        }
        "create_static_order" | "create_dynamic_order" => Ok(Facts { order_no: number()?, ..Facts::default() }),
        "create_recharge" => Ok(Facts { order_id: number()?, ..Facts::default() }),
        "create_user" => match became.parse() {
            Ok(id) => Ok(Facts { id: Some(id), ..Facts::default() }),
            Err(_) => Err("must be the number of a sub-user".to_owned()),
        },
        _ => Err("belongs to a new session, order, recharge or sub-user".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallOptions, ClientOptions, CommandId, FailureKind, Now, Outcome, Sent, Step};
    use super::*;

    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };

    /// Starts it and answers every Send with that, or loses it where there is none.
    fn run(client: &mut Client, operation: &str, params: &str, intent: Option<&str>, answer: Option<&str>) -> CommandId {
        let options = CallOptions { intent: intent.map(str::to_owned), attempts: Some(1), ..CallOptions::default() };
        let command = client.start_json(operation, params, options);
        loop {
            match client.poll(NOW) {
                Step::Save { id, .. } => client.resolve(id, Outcome::Saved, NOW).expect("is answered once"),
                Step::Send { id, .. } => {
                    let outcome = match answer {
                        Some(body) => Outcome::Response { status: 200, headers: &[], body: body.as_bytes(), truncated: false },
                        None => Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe },
                    };
                    client.resolve(id, outcome, NOW).expect("is answered once");
                }
                Step::Wait { .. } => return command,
                _ => {}
            }
        }
    }

    #[test]
    fn what_another_record_stands_for_is_not_what_a_doubt_became() {
        const RECHARGE: &str = r#"{"amount_usd":10}"#;
        const SESSION: &str = r#"{"session_type":"dynamic","product_no":"p"}"#;
        let recharged = r#"{"success":true,"data":{"order_id":"n-1"}}"#;
        let bought = r#"{"success":true,"data":{"session_id":"n-1","status":"active"}}"#;
        // Under an intent, whose answer is remembered, and without one, whose result nobody has taken.
        for first in [Some("one"), None] {
            for (operation, params, answer) in
                [("create_recharge", RECHARGE, recharged), ("create_session", SESSION, bought), ("open_session", SESSION, bought)]
            {
                let options = ClientOptions { base_url: "https://api.example/v1".into(), ..ClientOptions::default() };
                let mut client = Client::new(options, [7; 16]).expect("the options are sound");
                run(&mut client, operation, params, first, Some(answer));
                let doubt = run(&mut client, operation, params, Some("two"), None);
                let record = client.take_answer(doubt).and_then(Result::err).and_then(|error| error.record.clone()).map(RecordId);
                let record = record.expect("is in doubt");
                let error = client.settle_as(&record, "n-1").expect_err("is taken");
                assert_eq!((error.kind, error.field.as_deref()), (Kind::Invalid, Some("became")), "{operation} {first:?}: {error}");
                assert_eq!(client.settle_as(&record, "n-2"), Ok(true), "{operation} {first:?}");
            }
        }
    }
}
