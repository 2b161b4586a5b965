//! The facts about sessions.

use arcstr::ArcStr;

use crate::client::jobs::job::Entry;
use crate::client::names::deletion::REMEMBERED;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::client::types::{Outputs, ReadFailure};
use crate::contract::agent::{CreateSession, Session};
use crate::contract::{Decimal, Json, Operation};
use crate::engine::{Answered, Bought, Phase, RecordId};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{JobId, KeptSession, Name, User};
use crate::time::Millis;
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
    /// The charge of its purchase in USD, where the service stated it.
    pub charged_usd: Option<Decimal>,
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
                charged_usd: answered.facts.charged_usd.as_deref().and_then(|usd| usd.parse().ok()),
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
        let entry = self.jobs.get(id).filter(|entry| !entry.record.taken_over);
        let Some(session_id) = entry.and_then(|entry| entry.subject.session_id.clone()) else { return };
        self.jobs.bought(id, now);
        let Some(Entry { wants, record, .. }) = self.jobs.get(id) else { return };
        let (name, bought_as) = (record.name.as_ref(), record.bought_as.as_ref());
        if self.sessions.bought((&session_id, id), bought, name, bought_as, &wants.session_options)
            && let Some(name) = self.jobs.take_name(id)
        {
            self.journal.give(&name, Some(User::Session(session_id.clone())));
        }
        self.put_session(&session_id);
    }

    /// Takes in what an answer says of a session. Returns whether that is to be put: it is over now and was not, it lives again, or a
    /// person had named it and it is there.
    fn learn(&mut self, facts: &Facts) -> bool {
        let Some(session) = facts.session_id.as_deref() else { return false };
        let learnt = self.sessions.learn(session, facts.status.as_deref(), facts.session_type.as_deref());
        if learnt.lives_again {
            self.live_again(session);
        }
        learnt.is_news
    }

    /// The same, and puts it.
    pub(crate) fn learn_and_save(&mut self, facts: &Facts) {
        if let (true, Some(session)) = (self.learn(facts), &facts.session_id) {
            self.put_session(session);
        }
    }

    /// The name of a session that was there and that an answer did not find: another client ended it, or the service forgot it, perhaps for
    /// a moment. One that is still being created may only not be known yet, and one that this client never read may be another account's, but
    /// where it is of a slot. Its record keeps the status that it had, and that of a static one is kept for good: it may be paid for.
    pub(crate) fn take_missing_session(&mut self, session: &str) -> Option<Name> {
        if !self.sessions.was_there(session) {
            return None;
        }
        let was = self.sessions.status(session).map(ArcStr::to_string);
        let mut kept = self.sessions.not_found(session)?;
        kept.session.was = was;
        let keep_for = (kept.session.session_type.as_deref() != Some("static")).then_some(REMEMBERED);
        self.remember(kept, keep_for)
    }

    /// Takes the facts about a job's session from an answer; returns its id and status if the status is news.
    pub(crate) fn learn_of(&mut self, id: JobId, facts: &Facts) -> Option<(String, String)> {
        let session = self.jobs.get(id)?.subject.session_id.clone()?;
        let before = self.sessions.status(&session).cloned();
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
        let session = self.jobs.get(id).and_then(|entry| entry.subject.session_id.clone());
        let bought = session.as_ref().and_then(|session| self.sessions.name(session)).cloned();
        let mut dropped = session.as_ref().map(|session| self.drop_free_doubts(session)).unwrap_or_default();
        dropped.extend(session.as_ref().and_then(|session| self.look_for_renewal(session)));
        let name = session.and_then(|session| self.terminated(&session));
        self.jobs.ended_session(id, bought, name, dropped);
    }

    /// A session is no more. Its purchase is remembered where its caller has a name for it; otherwise this is the name of the record that
    /// is of no use any more.
    pub(crate) fn terminated(&mut self, session: &str) -> Option<Name> {
        let kept = self.sessions.terminated(session)?;
        self.remember(kept, Some(REMEMBERED))
    }

    /// Lets go of the record of a session that is over, where its caller has a name for it; otherwise this is its name.
    fn remember(&mut self, kept: KeptSession, keep_for: Option<Millis>) -> Option<Name> {
        let name = kept.name.clone()?;
        if !name.is_findable() {
            return Some(name);
        }
        self.put_kept(&name, kept, keep_for, true);
        None
    }

    /// A session that is this client's still, for all that is known, is claimed again.
    pub(crate) fn reclaim(&mut self, name: &Name, session: ArcStr, failures: u32) {
        self.request_name(name, NameRequest::new(None, RequestKind::Reclaim(session, failures)));
    }

    /// A session that was over lives again: its record is taken back, or made anew.
    pub(crate) fn live_again(&mut self, session: &str) {
        match self.sessions.bought_as(session).map(|known| known.name.clone()) {
            Some(name) => self.reclaim(&name, session.into(), 0),
            None => {
                let name = self.make_name(Some(User::Session(session.into())));
                self.sessions.rename(session, name);
            }
        }
    }
}
