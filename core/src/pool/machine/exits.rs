//! The sessions of this client: they are read, get other exits, are renewed, ended, and let go of.

use super::action::PoolAction;
use super::opened::{has_proxy, proxy_of};
use super::root::{For, Machine, hash, is_dynamic};
use super::slots::{Doing, HeldSlot, PoolSession};
use super::takeover::{READ_AGAIN, Renewal};
use crate::client::{CallOptions, Client, Name};
use crate::contract::agent::{RenewSession, RotateSession, TerminateSession};
use crate::contract::pools::PoolHoldReason;
use crate::contract::{Json, Operation, json_of};
use crate::engine::{Answered, EventKind, Phase, RecordId, is_over_until_renewed};
use crate::policy::{Advice, Effect, Error, Kind, jittered};
use crate::pool::leases::{LeaseId, SlotNo};
use crate::pool::notes::SessionNotes;
use crate::pool::others::SeenSlot;
use crate::pool::rules::{PoolRule, holds};
use crate::pool::targets::TargetHistory;
use crate::time::Millis;

/// A renewal that can't be made now is tried again after this.
const CHANGE_AGAIN: Millis = 5000;

impl Machine {
    /// Begins something about the session of a slot, which is not lent meanwhile.
    fn begin<O: Operation>(&mut self, slot: SlotNo, doing: Doing, operation: &O, options: CallOptions) {
        self.leases.hold_back(slot);
        self.begin_beside(slot, doing, operation, options);
    }

    /// Begins something about the session of a slot, which is lent meanwhile if it was.
    fn begin_beside<O: Operation>(&mut self, slot: SlotNo, doing: Doing, operation: &O, options: CallOptions) {
        self.slots.set(slot, doing, None);
        let (work, options) = (self.begin_work(For::Slot(slot)), Box::new(options));
        self.act(PoolAction::Start { work, operation: O::ENDPOINT.name, params: json_of(operation), options });
    }

    /// The session of a slot is lent from now on. It is looked at again when its exit is old, or when a read that failed is repeated.
    pub(super) fn lends(&mut self, slot: SlotNo) {
        let after = self.options.rotate_after_ms.filter(|_| is_dynamic(&self.options));
        let Some(session) = self.slots.session_mut(slot) else { return };
        if let Some(after) = after {
            // Exits that began together do not get old together.
            let spread = after / 10;
            let age = (after - spread).saturating_add(jittered(spread.saturating_mul(2), self.dice.roll()));
            session.old_at.get_or_insert(self.now.monotonic.saturating_add(age));
        }
        let wakes = session.old_at.into_iter().chain(session.read_again_at).min();
        self.slots.set(slot, Doing::Lends, wakes);
    }

    /// The time has come to look at a session that is lent.
    pub(super) fn look_at_lent(&mut self, slot: SlotNo, now: Millis) {
        let Some(session) = self.slots.session_mut(slot) else { return };
        if session.read_again_at.take_if(|at| *at <= now).is_some() {
            return self.read_beside(slot);
        }
        let read_again_at = session.read_again_at;
        self.leases.change(slot, now);
        read_again_at.into_iter().for_each(|at| self.slots.wake_at(slot, at));
    }

    /// Reads a session, which is lent meanwhile.
    pub(super) fn read_beside(&mut self, slot: SlotNo) {
        let Some(session) = self.slots.session(slot).filter(|_| self.slots.doing(slot) == Some(Doing::Lends)) else { return };
        let read = session.to_read();
        self.begin_beside(slot, Doing::Reads, &read, CallOptions::default());
    }

    /// Reads a session.
    pub(super) fn read(&mut self, slot: SlotNo) {
        let may = |doing| matches!(doing, Doing::Lends | Doing::Waits | Doing::Rotates | Doing::Renews);
        let Some(session) = self.slots.session(slot).filter(|_| self.slots.doing(slot).is_some_and(may)) else { return };
        let read = session.to_read();
        self.begin(slot, Doing::Reads, &read, CallOptions::default());
    }

    /// Changes the exits that may be changed now, and ends the sessions that are to end.
    pub(super) fn change_exits(&mut self, now: Millis) {
        while let Some(slot) = self.leases.next_change(now, self.slots.counts.rotating) {
            self.rotate(slot);
        }
    }

    /// Changes the exit of a session, of which no lease is out; or ends it, where that is what it came to.
    fn rotate(&mut self, slot: SlotNo) {
        let Some(session) = self.slots.session(slot) else { return };
        if session.ends_after_leases {
            return self.end(slot);
        }
        if session.is_discarded {
            return self.slots.set(slot, Doing::Waits, None);
        }
        let (reason, next) = (session.rotates_for(), session.generation.saturating_add(1));
        let session_id = session.id.to_string();
        let rotate = RotateSession { session_id, include_credentials: Some(true), reason: Some(reason) };
        self.drop_notes(slot, next);
        self.begin(slot, Doing::Rotates, &rotate, CallOptions::default());
    }

    /// The exit of a session is to be another one, of this generation, or is by now: nothing that its record notes is true of that.
    fn drop_notes(&mut self, slot: SlotNo, generation: u32) {
        let is_to_drop = |session: &&mut PoolSession| session.is_noted && holds(PoolRule::DataEndsWithExit);
        if self.slots.session_mut(slot).filter(is_to_drop).is_some() {
            self.set_notes(slot, &SessionNotes { generation, ..SessionNotes::default() }, true);
        }
    }

    /// Notes this of a session in its record, now or with its next put.
    fn set_notes(&mut self, slot: SlotNo, notes: &SessionNotes, writes: bool) {
        let Some(session) = self.slots.session_mut(slot) else { return };
        session.is_noted = !notes.is_empty();
        let action = PoolAction::SetNotes { session: session.id.clone(), notes: notes.text(), writes };
        self.act(action);
    }

    pub(super) fn tell_rotated(&mut self, slot: SlotNo) {
        let Some(session) = self.slots.session(slot) else { return };
        let cause = session.rotates_for().as_str().to_owned();
        self.notify(EventKind::PoolRotated { session_id: session.id.to_string(), cause });
    }

    /// A session was read, or has another exit.
    pub(super) fn was_read(&mut self, client: &mut Client, slot: SlotNo, answered: &Answered, is_another: bool) {
        let now = self.now.monotonic;
        match answered.phase {
            Some(Phase::Ready) if has_proxy(answered) => {}
            Some(Phase::Ended) => return self.over(client, slot, answered, true),
            _ => {
                // The session is lent as one with another exit, once it can be used.
                if is_another {
                    self.next_generation(slot);
                }
                return self.slots.set(slot, Doing::Waits, Some(now.saturating_add(READ_AGAIN)));
            }
        }
        let proxy = proxy_of(answered);
        let is_lent = self.leases.is_lent(slot);
        let Some(session) = self.slots.session_mut(slot) else { return };
        // A session that could not be ended before is ended now.
        if session.ends_after_leases && !is_lent {
            return self.end(slot);
        }
        session.is_unsure = false;
        self.tell_usable(slot);
        let Some(session) = self.slots.session_mut(slot) else { return };
        // Other credentials are another way out, too.
        let is_another = is_another || session.proxy != proxy || !self.leases.is_generation(slot, session.generation);
        (session.read_at, session.read_again_at, session.proxy) = (now, None, proxy);
        if is_another {
            if self.leases.is_generation(slot, session.generation) {
                session.next_generation();
                let generation = session.generation;
                self.drop_notes(slot, generation);
            }
            self.slots.session_mut(slot).into_iter().for_each(|session| (session.old_at, session.seen) = (None, None));
            self.ready(slot);
        } else {
            self.leases.offer(slot);
        }
        self.retire_if_over(slot);
        self.lends(slot);
    }

    pub(super) fn next_generation(&mut self, slot: SlotNo) {
        self.slots.session_mut(slot).into_iter().for_each(PoolSession::next_generation);
    }

    /// The session of a slot can be lent with its present exit; what its record held against that is recalled.
    pub(super) fn ready(&mut self, slot: SlotNo) {
        let (now, unix) = (self.now.monotonic, self.now.unix);
        let Some(session) = self.slots.session_mut(slot) else { return };
        self.leases.ready(slot, hash("session", &session.id), session.generation, now);
        if let Some(notes) = session.recalled.take().filter(|_| holds(PoolRule::NotesAreTakenOver)) {
            self.leases.recall(slot, TargetHistory::of(&notes.rests, now, unix), notes.due && is_dynamic(&self.options), now);
        }
    }

    /// Notes in the record of a slot's session what whoever takes it over is to know.
    pub(super) fn write_notes(&mut self, slot: SlotNo, writes: bool) {
        let (rests, due) = self.leases.saved(slot, self.now.monotonic, self.now.unix);
        let Some(session) = self.slots.session_mut(slot) else { return };
        session.is_data_new = false;
        let notes = match &session.recalled {
            // The session was never lent here.
            Some(recalled) => (**recalled).clone(),
            None => SessionNotes { generation: session.generation, rests, due, data: session.data.clone() },
        };
        self.set_notes(slot, &notes, writes);
    }

    /// Keeps the callers' data of a lease's exit. None where the lease is not valid, or the exit is another one by now.
    pub(in crate::pool) fn set_data(&mut self, client: &Client, lease: LeaseId, data: Json) -> Option<()> {
        let (slot, generation) = self.leases.exit_of(lease).filter(|_| self.is_valid(client, lease))?;
        let session = self.slots.session_mut(slot).filter(|session| session.generation == generation)?;
        session.is_data_new |= session.data.as_ref() != Some(&data);
        session.data = Some(data);
        Some(())
    }

    pub(super) fn not_read(&mut self, client: &mut Client, slot: SlotNo, error: &Error) {
        if error.code.as_deref() == Some("SESSION_NOT_FOUND") {
            return self.session_over(client, slot);
        }
        let now = self.now.monotonic;
        let again = now.saturating_add(READ_AGAIN);
        // One that was never ready has no proxy.
        let may_be_lent = |session: &&mut PoolSession| session.has_proxy() && client.is_usable(&session.id);
        let Some(session) = self.slots.session_mut(slot).filter(may_be_lent) else {
            return self.slots.set(slot, Doing::Waits, Some(again));
        };
        // A read that fails withholds no session: it is lent as it was read last, with a new generation where its exit may have changed since.
        session.read_again_at = Some(again);
        if self.leases.is_generation(slot, session.generation) {
            self.leases.offer(slot);
        } else {
            (session.old_at, session.seen) = (None, None);
            self.ready(slot);
        }
        self.retire_if_over(slot);
        self.lends(slot);
    }

    /// A session that is not to be lent any more has another exit.
    fn retire_if_over(&mut self, slot: SlotNo) {
        if self.slots.session(slot).is_some_and(|session| session.ends_after_leases || session.is_discarded) {
            self.leases.retire(slot);
        }
    }

    pub(super) fn not_rotated(&mut self, client: &mut Client, slot: SlotNo, error: &Error) {
        let is_usable = self.slots.session(slot).is_some_and(|session| client.is_usable(&session.id));
        if error.code.as_deref() == Some("SESSION_NOT_FOUND") || !is_usable {
            return self.session_over(client, slot);
        }
        // Its state says whether it is over.
        if error.code.as_deref() == Some("SESSION_EXPIRED") {
            return self.read(slot);
        }
        self.leases.unchanged(slot, self.now.monotonic);
        let Some(session) = self.slots.session_mut(slot) else { return };
        session.old_at = None;
        // Its exit is the same: what was noted of it is written again.
        let has_data = session.data.is_some();
        let (rests, _) = self.leases.saved(slot, self.now.monotonic, self.now.unix);
        if has_data || !rests.is_empty() {
            self.write_notes(slot, true);
        }
        self.lends(slot);
    }

    /// A session was seen to be over. `counts`: it was lent, so how long it lived counts.
    pub(super) fn over(&mut self, client: &mut Client, slot: SlotNo, answered: &Answered, counts: bool) {
        if is_over_until_renewed(answered.facts.status.as_deref()) {
            self.expired(client, slot, counts);
        } else if counts {
            self.session_over(client, slot);
        } else {
            self.give_up(client, slot);
        }
    }

    /// A session has expired: a static one may be renewed, and keeps its address.
    pub(super) fn expired(&mut self, client: &mut Client, slot: SlotNo, counts: bool) {
        let renews = self.slots.session(slot).is_some_and(|session| !session.ends_after_leases && !session.is_discarded)
            && self.renewal(slot) != Renewal::Never;
        match renews {
            true => self.renew(slot),
            false if counts => self.session_over(client, slot),
            false => self.give_up(client, slot),
        }
    }

    /// Decides whether an expired session of a slot is renewed, which costs money as a purchase does.
    pub(super) fn renewal(&self, slot: SlotNo) -> Renewal {
        let renews = self.options.renew_duration.is_some() && !is_dynamic(&self.options);
        if !renews || self.closing.is_some() || slot >= self.options.size || self.shared.is_replaced() {
            return Renewal::Never;
        }
        // Once the time of a hold has come, one is tried.
        let is_held = self.buyer.hold().is_some() && (!self.is_hold_due() || self.slots.counts.renewing > 0);
        let is_unsure = self.slots.session(slot).is_some_and(|session| session.is_unsure);
        match is_held || is_unsure || self.shared.forbids_buying().is_some() {
            true => Renewal::Later,
            false => Renewal::Now,
        }
    }

    fn is_hold_due(&self) -> bool {
        self.buyer.hold().is_some_and(|hold| hold.retry_at.is_some_and(|at| at <= self.now.unix))
    }

    /// Renews an expired session, or goes on with that; later, where nothing may be bought now.
    fn renew(&mut self, slot: SlotNo) {
        let Some((session, duration)) = self.slots.session(slot).zip(self.options.renew_duration) else { return };
        let renew = RenewSession { session_id: session.id.to_string(), duration };
        let options = CallOptions { expected_charge_usd: self.options.expected_charge_usd, ..CallOptions::default() };
        self.leases.gone(slot);
        match self.renewal(slot) {
            // The pool's record decides whether anything may be paid.
            Renewal::Now if !self.may_pay(slot, self.now.monotonic) => {
                self.shared.is_asked_for = true;
                self.slots.set(slot, Doing::Waits, Some(self.now.monotonic.saturating_add(CHANGE_AGAIN)));
            }
            Renewal::Now => {
                self.slots.session_mut(slot).into_iter().for_each(|session| session.renews_again = false);
                self.begin(slot, Doing::Renews, &renew, options);
            }
            // The session is found expired again, and renewed once the pool buys.
            Renewal::Later | Renewal::Never => self.slots.set(slot, Doing::Waits, Some(self.now.monotonic.saturating_add(READ_AGAIN))),
        }
    }

    /// Returns true if the pool's record was read since this renewal was wanted.
    fn may_pay(&mut self, slot: SlotNo, now: Millis) -> bool {
        let is_fresh = self.shared.is_fresh(now);
        let Some(session) = self.slots.session_mut(slot) else { return false };
        let wanted_at = *session.renewal_wanted_at.get_or_insert(now);
        let may = is_fresh || self.shared.was_read_since(wanted_at);
        if may {
            session.renewal_wanted_at = None;
        }
        may
    }

    /// Continues a change of a session that is to be tried again. Returns true if there is one.
    pub(super) fn goes_on(&mut self, slot: SlotNo) -> bool {
        match self.slots.session(slot) {
            Some(session) if session.ends_after_leases => self.end(slot),
            Some(session) if session.renews_again => self.renew(slot),
            _ => return false,
        }
        true
    }

    /// A session could not be renewed: what is known of it is read again, or it is given up.
    pub(super) fn not_renewed(&mut self, client: &mut Client, slot: SlotNo, error: &Error) {
        // An earlier one is in doubt, which this program began, or another. Under a name of somebody's own it is theirs to resume.
        let is_found = error.kind == Kind::Busy && error.effect == Effect::None && error.advice == Advice::Resume;
        let found =
            error.record.clone().map(RecordId).filter(|record| is_found && !Name::of(record).is_some_and(|(name, _)| name.is_findable()));
        if let Some(record) = found {
            self.slots.set(slot, Doing::Renews, None);
            let work = self.begin_work(For::Slot(slot));
            return self.act(PoolAction::ResumeRenewal { work, record });
        }
        // That says nothing of further purchases.
        let is_of_session = matches!(error.code.as_deref(), Some("SESSION_NOT_FOUND" | "SESSION_EXPIRED"));
        // Nor does it where nothing was sent, because of what is known of this session's renewals.
        let is_held_back = error.code.is_none()
            && error.effect == Effect::None
            && (matches!(error.kind, Kind::Busy | Kind::Misuse | Kind::Invalid) || (error.kind == Kind::Store && error.record.is_some()));
        if is_held_back {
            self.slots.session_mut(slot).into_iter().for_each(|session| session.is_unsure |= error.record.is_some());
            return self.slots.set(slot, Doing::Waits, Some(self.now.monotonic.saturating_add(READ_AGAIN)));
        }
        if !is_of_session {
            let was_due = self.is_hold_due();
            let hold = self.buyer.not_renewed(was_due, PoolHoldReason::of_error(error), self.now.unix);
            self.tell_all(hold);
        }
        match error.effect {
            Effect::None if is_of_session => self.session_over(client, slot),
            // The session is found expired again, and renewed once the pool buys.
            Effect::None => self.slots.set(slot, Doing::Waits, Some(self.now.monotonic.saturating_add(READ_AGAIN))),
            Effect::Unknown | Effect::Done => {
                let can_resume = error.effect == Effect::Unknown && error.advice == Advice::Resume;
                if let Some(session) = self.slots.session_mut(slot) {
                    (session.renews_again, session.is_unsure) = (can_resume, error.effect == Effect::Unknown && !can_resume);
                }
                self.slots.set(slot, Doing::Waits, Some(self.now.monotonic.saturating_add(READ_AGAIN)));
            }
        }
    }

    /// Ends a session, of which no lease is out.
    pub(super) fn end(&mut self, slot: SlotNo) {
        let Some(session) = self.slots.session(slot) else { return };
        let end = TerminateSession { session_id: session.id.to_string() };
        self.begin(slot, Doing::Ends, &end, CallOptions::default());
    }

    /// A session was ended, or could not be.
    pub(super) fn was_ended(&mut self, client: &mut Client, slot: SlotNo, error: Option<&Error>) {
        match error {
            Some(error) if !matches!(error.code.as_deref(), Some("SESSION_NOT_FOUND" | "SESSION_EXPIRED")) => {
                let again = self.now.monotonic.saturating_add(READ_AGAIN);
                self.slots.session_mut(slot).into_iter().for_each(|session| session.ends_after_leases = true);
                self.slots.set(slot, Doing::Waits, Some(again));
            }
            _ => self.give_up(client, slot),
        }
    }

    /// Returns true if the lease is still this client's.
    pub(in crate::pool) fn is_valid(&self, client: &Client, lease: LeaseId) -> bool {
        let session = self.leases.slot_of(lease).and_then(|slot| self.slots.session(slot));
        session.is_some_and(|session| client.is_usable(&session.id))
    }

    /// Claims have ended: what is not this client's any more is not lent on.
    pub(super) fn give_up_lost(&mut self, client: &mut Client) {
        let is_lost = |held: &HeldSlot| held.session.as_ref().is_some_and(|session| !client.is_usable(&session.id));
        self.slots.which(is_lost).into_iter().for_each(|slot| self.session_over(client, slot));
    }

    /// A session is over, or another client has it.
    pub(super) fn session_over(&mut self, client: &mut Client, slot: SlotNo) {
        let session = self.slots.session(slot).cloned();
        self.leases.gone(slot);
        if let Some(session) = &session
            && session.is_bought
            && client.is_over(&session.id)
        {
            let lived = self.now.monotonic.saturating_sub(session.ready_at);
            let change = self.buyer.ended(lived, self.now.unix);
            self.tell_all(change);
        }
        self.drop_slot(client, slot);
    }

    /// A session is no use any more.
    fn give_up(&mut self, client: &mut Client, slot: SlotNo) {
        self.leases.gone(slot);
        self.drop_slot(client, slot);
    }

    /// A slot is anybody's.
    fn drop_slot(&mut self, client: &mut Client, slot: SlotNo) {
        let Some(session) = self.slots.session(slot) else { return self.slots.remove(slot) };
        let seen = match () {
            () if client.is_over(&session.id) => Some(SeenSlot::Empty),
            () => client.is_usable(&session.id).then_some(SeenSlot::FreeInStore),
        };
        self.act(PoolAction::ReleaseSession(session.id.clone()));
        self.slots.remove(slot);
        seen.into_iter().for_each(|seen| self.slots.others.note(slot, seen));
    }

    pub(super) fn release_idle(&mut self, client: &mut Client, slot: SlotNo) {
        self.write_notes(slot, false);
        self.give_up(client, slot);
        self.asking.look_anew();
    }
}
