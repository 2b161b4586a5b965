//! The end of a job: without effect, in doubt, or for good. Its lasting facts are put first.

use arcstr::ArcStr;

use crate::client::end::commands::{FinalWrite, Finished, PendingWrite, RecordsToDelete};
use crate::client::end::taken_over::{unless_said, with_record};
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::{Deletion, doubt_kept_for, refused_kept_for};
use crate::client::router::Router;
use crate::client::sessions::session::ended;
use crate::contract::agent::CreateSession;
use crate::contract::{Operation, Reconciliation, Shaped};
use crate::engine::{Answered, Counted, EventKind, Job, Phase, is_over_for_good, phase_of};
use crate::policy::{Advice, Effect, Error, KEY_WINDOW, Kind, Rule, look_advice};
use crate::state::{Done, JobId, Name, SavedCall, User};
use crate::time::Millis;
use crate::wire::Facts;

impl Router {
    /// Ends a job for good.
    pub(crate) fn finish(&mut self, id: JobId, mut result: Result<Answered, Error>) {
        let unspent = self.jobs.take_unspent(id, matches!(&result, Err(error) if error.effect == Effect::None));
        let Some(mut entry) = self.jobs.remove(id, &mut self.timers) else { return };
        if let Ok(answered) = &mut result {
            self.fill(&mut entry, answered);
        }
        let is_taken_over = self.is_taken_over(id, &entry);
        if is_taken_over {
            result = unless_said(&entry, result);
        }
        self.leave_session(id, &entry, false);
        let marker = self.leave_marker(id, &mut entry, is_taken_over);
        // A session that is over is an error for a start of its intent, unless that may buy the next one.
        let over = self.over_for_good(&entry, &result);
        if over.is_some()
            && let Some(session) = self.is_followed_by_another(&entry, &result)
        {
            entry.waiting.iter().for_each(|command| self.commands.found_over(command, &session));
        }
        let result = over.map_or(result, Err);
        let record = self.record_name(&entry, &result);
        let mut after = self.after(&entry);
        if result.is_ok() && self.holds(Rule::NewerSettingStands) {
            self.jobs.set_anew(id, &entry);
            after.extend(self.drop_settings(id, &entry));
        }
        let own = self.answers_for(&entry, &result);
        let unready = unready(&entry, &result).map(|error| (error, self.kept_under(&entry)));
        let left = self.sessions_left(&mut entry, &result);
        let commands = entry.waiting.iter().collect();
        let mut finished = Finished { own, left, counted: unspent, marker, after, ..Finished::new(commands, result) };
        self.drop_left_behind(&mut entry, &mut finished);
        if let Some(name) = entry.record.name.take() {
            // Where it was lost, another job may have it by now.
            if !is_taken_over {
                self.journal.give(&name, None);
                self.leave(&name, &entry, &mut finished);
            }
            finished.after.push(PendingWrite::Name(name));
        }
        if is_taken_over || !finished.own.as_ref().is_some_and(|name| self.journal.is_busy(name)) {
            self.let_go_for(&mut finished);
        }
        if !self.holds(Rule::KeepUntilTaken) {
            std::mem::take(&mut finished.left).names().for_each(|name| self.delete(name, Deletion::ResultTaken));
        }
        finished.left.names().for_each(|name| self.journal.give(name, Some(User::Result)));
        if let (Err(error), Some(name)) = (&mut finished.result, record) {
            // By now it may have been put once more.
            error.record = self.journal.record_of(&name).map(|record| record.0);
        }
        if let Some((mut error, name)) = unready {
            error.record = name.and_then(|name| self.journal.record_of(&name)).map(|record| record.0);
            self.end_unready(&mut finished, error);
        }
        self.finish_after(finished);
    }

    /// The session is not usable: that is an error for those of the callers who do not allow it.
    fn end_unready(&mut self, finished: &mut Finished, error: Error) {
        let (needing, others) = std::mem::take(&mut finished.commands).into_iter().partition(|command| self.commands.needs_ready(*command));
        finished.commands = others;
        let (own, last, after) = (finished.own.clone(), finished.last, finished.after.clone());
        self.finish_after(Finished { own, last, after, ..Finished::new(needing, Err(error)) });
    }

    /// The name of the record that an error is to say: a doubt has one, and what is cancelled, where something of it is kept.
    fn record_name(&self, entry: &Entry, result: &Result<Answered, Error>) -> Option<Name> {
        let error = result.as_ref().err().filter(|error| error.record.is_none())?;
        let is_kept = match error.kind {
            Kind::InDoubt => true,
            // A write that had no effect has no record any more; a read may be of what has one.
            Kind::Cancelled => error.effect != Effect::None || entry.job.write().is_none(),
            _ => false,
        };
        is_kept.then(|| self.kept_under(entry)).flatten()
    }

    /// Decides what happens to the name of a job that has ended.
    fn leave(&mut self, name: &Name, entry: &Entry, finished: &mut Finished) {
        let is_none = matches!(&finished.result, Err(error) if error.effect == Effect::None);
        if is_none && (self.keep_refused(name, entry, finished) || self.keep_last(name, entry, finished)) {
            return;
        }
        match &finished.result {
            Err(error) if error.effect == Effect::None && name.is_of_a_pool() => self.empty_slot(name, entry),
            Err(error) if error.effect == Effect::None => {
                finished.last = FinalWrite::Erase;
                if self.journal.may_be_made_late(name) && self.holds(Rule::LateIsNotNone) {
                    finished.last = FinalWrite::EraseLate;
                    let record = self.journal.record_of(name).map(|record| record.0);
                    finished.result = Err(error.clone().with(|new| new.record = record));
                }
                if self.journal.is_put(name) && !self.holds(Rule::DeleteBeforeNone) {
                    self.finish_after(Finished { left: RecordsToDelete::default(), after: Vec::new(), ..finished.clone() });
                    finished.commands.clear();
                }
                self.delete(name, Deletion::NoEffect);
            }
            result if entry.record.bought_as.is_some() => {
                let done = done(entry, result);
                self.put_done(name, entry.record.bought_as.as_deref(), done);
            }
            // A result that nobody takes holds nothing back.
            _ if entry.job.write().is_some_and(|write| write.call.exchange.endpoint.is_free_change()) => {
                self.delete(name, Deletion::FreeChange);
            }
            _ => finished.left.own = Some(name.clone()),
        }
    }

    /// The records of sessions that go once the result was taken, and what becomes of a session that nobody has.
    fn sessions_left(&mut self, entry: &mut Entry, result: &Result<Answered, Error>) -> RecordsToDelete {
        let mut left = RecordsToDelete {
            own: None,
            others: entry.record.rare.as_mut().and_then(|rare| rare.also_delete.take()).into_iter().collect(),
        };
        let Some(session) = entry.subject.session_id.clone() else { return left };
        let missing = matches!(result, Err(error) if error.is_session_missing());
        let over = match result {
            Ok(_) => self.sessions.take_finished(&session),
            Err(_) if missing => self.take_missing_session(&session),
            Err(_) => None,
        };
        let is_there = result.as_ref().map_or_else(|error| error.kind == Kind::Ended && !missing, |_| true);
        if is_there && entry.job.follows() {
            self.promise_session(&session, &entry.waiting, unready(entry, result).is_none());
        }
        self.let_go_of_session(&session);
        // A purchase has the record of its session.
        match over {
            Some(name) if entry.subject.operation == CreateSession::ENDPOINT.name => left.own = Some(name),
            over => left.others.extend(over),
        }
        left
    }

    /// The answers of the store that come before the commands of a job get its result.
    fn after(&self, entry: &Entry) -> Vec<PendingWrite> {
        let session = entry.subject.session_id.as_deref().unwrap_or_default();
        let claimed = || Some(&self.sessions.bought_as(session)?.name);
        let of_session = self.sessions.name(session).or_else(claimed).cloned();
        let rare = || entry.record.rare.as_ref().into_iter();
        let dropped = rare().flat_map(|rare| rare.dropped.iter().cloned());
        let names = of_session.into_iter().chain(entry.record.session_name.clone()).chain(dropped);
        let spends = rare().flat_map(|rare| &rare.spends);
        names.map(PendingWrite::Name).chain(spends.copied().map(PendingWrite::Spend)).collect()
    }

    /// The name that the result of a job is about: its own, that of the session that it bought, or that of the one that it gives its caller.
    fn answers_for(&self, entry: &Entry, result: &Result<Answered, Error>) -> Option<Name> {
        let record = &entry.record;
        let given = || {
            let session = entry.subject.session_id.as_ref().filter(|_| result.is_ok())?;
            self.sessions.name(session).cloned()
        };
        let of_session = || record.session_name.clone().or_else(given);
        record.name.clone().or_else(|| entry.job.follows().then(of_session).flatten())
    }

    /// Ends a job in doubt: its record says so, and is anybody's from here on.
    pub(crate) fn doubt(&mut self, id: JobId, mut error: Error) {
        let unix = self.unix();
        if self.jobs.get(id).is_some_and(|entry| self.is_taken_over(id, entry)) {
            return self.end_in_doubt(id, error, Vec::new());
        }
        let unspent = self.jobs.take_unspent(id, false);
        self.jobs.doubts(id, unix);
        let (Some(name), Some(data)) = (self.name_of(id), self.job_data(id)) else { return };
        let Some(entry) = self.jobs.get(id) else { return };
        // A record without its secret body is not sent again.
        if error.advice == Advice::Resume && !data.call.as_ref().is_some_and(SavedCall::can_resume) {
            error.advice = entry.job.write().and_then(|write| look_advice(write.call.exchange.endpoint)).unwrap_or(Advice::CheckAccount);
        }
        // A resume would only undo the newer setting.
        if entry.record.is_set_anew() {
            self.delete(&name, Deletion::UselessDoubt);
            error.advice = Advice::CheckAccount;
            self.notify(id, EventKind::InDoubt { record: None });
            return self.end_in_doubt(id, error, unspent);
        }
        let keep_for = doubt_kept_for(entry);
        self.put(&name, data, keep_for, true, None);
        let record = name.at(self.journal.version(&name));
        error.record = Some(record.0.clone());
        self.notify(id, EventKind::InDoubt { record: Some(record) });
        self.end_in_doubt(id, error, unspent);
    }

    /// Ends a job whose record stays as it is: what it follows lives on, or nothing more can be done for it here.
    pub(crate) fn rest(&mut self, id: JobId, mut error: Error) {
        let name = self.jobs.get(id).filter(|entry| !self.is_taken_over(id, entry)).and_then(|entry| entry.record.name.clone());
        if let Some(name) = &name {
            let record = self.journal.record_of(name).map(|record| record.0);
            error.record = record;
            self.release(name);
        }
        self.end_in_doubt(id, error, Vec::new());
    }

    fn end_in_doubt(&mut self, id: JobId, error: Error, unspent: Vec<Counted>) {
        let Some(mut entry) = self.jobs.remove(id, &mut self.timers) else { return };
        let is_taken_over = self.is_taken_over(id, &entry);
        let name = entry.record.name.clone();
        self.leave_session(id, &entry, true);
        self.leave_marker(id, &mut entry, true);
        self.remember_setting(id, &entry);
        let mut after = self.after(&entry);
        let result = if is_taken_over { unless_said(&entry, Err(error)) } else { Err(error) };
        after.extend(name.iter().cloned().map(PendingWrite::Name));
        name.iter().filter(|_| !is_taken_over).for_each(|name| self.journal.give(name, None));
        entry.subject.session_id.iter().for_each(|session| self.let_go_of_session(session));
        let own = self.answers_for(&entry, &result);
        let commands = entry.waiting.iter().collect();
        self.finish_after(Finished { own, counted: unspent, after, ..Finished::new(commands, result) });
    }

    /// A job works on its session no more.
    fn leave_session(&mut self, id: JobId, entry: &Entry, in_doubt: bool) {
        let doubt = entry.record.name.as_ref().filter(|_| in_doubt);
        entry.subject.session_id.iter().for_each(|session| self.sessions.end_job(session, id, entry.subject.operation, doubt));
    }

    /// Fills an answer in with the facts about its job.
    fn fill(&self, entry: &mut Entry, answered: &mut Answered) {
        if let Job::Lookup(lookup) = &mut entry.job {
            (answered.raw, answered.shape) = (Router::reconciled(lookup), &Reconciliation::SHAPE);
        }
        if entry.job.follows() {
            let charged = entry.subject.session_id.as_ref().and_then(|session| self.sessions.charged_usd(session));
            answered.facts.charged_usd = charged.map(ArcStr::to_string);
        }
        if let Facts { session_id: Some(_), status: Some(status), .. } = &answered.facts {
            answered.phase.get_or_insert(phase_of(Some(status), &entry.wants.session_options.ends));
        }
    }

    /// Of what only reads a session that an intent was accepted as: whoever starts that intent wants one that can be used. A session that
    /// could be used and that the service does not have any more is over, too.
    fn over_for_good(&self, entry: &Entry, result: &Result<Answered, Error>) -> Option<Error> {
        let (Some(session_id), Some(intent), Some(recalled)) = (&entry.subject.session_id, &entry.subject.intent, entry.record.recalls)
        else {
            return None;
        };
        // The session may have been bought under another name than that of this intent.
        let name = self.account.space().intent(intent);
        let record = self.journal.record_of(&name);
        let facts = Facts { session_id: Some(session_id.to_string()), ..Facts::default() };
        let is_own = !name.is_of_a_pool() && matches!(recalled, Phase::Ready | Phase::Ended);
        match result {
            Ok(answered) if answered.phase == Some(Phase::Ended) => {
                let facts = Facts { status: answered.facts.status.clone(), ..facts };
                Some(ended(&facts, Some(intent.to_string()), record))
            }
            Err(error) if is_own && error.is_session_missing() => Some(ended(&facts, Some(intent.to_string()), record).with(|new| {
                new.code = error.code.clone();
                new.status = error.status;
                new.request_id = error.request_id.clone();
            })),
            _ => None,
        }
    }

    /// The session of a job that has found it to be over, if it is over for good: by its status, or since the service does not have it any
    /// more and its record says that it was usable.
    fn is_followed_by_another(&self, entry: &Entry, result: &Result<Answered, Error>) -> Option<ArcStr> {
        let session = entry.subject.session_id.clone()?;
        let status = self.sessions.status(&session).map(ArcStr::as_str);
        let session_type = self.sessions.type_of(&session).map(ArcStr::as_str);
        let is_over = match result {
            Ok(answered) => {
                let shown = answered.facts.session_type.as_deref().or(session_type);
                is_over_for_good(answered.facts.status.as_deref(), shown)
            }
            // A start that found the same before may have ended what is known of it.
            Err(_) => match status {
                Some(status) => matches!(phase_of(Some(status), &[]), Phase::Ready | Phase::Ended),
                None => entry.record.recalls == Some(Phase::Ready),
            },
        };
        is_over.then_some(session)
    }

    /// Ends a job whose name was lost with what it knows: nothing more is sent or put for it.
    pub(crate) fn end_taken_over(&mut self, id: JobId) {
        let Some(entry) = self.jobs.get(id) else { return };
        let error = match entry.job.write().filter(|_| !entry.job.was_accepted()) {
            None => unless_said(entry, Err(entry.cancelled_error())).err(),
            Some(write) => {
                let is_open = write.call.is_open();
                let what = "was not sent, because another client has taken it over";
                let error = |effect, advice| entry.subject.error(Kind::Busy, effect, what, advice);
                Some(match (entry.record.bought_as.is_some(), is_open) {
                    (true, true) => error(Effect::Unknown, Advice::WaitForOther).not_again(),
                    (true, false) => error(Effect::None, Advice::WaitForOther),
                    (false, true) => error(Effect::Unknown, Advice::Resume).not_again(),
                    // A new start does not find its record, but `resume_all` does, and sends it.
                    (false, false) if self.may_be_resumed(entry) => error(Effect::Unknown, Advice::Resume),
                    (false, false) => error(Effect::None, Advice::RetryLater),
                })
            }
        };
        if let Some(error) = error {
            self.finish(id, Err(with_record(entry, error)));
        }
    }

    /// Returns true if the store has, or may have, a record of this job that another client can send.
    pub(crate) fn may_be_resumed(&self, entry: &Entry) -> bool {
        entry.record.last_put.is_some() && entry.saved_call(&self.clock()).is_some_and(|call| call.can_resume())
    }
}

/// The error for a wait that ended with a session that is neither usable nor over.
fn unready(entry: &Entry, result: &Result<Answered, Error>) -> Option<Error> {
    let session = entry.subject.session_id.as_ref().filter(|_| entry.job.follows())?;
    let answered = result.as_ref().ok().filter(|answered| matches!(answered.phase, Some(Phase::Pending | Phase::Unknown)))?;
    let status = answered.facts.status.as_deref().filter(|status| !status.is_empty());
    let status = status.map(|status| format!(" (`{status}`)")).unwrap_or_default();
    let what = format!("its session `{session}` is not usable yet at the deadline{status}");
    let effect = if entry.subject.operation == CreateSession::ENDPOINT.name { Effect::Done } else { Effect::None };
    Some(entry.subject.error_of_read(Kind::NotReady, effect, what, Advice::WaitSession).with(|new| {
        new.session_id = Some(session.to_string());
        new.request_id.clone_from(&answered.facts.request_id);
        new.raw = Some(answered.raw.clone());
    }))
}

/// The memory of a finished operation.
fn done(entry: &Entry, result: &Result<Answered, Error>) -> Done {
    let Entry { job, subject, .. } = entry;
    let (facts, raw) = match result {
        Ok(answered) => (answered.facts.clone(), Some(&answered.raw)),
        Err(error) => {
            let facts = Facts {
                session_id: subject.session_id.as_ref().map(ArcStr::to_string),
                order_no: subject.order_no.as_ref().map(ArcStr::to_string),
                ..Facts::default()
            };
            (facts, error.raw.as_ref())
        }
    };
    let follows = job.follows() && (subject.order_no.is_some() || subject.session_id.is_some());
    Done { follows, ..Done::of(subject.operation, facts, raw.filter(|_| !follows)) }
}

impl Router {
    /// The call of a job without an effect whose key an app's own backend refused, and the time for which that key may be sent.
    fn refused_call(&self, entry: &Entry) -> Option<(SavedCall, Millis)> {
        let is_refused = entry.job.write().is_some_and(|write| write.call.ledger.refused) && entry.record.bought_as.is_some();
        let mut call = entry.saved_call(&self.clock()).filter(|_| is_refused && self.holds(Rule::RefusedKeepsKey))?;
        let left = KEY_WINDOW.saturating_sub(call.age.ms);
        call.refused = true;
        (left > 0).then_some((call, left))
    }

    /// Keeps the key of a refused call. The error is reported only once the record has it. Returns true if there is such a key.
    pub(crate) fn keep_refused(&mut self, name: &Name, entry: &Entry, finished: &mut Finished) -> bool {
        let Some((call, left)) = self.refused_call(entry) else { return false };
        if entry.record.last_put.is_none() {
            // The record has it already.
            self.release(name);
            return true;
        }
        finished.last = FinalWrite::Erase;
        let is_later = entry.record.bought_as.as_ref().is_some_and(|known| known.later.is_some());
        let mut data = self.data(entry.record.bought_as.as_deref());
        data.call = Some(call);
        self.put_once(name, data, refused_kept_for(name, is_later, left));
        true
    }
}

#[cfg(test)]
mod tests {
    use crate::client::CallOptions;
    use crate::client::testing::{BUY, agent, drain, result};

    /// Returns the answer to a second start of an intent, after a first answer with a mode of that many bytes.
    fn remembered(padding: usize) -> String {
        let mut client = agent(7, false);
        let first = client.start_json("create_session", BUY, CallOptions::intent("job"));
        let body = format!(r#"{{"success":true,"data":{{"session_id":"s-1","provisioning_mode":"{}"}}}}"#, "x".repeat(padding));
        drain(&mut client, 202, &body);
        client.take_answer(first).expect("has completed").expect("was accepted");
        let second = client.start_json("create_session", BUY, CallOptions::intent("job"));
        result(&mut client, second).expect("was accepted").raw.text().to_owned()
    }

    #[test]
    fn of_a_long_answer_only_the_facts_are_remembered() {
        assert!(remembered(100).len() > 100);
        assert_eq!(remembered(4096), r#"{"session_id":"s-1"}"#);
    }
}
