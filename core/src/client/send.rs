//! Getting a request out: due, young enough, saved, sent.

use super::job::{Age, Follow, Grace, Job, On, State};
use super::store::JobId;
use super::types::{Millis, Step};
use super::{Client, CommandId, Pending};
use crate::contract::{Auth, Method, Safety};
use crate::policy::{Advice, Effect, Error, KEY_WINDOW, Kind, Report, Rule, jittered};
use crate::wire::{Built, Request};

/// A poll that comes later than this after its time means that the host slept.
pub(super) const SLEPT: Millis = 10_000;

impl Job {
    /// An error about this job.
    pub(super) fn error(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        Error::from(Report {
            idempotency_key: self.ledger.key.clone(),
            intent: self.intent.clone(),
            session_id: self.session.clone(),
            order_no: self.order.as_ref().map(|order| order.order_no.clone()),
            attempts: self.tally.attempts,
            cause: self.cause.clone(),
            ..Error::new(kind, effect, self.operation(), what, advice).into_report()
        })
    }

    /// What a command is told that no longer waits for this job.
    pub(super) fn let_go(&self) -> Error {
        if let Some(order) = &self.order {
            let effect = if order.placed { Effect::Done } else { Effect::None };
            let what = format!("waiting for order {} was given up; the order lives on", order.order_no);
            let report = self.error(Kind::Cancelled, effect, what, Advice::WaitOrder).into_report();
            return Error::from(Report { cause: None, ..report });
        }
        if !matches!(self.state, State::Watching | State::Reading) || self.watch.follow == Follow::UntilGone {
            return self.error(Kind::Cancelled, Effect::Unknown, "was given up by one of those who wait for it", Advice::Resume);
        }
        let what = "waiting for the session was given up; the session lives on";
        let error = self.error(Kind::Cancelled, self.effect_of_answer(), what, Advice::ReadSession);
        Error::from(Report { cause: None, ..error.into_report() })
    }

    /// What a success of the call itself means for the effect: a read has none.
    pub(super) fn effect_of_answer(&self) -> Effect {
        if self.is_safe() { Effect::None } else { Effect::Done }
    }

    pub(super) fn is_safe(&self) -> bool {
        self.endpoint.safety == Safety::Safe
    }

    /// Until when it may be sent again, monotonic: so long from its first send, without what it spent on conflicts.
    pub(super) fn window_end(&self, now: Millis) -> Millis {
        let end = self.tally.started.unwrap_or(now).saturating_add(self.policy.window_ms).saturating_add(self.tally.conflict_wait);
        // A read that is repeated is sent again no longer than its caller waits.
        if self.until.is_some() || self.order.is_some() { end.min(self.deadline(now)) } else { end }
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
        let (hold, unix, rules) = (self.hold_until, self.clock.unix(), self.rules);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if hold > now {
            let (wait, retry_at) = (hold.saturating_sub(now), unix.saturating_add(hold.saturating_sub(now)));
            let end = job.window_end(now);
            let granted = job.tally.grace == Grace::Granted && wait <= job.policy.window_ms;
            if hold <= end || granted {
                let at = self.spread(id, hold).min(end.max(hold));
                return self.set_timer(id, at);
            }
            // Longer than the call may take: that is said now, not after an hour.
            if let Some((judgement, error)) = job.last.clone() {
                return self.conclude(id, judgement, Error::from(Report { retry_at: Some(retry_at), ..error.into_report() }));
            }
            let open = job.ledger.is_open() && !job.is_safe();
            let (kind, effect) = if open { (Kind::InDoubt, Effect::Unknown) } else { (Kind::Unavailable, Effect::None) };
            let mut error = job.error(kind, effect, "must wait longer than it may take, since the service asked for it", Advice::Wait);
            error.retry_at = Some(retry_at);
            return if open { self.doubt(id, error) } else { self.refuse(id, error) };
        }
        if let (Some(_), Some((judgement, error))) = (job.tally.started, job.last.clone()) {
            let over = now > job.window_end(now);
            let slept = now.saturating_sub(due) > SLEPT && job.endpoint.safety == Safety::Keyed && job.tally.grace == Grace::Unused;
            if over && !slept && job.tally.grace != Grace::Granted {
                return self.conclude(id, judgement, error);
            }
            if over {
                job.tally.grace = Grace::Used;
            }
        }
        if self.key_too_old(id, elapsed) {
            return;
        }
        if self.login_due(id) {
            return;
        }
        if self.jobs.get(&id).is_some_and(Job::is_safe) {
            return self.send(id);
        }
        if self.price_due(id) {
            return;
        }
        // Before it is counted, since what is counted is saved and sent from there.
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.age == Age::Fresh {
            job.age = Age::Since(elapsed);
        }
        if self.guard_due(id) {
            return;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.go(On::Save);
        if !rules.holds(Rule::SaveBeforeSend) {
            self.send(id);
        }
        self.save_job(id, Some(id));
    }

    /// When a call goes on that may do so at that time. As a throttle ends, one call goes on at once; the others that wait for that
    /// moment are spread over the first backoff after it, so that they are not throttled together once more.
    pub(super) fn spread(&mut self, id: JobId, at: Millis) -> Millis {
        let others = self.timers.range((at, JobId::MIN)..=(at, JobId::MAX)).any(|(_, other)| *other != id);
        if at != self.hold_until || !others {
            return at;
        }
        at.saturating_add(jittered(self.retry.ceiling(0, true), self.entropy.jitter()))
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
        let (hold, guarded, uncounted) = (self.hold_until, self.guard.is_some(), self.must_count(id));
        let lacks_token = self.jobs.get(&id).is_some_and(|job| self.lacks_token(job));
        let Some(job) = self.jobs.get_mut(&id) else { return };
        match job.state {
            State::Saving if job.price.reserving => self.reserved(id, kept),
            State::Saving if job.cancelled => self.stop_cancelled(id),
            State::Saving if !kept => {
                let effect = if job.ledger.is_open() { Effect::Unknown } else { Effect::None };
                let error = job.error(Kind::Store, effect, "was not sent, because the store could not save its record", Advice::MendStore);
                if job.ledger.is_open() { self.doubt(id, error) } else { self.refuse(id, error) }
            }
            State::Saving if hold > now || lacks_token || job.needs_price(guarded) || uncounted => {
                job.go(On::Again);
                self.set_timer(id, now);
            }
            State::Saving => {
                if self.rules.holds(Rule::AgeAfterSave) && self.key_too_old(id, elapsed) {
                    return;
                }
                self.send(id);
            }
            State::Deleting => {
                let Some((_, error)) = job.last.take() else {
                    // It was given up, and somebody wants it after all.
                    job.go(On::Again);
                    return self.set_timer(id, now);
                };
                if kept {
                    if let Some(record) = job.record.take() {
                        self.store.disown(&record);
                    }
                    return self.finish(id, Err(error));
                }
                let what =
                    "stays in doubt, since the store could not delete its record; resume it, or settle it as not happened, once it can";
                let error = Error::from(Report {
                    cause: Some(error),
                    ..job.error(Kind::Store, Effect::Unknown, what, Advice::MendStore).into_report()
                });
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
        job.token = self.login.generation();
        job.sent_at = now;
        job.tally.started.get_or_insert(now);
        job.tally.attempts = job.tally.attempts.saturating_add(1);
        job.tally.counted = job.tally.counted.saturating_add(1);
        job.ledger.sends = job.ledger.sends.saturating_add(1);
        let left = job.age(elapsed).map_or(0, |age| KEY_WINDOW.saturating_sub(age));
        let late = if job.endpoint.safety == Safety::Keyed { left } else { Millis::MAX };
        let mut headers = job.headers.clone();
        if let Some(key) = &job.ledger.key {
            headers.push(("idempotency-key".to_owned(), key.clone()));
        }
        let (auth, method, timeout) = (job.endpoint.auth, job.endpoint.method, job.policy.timeout_ms);
        let request = self.lay_out(method, auth, &built, headers, timeout, late);
        self.push_send(id, request);
    }

    pub(super) fn push_send(&mut self, id: JobId, request: Request) {
        let step = self.step_id();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.out = Some(step);
        let command = job.waiting.first().copied().unwrap_or(CommandId(0));
        self.pending.insert(step, Pending::Send(id));
        self.steps.push_back(Step::Send { id: step, command, request });
    }

    /// Lays out a request; `late` is how long it may be held back by the host.
    pub(super) fn lay_out(
        &self,
        method: Method,
        auth: Auth,
        built: &Built,
        extra: Vec<(String, String)>,
        timeout_ms: u32,
        late: Millis,
    ) -> Request {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        match (auth, &self.key, self.login.token()) {
            (Auth::Key, Some(key), _) => headers.push(("x-api-key".to_owned(), key.reveal().to_owned())),
            (Auth::Bearer, _, Some(token)) => headers.push(("authorization".to_owned(), format!("Bearer {}", token.reveal()))),
            _ => {}
        }
        if built.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(built.headers.iter().cloned());
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
}
