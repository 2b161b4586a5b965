//! How a job ends: without effect, in doubt, or for good.

use super::job::{Entry, Parked};
use super::root::{Client, Left};
use super::session::ended;
use crate::contract::agent::CreateSession;
use crate::contract::{Json, Operation};
use crate::engine::{Answered, EventKind, Job, Phase, RecordId, Write, phase_of};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{Accepted, JobId, KEPT_RAW};
use crate::wire::Facts;

impl Client {
    /// Ends a job that had no effect: its record goes first, then that is said.
    pub(super) fn erase(&mut self, id: JobId, error: Error) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let Some(record) = entry.custody.record.clone() else { return self.finish(id, Err(error)) };
        if !self.rules.holds(Rule::DeleteBeforeNone) {
            entry.custody.record = None;
            self.finish(id, Err(error));
            return self.delete(&record);
        }
        self.clear_timer(id);
        self.park(id, Parked::Erasing(Some(error)));
        self.save(&record, None, Some(id));
    }

    /// Its record is gone, or could not be deleted: then it is in doubt.
    pub(super) fn erased(&mut self, id: JobId, gone: bool) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let Parked::Erasing(error) = std::mem::replace(&mut entry.parked, Parked::Waking) else { return };
        let Some(error) = error else {
            // It was given up, and somebody wants it after all.
            let now = self.clock.monotonic();
            return self.set_timer(id, now);
        };
        if gone {
            if let Some(record) = entry.custody.record.take() {
                self.store.disown(&record);
            }
            return self.finish(id, Err(error));
        }
        let what = "stays in doubt, since the store could not delete its record; resume it, or settle it as not happened, once it can";
        let mut doubt = entry.subject.error(Kind::Store, Effect::Unknown, what, Advice::MendStore);
        doubt.cause = Some(error);
        self.doubt(id, doubt);
    }

    /// Ends a job in doubt: whoever waits is told, the record stays, and it can be resumed. A job that was never saved, as
    /// its key is the caller's, gets a record now.
    pub(super) fn doubt(&mut self, id: JobId, error: Error) {
        let unix = self.clock.unix();
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        // What is in doubt is a key before it: a further one that was never sent, or was refused, is counted no more, as soon as the
        // record says so, too.
        let unspent = entry.job.write_mut().and_then(Write::take_unspent);
        entry.custody.doubt_since.get_or_insert(unix);
        let record = entry.custody.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        self.notify(id, EventKind::InDoubt { record: Some(record.clone()) });
        self.uncount_once_saved(&record, unspent);
        self.save_job(id, None);
        self.rest(id, error);
    }

    /// Nothing happens from here on until somebody resumes, settles or forgets it: whoever waits is told, with its record.
    pub(super) fn rest(&mut self, id: JobId, mut error: Error) {
        self.clear_timer(id);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        entry.parked = Parked::Resting;
        error.record = entry.custody.record.as_ref().map(|record| record.0.clone());
        for command in std::mem::take(&mut entry.waiting) {
            self.complete(command, Err(error.clone()));
        }
    }

    /// Ends a job for good. A record that is still there is deleted once the result was taken, unless it is what an
    /// accepted intent is remembered by.
    pub(super) fn finish(&mut self, id: JobId, mut result: Result<Answered, Error>) {
        self.clear_timer(id);
        let Some(mut entry) = self.jobs.remove(&id) else { return };
        if let Ok(answered) = &mut result {
            self.fill(&mut entry, answered);
        }
        match (&result, &entry.custody.record) {
            (Err(error), _) if error.effect == Effect::None => {
                self.uncount(entry.job.write().map(|write| [write.terms.reserved, write.terms.earlier]).unwrap_or_default());
            }
            // In doubt for good, without a name: its record goes once that was taken.
            (Err(_), Some(record)) => self.uncount_once_saved(record, entry.job.write_mut().and_then(Write::take_unspent)),
            _ => {}
        }
        if let Some(tracked) = entry.subject.session_id.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.changing.remove(&id);
        }
        if let Some(over) = self.over_for_good(&entry, &result) {
            result = Err(over);
        }
        let told_of = entry.subject.session_id.clone().filter(|_| !entry.waiting.is_empty());
        let missing = matches!(&result, Err(error) if error.code.as_deref() == Some("SESSION_NOT_FOUND"));
        let finished = told_of.as_deref().filter(|_| result.is_ok());
        let finished = finished.and_then(|session| self.take_finished_session(session, entry.subject.intent.as_deref()));
        self.remember(&mut entry, &result);
        let over = if missing { told_of.and_then(|session| self.take_missing_session(&session)) } else { finished };
        let mut left = Left { own: entry.custody.record.take(), others: entry.custody.also_delete.take().into_iter().collect() };
        // A purchase has the record of its session.
        match &left.own {
            None if entry.subject.operation == CreateSession::ENDPOINT.name => left.own = over,
            _ => left.others.extend(over),
        }
        if !self.rules.holds(Rule::KeepUntilTaken) {
            std::mem::take(&mut left).records().for_each(|record| self.delete(record));
        }
        for command in entry.waiting {
            self.complete_with(command, result.clone(), std::mem::take(&mut left));
        }
    }

    /// What an answer says once it is known what it was for.
    fn fill(&self, entry: &mut Entry, answered: &mut Answered) {
        if let Job::Lookup(lookup) = &mut entry.job {
            answered.raw = self.reconciled(&mut lookup.found);
        }
        if let Facts { session_id: Some(_), status: Some(status), .. } = &answered.facts {
            answered.phase.get_or_insert(phase_of(Some(status), &entry.wants.ends));
        }
    }

    /// Of what only reads a session that an intent was accepted as: whoever starts that intent wants one that can be used.
    fn over_for_good(&self, entry: &Entry, result: &Result<Answered, Error>) -> Option<Error> {
        let (Some(session_id), Some(intent), true) = (&entry.subject.session_id, &entry.subject.intent, entry.custody.recalls) else {
            return None;
        };
        let answered = result.as_ref().ok().filter(|answered| answered.phase == Some(Phase::Ended))?;
        let facts = Facts { session_id: Some(session_id.clone()), ..answered.facts.clone() };
        let record = self.sessions.get(session_id).and_then(|tracked| tracked.record.clone());
        Some(ended(&facts, Some(intent.clone()), record))
    }

    /// An intent that was accepted is remembered, also where something after that failed; one that was not is free again.
    fn remember(&mut self, entry: &mut Entry, result: &Result<Answered, Error>) {
        let Entry { job, subject, wants, custody, .. } = entry;
        let Some(name) = subject.intent.clone().filter(|_| !custody.recalls) else { return };
        let is_small = |raw: &&Json| raw.text().len() <= KEPT_RAW && !wants.credentials;
        let (facts, raw, opened) = match result {
            Ok(answered) => (answered.facts.clone(), Some(&answered.raw).filter(|_| !job.follows()), job.follows()),
            Err(error) if error.effect == Effect::Done => {
                let is_kept = |session: &&str| self.sessions.get(*session).is_some_and(|known| known.record.is_some());
                let session = subject.session_id.as_deref().filter(is_kept);
                let opened = (session.is_some() || subject.order_no.is_some()) && job.follows();
                let facts = match session.filter(|_| opened) {
                    Some(session) => self.known(session).0,
                    None => Facts { session_id: subject.session_id.clone(), order_no: subject.order_no.clone(), ..Facts::default() },
                };
                (facts, error.raw.as_ref(), opened)
            }
            Err(_) => {
                self.intents.remove(&name);
                return;
            }
        };
        let accepted = Accepted {
            fingerprint: std::mem::take(&mut custody.fingerprint),
            operation: subject.operation,
            facts,
            raw: raw.filter(is_small).cloned(),
            record: custody.record.take(),
            opened,
            at: self.clock.unix(),
            finished_at: self.clock.finished_at(),
            since: None,
        };
        self.save_accepted(&name, &accepted);
        self.accept(name, accepted);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallOptions, ClientOptions, Now, Outcome, Step};
    use super::*;

    /// What a second start of an intent is given after an answer of that many bytes.
    fn remembered(padding: usize) -> String {
        let options = ClientOptions { base_url: "https://api.example/v1".into(), ..ClientOptions::default() };
        let mut client = Client::new(options, [7; 16]).expect("the options are sound");
        let now = Now { unix: 1_700_000_000_000, monotonic: 0 };
        let params = r#"{"session_type":"dynamic","product_no":"p"}"#;
        for _ in 0..2 {
            let command = client.start_json("create_session", params, CallOptions::intent("job"));
            let body = format!(r#"{{"success":true,"data":{{"session_id":"s-1","x":"{}"}}}}"#, "x".repeat(padding));
            loop {
                match client.poll(now) {
                    Step::Save { id, .. } => client.resolve(id, Outcome::Saved, now).expect("is answered once"),
                    Step::Send { id, .. } => {
                        let answer = Outcome::Response { status: 202, headers: &[], body: body.as_bytes(), truncated: false };
                        client.resolve(id, answer, now).expect("is answered once");
                    }
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
            let answered = client.take_answer(command).expect("has completed").expect("was accepted");
            if answered.http_status.is_none() {
                return answered.raw.text().to_owned();
            }
        }
        panic!("the second start is no send")
    }

    #[test]
    fn of_a_long_answer_only_the_facts_are_remembered() {
        assert!(remembered(100).len() > 100);
        assert_eq!(remembered(KEPT_RAW), r#"{"session_id":"s-1"}"#);
    }
}
