//! What is known of sessions.

use std::collections::BTreeSet;

use super::job::Entry;
use super::root::Client;
use super::types::{Misfit, Outputs};
use crate::contract::agent::{CreateSession, Session};
use crate::contract::{Json, Operation};
use crate::engine::{Answered, Bought, Phase, RecordId, phase_of, shown};
use crate::policy::{Advice, Effect, Error, Kind, Report};
use crate::state::{Intent, JobId, Owner, Tracked};
use crate::wire::Facts;

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

impl Client {
    /// A purchase was accepted: from here on the session is what is kept.
    pub(super) fn bought(&mut self, id: JobId, bought: Bought) {
        let now = self.clock.monotonic();
        let Some(Entry { subject, wants, custody, .. }) = self.jobs.get_mut(&id).map(|entry| &mut **entry) else { return };
        let Some(session_id) = subject.session_id.clone() else { return };
        wants.since.get_or_insert(now);
        let tracked = Tracked {
            record: custody.record.take(),
            session_type: bought.facts.session_type.or(bought.session_type),
            status: bought.facts.status,
            credentials: wants.credentials,
            auto_rotate: wants.auto_rotate,
            ends: wants.ends.clone(),
            changing: BTreeSet::from([id]),
            intent: subject.intent.clone().map(|intent| (intent, custody.fingerprint.clone())),
            ..Tracked::default()
        };
        match self.sessions.get_mut(&session_id) {
            // A replay of a purchase that is followed already: one session has one record, and another intent its own.
            Some(known) if known.record.is_some() => {
                known.credentials |= tracked.credentials;
                known.auto_rotate |= tracked.auto_rotate;
                custody.record = tracked.record;
            }
            Some(known) => {
                known.changing.insert(id);
                *known = Tracked { changing: std::mem::take(&mut known.changing), ..tracked };
            }
            None => _ = self.sessions.insert(session_id.clone(), tracked),
        }
        self.save_session(&session_id);
    }

    /// A session as the client knows it, in the shape of a read.
    pub(super) fn known(&self, session_id: &str) -> (Facts, Json) {
        shown(session_id, self.sessions.get(session_id).map(Tracked::known))
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
    pub(super) fn learn_and_save(&mut self, facts: &Facts) {
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
        let session = self.jobs.get(&id)?.subject.session_id.clone()?;
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

    /// The session of a job is terminated: it is followed no more.
    pub(super) fn gone(&mut self, id: JobId) {
        let session = self.jobs.get(&id).and_then(|entry| entry.subject.session_id.clone());
        let record = session.and_then(|session| self.terminated(&session));
        if let Some(entry) = self.jobs.get_mut(&id) {
            entry.custody.also_delete = record;
        }
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
                let waits =
                    |entry: &&mut Box<Entry>| entry.subject.session_id.as_deref() == Some(session) && entry.custody.record.is_none();
                if let Some(entry) = self.jobs.get_mut(other).filter(waits) {
                    record.iter().for_each(|record| self.store.own(record, Owner::Job(*other)));
                    entry.custody.record = record.take();
                }
            }
            // The name may belong to a later purchase by now.
            _ => {}
        }
        self.intents_follow(session, "terminated");
        record
    }
}
