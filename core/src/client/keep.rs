//! What is written into records, and when: jobs, sessions, and what accepted intents are remembered by.

use super::job::Entry;
use super::root::{Client, Pending};
use super::types::{Event, Step};
use crate::contract::{ANY, Safety};
use crate::engine::{Age, EventKind, RecordId};
use crate::state::{Accepted, Data, Done, JobId, Owner, SavedCall, SavedSession, Tracked};
use crate::time::Millis;

impl Entry {
    /// The part of its record that is the call itself.
    pub(super) fn saved_call(&self, elapsed: Millis) -> Option<SavedCall> {
        let write = self.job.write()?;
        let (endpoint, built, ledger) = (write.call.exchange.endpoint, &write.call.exchange.built, &write.call.ledger);
        // What is never sent again needs no body, and a free one may hold anything.
        let bodiless = built.secret || endpoint.safety == Safety::AtMostOnce;
        Some(SavedCall {
            operation: endpoint.name.to_owned(),
            any: (endpoint.name == ANY).then_some((endpoint.method, endpoint.safety)),
            target: if built.secret { endpoint.path.to_owned() } else { built.target.clone() },
            body: if bodiless { None } else { built.body.clone() },
            secret: built.secret,
            session_id: self.subject.session_id.clone(),
            key: ledger.key.clone(),
            given: ledger.given,
            may_have_sold: ledger.may_have_sold,
            unanswered: ledger.unanswered,
            spent: write.key.settled,
            opens: self.job.follows(),
            credentials: self.wants.credentials,
            auto_rotate: self.wants.auto_rotate,
            ends: self.wants.ends.clone(),
            age_ms: write.key.saved_age(elapsed),
            doubt_since: self.custody.doubt_since,
            reserved: write.terms.reserved,
            earlier: write.terms.earlier,
            clues: built.clues.clone(),
            order_no: None,
        })
    }
}

impl Client {
    /// Deletes a record that is of no use any more.
    pub(super) fn delete(&mut self, record: &RecordId) {
        self.store.disown(record);
        self.save(record, None, None);
    }

    /// Asks for a Save of a record, now or after the one that is out.
    pub(super) fn save(&mut self, record: &RecordId, data: Option<Vec<u8>>, waiter: Option<JobId>) {
        self.store.want(record, data, waiter);
        self.save_next(record);
    }

    pub(super) fn save_next(&mut self, record: &RecordId) {
        if let Some(data) = self.store.send(record) {
            let id = self.step_id();
            self.pending.insert(id, Pending::Save(record.clone()));
            self.steps.push_back(Step::Save { id, record: record.clone(), data });
        }
    }

    pub(super) fn saved_step(&mut self, record: &RecordId, kept: bool) {
        let (waiters, more) = self.store.answered(record);
        if more {
            self.save_next(record);
        } else if kept {
            self.total_saved(record);
            self.unspent_saved(record);
        }
        if !kept && waiters.is_empty() {
            let what = EventKind::StoreFailed { record: record.clone() };
            self.steps.push_back(Step::Notify(Event { command: None, operation: "store", intent: None, what }));
        }
        for id in waiters {
            self.stored(id, kept);
        }
    }

    /// Saves a job's record as it is now.
    pub(super) fn save_job(&mut self, id: JobId, waiter: Option<JobId>) {
        let elapsed = self.clock.elapsed();
        let mut data = self.data();
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let record = entry.custody.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        data.intent.clone_from(&entry.subject.intent);
        data.fingerprint = entry.subject.intent.is_some().then(|| entry.custody.fingerprint.clone());
        data.call = entry.custody.placed.as_deref().cloned().or_else(|| entry.saved_call(elapsed));
        if let Some(Age::Saved { unix, .. }) = entry.job.write().map(|write| write.key.age) {
            // The age is that of the record as it was read; the time must stay with it, or the key would grow younger.
            data.unix = unix;
        }
        self.store.own(&record, Owner::Job(id));
        self.save(&record, Some(data.bytes()), waiter);
    }

    /// Saves a session as it is. Nothing waits for it.
    pub(super) fn save_session(&mut self, session: &str) {
        let mut data = self.data();
        let Some(tracked) = self.sessions.get(session) else { return };
        let Some(record) = tracked.record.clone() else { return };
        (data.intent, data.fingerprint) = tracked.intent.clone().unzip();
        data.session = Some(saved_session(session, tracked));
        self.store.own(&record, Owner::Session(session.to_owned()));
        self.save(&record, Some(data.bytes()), None);
    }

    /// Saves what an intent ended with. Nothing waits for it.
    pub(super) fn save_accepted(&mut self, intent: &str, accepted: &Accepted) {
        let Some(record) = accepted.record.clone() else { return };
        let mut data = self.data();
        data.intent = Some(intent.to_owned());
        data.fingerprint = Some(accepted.fingerprint.clone());
        data.done = Some(Done {
            operation: accepted.operation.to_owned(),
            facts: accepted.facts.clone(),
            opened: accepted.opened,
            at: accepted.at,
            finished_at: accepted.finished_at.filter(|_| self.is_finished(accepted)),
        });
        self.store.own(&record, Owner::Intent(intent.to_owned()));
        self.save(&record, Some(data.bytes()), None);
    }

    pub(super) fn data(&self) -> Data {
        Data {
            hopline: Data::version(),
            base_url: self.service.base.to_string(),
            account: self.account.clone(),
            unix: self.clock.unix(),
            intent: None,
            fingerprint: None,
            call: None,
            session: None,
            done: None,
            spent: None,
        }
    }
}

fn saved_session(id: &str, tracked: &Tracked) -> SavedSession {
    SavedSession {
        id: id.to_owned(),
        session_type: tracked.session_type.clone(),
        status: tracked.status.clone(),
        credentials: tracked.credentials,
        auto_rotate: tracked.auto_rotate,
        ends: tracked.ends.clone(),
        over_at: tracked.over_at,
        only_named: tracked.only_named,
    }
}
