//! After a crash: records are read back, held, resumed or forgotten. Nothing is sent until somebody says so.

use super::job::{Custody, Entry, Parked};
use super::options::CallOptions;
use super::root::Client;
use super::start::check_rotation;
use super::types::Record;
use crate::contract::agent::CreateSession;
use crate::contract::{Operation, endpoint};
use crate::engine::{Age, Exchange, Job, RecordId, Subject, Terms, Then, Write, requested_type};
use crate::entropy::digest;
use crate::policy::{Advice, Effect, Error, Kind, Ledger, Rule};
use crate::state::{
    Accepted, BadRecord, CommandId, Data, Holds, Intent, JobId, Owner, SavedCall, SavedSession, Tracked, Untaken, intent_of,
};
use crate::time::Millis;
use crate::wire::Built;

/// What became of the records that were given to [`Client::restore`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Restored {
    /// The records that are held now.
    pub held: Vec<RecordId>,
    /// The records that were refused, and why. They stay in the store.
    pub refused: Vec<(RecordId, BadRecord)>,
}

impl Client {
    /// Takes records back from the store. A record of another account, API or version is refused and stays where it is.
    pub fn restore(&mut self, records: impl IntoIterator<Item = Record>) -> Restored {
        self.restore_as(records, false)
    }

    /// The same for records of an account that the caller says is this one, under another key or at another base URL.
    pub fn restore_same_account(&mut self, records: impl IntoIterator<Item = Record>) -> Restored {
        self.restore_as(records, true)
    }

    fn restore_as(&mut self, records: impl IntoIterator<Item = Record>, same_account: bool) -> Restored {
        let api = self.service.api;
        let read = |record: Record| {
            let data = Data::read(&record.data, api);
            (record, data)
        };
        let read: Vec<_> = records.into_iter().map(read).collect();
        self.take_other_names(&read);
        let mut restored = Restored::default();
        for (record, data) in read {
            let ours = data.and_then(|data| self.ours(data, same_account));
            match ours.and_then(|data| if self.is_in_use(&record.id, &data) { Err(BadRecord::InUse) } else { Ok(data) }) {
                Ok(data) => {
                    self.unrefuse_record(&record.id);
                    self.hold(record.id.clone(), data);
                    restored.held.push(record.id);
                }
                Err(bad) => {
                    // What the store has of a record that is held may be older, or of the account before.
                    let bad = if self.is_held(&record.id) { BadRecord::InUse } else { bad };
                    if bad != BadRecord::InUse {
                        self.refuse_record(record.id.clone(), bad.clone(), intent_of(&record.data), !self.is_foreign(&record.data));
                    }
                    restored.refused.push((record.id, bad));
                }
            }
        }
        restored
    }

    /// Where this client's 16 bytes gave the name of a record before, or its key, they are used up: a key that is sent again with
    /// another request, or a record that is written over, would be a purchase that nobody knows of.
    fn take_other_names(&mut self, read: &[(Record, Result<Data, BadRecord>)]) {
        let key = |data: &Result<Data, BadRecord>| data.as_ref().ok()?.call.as_ref()?.key.clone();
        let new = read.iter().filter(|(record, _)| !self.store.is_alive(&record.id));
        let mut names: Vec<String> = new.flat_map(|(record, data)| [Some(record.id.0.clone()), key(data)]).flatten().collect();
        if !names.iter().any(|name| self.entropy.may_have_named(name)) {
            return;
        }
        names.extend(self.store.records().map(|record| record.0.clone()));
        names.extend(self.jobs.values().filter_map(|entry| entry.job.write()?.call.ledger.key.clone()));
        while names.iter().any(|name| self.entropy.may_have_named(name)) {
            self.entropy.turn();
        }
    }

    fn ours(&self, data: Data, same_account: bool) -> Result<Data, BadRecord> {
        if data.base_url != self.service.base.as_str() && !same_account {
            return Err(BadRecord::OtherApi(data.base_url));
        }
        let ours = digest(&data.account.salt, &[self.account_name.reveal()]) == data.account.digest;
        if !ours && !same_account {
            return Err(BadRecord::OtherAccount);
        }
        Ok(data)
    }

    /// Whether a record is another account's for sure: both have names of their callers', and these differ.
    fn is_foreign(&self, data: &[u8]) -> bool {
        let read = Data::read(data, self.service.api);
        let (ours, theirs) = (&self.account, read.as_ref().map(|data| &data.account));
        let name = self.account_name.reveal();
        theirs.is_ok_and(|theirs| ours.named && theirs.named && digest(&theirs.salt, &[name]) != theirs.digest)
    }

    /// Whether a record, or what it is about, is alive in this client already.
    fn is_in_use(&self, record: &RecordId, data: &Data) -> bool {
        let is_free = data.intent.as_ref().map(|name| self.yields(name, Millis::MAX));
        let taken = match &data.session {
            // Another intent may have brought the same session; one that has none is of no use.
            Some(session) => self.follows(&session.id) && is_free != Some(true),
            None => is_free == Some(false),
        };
        taken || self.is_held(record)
    }

    /// Whether a record is alive in this client already.
    fn is_held(&self, record: &RecordId) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.holds(record)) || self.store.is_alive(record)
    }

    /// Whether the client follows a session: it has a record of it, and the session has not ended as far as it knows.
    pub fn follows(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|known| known.record.is_some())
    }

    /// Whether an intent's name is free for what was done at that time: an old session has it only for as long as nothing
    /// later was started under it.
    fn yields(&self, name: &str, at: Millis) -> bool {
        match self.intents.get(name) {
            Some(Intent::Accepted(accepted)) => accepted.opened && accepted.record.is_none() && accepted.at <= at,
            Some(Intent::Active(_)) => false,
            None => true,
        }
    }

    /// Takes in one record.
    fn hold(&mut self, record: RecordId, data: Data) {
        let intent = data.intent.clone().zip(data.fingerprint.clone());
        if let Some(spent) = data.spent {
            match &mut self.guard {
                Some(guard) => guard.adopt(record, spent),
                None => self.store.own(&record, Owner::Total),
            }
            return;
        }
        if let Some(session) = data.session {
            self.hold_session(record, session, intent, data.unix);
        } else if let Some(call) = data.call {
            self.hold_call(record, call, intent, data.unix);
        } else if let (Some(done), Some((name, fingerprint))) = (data.done, intent) {
            let operation = endpoint(&done.operation).map_or(crate::contract::ANY, |endpoint| endpoint.name);
            self.store.own(&record, Owner::Intent(name.clone()));
            let accepted = Accepted {
                fingerprint,
                operation,
                facts: done.facts,
                raw: None,
                record: Some(record),
                opened: done.opened,
                at: done.at,
                finished_at: done.finished_at,
                since: None,
            };
            self.accept(name, accepted);
        }
    }

    /// Holds a session. It has one record: a further one, of another intent, only remembers that intent.
    pub(super) fn hold_session(&mut self, record: RecordId, session: SavedSession, intent: Option<(String, String)>, at: Millis) {
        let named = intent.clone().filter(|(name, _)| self.yields(name, at));
        let (id, over_at) = (session.id, session.over_at);
        let further = self.follows(&id).then(|| record.clone());
        if further.is_none() {
            self.store.own(&record, Owner::Session(id.clone()));
            let before = self.sessions.remove(&id).unwrap_or_default();
            let tracked = Tracked {
                record: Some(record),
                session_type: session.session_type,
                status: session.status,
                credentials: session.credentials,
                auto_rotate: session.auto_rotate || before.auto_rotate,
                ends: session.ends,
                over_at: session.over_at,
                only_named: session.only_named && !before.seen,
                intent,
                ..before
            };
            self.sessions.insert(id.clone(), tracked);
        }
        let Some((name, fingerprint)) = named else { return };
        if let Some(record) = &further {
            self.store.own(record, Owner::Intent(name.clone()));
        }
        let (facts, operation) = (self.known(&id).0, CreateSession::ENDPOINT.name);
        self.accept(
            name,
            Accepted { fingerprint, operation, facts, raw: None, record: further, opened: true, at, finished_at: over_at, since: None },
        );
    }

    /// Holds a call that may have been sent.
    fn hold_call(&mut self, record: RecordId, call: SavedCall, intent: Option<(String, String)>, unix: Millis) {
        let Some(endpoint) = call.endpoint(self.service.api) else { return };
        let (id, placed) = (self.job_id(), call.clone());
        let built = Built {
            body: call.body,
            secret: call.secret,
            session_id: call.session_id.clone(),
            credentials: call.credentials,
            clues: call.clues,
            ..Built::at(&call.target)
        };
        let options =
            CallOptions { credentials: call.credentials, auto_rotate: call.auto_rotate, ends: call.ends, ..CallOptions::default() };
        let mut ledger = Ledger::restored(call.key.clone(), call.given, call.may_have_sold);
        if !self.rules.holds(Rule::RestoredIsUnanswered) {
            ledger.unanswered = call.unanswered;
        }
        let mut terms = Terms::new(endpoint, &built, None, None);
        (terms.reserved, terms.earlier) = (call.reserved, call.earlier);
        terms.quote = call.reserved.map(|reserved| reserved.usd);
        let exchange = Exchange::new(endpoint, built, Vec::new(), self.service.retry.timeout_ms);
        let mut write = Write::new(exchange, self.service.retry, ledger, terms);
        (write.key.age, write.key.settled, write.restored) = (Age::Saved { age: call.age_ms, unix }, call.spent, true);
        let mut job = Job::write_then(write, if call.opens { Then::Follow } else { Then::End });
        let (name, fingerprint) = intent.unzip();
        let subject = Subject {
            operation: endpoint.name,
            intent: name.clone(),
            session_id: call.session_id.clone(),
            order_no: call.order_no.clone(),
            key: call.key,
            ..Subject::default()
        };
        let mut custody = Custody {
            record: Some(record.clone()),
            fingerprint: fingerprint.unwrap_or_default(),
            doubt_since: Some(call.doubt_since.unwrap_or(unix)),
            ..Custody::default()
        };
        if let (Job::PlaceOrder(job), Some(order_no)) = (&mut job, call.order_no) {
            let order = job.become_order(order_no, None, name.is_none() || placed.unanswered);
            order.only_named = placed.unanswered;
            custody.placed = Some(Box::new(placed));
        }
        self.store.own(&record, Owner::Job(id));
        if let (Some(session), true) = (call.session_id, endpoint.changes_session()) {
            self.sessions.entry(session).or_default().changing.insert(id);
        }
        if let Some(name) = name {
            self.intents.insert(name, Intent::Active(id));
        }
        let entry = Entry::new(job, subject, &options);
        self.jobs.insert(id, Box::new(Entry { parked: Parked::Resting, custody, ..entry }));
    }

    /// Goes on with what a record holds: a keyed call sends the same bytes with the same key, a session is waited for.
    /// What can't be sent again comes back in doubt. An accepted intent has nothing to go on with: it gives what it was
    /// accepted with. The options are those of the rest of it: what they leave out has its default, not what the first start
    /// had.
    pub fn resume(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        if let Err(error) = options.check_resume() {
            return self.reject(error, None);
        }
        if let Some(command) = self.resume_untaken(record) {
            return command;
        }
        let owner = self.store.owner(record).cloned();
        let what = match owner {
            Some(Owner::Total) => "this record is a day's total under a cap, and there is nothing to go on with",
            Some(Owner::Result) => "the operation of this record has ended, and its result waits to be taken",
            _ => "no such record is held",
        };
        let resumed = match owner {
            Some(Owner::Job(id)) => self.resume_job(id, &options),
            Some(Owner::Session(id)) => self.resume_session(&id, options),
            Some(Owner::Intent(name)) => self.resume_intent(&name, options),
            Some(Owner::Total | Owner::Result) | None => None,
        };
        resumed.unwrap_or_else(|| self.reject(Error::new(Kind::Misuse, Effect::None, "resume", what, Advice::Nothing), None))
    }

    fn resume_job(&mut self, id: JobId, options: &CallOptions) -> Option<CommandId> {
        let entry = self.jobs.get(&id)?;
        let (operation, intent) = (entry.subject.operation, entry.subject.intent.clone());
        let session_type = entry.job.write().and_then(|write| requested_type(&write.call.exchange.built));
        let then = if entry.job.follows() { Then::Follow } else { Then::End };
        if let Err(error) = check_rotation(operation, then, session_type.as_deref(), options) {
            return Some(self.reject(error, intent));
        }
        let command = self.command_for(operation);
        self.join_with(id, options);
        self.attach(id, command);
        Some(command)
    }

    fn resume_session(&mut self, id: &str, options: CallOptions) -> Option<CommandId> {
        let Tracked { credentials, intent, .. } = self.sessions.get(id)?;
        let options = CallOptions { credentials: options.credentials || *credentials, ..options };
        match intent.as_ref().map(|(name, _)| name.clone()).filter(|name| self.accepted_as(name, id)) {
            Some(name) => self.resume_intent(&name, options),
            None => Some(self.wait_session(id, options).command),
        }
    }

    /// Resumes all that can be resumed: operations in doubt and sessions.
    pub fn resume_all(&mut self) -> Vec<CommandId> {
        let held = self.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session | Holds::Order));
        let records: Vec<RecordId> = held.map(|saved| saved.record).collect();
        records.iter().map(|record| self.resume(record, CallOptions::default())).collect()
    }

    /// Forgets a session, an order that nobody waits for, an accepted intent, or a day's total that a client without a cap was
    /// given: its record goes. What is under way or in
    /// doubt stays. Returns whether something was forgotten.
    pub fn forget(&mut self, record: &RecordId) -> bool {
        if self.unrefuse_record(record) {
            self.delete(record);
            return true;
        }
        match self.store.owner(record).cloned() {
            Some(Owner::Session(id)) if self.sessions.get(&id).is_some_and(|tracked| tracked.changing.is_empty()) => {
                let name = self.sessions.remove(&id).and_then(|tracked| tracked.intent).map(|(name, _)| name);
                // The name may belong to a later purchase by now.
                if let Some(name) = name.filter(|name| self.accepted_as(name, &id)) {
                    self.forget_intent(name);
                }
            }
            Some(Owner::Intent(name)) => self.forget_intent(name),
            Some(Owner::Total) => {}
            Some(Owner::Job(id)) if self.jobs.get(&id).is_some_and(|entry| entry.is_resting() && !entry.is_in_doubt()) => {
                if let Some(name) = self.jobs.remove(&id).and_then(|entry| entry.subject.intent) {
                    self.intents.remove(&name);
                }
            }
            _ => return self.forget_untaken(record, |untaken| matches!(untaken, Untaken::Done(_))),
        }
        self.delete(record);
        true
    }
}
