//! What is written into records, and when: jobs, sessions, and what accepted intents are remembered by.

use super::job::Age;
use super::record::{Data, Done, SavedSession};
use super::session::Tracked;
use super::store::{JobId, Owner};
use super::types::RecordId;
use super::{Accepted, Client};

impl Client {
    /// Saves a job's record as it is now.
    pub(super) fn save_job(&mut self, id: JobId, waiter: Option<JobId>) {
        let elapsed = self.clock.elapsed();
        let mut data = self.data();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let record = job.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        data.intent.clone_from(&job.intent);
        data.fingerprint = job.intent.is_some().then(|| job.fingerprint.clone());
        data.call = job.saved(elapsed);
        if let Age::Saved { unix, .. } = job.age {
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
            base_url: self.base.to_string(),
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
