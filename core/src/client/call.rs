//! The life of a call: saved, sent, judged, sent again or ended.

use super::job::{Age, Follow, Job, On, State};
use super::store::JobId;
use super::types::{Answered, FailureKind, Happening, Millis, Outcome, RecordId, Sent, Step};
use super::{Accepted, Client, Intent, Pending};
use crate::contract::{Auth, Safety, Secret, endpoint};
use crate::policy::{Advice, Again, Asked, Effect, Error, Heard, Judgement, KEY_WINDOW, Kind, Rule, conflict_delay, jittered, judge};
use crate::wire::{Answer, Body, Built, Facts, Failure, Request, Verdict, classify};

/// A poll that comes later than this after its time means that the host slept.
const SLEPT: Millis = 10_000;
/// A host that comes too late this often has a clock that can't be right; then it counts as any other failure.
const MAX_LATE: u32 = 8;

impl Job {
    /// An error about this job.
    pub(super) fn error(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        Error {
            idempotency_key: self.ledger.key.clone(),
            intent: self.intent.clone(),
            session_id: self.session.clone(),
            attempts: self.tally.attempts,
            cause: self.cause.clone(),
            ..Error::new(kind, effect, self.endpoint.name, what, advice)
        }
    }

    /// What a success of the call itself means for the effect: a read has none.
    pub(super) fn effect_of_answer(&self) -> Effect {
        if self.is_safe() { Effect::None } else { Effect::Done }
    }

    fn is_safe(&self) -> bool {
        self.endpoint.safety == Safety::Safe
    }

    fn age(&self, elapsed: Millis) -> Option<Millis> {
        match self.age {
            Age::Fresh => Some(0),
            Age::Since(since) => Some(elapsed.saturating_sub(since)),
            Age::Saved { .. } => None,
        }
    }
}

impl Client {
    /// A send is due.
    pub(super) fn send_due(&mut self, id: JobId, due: Millis) {
        let (now, elapsed) = (self.clock.monotonic(), self.clock.elapsed());
        if self.hold_until > now {
            return self.set_timer(id, self.hold_until);
        }
        let rules = self.rules;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let (Some(started), Some((judgement, error))) = (job.tally.started, job.last.clone()) {
            let over = now > started.saturating_add(job.policy.window_ms).saturating_add(job.tally.conflict_wait);
            let slept = now.saturating_sub(due) > SLEPT && job.endpoint.safety == Safety::Keyed && !job.tally.grace;
            if over && !slept {
                return self.conclude(id, judgement, error);
            }
            job.tally.grace |= over;
        }
        if self.key_too_old(id, elapsed) {
            return;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.is_safe() {
            return self.send(id);
        }
        if job.age == Age::Fresh {
            job.age = Age::Since(elapsed);
        }
        job.go(On::Save);
        if !rules.holds(Rule::SaveBeforeSend) {
            self.send(id);
        }
        self.save_job(id, Some(id));
    }

    /// Ends a job whose key may not be sent any more.
    fn key_too_old(&mut self, id: JobId, elapsed: Millis) -> bool {
        let rules = self.rules;
        let Some(job) = self.jobs.get_mut(&id) else { return true };
        let fresh = job.age(elapsed).is_some_and(|age| age < KEY_WINDOW);
        if job.endpoint.safety != Safety::Keyed || fresh || !rules.holds(Rule::OldKeyRests) {
            return false;
        }
        if job.ledger.is_open() {
            self.too_old(id);
        } else {
            let error = job.error(Kind::Unavailable, Effect::None, "waited longer than its key may be used", Advice::RetryLater);
            self.refuse(id, error);
        }
        true
    }

    pub(super) fn too_old(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let what = "its key is too old to be sent again, or its age is not known";
        let error = job.error(Kind::InDoubt, Effect::Unknown, what, Advice::CheckAccount);
        self.doubt(id, error);
    }

    /// The Save that a job waited for was answered.
    pub(super) fn record_saved(&mut self, id: JobId, kept: bool) {
        let (now, elapsed) = (self.clock.monotonic(), self.clock.elapsed());
        let hold = self.hold_until;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match job.state {
            State::Saving if job.cancelled => self.stop_cancelled(id),
            State::Saving if !kept => {
                let effect = if job.ledger.is_open() { Effect::Unknown } else { Effect::None };
                let error = job.error(Kind::Store, effect, "was not sent, because the store could not save its record", Advice::MendStore);
                if job.ledger.is_open() { self.doubt(id, error) } else { self.refuse(id, error) }
            }
            State::Saving if hold > now => {
                job.go(On::Again);
                self.set_timer(id, hold);
            }
            State::Saving => {
                if self.rules.holds(Rule::AgeAfterSave) && self.key_too_old(id, elapsed) {
                    return;
                }
                self.send(id);
            }
            State::Deleting => {
                let Some((_, error)) = job.last.take() else { return };
                if kept {
                    job.record = None;
                    return self.finish(id, Err(error));
                }
                let what = "ended without effect, but the store could not delete its record, which must not be sent";
                let error = Error { cause: Some(Box::new(error)), ..job.error(Kind::Store, Effect::Unknown, what, Advice::MendStore) };
                self.doubt(id, error);
            }
            _ => {}
        }
    }

    /// Sends the job's request.
    fn send(&mut self, id: JobId) {
        let (now, elapsed) = (self.clock.monotonic(), self.clock.elapsed());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(built) = job.built.clone() else { return };
        job.go(On::Send);
        job.sent_at = now;
        job.tally.started.get_or_insert(now);
        job.tally.attempts += 1;
        job.tally.counted += 1;
        job.ledger.sends += 1;
        let left = job.age(elapsed).map_or(0, |age| KEY_WINDOW.saturating_sub(age));
        let late = if job.endpoint.safety == Safety::Keyed { left } else { Millis::MAX };
        let mut headers = job.headers.clone();
        if let Some(key) = &job.ledger.key {
            headers.push(("idempotency-key".to_owned(), key.clone()));
        }
        let (auth, method, timeout) = (job.endpoint.auth, job.endpoint.method, job.policy.timeout_ms);
        let request = self.request(method, auth, &built, headers, timeout, late);
        self.push_send(id, request);
    }

    pub(super) fn push_send(&mut self, id: JobId, request: Request) {
        let step = self.step_id();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.out = Some(step);
        let command = job.waiting.first().copied().unwrap_or(super::CommandId(0));
        self.pending.insert(step, Pending::Send(id));
        self.steps.push_back(Step::Send { id: step, command, request });
    }

    /// Lays out a request; `late` is how long it may be held back by the host.
    pub(super) fn request(
        &self,
        method: crate::contract::Method,
        auth: Auth,
        built: &Built,
        extra: Vec<(String, String)>,
        timeout_ms: u32,
        late: Millis,
    ) -> Request {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if let (Auth::Key, Some(key)) = (auth, &self.key) {
            headers.push(("x-api-key".to_owned(), key.reveal().to_owned()));
        }
        if built.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(extra);
        Request {
            method,
            url: format!("{}{}", self.base, built.target),
            headers,
            body: built.body.clone().unwrap_or_default().into_bytes(),
            timeout_ms,
            send_before: self.clock.monotonic().saturating_add(Millis::from(timeout_ms).min(late)),
            max_body: self.max_body,
        }
    }

    /// A response, classified; a body beyond the limit is as good as cut short.
    pub(super) fn classified(&mut self, outcome: &Outcome<'_>) -> Option<Answer> {
        let Outcome::Response { status, headers, body, truncated } = *outcome else { return None };
        let truncated = truncated || body.len() > self.max_body as usize;
        Some(classify(Body { status, headers, bytes: body, truncated }, self.clock.unix()))
    }

    /// What came of a send.
    pub(super) fn heard(&mut self, id: JobId, outcome: Outcome<'_>) {
        let answer = self.classified(&outcome);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.out = None;
        let safe = job.is_safe() || job.state == State::Reading;
        if let Some(answer) = &answer {
            if let (true, Some(time), false) = (safe, answer.server_time, matches!(answer.verdict, Verdict::NoEnvelope { .. })) {
                self.clock.hear(time);
            }
            if is_throttle(answer) {
                let wait = answer.retry_after.unwrap_or(0);
                self.hold_until = self.hold_until.max(self.clock.monotonic().saturating_add(wait));
            }
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.state == State::Reading {
            return self.session_read(id, answer, outcome);
        }
        match (answer, outcome) {
            (Some(Answer { verdict: Verdict::Success(data), request_id, .. }), _) => {
                job.ledger.unanswered = false;
                self.quota.refund(job.tally.taken);
                let facts = Facts::of(data.text(), request_id.as_deref());
                self.accepted(id, Answered { facts, raw: data, phase: None });
            }
            (Some(answer), _) => self.failed(id, Some(&answer), None),
            (None, Outcome::Failed { kind: FailureKind::Late, sent: Sent::Never }) if job.tally.late < MAX_LATE && !job.cancelled => {
                job.tally.late += 1;
                job.tally.attempts = job.tally.attempts.saturating_sub(1);
                job.tally.counted = job.tally.counted.saturating_sub(1);
                job.ledger.sends = job.ledger.sends.saturating_sub(1);
                job.go(On::Again);
                let now = self.clock.monotonic();
                self.set_timer(id, now);
            }
            (None, Outcome::Failed { kind, sent }) => self.failed(id, None, Some((kind, sent))),
            (None, _) => {}
        }
    }

    /// A send that did not succeed: judge it, and send again or end.
    fn failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix, rules) = (self.clock.monotonic(), self.clock.unix(), self.rules);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let open_before = job.ledger.is_open();
        let heard = match (answer.map(|answer| (&answer.verdict, answer.status)), lost) {
            (Some((Verdict::Failure(failure), status)), _) => Heard::Failure { code: &failure.code, status },
            (Some((_, status)), _) => Heard::Page { status },
            (None, Some((_, sent))) => Heard::Lost(sent),
            (None, None) => return,
        };
        let asked = Asked::new(job.endpoint, job.policy.retry_paid, rules);
        let judgement = judge(asked, &mut job.ledger, heard, answer.and_then(|answer| answer.request_id.as_deref()));
        let mut error = job.error(judgement.kind, judgement.effect, what(answer, lost), judgement.advice);
        if let Some(answer) = answer {
            fill(&mut error, answer, self.key.as_ref(), unix);
        }
        if job.ledger.given && judgement.again == Again::No && matches!(error.status, Some(500 | 502 | 504)) {
            error.what.push_str(", and the key that the caller gave is never replaced");
        }
        if job.endpoint.name == "terminate_session" && open_before && error.code.as_deref() == Some("SESSION_NOT_FOUND") {
            return self.perhaps_gone(id, error);
        }
        if job.cause.is_none() {
            job.cause = Some(Box::new(error.clone()));
        }
        if job.cancelled {
            job.last = Some((judgement, error));
            return self.stop_cancelled(id);
        }
        let asks_to_wait = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        match self.delay(id, judgement.again, asks_to_wait) {
            Some(delay) => self.repeat(id, judgement, error, delay),
            None => {
                if asks_to_wait > 0 {
                    error.retry_at = Some(unix.saturating_add(asks_to_wait));
                } else if self.hold_until > now {
                    error.retry_at = Some(unix.saturating_add(self.hold_until.saturating_sub(now)));
                }
                self.conclude(id, judgement, error);
            }
        }
    }

    /// How long to wait before the next send, if there may be one.
    fn delay(&mut self, id: JobId, again: Again, asks_to_wait: Millis) -> Option<Millis> {
        let (now, random) = (self.clock.monotonic(), self.entropy.jitter());
        let job = self.jobs.get_mut(&id)?;
        let (policy, tally) = (job.policy, &mut job.tally);
        match again {
            Again::No => None,
            Again::AwaitEarlier if policy.attempts <= 1 => None,
            Again::AwaitEarlier => {
                tally.counted = tally.counted.saturating_sub(1);
                let since = *tally.conflict_since.get_or_insert(now);
                let delay = conflict_delay(tally.conflicts).max(asks_to_wait);
                tally.conflicts += 1;
                tally.conflict_wait = tally.conflict_wait.saturating_add(delay);
                (now.saturating_add(delay) <= since.saturating_add(policy.conflict_ms)).then_some(delay)
            }
            Again::Same | Again::NewKey | Again::Throttled => {
                let throttled = again == Again::Throttled;
                let ceiling = policy.ceiling(tally.counted.saturating_sub(1), throttled);
                let delay = jittered(ceiling, random).max(asks_to_wait);
                let end = tally.started?.saturating_add(policy.window_ms).saturating_add(tally.conflict_wait);
                let over = now.saturating_add(delay) > end;
                // The answer itself may have come after a sleep: then one more send is granted, whatever the window says.
                let slept = now.saturating_sub(job.sent_at) > Millis::from(policy.timeout_ms) + SLEPT;
                let grace = slept && job.endpoint.safety == Safety::Keyed && !tally.grace;
                if tally.counted >= policy.attempts || (over && !grace) {
                    return None;
                }
                let taken = self.quota.take(throttled)?;
                tally.grace |= over;
                tally.taken += taken;
                Some(delay)
            }
        }
    }

    fn repeat(&mut self, id: JobId, judgement: Judgement, error: Error, delay: Millis) {
        let at = self.clock.monotonic().saturating_add(delay);
        if judgement.again == Again::Throttled {
            self.hold_until = self.hold_until.max(at);
        }
        let key = (judgement.again == Again::NewKey).then(|| self.entropy.key());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(key) = key {
            job.ledger.replace(key);
        }
        job.last = Some((judgement, error.clone()));
        job.go(On::Again);
        let attempts = job.tally.attempts;
        self.notify(id, Happening::Repeating { attempts, delay_ms: delay, because: Box::new(Error { cause: None, ..error }) });
        self.set_timer(id, at);
    }

    /// Ends a call as its last judgement says.
    fn conclude(&mut self, id: JobId, judgement: Judgement, mut error: Error) {
        if let Some(job) = self.jobs.get(&id) {
            // The first failure is the cause of a later one, not of itself.
            error.cause = job.cause.clone().filter(|_| job.tally.attempts > 1);
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
        let holds = self.rules.holds(Rule::DeleteBeforeNone);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(record) = job.record.clone() else { return self.finish(id, Err(error)) };
        if !holds {
            job.record = None;
            job.go(On::Refuse);
            self.finish(id, Err(error));
            return self.save(&record, None, None);
        }
        let judgement = Judgement { again: Again::No, kind: error.kind, effect: error.effect, advice: error.advice, keep: false };
        job.last = Some((judgement, error));
        job.go(On::Refuse);
        self.save(&record, None, Some(id));
    }

    /// Ends a job in doubt: whoever waits is told, the record stays, and it can be resumed.
    pub(super) fn doubt(&mut self, id: JobId, error: Error) {
        let unix = self.clock.unix();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.go(On::Doubt);
        job.doubt_since.get_or_insert(unix);
        let record = job.record.clone();
        let error = Error { record: record.as_ref().map(|record| record.0.clone()), ..error };
        self.notify(id, Happening::InDoubt { record: record.clone() });
        if record.is_some() {
            self.save_job(id, None);
        }
        let waiting = self.jobs.get_mut(&id).map(|job| std::mem::take(&mut job.waiting)).unwrap_or_default();
        for command in waiting {
            self.complete(command, Err(error.clone()), Vec::new());
        }
    }

    /// Ends a job for good. A record that is still there is deleted once the result was taken, unless it is what an
    /// accepted intent is remembered by.
    pub(super) fn finish(&mut self, id: JobId, result: Result<Answered, Error>) {
        let at = self.clock.unix();
        let Some(mut job) = self.jobs.remove(&id) else { return };
        job.go(On::End);
        if let Some(at) = job.timer.take() {
            self.timers.remove(&(at, id));
        }
        if let Some(tracked) = job.session.as_ref().and_then(|session| self.sessions.get_mut(session)) {
            tracked.changing.take_if(|changing| *changing == id);
        }
        let mut delete: Vec<RecordId> = job.also_delete.into_iter().collect();
        match (&job.intent, &result) {
            (Some(name), Ok(answered)) => {
                let opened = job.built.is_some() && job.watch.follow == Follow::UntilReady;
                let accepted = Accepted {
                    fingerprint: job.fingerprint,
                    operation: job.endpoint.name,
                    facts: answered.facts.clone(),
                    raw: (!opened).then(|| answered.raw.clone()),
                    record: job.record.take(),
                    opened,
                    at,
                };
                self.save_accepted(name, &accepted);
                self.intents.insert(name.clone(), Intent::Accepted(Box::new(accepted)));
            }
            // The session was bought, though waiting for it failed.
            (Some(name), Err(Error { effect: Effect::Done, session_id: Some(session), .. })) if self.sessions.contains_key(session) => {
                let facts = self.known(session).0;
                let accepted = Accepted {
                    fingerprint: job.fingerprint,
                    operation: job.endpoint.name,
                    facts,
                    raw: None,
                    record: None,
                    opened: true,
                    at,
                };
                self.intents.insert(name.clone(), Intent::Accepted(Box::new(accepted)));
            }
            (Some(name), Err(_)) => {
                self.intents.remove(name);
            }
            _ => {}
        }
        delete.extend(job.record);
        if !self.rules.holds(Rule::KeepUntilTaken) {
            delete.drain(..).for_each(|record| self.save(&record, None, None));
        }
        for command in job.waiting {
            self.complete(command, result.clone(), std::mem::take(&mut delete));
        }
    }

    /// A cancelled job that has nothing out: without effect if it was never sent, else in doubt.
    pub(super) fn stop_cancelled(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let open = job.ledger.is_open() && !job.is_safe();
        if open {
            let error = job.error(Kind::Cancelled, Effect::Unknown, "was given up after it may have been sent", Advice::Resume);
            self.doubt(id, error);
        } else {
            let error = job.error(Kind::Cancelled, Effect::None, "was given up before it had any effect", Advice::Nothing);
            self.refuse(id, error);
        }
    }

    // ---- the service's time, for restored keys ----

    /// Asks for the service's time, unless somebody has.
    pub(super) fn ask_due(&mut self) {
        if self.asking.is_some() {
            return;
        }
        let now = self.clock.monotonic();
        let Some((id, command)) =
            self.jobs.values().find(|job| job.state == State::Asking).map(|job| (job.id, job.waiting.first().copied()))
        else {
            return;
        };
        if self.hold_until > now {
            return self.set_timer(id, self.hold_until);
        }
        // Any authenticated read would do; this one takes no parameters.
        let Some(balance) = endpoint("get_balance") else { return };
        let built = Built { target: balance.path.to_owned(), body: None, secret: false, session_id: None, credentials: false };
        let request = self.request(balance.method, balance.auth, &built, Vec::new(), self.retry.timeout_ms, Millis::MAX);
        if let Some(job) = self.jobs.get_mut(&id) {
            job.tally.attempts += 1;
        }
        self.notify(id, Happening::AskingTime);
        let step = self.step_id();
        self.asking = Some(step);
        self.pending.insert(step, Pending::Ask);
        self.steps.push_back(Step::Send { id: step, command: command.unwrap_or(super::CommandId(0)), request });
    }

    /// What came of it, for all that wait for it.
    pub(super) fn told_time(&mut self, outcome: Outcome<'_>) {
        self.asking = None;
        let answer = self.classified(&outcome);
        let waiting: Vec<JobId> = self.jobs.values().filter(|job| job.state == State::Asking).map(|job| job.id).collect();
        let envelope = answer.as_ref().filter(|answer| !matches!(answer.verdict, Verdict::NoEnvelope { .. }) && !is_throttle(answer));
        if let Some(answer) = envelope {
            if let Some(time) = answer.server_time {
                self.clock.hear(time);
            }
            waiting.into_iter().for_each(|id| self.take_age(id));
            return;
        }
        let random = self.entropy.jitter();
        let asked = answer.as_ref().and_then(|answer| answer.retry_after).unwrap_or(0);
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        let Some(first) = waiting.first().and_then(|id| self.jobs.get_mut(id)) else { return };
        if first.tally.attempts < first.policy.attempts && asked <= first.policy.window_ms {
            let delay = jittered(first.policy.ceiling(first.tally.attempts.saturating_sub(1), false), random).max(asked);
            let (id, at) = (first.id, self.clock.monotonic().saturating_add(delay));
            return self.set_timer(id, at);
        }
        let unix = self.clock.unix();
        let mut error = first.error(Kind::Unavailable, Effect::Unknown, what(answer.as_ref(), lost), Advice::RetryLater);
        if let Some(answer) = &answer {
            fill(&mut error, answer, self.key.as_ref(), unix);
        }
        for id in waiting {
            self.stay_in_doubt(id, Some(Box::new(error.clone())));
        }
    }

    /// A restored job that could not go on: as in doubt as before.
    pub(super) fn stay_in_doubt(&mut self, id: JobId, cause: Option<Box<Error>>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let kind = if job.cancelled { Kind::Cancelled } else { Kind::InDoubt };
        let what = "was not resumed, because the service's time could not be read";
        let error = Error { cause, ..job.error(kind, Effect::Unknown, what, Advice::Resume) };
        self.doubt(id, error);
    }

    /// The age of a restored key, now that the service's time was asked for.
    pub(super) fn take_age(&mut self, id: JobId) {
        let (clock, rules, now) = (self.clock, self.rules, self.clock.monotonic());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Age::Saved { age, unix } = job.age {
            let Some(gap) = clock.since(unix) else { return self.too_old(id) };
            let carried = if rules.holds(Rule::AgeSurvives) { age.saturating_add(gap) } else { 0 };
            job.age = Age::Since(clock.elapsed().saturating_sub(carried));
        }
        job.tally.attempts = 0;
        job.go(On::Again);
        self.set_timer(id, now);
    }
}

fn is_throttle(answer: &Answer) -> bool {
    matches!(&answer.verdict, Verdict::Failure(Failure { code, .. }) if code == "RATE_LIMIT_EXCEEDED")
}

/// What happened, as part of a sentence.
pub(super) fn what(answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) -> String {
    match (answer.map(|answer| &answer.verdict), lost) {
        (Some(Verdict::Failure(failure)), _) => crate::policy::meaning(&failure.code).to_owned(),
        (Some(_), _) => "the answer is none of the API's, perhaps a gateway's page".to_owned(),
        (None, Some((kind, _))) => kind.as_str().to_owned(),
        (None, None) => "the request failed".to_owned(),
    }
}

/// Puts what the service said into an error. The key is none of it, even if the service repeats it.
pub(super) fn fill(error: &mut Error, answer: &Answer, key: Option<&Secret>, unix: Millis) {
    error.status = Some(answer.status);
    error.request_id.clone_from(&answer.request_id);
    match &answer.verdict {
        Verdict::Failure(failure) => {
            error.code = Some(failure.code.clone());
            error.text = without(key, &failure.message);
            error.details = failure.details.as_ref().and_then(|details| without(key, details.text())?.parse().ok());
        }
        Verdict::NoEnvelope { content_type, text } => {
            error.content_type.clone_from(content_type);
            error.text = without(key, text);
        }
        Verdict::Success(_) => {}
    }
    if let Some(wait) = answer.retry_after {
        error.retry_at = Some(unix.saturating_add(wait));
    }
}

/// A text of the service without the key, or nothing if it is empty.
fn without(key: Option<&Secret>, text: &str) -> Option<String> {
    let key = key.map(Secret::reveal).filter(|key| key.len() >= 8);
    let clean = key.map_or_else(|| text.to_owned(), |key| text.replace(key, "[redacted]"));
    Some(clean).filter(|text| !text.is_empty())
}
