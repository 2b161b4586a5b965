//! How a job ends: without effect, in doubt, or for good.

use super::job::{Follow, Job, On};
use super::session::{ended, phase_of};
use super::store::JobId;
use super::types::{Answered, Happening, Phase, RecordId};
use super::{Accepted, Client, Left};
use crate::contract::Operation;
use crate::contract::agent::CreateSession;
use crate::policy::{Advice, Again, Effect, Error, Judgement, Kind, Report, Rule, look_advice};
use crate::wire::Facts;

/// The longest answer that an accepted intent is remembered with, in bytes; of a longer one only the facts are kept.
pub(super) const KEPT_RAW: usize = 4096;

impl Client {
    /// Ends a call as its last judgement says.
    pub(super) fn conclude(&mut self, id: JobId, judgement: Judgement, mut error: Error) {
        if let Some(job) = self.jobs.get(&id).filter(|job| job.order.is_none() && job.lookup.is_none()) {
            // The first failure is the cause of a later one, not of itself.
            error.cause = job.cause.clone().filter(|cause| cause.what != error.what || cause.effect != error.effect);
        }
        match (judgement.effect, judgement.keep) {
            (Effect::None, _) => self.refuse(id, error),
            (_, true) => self.doubt(id, error),
            // The key is settled, but money may have moved. Under an intent that must not be forgotten, or a job that is run
            // again would buy again: it stays until somebody settles it.
            (_, false) => match self.jobs.get_mut(&id).filter(|job| job.intent.is_some()) {
                Some(job) => {
                    job.spent = true;
                    self.doubt(id, error);
                }
                None => self.finish(id, Err(error)),
            },
        }
    }

    /// Ends a job that had no effect: its record goes first, then that is said.
    pub(super) fn refuse(&mut self, id: JobId, error: Error) {
        match self.jobs.get(&id) {
            Some(Job { order: Some(_), .. }) if self.rules.holds(Rule::OrderOutlivesReads) => return self.order_not_read(id, error),
            Some(Job { lookup: Some(_), .. }) => return self.not_looked_up(id, error),
            Some(Job { until: Some(_), cancelled: false, .. }) if error.may_pass() => return self.not_read_yet(id, error),
            _ => {}
        }
        let holds = self.rules.holds(Rule::DeleteBeforeNone);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(record) = job.record.clone() else { return self.finish(id, Err(error)) };
        if !holds {
            job.record = None;
            job.go(On::Refuse);
            self.finish(id, Err(error));
            return self.delete(&record);
        }
        self.end_without_record(id, &record, error);
    }

    /// Ends a job with that as soon as its record is gone; if it can't be deleted, the job is in doubt.
    pub(super) fn end_without_record(&mut self, id: JobId, record: &RecordId, error: Error) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(at) = job.timer.take() {
            self.timers.remove(&(at, id));
        }
        let judgement = Judgement { again: Again::No, kind: error.kind, effect: error.effect, advice: error.advice, keep: false };
        job.last = Some((judgement, error));
        job.go(On::Refuse);
        self.save(record, None, Some(id));
    }

    /// Ends a job in doubt: whoever waits is told, the record stays, and it can be resumed. A job that was never saved, as
    /// its key is the caller's, gets a record now.
    pub(super) fn doubt(&mut self, id: JobId, error: Error) {
        let unix = self.clock.unix();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.doubt_since.get_or_insert(unix);
        let record = job.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        self.notify(id, Happening::InDoubt { record: Some(record) });
        self.save_job(id, None);
        self.set_aside(id, error);
    }

    /// Nothing happens from here on until somebody resumes, settles or forgets it: whoever waits is told, with its record.
    pub(super) fn set_aside(&mut self, id: JobId, error: Error) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(at) = job.timer.take() {
            self.timers.remove(&(at, id));
        }
        job.go(On::Hold);
        let record = job.record.as_ref().map(|record| record.0.clone());
        let error = Error::from(Report { record, ..error.into_report() });
        for command in std::mem::take(&mut job.waiting) {
            self.complete(command, Err(error.clone()));
        }
    }

    /// Ends a job for good. A record that is still there is deleted once the result was taken, unless it is what an
    /// accepted intent is remembered by.
    pub(super) fn finish(&mut self, id: JobId, mut result: Result<Answered, Error>) {
        let at = self.clock.unix();
        let Some(mut job) = self.jobs.remove(&id) else { return };
        if let Ok(Answered { facts: Facts { session_id: Some(_), status: Some(status), .. }, phase, .. }) = &mut result {
            phase.get_or_insert(phase_of(Some(status), &job.watch.ends));
        }
        if matches!(&result, Err(error) if error.effect == Effect::None) {
            self.uncount([job.price.reserved.take(), job.price.earlier.take()]);
        }
        job.go(On::End);
        if let Some(at) = job.timer.take() {
            self.timers.remove(&(at, id));
        }
        if let Some(tracked) = job.session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.changing.remove(&id);
        }
        if let (true, Some(intent), Ok(answered)) = (job.recalls && job.session.is_some(), &job.intent, &result)
            && answered.phase == Some(Phase::Ended)
        {
            let facts = Facts { session_id: job.session.clone(), ..answered.facts.clone() };
            let record = job.session.as_ref().and_then(|session| self.sessions.get(session)?.record.clone());
            result = Err(ended(&facts, Some(intent.clone()), record));
        }
        let operation = job.operation();
        let told_of = job.session.as_deref().filter(|_| !job.waiting.is_empty());
        let mut over = told_of.filter(|_| result.is_ok()).and_then(|session| self.take_finished_session(session, job.intent.as_deref()));
        match (job.intent.as_ref().filter(|_| !job.recalls), &result) {
            (Some(name), Ok(answered)) => {
                let opened = job.built.is_some() && job.watch.follow == Follow::UntilReady;
                let small = answered.raw.text().len() <= KEPT_RAW && !job.watch.credentials;
                let accepted = Accepted {
                    fingerprint: job.fingerprint,
                    operation,
                    facts: answered.facts.clone(),
                    raw: (small && !opened).then(|| answered.raw.clone()),
                    record: job.record.take(),
                    opened,
                    at,
                    finished_at: self.clock.finished_at(),
                    since: None,
                };
                self.save_accepted(name, &accepted);
                self.accept(name.clone(), accepted);
            }
            // It was done, though something after it failed: the intent must not be free for a second time.
            (Some(name), Err(error)) if error.effect == Effect::Done => {
                let session =
                    job.session.as_deref().filter(|session| self.sessions.get(*session).is_some_and(|known| known.record.is_some()));
                let opened = (session.is_some() || job.order.is_some()) && job.watch.follow == Follow::UntilReady;
                let order_no = job.order.as_ref().map(|order| order.order_no.clone());
                let facts = match session.filter(|_| opened) {
                    Some(session) => self.known(session).0,
                    None => Facts { session_id: job.session.clone(), order_no, ..Facts::default() },
                };
                let record = job.record.take();
                let raw = error.raw.clone().filter(|raw| raw.text().len() <= KEPT_RAW && !job.watch.credentials);
                let finished_at = self.clock.finished_at();
                let accepted =
                    Accepted { fingerprint: job.fingerprint, operation, facts, raw, record, opened, at, finished_at, since: None };
                self.save_accepted(name, &accepted);
                self.accept(name.clone(), accepted);
            }
            (Some(name), Err(_)) => {
                self.intents.remove(name);
            }
            _ => {}
        }
        if matches!(&result, Err(error) if error.code.as_deref() == Some("SESSION_NOT_FOUND")) {
            over = told_of.and_then(|session| self.take_missing_session(session));
        }
        let mut left = Left { own: job.record, others: job.also_delete.into_iter().collect() };
        // A purchase has the record of its session.
        match &left.own {
            None if operation == CreateSession::ENDPOINT.name => left.own = over,
            _ => left.others.extend(over),
        }
        if !self.rules.holds(Rule::KeepUntilTaken) {
            std::mem::take(&mut left).records().for_each(|record| self.delete(record));
        }
        for command in job.waiting {
            self.complete_with(command, result.clone(), std::mem::take(&mut left));
        }
    }

    /// A cancelled job that may have had its effect.
    pub(super) fn doubt_cancelled(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let advice = look_advice(job.endpoint).unwrap_or(Advice::Resume);
        let error = job.error(Kind::Cancelled, Effect::Unknown, "was given up after it may have been sent", advice);
        self.doubt(id, error);
    }

    /// A cancelled job that has nothing out: without effect if it was never sent, else in doubt. A placed order lives on.
    pub(super) fn stop_cancelled(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.order.is_some() {
            let error = job.let_go();
            return if job.outlives_wait() { self.set_aside(id, error) } else { self.finish(id, Err(error)) };
        }
        let open = job.ledger.is_open() && !job.is_safe();
        if open {
            self.doubt_cancelled(id);
        } else {
            let error = job.error(Kind::Cancelled, Effect::None, "was given up before it had any effect", Advice::Nothing);
            self.refuse(id, error);
        }
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
