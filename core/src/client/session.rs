//! The life of a session after its purchase: polled until it is usable, changed, read again, ended.

use std::collections::BTreeSet;

use super::job::{Follow, On};
use super::store::{JobId, Owner};
use super::types::{Answered, Millis, Misfit, Outputs, Phase, RecordId};
use super::{Client, Intent};
use crate::contract::agent::{CreateSession, Session};
use crate::contract::{Json, Operation};
use crate::policy::{Advice, Effect, Error, Kind, Report};
use crate::wire::Facts;

/// How long `open_session` waits for a usable session, unless the caller says otherwise.
pub(super) const DEADLINE: Millis = 5 * 60 * 1000;
/// The wait before the first read; each further one is half as long again, up to the last.
pub(super) const FIRST_INTERVAL: Millis = 1000;

/// A session that this client follows.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Tracked {
    pub(super) record: Option<RecordId>,
    pub(super) session_type: Option<String>,
    pub(super) status: Option<String>,
    /// Whether a read has shown it.
    pub(super) seen: bool,
    /// Whether a person named it, and the service has not shown it yet.
    pub(super) only_named: bool,
    /// Whether its username and password are wanted.
    pub(super) credentials: bool,
    /// Whether what is seen through it may rotate it.
    pub(super) auto_rotate: bool,
    /// Further statuses that end it.
    pub(super) ends: Vec<String>,
    /// When it was seen to be over, by the service's clock.
    pub(super) over_at: Option<Millis>,
    /// Whether its record went as it was over: should it live again, as a renewed one does, it gets another.
    pub(super) lapsed: bool,
    /// The jobs that change it: one, unless more of them came out of records.
    pub(super) changing: BTreeSet<JobId>,
    /// The intent it was bought under, and what tells its request from another.
    pub(super) intent: Option<(String, String)>,
    pub(super) observed: super::observe::Observed,
}

impl Tracked {
    pub(super) fn is_over(&self) -> bool {
        phase_of(self.status.as_deref(), &self.ends) == Phase::Ended
    }
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
        // `terminated` is our own word for a session that this client has ended.
        Some("expired" | "terminated") => Phase::Ended,
        // NOT DOCUMENTED: any other status. Waiting goes on, and the caller is told.
        _ => Phase::Unknown,
    }
}

/// Whether a session can never be usable again: a static one that has expired can still be renewed.
pub(super) fn is_over_for_good(status: Option<&str>, session_type: Option<&str>) -> bool {
    match status {
        Some("terminated") => true,
        Some("expired") => session_type == Some("dynamic"),
        _ => false,
    }
}

/// What a start is told under an intent whose session is over.
pub(super) fn ended(facts: &Facts, intent: Option<String>, record: Option<RecordId>) -> Error {
    let (id, status) = (facts.session_id.as_deref().unwrap_or_default(), facts.status.as_deref().unwrap_or_default());
    let what = format!("its session `{id}` is over (`{status}`)");
    Error::from(Report {
        intent,
        session_id: facts.session_id.clone(),
        record: record.map(|record| record.0),
        ..Error::new(Kind::Ended, Effect::None, CreateSession::ENDPOINT.name, what, Advice::NewIntent).into_report()
    })
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
        // The answer to a key that may have been sent before can be a replay of how things were.
        let resent = (job.ledger.sends > 1 || job.ledger.given) && !job.cancelled;
        if job.order.is_some() {
            return self.order_read(id, answered);
        }
        if job.lookup.is_some() {
            return self.looked_up(id, answered);
        }
        match job.endpoint.name {
            "create_static_order" if job.places_order() => return self.ordered(id, answered),
            "create_session" if job.watch.follow == Follow::UntilReady => return self.bought(id, answered),
            "get_session" => self.learn_and_save(&answered.facts),
            "rotate_session" | "renew_session" => {
                if let Some(session) = job.session.clone().and_then(|session| self.sessions.get_mut(&session)) {
                    session.observed.changed(now);
                }
                if resent {
                    // The answer may be a replay of how the session was.
                    let Some(job) = self.jobs.get_mut(&id) else { return };
                    job.watch.follow = Follow::Once;
                    job.watch.done_at = Some(now);
                    job.go(On::Follow);
                    return self.set_timer(id, now);
                }
                self.learn_and_save(&answered.facts);
            }
            "terminate_session" => return self.gone(id, answered),
            _ => {}
        }
        match self.jobs.get(&id).and_then(|job| job.until.clone()) {
            Some(until) => self.looked(id, &until, answered),
            None => self.finish(id, Ok(answered)),
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

    /// Takes in what an answer says of a session. Returns whether that is to be saved: it is over now and was not, it lives
    /// again, or a person had named it and it is there.
    fn learn(&mut self, facts: &Facts) -> bool {
        let Some(id) = &facts.session_id else { return false };
        // Of a session that is not followed only its intents know how it was.
        let unknown = self.sessions.get(id).is_none_or(|tracked| tracked.status.is_none());
        let remembered = unknown && facts.status.is_some() && self.is_remembered_as_over(id);
        let mut shown = false;
        let (mut was_over, mut over) = (remembered, phase_of(facts.status.as_deref(), &[]) == Phase::Ended);
        if let Some(tracked) = self.sessions.get_mut(id) {
            was_over = remembered || tracked.is_over();
            tracked.seen = true;
            shown = std::mem::take(&mut tracked.only_named);
            if facts.status.is_some() {
                tracked.status.clone_from(&facts.status);
            }
            if facts.session_type.is_some() {
                tracked.session_type.clone_from(&facts.session_type);
            }
            over = tracked.is_over();
            if !over && std::mem::take(&mut tracked.lapsed) {
                tracked.record.get_or_insert_with(|| RecordId(self.entropy.record()));
            }
            if over != was_over {
                tracked.over_at = self.clock.finished_at().filter(|_| over);
            }
        }
        if let (true, Some(status)) = (over != was_over, &facts.status) {
            self.intents_follow(id, status);
        }
        shown || over != was_over
    }

    fn is_remembered_as_over(&self, session: &str) -> bool {
        self.intents.values().any(|intent| match intent {
            Intent::Accepted(accepted) if accepted.facts.session_id.as_deref() == Some(session) => {
                phase_of(accepted.facts.status.as_deref(), &[]) == Phase::Ended
            }
            _ => false,
        })
    }

    /// The same, and saves it.
    fn learn_and_save(&mut self, facts: &Facts) {
        if let (true, Some(session)) = (self.learn(facts), &facts.session_id) {
            self.save_session(session);
        }
    }

    /// The record of a session that is over and stands for no intent: it goes once that was told. The intent of the job that
    /// ends is one, too.
    pub(super) fn take_finished_session(&mut self, session: &str, intent: Option<&str>) -> Option<RecordId> {
        let tracked = self.sessions.get(session).filter(|tracked| tracked.is_over() && tracked.changing.is_empty())?;
        let bought_as = tracked.intent.as_ref().map(|(name, _)| name.as_str());
        if bought_as.is_some_and(|name| intent == Some(name) || self.accepted_as(name, session)) {
            return None;
        }
        let tracked = self.sessions.get_mut(session)?;
        tracked.lapsed = tracked.record.is_some();
        tracked.record.take()
    }

    /// The record of a session that was there and is not any more: another client ended it, or the service forgot it. One that
    /// is still being created may only not be known yet, and one that this client never read may be another account's.
    pub(super) fn take_missing_session(&mut self, session: &str) -> Option<RecordId> {
        let tracked = self.sessions.get(session).filter(|tracked| tracked.seen && tracked.changing.is_empty())?;
        let was_there = phase_of(tracked.status.as_deref(), &tracked.ends) != Phase::Pending;
        was_there.then(|| self.terminated(session))?
    }

    /// What an answer says of the session of a job; returns its id and status if the status is news.
    pub(super) fn learn_of(&mut self, id: JobId, facts: &Facts) -> Option<(String, String)> {
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

    /// Whether that session is what an intent was accepted as.
    pub(super) fn accepted_as(&self, intent: &str, session: &str) -> bool {
        matches!(self.intents.get(intent), Some(Intent::Accepted(accepted)) if accepted.facts.session_id.as_deref() == Some(session))
    }

    /// A second DELETE found no session, or one that is over: the first one did it, if the session was ever there.
    pub(super) fn perhaps_gone(&mut self, id: JobId, error: Error) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // It says nothing of the first one: only a read can, so if that fails, it is as open as before.
        job.ledger.unanswered = true;
        if job.cancelled {
            return self.doubt_cancelled(id);
        }
        let session = job.session.clone().unwrap_or_default();
        let missing = error.code.as_deref() == Some("SESSION_NOT_FOUND");
        if missing && self.sessions.get(&session).is_some_and(|tracked| tracked.seen) {
            let facts = Facts { session_id: Some(session), request_id: error.into_report().request_id, ..Facts::default() };
            return self.gone(id, Answered { phase: Some(Phase::Ended), ..Answered::of(facts) });
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.watch.follow = Follow::UntilGone;
        job.watch.done_at = Some(now);
        job.watch.interval = FIRST_INTERVAL;
        job.watch.failures = 0;
        job.go(On::Follow);
        self.set_timer(id, now);
    }

    /// The session is terminated: it is followed no more.
    pub(super) fn gone(&mut self, id: JobId, answered: Answered) {
        let session = self.jobs.get(&id).and_then(|job| job.session.clone());
        let record = session.and_then(|session| self.terminated(&session));
        if let Some(job) = self.jobs.get_mut(&id) {
            job.also_delete = record;
        }
        self.finish(id, Ok(answered));
    }

    /// A session is no more: its purchase is remembered under its intent, the session is not. Returns its record where
    /// nothing is remembered by it.
    pub(super) fn terminated(&mut self, session: &str) -> Option<RecordId> {
        let mut tracked = self.sessions.remove(session).unwrap_or_default();
        let (mut record, name) = (tracked.record.take(), tracked.intent.map(|(name, _)| name).unwrap_or_default());
        match self.intents.get_mut(&name) {
            Some(Intent::Accepted(accepted)) if accepted.facts.session_id.as_deref() == Some(session) => {
                accepted.record = record.take().or(accepted.record.take());
            }
            // Whoever opened it still waits for it, and remembers it in the end.
            Some(Intent::Active(other)) => {
                if let Some(job) = self.jobs.get_mut(other).filter(|job| job.session.as_deref() == Some(session) && job.record.is_none()) {
                    record.iter().for_each(|record| self.store.own(record, Owner::Job(job.id)));
                    job.record = record.take();
                }
            }
            // The name may belong to a later purchase by now.
            _ => {}
        }
        self.intents_follow(session, "terminated");
        record
    }
}
