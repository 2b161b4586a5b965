//! The life of a session after its purchase: polled until it is usable, changed, read again, ended.

use super::job::{Follow, Job, On, State};
use super::record::{Data, Done, SavedSession};
use super::store::JobId;
use super::types::{Answered, FailureKind, Happening, Millis, Misfit, Outcome, Outputs, Phase, RecordId, Sent};
use super::{Accepted, Client, Intent};
use crate::contract::agent::{CreateSession, GetSession, Session};
use crate::contract::{Json, Operation};
use crate::policy::{Advice, Effect, Error, Kind, jittered};
use crate::wire::{Answer, Facts, Verdict, build};

/// How long `open_session` waits for a usable session, unless the caller says otherwise.
pub(super) const DEADLINE: Millis = 5 * 60 * 1000;
/// The wait before the first read; each further one is half as long again, up to the last.
pub(super) const FIRST_INTERVAL: Millis = 1000;
const LAST_INTERVAL: Millis = 10_000;
/// For this long after the purchase the service may not know the session yet.
const NOT_YET_KNOWN: Millis = 10_000;

/// A session that this client follows.
#[derive(Debug, Default)]
pub(super) struct Tracked {
    pub(super) record: Option<RecordId>,
    pub(super) session_type: Option<String>,
    pub(super) status: Option<String>,
    /// Whether a read has shown it.
    pub(super) seen: bool,
    /// The job that changes it.
    pub(super) changing: Option<JobId>,
    /// The intent it was bought under, and what tells its request from another.
    pub(super) intent: Option<(String, String)>,
    pub(super) observed: super::observe::Observed,
}

/// Marks the ticket of [`Client::open_session`] and [`Client::wait_session`].
#[derive(Debug, Clone, Copy)]
pub enum OpenSession {}

/// How a session is, when waiting for it ended: usable, over, or (`Pending`, `Unknown`) not yet, at the deadline.
/// [`Client::wait_session`] waits on.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionReply {
    /// Its id: the handle for everything that comes after.
    pub session_id: String,
    /// Where it is.
    pub phase: Phase,
    /// The last read of it, typed.
    pub session: Session,
    /// The whole `data` of that read.
    pub raw: Json,
}

impl Outputs for OpenSession {
    type Output = SessionReply;

    fn read(answered: Answered) -> Result<Self::Output, Misfit> {
        match answered.raw.read::<Session>() {
            Ok(session) => Ok(SessionReply {
                session_id: session.session_id.clone(),
                phase: answered.phase.unwrap_or(Phase::Unknown),
                session,
                raw: answered.raw,
            }),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

/// What a status means for waiting.
pub(super) fn phase_of(status: Option<&str>, ends: &[String]) -> Phase {
    match status {
        Some(status) if ends.iter().any(|end| end == status) => Phase::Ended,
        Some("creating") => Phase::Pending,
        Some("active") => Phase::Ready,
        Some("expired") => Phase::Ended,
        // NOT SHOWN: any other status. Waiting goes on, and the caller is told.
        _ => Phase::Unknown,
    }
}

/// Why a change of a session is refused without a request, as far as is known.
pub(super) fn forbidden(operation: &str, tracked: &Tracked) -> Option<String> {
    let (kind, status) = (tracked.session_type.as_deref(), tracked.status.as_deref());
    match (operation, kind, status) {
        ("rotate_session", Some(kind), _) if kind != "dynamic" => {
            Some(format!("names a {kind} session, and only a dynamic one can be rotated"))
        }
        ("rotate_session", _, Some(status @ ("creating" | "expired"))) => {
            Some(format!("names a session that is {status}, and only an active one can be rotated"))
        }
        ("renew_session", Some(kind), _) if kind != "static" => {
            Some(format!("names a {kind} session, and only a static one can be renewed"))
        }
        ("renew_session", _, Some(status @ "creating")) => {
            Some(format!("names a session that is {status}, and only an active or expired one can be renewed"))
        }
        _ => None,
    }
}

impl Client {
    /// A call succeeded: end, or go on with reading the session.
    pub(super) fn accepted(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let resent = job.ledger.sends > 1;
        match job.endpoint.name {
            "create_session" if job.watch.follow == Follow::UntilReady => return self.bought(id, answered),
            "get_session" => self.learn(&answered.facts),
            "rotate_session" | "renew_session" => {
                if let Some(session) = job.session.clone().and_then(|session| self.sessions.get_mut(&session)) {
                    session.observed.changed(now);
                }
                if resent {
                    // The answer may be a replay of how the session was.
                    let Some(job) = self.jobs.get_mut(&id) else { return };
                    job.watch.follow = Follow::Once;
                    job.watch.since = Some(now);
                    job.go(On::Follow);
                    return self.set_timer(id, now);
                }
                self.learn(&answered.facts);
            }
            "terminate_session" => return self.gone(id, answered),
            _ => {}
        }
        self.finish(id, Ok(answered));
    }

    /// A purchase was accepted: from here on the session is what is kept.
    fn bought(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let resent = job.ledger.sends > 1;
        let Some(session_id) = answered.facts.session_id.clone().filter(|id| !id.is_empty() && id != "." && id != "..") else {
            let what = "was accepted, but the answer names no session";
            let error = Error { raw: Some(answered.raw), ..job.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw) };
            return self.finish(id, Err(error));
        };
        job.session = Some(session_id.clone());
        job.watch.since = Some(now);
        let bought_type = requested_type(job);
        let tracked = Tracked {
            record: job.record.take(),
            session_type: answered.facts.session_type.clone().or(bought_type),
            status: answered.facts.status.clone(),
            changing: Some(id),
            intent: job.intent.clone().map(|intent| (intent, job.fingerprint.clone())),
            ..Tracked::default()
        };
        let (ready, credentials) = (phase_of(tracked.status.as_deref(), &job.watch.ends) == Phase::Ready, job.watch.credentials);
        let cancelled = job.cancelled;
        job.go(On::Follow);
        self.sessions.insert(session_id.clone(), tracked);
        self.save_session(&session_id);
        let charge = answered.facts.estimated_charge_usd.clone();
        self.notify(id, Happening::Accepted { session_id, estimated_charge_usd: charge });
        if cancelled {
            return self.end_cancelled_watch(id);
        }
        if ready && !resent && !credentials {
            return self.watched(id, answered);
        }
        let wait = if ready { 0 } else { self.interval(id) };
        self.set_timer(id, now.saturating_add(wait));
    }

    /// The next wait between two reads: longer each time, and spread by a tenth.
    fn interval(&mut self, id: JobId) -> Millis {
        let random = self.entropy.jitter();
        let Some(job) = self.jobs.get_mut(&id) else { return FIRST_INTERVAL };
        let interval = job.watch.interval;
        job.watch.interval = (interval * 3 / 2).min(LAST_INTERVAL);
        interval - interval / 10 + jittered(interval / 5, random)
    }

    /// A read of the session is due.
    pub(super) fn read_due(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        if self.hold_until > now {
            return self.set_timer(id, self.hold_until);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(session_id) = job.session.clone() else { return };
        // Credentials are there only once the session is active, so they are asked for only then.
        let active = self.sessions.get(&session_id).is_none_or(|tracked| phase_of(tracked.status.as_deref(), &[]) == Phase::Ready);
        let credentials = job.watch.credentials && (active || job.watch.follow == Follow::Once) && job.watch.follow != Follow::UntilGone;
        job.watch.asked_credentials = credentials;
        job.watch.since.get_or_insert(now);
        let read = GetSession { session_id, include_credentials: credentials.then_some(true) };
        let params = serde_json::to_string(&read).unwrap_or_default();
        let Ok(built) = build(GetSession::ENDPOINT, &params) else { return };
        job.go(On::Read);
        job.sent_at = now;
        let (headers, timeout) = (job.headers.clone(), job.policy.timeout_ms);
        let request = self.request(GetSession::ENDPOINT.method, GetSession::ENDPOINT.auth, &built, headers, timeout, Millis::MAX);
        self.push_send(id, request);
    }

    /// What a read of the session brought.
    pub(super) fn session_read(&mut self, id: JobId, answer: Option<Answer>, outcome: Outcome<'_>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(Answer { verdict: Verdict::Success(raw), request_id, .. }) = &answer {
            let answered = Answered { facts: Facts::of(raw.text(), request_id.as_deref()), raw: raw.clone(), phase: None };
            job.watch.failures = 0;
            if job.cancelled {
                self.learn_of(id, &answered.facts);
                return self.end_cancelled_watch(id);
            }
            return self.watched(id, answered);
        }
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        self.read_failed(id, answer.as_ref(), lost);
    }

    /// The session was read: is that the end of waiting?
    fn watched(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let changed = self.learn_of(id, &answered.facts);
        let Some(job) = self.jobs.get(&id) else { return };
        let phase = phase_of(answered.facts.status.as_deref(), &job.watch.ends);
        if let (Some((session_id, status)), true) = (changed, job.watch.follow == Follow::UntilReady) {
            self.notify(id, Happening::Status { session_id, status, phase });
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let over = job.is_past_deadline(now);
        let reading = job.state == State::Reading;
        let answered = Answered { phase: Some(phase), ..answered };
        match (job.watch.follow, phase) {
            (Follow::UntilGone, _) => {
                let what = "was answered with no such session, but the session is still there";
                let error = job.error(Kind::InDoubt, Effect::Unknown, what, Advice::Resume);
                self.doubt(id, error);
            }
            (Follow::UntilReady, Phase::Ready) if job.watch.credentials && !job.watch.asked_credentials && reading => {
                job.go(On::Follow);
                self.set_timer(id, now);
            }
            (Follow::UntilReady, Phase::Pending | Phase::Unknown) if !over => {
                if reading {
                    job.go(On::Follow);
                }
                self.read_again(id, 0);
            }
            _ => self.finish(id, Ok(answered)),
        }
    }

    /// Plans the next read, the last one at the deadline.
    fn read_again(&mut self, id: JobId, asked_to_wait: Millis) {
        let now = self.clock.monotonic();
        let wait = self.interval(id);
        let Some(job) = self.jobs.get(&id) else { return };
        let deadline = job.watch.since.unwrap_or(now).saturating_add(job.watch.deadline_ms).max(now);
        // What the service asks for is never undercut, not even for the last read.
        let at = now.saturating_add(wait).min(deadline).max(now.saturating_add(asked_to_wait));
        self.set_timer(id, at);
    }

    /// A read failed. It never loses the session: waiting goes on, or ends with a handle.
    fn read_failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix) = (self.clock.monotonic(), self.clock.unix());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if lost.is_some_and(|(kind, _)| kind == FailureKind::Late) && !job.cancelled {
            job.go(On::Follow);
            return self.set_timer(id, now);
        }
        job.watch.failures += 1;
        let failure = answer.and_then(|answer| match &answer.verdict {
            Verdict::Failure(failure) => Some(failure.code.clone()),
            _ => None,
        });
        let missing = failure.as_deref() == Some("SESSION_NOT_FOUND");
        let passing = match answer {
            Some(answer) => matches!(answer.status, 408 | 425 | 429 | 500..=599) || (failure.is_none() && answer.status < 300),
            None => true,
        };
        let waited = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        let follow = job.watch.follow;
        let over = job.is_past_deadline(now);
        let bought_just_now = job.watch.since.is_some_and(|since| now.saturating_sub(since) < NOT_YET_KNOWN);
        let not_yet = missing && job.endpoint.paid && bought_just_now;
        let tries_left = job.watch.failures < job.policy.attempts.max(2);
        let effect = if follow == Follow::UntilGone { Effect::Unknown } else { job.effect_of_answer() };
        let mut error = Error { cause: None, ..job.error(Kind::Unavailable, effect, super::call::what(answer, lost), Advice::ReadSession) };
        if let Some(answer) = answer {
            super::call::fill(&mut error, answer, self.key.as_ref(), unix);
        }
        if follow == Follow::UntilGone && missing {
            let facts = Facts { session_id: job.session.clone(), ..Facts::default() };
            return self.gone(id, Answered { facts, raw: Json::default(), phase: Some(Phase::Ended) });
        }
        if job.cancelled {
            return self.end_cancelled_watch(id);
        }
        let go_on = match follow {
            Follow::UntilReady => (passing || not_yet) && !over,
            _ => passing && tries_left,
        };
        if go_on {
            job.go(On::Follow);
            return self.read_again(id, waited);
        }
        match follow {
            Follow::UntilReady if passing => {
                // At the deadline the caller gets what is known, not an error that drops the session.
                let session = job.session.clone().unwrap_or_default();
                let (facts, raw) = self.known(&session);
                let phase = phase_of(facts.status.as_deref(), &[]);
                self.finish(id, Ok(Answered { facts, raw, phase: Some(phase) }));
            }
            Follow::UntilGone => self.doubt(id, Error { kind: Kind::InDoubt, advice: Advice::Resume, ..error }),
            _ => {
                let kind = if passing { Kind::Unavailable } else { Kind::Refused };
                self.finish(id, Err(Error { kind, ..error }));
            }
        }
    }

    /// A session as the client knows it, in the shape of a read.
    pub(super) fn known(&self, session_id: &str) -> (Facts, Json) {
        let tracked = self.sessions.get(session_id);
        let status = tracked.and_then(|tracked| tracked.status.clone());
        let session_type = tracked.and_then(|tracked| tracked.session_type.clone());
        let mut shown = serde_json::Map::new();
        shown.insert("session_id".to_owned(), session_id.into());
        shown.insert("status".to_owned(), status.clone().unwrap_or_default().into());
        if let Some(kind) = &session_type {
            shown.insert("session_type".to_owned(), kind.as_str().into());
        }
        let raw = serde_json::Value::Object(shown).to_string().parse().unwrap_or_default();
        (Facts { session_id: Some(session_id.to_owned()), status, session_type, ..Facts::default() }, raw)
    }

    /// Takes in what an answer says of a session that is followed.
    fn learn(&mut self, facts: &Facts) {
        if let Some(tracked) = facts.session_id.as_ref().and_then(|id| self.sessions.get_mut(id)) {
            tracked.seen = true;
            if facts.status.is_some() {
                tracked.status.clone_from(&facts.status);
            }
            if facts.session_type.is_some() {
                tracked.session_type.clone_from(&facts.session_type);
            }
        }
    }

    /// The same for the session of a job; returns its id and status if the status is news.
    fn learn_of(&mut self, id: JobId, facts: &Facts) -> Option<(String, String)> {
        let session = self.jobs.get(&id)?.session.clone()?;
        let before = self.sessions.get(&session).and_then(|tracked| tracked.status.clone());
        self.learn(&Facts { session_id: Some(session.clone()), ..facts.clone() });
        let status = facts.status.clone()?;
        if before.as_ref() == Some(&status) {
            return None;
        }
        if self.sessions.get(&session).is_some_and(|tracked| tracked.record.is_some()) {
            self.save_session(&session);
        }
        Some((session, status))
    }

    /// A cancelled wait: the session lives on.
    pub(super) fn end_cancelled_watch(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        let what = "waiting for the session was given up; the session lives on";
        let error = Error { cause: None, ..job.error(Kind::Cancelled, job.effect_of_answer(), what, Advice::ReadSession) };
        self.finish(id, Err(error));
    }

    /// A second DELETE found no session: the first one did it, if the session was ever there.
    pub(super) fn perhaps_gone(&mut self, id: JobId, error: Error) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let session = job.session.clone().unwrap_or_default();
        if self.sessions.get(&session).is_some_and(|tracked| tracked.seen) {
            let facts = Facts { session_id: Some(session), request_id: error.request_id, ..Facts::default() };
            return self.gone(id, Answered { facts, raw: Json::default(), phase: Some(Phase::Ended) });
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.watch.follow = Follow::UntilGone;
        job.watch.since = Some(now);
        job.go(On::Follow);
        self.set_timer(id, now);
    }

    /// The session is terminated: it is followed no more.
    fn gone(&mut self, id: JobId, answered: Answered) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let Some(tracked) = job.session.as_ref().and_then(|session| self.sessions.remove(session)) else {
            return self.finish(id, Ok(answered));
        };
        let Some(record) = tracked.record else { return self.finish(id, Ok(answered)) };
        match tracked.intent.as_ref().and_then(|(name, _)| self.intents.get_mut(name).map(|intent| (name, intent))) {
            Some((name, Intent::Accepted(accepted))) => {
                // The purchase is remembered, the session is not.
                accepted.facts.status = Some("terminated".to_owned());
                accepted.opened = false;
                accepted.record = Some(record);
                let (name, accepted) = (name.clone(), accepted.clone());
                self.save_accepted(&name, &accepted);
            }
            _ => job.also_delete = Some(record),
        }
        self.finish(id, Ok(answered));
    }

    // ---- records ----

    /// Saves a job's record as it is now.
    pub(super) fn save_job(&mut self, id: JobId, waiter: Option<JobId>) {
        let elapsed = self.clock.elapsed();
        let mut data = self.data();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let record = job.record.get_or_insert_with(|| RecordId(self.entropy.record())).clone();
        data.intent.clone_from(&job.intent);
        data.fingerprint = job.intent.is_some().then(|| job.fingerprint.clone());
        data.call = job.saved(elapsed);
        self.save(&record, Some(data.bytes()), waiter);
    }

    /// Saves a session as it is. Nothing waits for it.
    pub(super) fn save_session(&mut self, session: &str) {
        let mut data = self.data();
        let Some(tracked) = self.sessions.get(session) else { return };
        let Some(record) = tracked.record.clone() else { return };
        (data.intent, data.fingerprint) = tracked.intent.clone().unzip();
        data.session = Some(saved_session(session, tracked));
        self.save(&record, Some(data.bytes()), None);
    }

    /// Saves what an intent ended with. Nothing waits for it.
    pub(super) fn save_accepted(&mut self, intent: &str, accepted: &Accepted) {
        let Some(record) = accepted.record.clone() else { return };
        let mut data = self.data();
        data.intent = Some(intent.to_owned());
        data.fingerprint = Some(accepted.fingerprint.clone());
        data.done = Some(Done { operation: accepted.operation.to_owned(), facts: accepted.facts.clone(), at: accepted.at });
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
        }
    }
}

fn saved_session(id: &str, tracked: &Tracked) -> SavedSession {
    SavedSession { id: id.to_owned(), session_type: tracked.session_type.clone(), status: tracked.status.clone() }
}

fn requested_type(job: &Job) -> Option<String> {
    let body = job.built.as_ref()?.body.as_deref()?;
    serde_json::from_str::<CreateSession>(body).ok().map(|request| request.session_type.as_str().to_owned())
}
