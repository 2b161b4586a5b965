//! The next purchase of an intent whose session is over for good, where its caller asks for that. One put sets the next purchase in the
//! place of the last one, so that the intent stands for one session at a time.

use crate::client::end::commands::{FinalWrite, Finished};
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::REMEMBERED;
use crate::client::requests::Start;
use crate::client::router::Router;
use crate::client::sessions::session::ended;
use crate::contract::Operation;
use crate::contract::agent::CreateSession;
use crate::engine::{Phase, is_over_for_good, phase_of};
use crate::policy::{Error, Rule};
use crate::state::{Data, Done, LaterPurchase, Name, SavedSession};
use crate::wire::Facts;

impl Router {
    /// The place of the purchase that a start begins after what a record says, if it begins one: it may buy, and did not wait while another
    /// client had the name, and the record's session is over for good.
    pub(crate) fn next_purchase(&self, start: &Start, data: &Data) -> Option<LaterPurchase> {
        if !start.options.buys_if_ended() || start.patience.is_some() {
            return None;
        }
        let is_over = |id: &str, status: Option<&str>, session_type: Option<&str>| {
            start.over.as_deref() == Some(id) || is_over_for_good(status, session_type) || !self.holds(Rule::LivingIsKept)
        };
        let (id, status) = match (&data.session, &data.call, &data.done) {
            (Some(session), None, _) => {
                let status = session.was.as_deref().or(session.status.as_deref());
                (Some(&session.id).filter(|id| is_over(id, status, session.session_type.as_deref()))?, status)
            }
            (None, None, Some(done)) if done.follows && done.operation == CreateSession::ENDPOINT.name => {
                let (status, kind) = (done.facts.status.as_deref(), done.facts.session_type.as_deref());
                let id = done.facts.session_id.as_ref();
                (id.filter(|id| is_nothing_again(data) || is_over(id, status, kind))?, status)
            }
            _ => return None,
        };
        let number = data.later.as_ref().map_or(1, |later| later.number).saturating_add(1);
        Some(LaterPurchase { number, last_session_id: id.clone(), last_status: status.map(str::to_owned) })
    }

    /// The error for an intent whose next purchase had no effect: it stands for the session before, which is over.
    pub(crate) fn ended_again(&self, name: &Name, data: &Data) -> Error {
        let facts = data.done.as_ref().map(|done| done.facts.clone()).unwrap_or_default();
        // One that was usable, and then was not found.
        let status = facts.status.filter(|status| phase_of(Some(status), &[]) == Phase::Ended);
        let facts = Facts { status, ..facts };
        ended(&facts, data.intent.clone(), self.journal.record_of(name))
    }

    /// A later purchase of an intent had no effect: its record goes back to the session before. Returns true if it is a later one.
    pub(crate) fn keep_last(&mut self, name: &Name, entry: &Entry, finished: &mut Finished) -> bool {
        let Some(later) = entry.record.bought_as.as_ref().and_then(|known| known.later.as_deref().cloned()) else { return false };
        if entry.record.last_put.is_none() {
            // The record of the session before is there still.
            self.release(name);
            return true;
        }
        finished.last = FinalWrite::Erase;
        let data = self.data(entry.record.bought_as.as_deref());
        self.put_once(name, back_to_last(data, later), REMEMBERED);
        true
    }
}

/// The record of an intent after its purchase with that place had no effect.
pub(crate) fn back_to_last(data: Data, later: LaterPurchase) -> Data {
    let LaterPurchase { number, last_session_id, last_status } = later.clone();
    let facts = Facts { nothing: true, session_id: Some(last_session_id), status: last_status, ..Facts::default() };
    let done = Done { operation: CreateSession::ENDPOINT.name.to_owned(), facts, follows: true, answer: None };
    let later = LaterPurchase { number: number.saturating_sub(1).max(1), ..later };
    Data { call: None, session: None, done: Some(done), later: Some(later), ..data }
}

/// Returns true if a record says that the last purchase of its intent had no effect, and which session was before it.
pub(crate) fn is_nothing_again(data: &Data) -> bool {
    data.later.is_some() && data.done.as_ref().is_some_and(|done| done.facts.nothing)
}

/// A record whose session a read did not find, as it was before that, for a start that may buy the next one: first it makes sure, for as
/// long as a session may not be found by mistake.
pub(crate) fn before_missing(start: &Start, data: &Data) -> Option<Data> {
    let looks_first = |id: &str| start.options.buys_if_ended() && start.patience.is_none() && start.over.as_deref() != Some(id);
    if let Some(session) = data.session.as_ref().filter(|session| looks_first(&session.id)) {
        let was = session.was.clone()?;
        return Some(Data { session: Some(SavedSession { status: Some(was), was: None, ..session.clone() }), ..data.clone() });
    }
    // The purchase after one that was not found had no effect: that one may be found again by now, unless another one is wanted.
    let facts = &data.done.as_ref().filter(|_| is_nothing_again(data))?.facts;
    let id = facts.session_id.clone().filter(|id| looks_first(id))?;
    let (status, session_type) = (facts.status.clone(), facts.session_type.clone());
    let is_same = data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint);
    // One that was over is over for good, whatever its type; one that was not found has the status that it had before.
    let may_live = is_same && phase_of(status.as_deref(), &[]) != Phase::Ended;
    let session = SavedSession { id, status, session_type, ..SavedSession::default() };
    may_live.then(|| Data { session: Some(session), done: None, ..data.clone() })
}
