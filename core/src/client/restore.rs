//! After a crash: records are read back, held, resumed, settled or forgotten. Nothing is sent until somebody says so.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::entropy::digest;
use super::job::{Age, Follow, Job, State};
use super::options::CallOptions;
use super::record::{BadRecord, Data, SavedCall};
use super::session::Tracked;
use super::types::{CommandId, Millis, Record, RecordId};
use super::{Accepted, Client, Intent};
use crate::policy::{Advice, Effect, Error, Kind, Ledger, Rule};
use crate::wire::Built;

/// What became of the records that were given to [`Client::restore`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restored {
    /// The records that are held now.
    pub held: Vec<RecordId>,
    /// The records that were refused, and why. They stay in the store.
    pub refused: Vec<(RecordId, BadRecord)>,
}

/// Something that the store holds: a purchase in doubt, a session, an intent that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Its record.
    pub record: RecordId,
    /// The operation that made it.
    pub operation: String,
    /// The caller's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session's status, when it was last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What there is to do about it.
    pub holds: Holds,
    /// Since when it is in doubt, Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_doubt_since: Option<Millis>,
}

/// What a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// An operation under way in this client.
    UnderWay,
    /// An operation in doubt, which can be resumed or settled.
    InDoubt,
    /// An operation in doubt that can't be sent again: it can only be settled.
    InDoubtForGood,
    /// A session.
    Session,
    /// An intent that was accepted.
    Accepted,
}

/// What a person found out about an operation in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settlement {
    /// It was done.
    Happened,
    /// It was not done.
    NotHappened,
}

impl Client {
    /// Takes records back from the store. A record of another account, API or version is refused and stays where it is.
    pub fn restore(&mut self, records: impl IntoIterator<Item = Record>) -> Restored {
        self.restore_as(records, false)
    }

    /// The same for records of an account that the caller says is this one, under another key.
    pub fn restore_same_account(&mut self, records: impl IntoIterator<Item = Record>) -> Restored {
        self.restore_as(records, true)
    }

    fn restore_as(&mut self, records: impl IntoIterator<Item = Record>, same_account: bool) -> Restored {
        let mut restored = Restored::default();
        let mut in_use: BTreeSet<String> = self.saved().into_iter().map(|saved| saved.record.0).collect();
        for record in records {
            let read = self.readable(&record, same_account).and_then(|data| {
                let followed =
                    data.session.as_ref().and_then(|session| self.sessions.get(&session.id)).is_some_and(|known| known.record.is_some());
                let taken = self.guard.as_ref().is_some_and(|guard| guard.holds(&record.id))
                    || followed
                    || data.intent.as_ref().is_some_and(|intent| self.intents.contains_key(intent));
                if taken || !in_use.insert(record.id.0.clone()) { Err(BadRecord::InUse) } else { Ok(data) }
            });
            match read {
                Ok(data) => {
                    self.hold(record.id.clone(), data);
                    restored.held.push(record.id);
                }
                Err(bad) => restored.refused.push((record.id, bad)),
            }
        }
        restored
    }

    fn readable(&self, record: &Record, same_account: bool) -> Result<Data, BadRecord> {
        let data = Data::read(&record.data)?;
        if data.base_url != self.base.as_str() {
            return Err(BadRecord::OtherApi(data.base_url));
        }
        let ours = digest(&data.account.salt, &[self.account_name.reveal()]) == data.account.digest;
        if !ours && !same_account {
            return Err(BadRecord::OtherAccount);
        }
        Ok(data)
    }

    /// Takes in one record.
    fn hold(&mut self, record: RecordId, data: Data) {
        let intent = data.intent.clone().zip(data.fingerprint.clone());
        if let Some(spent) = data.spent {
            if let Some(guard) = &mut self.guard {
                guard.adopt(record, spent);
            }
            return;
        }
        if let Some(session) = data.session {
            let tracked = Tracked {
                record: Some(record.clone()),
                session_type: session.session_type.clone(),
                status: session.status.clone(),
                credentials: session.credentials,
                intent: intent.clone(),
                changing: self.sessions.get(&session.id).and_then(|known| known.changing),
                ..Tracked::default()
            };
            self.sessions.insert(session.id.clone(), tracked);
            if let Some((name, fingerprint)) = intent {
                let facts = self.known(&session.id).0;
                let accepted =
                    Accepted { fingerprint, operation: "create_session", facts, raw: None, record: None, opened: true, at: data.unix };
                self.intents.insert(name, Intent::Accepted(Box::new(accepted)));
            }
        } else if let Some(call) = data.call {
            self.hold_call(record, call, intent, data.unix);
        } else if let (Some(done), Some((name, fingerprint))) = (data.done, intent) {
            let operation = crate::contract::endpoint(&done.operation).map_or(crate::contract::ANY, |endpoint| endpoint.name);
            let accepted =
                Accepted { fingerprint, operation, facts: done.facts, raw: None, record: Some(record), opened: false, at: done.at };
            self.intents.insert(name, Intent::Accepted(Box::new(accepted)));
        }
    }

    /// Holds a call that may have been sent.
    fn hold_call(&mut self, record: RecordId, call: SavedCall, intent: Option<(String, String)>, unix: Millis) {
        let Some(endpoint) = call.endpoint() else { return };
        let id = self.job_id();
        let built = Built {
            target: call.target,
            body: call.body,
            headers: Vec::new(),
            secret: call.secret,
            session_id: call.session_id.clone(),
            credentials: call.credentials,
        };
        let options = CallOptions { credentials: call.credentials, ends: call.ends, ..CallOptions::default() };
        let mut job = Job::new(id, endpoint, Some(built), &options, self.retry);
        job.state = State::Held;
        job.restored = true;
        job.spent = call.spent;
        job.session = call.session_id;
        job.record = Some(record);
        job.age = Age::Saved { age: call.age_ms, unix };
        job.doubt_since = Some(call.doubt_since.unwrap_or(unix));
        job.price.reserved = call.reserved;
        job.watch.follow = if call.opens { Follow::UntilReady } else { Follow::Nothing };
        job.ledger = Ledger::restored(call.key, call.given, call.may_have_sold);
        if !self.rules.holds(Rule::RestoredIsUnanswered) {
            job.ledger.unanswered = call.unanswered;
        }
        if let (Some(session), true) = (&job.session, endpoint.changes_session()) {
            self.sessions.entry(session.clone()).or_default().changing = Some(id);
        }
        if let Some((name, fingerprint)) = intent {
            job.fingerprint = fingerprint;
            job.intent = Some(name.clone());
            self.intents.insert(name, Intent::Active(id));
        }
        self.jobs.insert(id, job);
    }

    /// What the store holds, as far as this client knows. Nothing is sent.
    pub fn saved(&self) -> Vec<Saved> {
        let jobs = self.jobs.values().filter_map(|job| {
            let holds = match job.state {
                State::Held if job.can_resume() => Holds::InDoubt,
                State::Held => Holds::InDoubtForGood,
                _ => Holds::UnderWay,
            };
            Some(Saved {
                record: job.record.clone()?,
                operation: job.endpoint.name.to_owned(),
                intent: job.intent.clone(),
                session_id: job.session.clone(),
                status: None,
                holds,
                in_doubt_since: job.doubt_since.filter(|_| job.state == State::Held),
            })
        });
        let sessions = self.sessions.iter().filter_map(|(id, tracked)| {
            Some(Saved {
                record: tracked.record.clone()?,
                operation: "create_session".to_owned(),
                intent: tracked.intent.clone().map(|(name, _)| name),
                session_id: Some(id.clone()),
                status: tracked.status.clone(),
                holds: Holds::Session,
                in_doubt_since: None,
            })
        });
        let intents = self.intents.iter().filter_map(|(name, intent)| match intent {
            Intent::Accepted(accepted) => Some(Saved {
                record: accepted.record.clone()?,
                operation: accepted.operation.to_owned(),
                intent: Some(name.clone()),
                session_id: accepted.facts.session_id.clone(),
                status: accepted.facts.status.clone(),
                holds: Holds::Accepted,
                in_doubt_since: None,
            }),
            Intent::Active(_) => None,
        });
        jobs.chain(sessions).chain(intents).collect()
    }

    /// Goes on with what a record holds: a keyed call sends the same bytes with the same key, a session is waited for.
    /// What can't be sent again comes back in doubt.
    pub fn resume(&mut self, record: &RecordId) -> CommandId {
        let job = self.jobs.values().find(|job| job.record.as_ref() == Some(record)).map(|job| (job.id, job.endpoint));
        if let Some((id, endpoint)) = job {
            let command = self.command(endpoint);
            self.attach(id, command);
            return command;
        }
        let session = self.sessions.iter().find(|(_, tracked)| tracked.record.as_ref() == Some(record)).map(|(id, _)| id.clone());
        if let Some(session) = session {
            let credentials = self.sessions.get(&session).is_some_and(|tracked| tracked.credentials);
            let ticket = self.wait_session(&session, CallOptions { credentials, ..CallOptions::default() });
            return ticket.command;
        }
        let error = Error::new(Kind::Misuse, Effect::None, "resume", "no such record is held", Advice::Nothing);
        self.reject(error, None)
    }

    /// Resumes all that can be resumed: operations in doubt and sessions.
    pub fn resume_all(&mut self) -> Vec<CommandId> {
        let held = self.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session));
        let records: Vec<RecordId> = held.map(|saved| saved.record).collect();
        records.iter().map(|record| self.resume(record)).collect()
    }

    /// Closes a doubt by hand: the record goes, the session and the intent are free. Returns whether there was one.
    pub fn settle(&mut self, record: &RecordId, settlement: Settlement) -> bool {
        let Some(id) = self.jobs.values().find(|job| job.record.as_ref() == Some(record) && job.state == State::Held).map(|job| job.id)
        else {
            return false;
        };
        let Some(job) = self.jobs.remove(&id) else { return false };
        if let Some(tracked) = job.session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.changing.take_if(|changing| *changing == id);
        }
        if settlement == Settlement::NotHappened {
            self.release(job.price.reserved);
        }
        match (job.intent, settlement) {
            (Some(name), Settlement::Happened) => {
                let facts = crate::wire::Facts { session_id: job.session, ..Default::default() };
                let accepted = Accepted {
                    fingerprint: job.fingerprint,
                    operation: job.endpoint.name,
                    facts,
                    raw: None,
                    record: Some(record.clone()),
                    opened: false,
                    at: self.clock.unix(),
                };
                self.save_accepted(&name, &accepted);
                self.intents.insert(name, Intent::Accepted(Box::new(accepted)));
            }
            (name, _) => {
                if let Some(name) = name {
                    self.intents.remove(&name);
                }
                self.save(record, None, None);
            }
        }
        true
    }

    /// Forgets a session or an accepted intent: its record goes. What is under way or in doubt stays. Returns whether
    /// something was forgotten.
    pub fn forget(&mut self, record: &RecordId) -> bool {
        let session = self
            .sessions
            .iter()
            .find(|(_, tracked)| tracked.record.as_ref() == Some(record) && tracked.changing.is_none())
            .map(|(id, _)| id.clone());
        let intent = self
            .intents
            .iter()
            .find(|(_, intent)| matches!(intent, Intent::Accepted(accepted) if accepted.record.as_ref() == Some(record)))
            .map(|(name, _)| name.clone());
        let known = session.is_some() || intent.is_some();
        if let Some(session) = session {
            let name = self.sessions.remove(&session).and_then(|tracked| tracked.intent).map(|(name, _)| name);
            // The name may belong to a later purchase by now.
            if let Some(name) = name.filter(|name| self.accepted_as(name, &session)) {
                self.intents.remove(&name);
            }
        }
        if let Some(name) = intent {
            self.intents.remove(&name);
        }
        if known {
            self.save(record, None, None);
        }
        known
    }
}
