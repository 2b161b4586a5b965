//! The facts about sessions.

use arcstr::ArcStr;

use crate::client::jobs::job::Entry;
use crate::client::names::keep::REMEMBERED;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::client::types::{Outputs, ReadFailure};
use crate::collections::SmallSet;
use crate::contract::agent::{CreateSession, Session};
use crate::contract::{Json, Operation};
use crate::engine::{Answered, Bought, Phase, RecordId, TERMINATED, phase_of};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{JobId, Name, Shown, Tracked, User, word};
use crate::wire::Facts;

/// Marks the ticket of [`Client::open_session`](crate::client::Client::open_session) and [`Client::wait_session`](crate::client::Client::wait_session).
#[derive(Debug, Clone, Copy)]
pub enum OpenSession {}

/// How a session is, when waiting for it ended: usable, over, or (`Pending`, `Unknown`) not yet, at the deadline.
/// [`Client::wait_session`](crate::client::Client::wait_session) waits on.
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

    fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
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

/// The error for a start under an intent whose session is over.
pub(crate) fn ended(facts: &Facts, intent: Option<String>, record: Option<RecordId>) -> Error {
    let id = facts.session_id.as_deref().unwrap_or_default();
    let why =
        facts.status.as_deref().map_or_else(|| ": the service does not have it any more".to_owned(), |status| format!(" (`{status}`)"));
    let what = format!("its session `{id}` is over{why}");
    Error::new(Kind::Ended, Effect::None, CreateSession::ENDPOINT.name, what, Advice::NewIntent).with(|new| {
        new.intent = intent;
        new.session_id = facts.session_id.clone();
        new.record = record.map(|record| record.0);
    })
}

impl Router {
    /// A purchase was accepted: from here on the session is what is kept.
    pub(crate) fn bought(&mut self, id: JobId, bought: Bought) {
        let now = self.now();
        // The client that has taken it over holds it.
        let entry = self.jobs.get_mut(&id).filter(|entry| !entry.record.taken_over);
        let Some(Entry { subject, wants, record, .. }) = entry.map(|entry| &mut **entry) else { return };
        let Some(session_id) = subject.session_id.clone() else { return };
        wants.begin(now);
        record.session_name.clone_from(&record.name);
        let tracked = Tracked {
            name: record.name.clone(),
            shown: Shown {
                session_type: bought.facts.session_type.or(bought.session_type).as_deref().map(word),
                status: bought.facts.status.as_deref().map(word),
                charged_usd: bought.facts.estimated_charge_usd.as_deref().map(Into::into),
                ..Shown::default()
            },
            session_options: wants.session_options.clone(),
            jobs: SmallSet::one(id),
            changing: SmallSet::one(id),
            bought_as: record.bought_as.clone(),
            ..Tracked::default()
        };
        match self.sessions.get_mut(&session_id) {
            // A replay of a purchase that is followed already under another name: that one has it.
            Some(known) if known.name.is_some() => {
                known.jobs.insert(id);
                known.session_options.credentials |= tracked.session_options.credentials;
                known.session_options.auto_rotate |= tracked.session_options.auto_rotate;
                return self.put_session(&session_id);
            }
            Some(known) => {
                known.jobs.insert(id);
                known.changing.insert(id);
                let Tracked { held, promised, free_doubts, jobs, changing, .. } = std::mem::take(&mut **known);
                **known = Tracked { held, promised, free_doubts, jobs, changing, ..tracked };
            }
            None => _ = self.sessions.insert(session_id.clone(), Box::new(tracked)),
        }
        if let Some(name) = record.name.take() {
            self.journal.give(&name, Some(User::Session(session_id.clone())));
        }
        self.put_session(&session_id);
    }

    /// Takes in what an answer says of a session. Returns whether that is to be put: it is over now and was not, it lives again, or a
    /// person had named it and it is there.
    fn learn(&mut self, facts: &Facts) -> bool {
        let Some(tracked) = facts.session_id.as_deref().and_then(|id| self.sessions.get_mut(id)) else { return false };
        let was_over = tracked.is_over();
        let is_confirmed = tracked.shown.take_in(facts.status.as_deref(), facts.session_type.as_deref());
        let is_over = tracked.is_over();
        if let (false, true, Some(id)) = (is_over, tracked.lapsed, &facts.session_id) {
            self.live_again(id);
        }
        is_confirmed || is_over != was_over
    }

    /// The same, and puts it.
    pub(crate) fn learn_and_save(&mut self, facts: &Facts) {
        if let (true, Some(session)) = (self.learn(facts), &facts.session_id) {
            self.put_session(session);
        }
    }

    /// The name of a session that is over and that its caller has no name for: its record goes once that was told.
    pub(crate) fn take_finished_session(&mut self, session: &str) -> Option<Name> {
        let tracked = self.sessions.get_mut(session).filter(|tracked| tracked.is_over() && tracked.changing.is_empty())?;
        let name = tracked.name.take_if(|name| !name.is_findable())?;
        tracked.lapsed = true;
        Some(name)
    }

    /// The name of a session that was there and is not any more: another client ended it, or the service forgot it. One that is still
    /// being created may only not be known yet, and one that this client never read may be another account's, but where it is of a slot.
    pub(crate) fn take_missing_session(&mut self, session: &str) -> Option<Name> {
        let is_own = |known: &Tracked| known.shown.seen || known.name.as_ref().is_some_and(Name::is_of_a_pool);
        let tracked = self.sessions.get(session).filter(|tracked| is_own(tracked) && tracked.changing.is_empty())?;
        let was_there = phase_of(tracked.shown.status.as_deref(), &tracked.session_options.ends) != Phase::Pending;
        was_there.then(|| self.terminated(session))?
    }

    /// Takes the facts about a job's session from an answer; returns its id and status if the status is news.
    pub(crate) fn learn_of(&mut self, id: JobId, facts: &Facts) -> Option<(String, String)> {
        let session = self.jobs.get(&id)?.subject.session_id.clone()?;
        let before = self.sessions.get(&session).and_then(|tracked| tracked.shown.status.clone());
        self.learn(&Facts { session_id: Some(session.to_string()), ..facts.clone() });
        let status = facts.status.clone()?;
        if before.as_deref() == Some(&status) {
            return None;
        }
        self.put_session(&session);
        Some((session.to_string(), status))
    }

    /// The session of a job is terminated: it is followed no more.
    pub(crate) fn gone(&mut self, id: JobId) {
        let session = self.jobs.get(&id).and_then(|entry| entry.subject.session_id.clone());
        let bought = session.as_ref().and_then(|session| self.sessions.get(session)).and_then(|known| known.name.clone());
        let mut dropped = session.as_ref().map(|session| self.drop_free_doubts(session)).unwrap_or_default();
        dropped.extend(session.as_ref().and_then(|session| self.look_for_renewal(session)));
        let name = session.and_then(|session| self.terminated(&session));
        if let Some(entry) = self.jobs.get_mut(&id) {
            let rare = entry.record.rare.get_or_insert_default();
            (rare.also_delete, rare.dropped) = (name, dropped);
            entry.record.session_name = bought;
        }
    }

    /// A session is no more. Its purchase is remembered where its caller has a name for it; otherwise this is the name of the record that
    /// is of no use any more.
    pub(crate) fn terminated(&mut self, session: &str) -> Option<Name> {
        let tracked = self.sessions.get_mut(session)?;
        tracked.shown.status = Some(word(TERMINATED));
        let name = tracked.name.clone();
        let data = self.session_data(session);
        self.sessions.remove(session);
        let name = name?;
        if !name.is_findable() {
            return Some(name);
        }
        if let Some(data) = data {
            self.put(&name, data, Some(REMEMBERED), true, None);
            self.journal.give(&name, None);
        }
        None
    }

    /// A session that is this client's still, for all that is known, is claimed again.
    pub(crate) fn reclaim(&mut self, name: &Name, session: ArcStr, failures: u32) {
        self.request_name(name, NameRequest::new(None, RequestKind::Reclaim(session, failures)));
    }

    /// A session that was over lives again: its record is taken back, or made anew.
    pub(crate) fn live_again(&mut self, session: &str) {
        let Some(tracked) = self.sessions.get_mut(session) else { return };
        match tracked.bought_as.as_ref().map(|known| known.name.clone()) {
            Some(name) => self.reclaim(&name, session.into(), 0),
            None => {
                let name = self.account.space.random(&self.shared.rng.record());
                (tracked.name, tracked.lapsed) = (Some(name.clone()), false);
                self.journal.make(name, Some(User::Session(session.into())));
            }
        }
    }
}
