//! The results of opening a slot: of a purchase, or of taking over its session.

use super::action::PoolAction;
use super::outcome::Came;
use super::parts::Away;
use super::root::Machine;
use super::slots::{Doing, PoolSession};
use super::takeover::{DOUBT_AGAIN, READ_AGAIN};
use crate::client::Client;
use crate::contract::Json;
use crate::engine::{Answered, Phase};
use crate::json::pick;
use crate::policy::{Effect, Error, Kind};
use crate::pool::leases::SlotNo;
use crate::pool::notes::SessionNotes;
use crate::time::Millis;

/// A service that did not answer is taken to be away for so long; what could not be read is read again by then.
const AWAY: Millis = READ_AGAIN + 15_000;

impl Machine {
    /// Takes the result of a slot's opening, or of an operation on its session.
    pub(super) fn slot_ended(&mut self, client: &mut Client, slot: SlotNo, result: Result<Answered, Error>) {
        let Some(doing) = self.slots.doing(slot) else { return };
        self.note_answer(slot, doing, &result);
        match (doing, result) {
            (Doing::Takes { .. } | Doing::Buys { .. }, Ok(answered)) => self.opened(client, slot, doing, &answered),
            (Doing::Takes { .. } | Doing::Buys { .. }, Err(error)) => self.not_opened(client, slot, doing, &error),
            (Doing::Reads, Ok(answered)) => self.was_read(client, slot, &answered, false),
            (Doing::Rotates, Ok(answered)) => {
                self.tell_rotated(slot);
                self.was_read(client, slot, &answered, true);
            }
            (Doing::Rotates, Err(error)) if error.effect != Effect::None => {
                // The exit may have changed; the session is lent as one with another exit, once it was read. The result of the change
                // itself is not waited for.
                self.next_generation(slot);
                self.read(slot);
            }
            (Doing::Rotates, Err(error)) => self.not_rotated(client, slot, &error),
            (Doing::Reads, Err(error)) => self.not_read(client, slot, &error),
            // The session is taken over anew.
            (Doing::Renews, Ok(_)) => self.release_idle(client, slot),
            (Doing::Renews, Err(error)) => self.not_renewed(client, slot, &error),
            (Doing::Ends, result) => self.was_ended(client, slot, result.err().as_ref()),
            (Doing::Lends | Doing::Waits | Doing::Doubts { .. } | Doing::Rests | Doing::Left | Doing::Empty, _) => {}
        }
    }

    /// Notes whether the service answers what is asked about sessions.
    fn note_answer(&mut self, slot: SlotNo, doing: Doing, result: &Result<Answered, Error>) {
        let is_of_session = matches!(doing, Doing::Reads | Doing::Rotates | Doing::Takes { .. });
        match result {
            Ok(_) if is_of_session => self.away = None,
            Err(error) if is_of_session && matches!(error.kind, Kind::Unavailable | Kind::InDoubt | Kind::Protocol) => {
                let until = self.now.monotonic.saturating_add(AWAY);
                let first = self.away.unwrap_or(Away { slot, is_many: false, until });
                self.away = Some(Away { is_many: first.is_many || first.slot != slot, until, ..first });
            }
            _ => {}
        }
    }

    /// A slot has a session: it can be used, or not yet, or not any more.
    fn opened(&mut self, client: &mut Client, slot: SlotNo, doing: Doing, answered: &Answered) {
        let now = self.now.monotonic;
        let Some(id) = answered.facts.session_id.as_deref() else {
            // The session that was there is gone.
            if matches!(doing, Doing::Takes { .. }) {
                return self.slots.remove(slot);
            }
            self.settle(doing, Came::NotReady(None));
            return self.slots.set(slot, Doing::Rests, Some(now.saturating_add(DOUBT_AGAIN)));
        };
        let is_over = answered.phase == Some(Phase::Ended);
        // A state from before, since no read succeeded, has no proxy.
        let is_ready = answered.phase == Some(Phase::Ready) && has_proxy(answered);
        let ends_after_leases = doing == Doing::Takes { ends: true };
        let is_bought = matches!(doing, Doing::Buys { .. });
        let session = PoolSession { ends_after_leases, is_bought, ..PoolSession::new(client.shared_id(id), proxy_of(answered), now) };
        let session = session.recall(client.pool_notes(id).and_then(SessionNotes::read));
        // A session that is active, as far as is known, and has no proxy could not be read.
        let is_unread = answered.phase == Some(Phase::Ready);
        let came = match () {
            () if is_ready => Came::Ready,
            () if is_over => Came::Bought,
            () => Came::NotReady(is_unread.then_some(slot)),
        };
        self.settle(doing, came);
        // A session that was taken over and can be lent says nothing of further ones.
        if is_bought || ends_after_leases || !is_ready {
            self.asking.next = now;
        }
        self.slots.set(slot, Doing::Waits, Some(now.saturating_add(READ_AGAIN)));
        self.slots.set_session(slot, session);
        match () {
            () if is_over => {
                let change = if is_bought { self.buyer.ended(0, self.now.unix) } else { None };
                self.tell_all(change);
                self.over(client, slot, answered, false);
            }
            () if ends_after_leases => self.end(slot),
            () if self.closing.is_some() => self.close_slot(client, slot),
            () if is_ready => {
                self.tell_usable(slot);
                self.lends(slot);
                self.ready(slot);
            }
            () => {}
        }
    }

    /// Takes a result on a slot that this client has lost meanwhile: its session is released.
    pub(super) fn let_stale_go(&mut self, answered: &Answered) {
        let session = answered.facts.session_id.as_deref();
        let is_here = |id: &str| self.slots.iter().any(|(_, held)| held.session.as_ref().is_some_and(|session| session.id == *id));
        if let Some(id) = session.filter(|id| !is_here(id)) {
            self.act(PoolAction::ReleaseSession(id.into()));
        }
    }
}

pub(super) fn proxy_of(answered: &Answered) -> Json {
    let proxy = pick(answered.raw.text(), ["proxy"]).and_then(|[proxy]| proxy);
    proxy.map(Json::checked).unwrap_or_default()
}

pub(super) fn has_proxy(answered: &Answered) -> bool {
    proxy_of(answered).text().starts_with('{')
}
