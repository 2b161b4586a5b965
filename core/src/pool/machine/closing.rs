//! A pool is closed: leases are waited for, and its slots let go of. Or it is drained, and its sessions ended.

use super::parts::{Closing, Ends, Look, PATIENCE};
use super::root::Machine;
use super::slots::{Doing, HeldSlot, PoolSession};
use crate::client::Client;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::leases::SlotNo;
use crate::state::CommandId;
use crate::time::Millis;

/// So long are leases waited for.
pub(super) const GRACE: Millis = 10_000;
/// So much of a drain's grace is kept for terminating sessions, and so long it takes at least.
const TERMINATES: Millis = 5000;
/// So many sessions are named that still live.
const NAMED: usize = 10;

impl Machine {
    /// Drains after another client that drains the pool everywhere. The other one may have missed slots that this one has released since,
    /// so this one looks, too; but if the pool was opened anew meanwhile, sessions without an owner may belong to the new opening.
    pub(super) fn drain_unheard(&mut self, everywhere: bool, include_static: bool) {
        self.begin_closing(None, GRACE, Some(Ends { include_static, everywhere }));
    }

    pub(super) fn begin_closing(&mut self, command: Option<(CommandId, &'static str)>, grace: Millis, ends: Option<Ends>) {
        let (now, was_everywhere) = (self.now.monotonic, self.ends_what_it_finds());
        if let Some(closing) = &mut self.closing {
            // A second closing waits with the first, and ends the sessions of either; the time for that begins now.
            closing.ends = closing.ends.into_iter().chain(ends).reduce(Ends::join);
            closing.until = closing.until.max(now);
            closing.told_by = closing.told_by.max(now.saturating_add(grace.max(TERMINATES)));
            closing.commands.extend(command);
            closing.is_told &= command.is_none();
        } else {
            let is_everywhere = ends.is_some_and(|ends| ends.everywhere);
            let look = if self.shared.is_open && !self.joins && !is_everywhere { Look::Due } else { Look::Done };
            // A drain needs the end of its grace to terminate what was lent.
            let until = now.saturating_add(grace - if ends.is_some() { TERMINATES.min(grace / 2) } else { 0 });
            let told_by = now.saturating_add(grace.max(TERMINATES));
            self.closing =
                Some(Closing { commands: command.into_iter().collect(), is_told: command.is_none(), until, told_by, ends, look });
        }
        if !self.shared.is_open {
            // A pool that was not opened leaves nothing behind, and its name is free again.
            self.shared.changes.clear();
        }
        if self.ends_what_it_finds() && !was_everywhere {
            (self.asking.ends_from, self.asking.next) = (Some(0), now);
            // Slots that were left alone for a while are checked, too.
            let is_left = |held: &HeldSlot| held.session.is_none() && matches!(held.doing, Doing::Rests | Doing::Left | Doing::Empty);
            self.slots.which(is_left).into_iter().for_each(|slot| self.slots.remove(slot));
        }
        self.withdraw_purchases();
        for waiter in self.callers.gone_by(None) {
            let error = Error::new(Kind::Cancelled, Effect::None, "acquire", "the pool was closed", Advice::Nothing);
            self.end_wait(waiter, error);
        }
        for waiter in std::mem::take(&mut self.callers.for_ready) {
            let error = Error::new(Kind::Cancelled, Effect::None, "wait_ready", "the pool was closed", Advice::Nothing);
            self.complete(waiter.command, Err(error));
        }
    }

    /// Cancels a command's wait for the closing, which goes on.
    pub(super) fn leave_closing(&mut self, command: CommandId) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        let Some(at) = closing.commands.iter().position(|(known, _)| *known == command) else { return false };
        closing.commands.remove(at);
        closing.is_told |= closing.commands.is_empty();
        let error = Error::new(Kind::Cancelled, Effect::None, "close_pool", "is not waited for any more; the pool closes", Advice::Nothing);
        self.complete(command, Err(error));
        true
    }

    /// Lets go of the session of a slot that nobody uses, or ends it.
    pub(super) fn close_slot(&mut self, client: &mut Client, slot: SlotNo) {
        let is_to_end = self.ends().is_some() || self.slots.session(slot).is_some_and(|session| session.ends_after_leases);
        match is_to_end {
            true => self.end(slot),
            false => self.release_idle(client, slot),
        }
    }

    pub(super) fn close_slots(&mut self, client: &mut Client, now: Millis) {
        let Some(until) = self.closing.as_ref().map(|closing| closing.until) else { return };
        let free: Vec<SlotNo> = self.leases.idle(Millis::MAX).collect();
        free.into_iter().for_each(|slot| self.close_slot(client, slot));
        if self.leases.lent_count() > 0 && now < until {
            return;
        }
        // One that could not be ended is tried again when its time has come.
        let rests = |held: &HeldSlot| {
            let is_to_be_ended = |session: &PoolSession| !session.ends_after_leases || held.doing != Doing::Waits;
            held.session.as_deref().is_some_and(is_to_be_ended) && !held.doing.is_at_work()
        };
        if self.slots.has_idle_sessions() {
            self.slots.which(rests).into_iter().for_each(|slot| self.close_slot(client, slot));
        }
        if self.is_to_find() && self.asking.out.is_empty() && now >= self.asking.next && !self.shared.is_behind() {
            self.ask_to_end();
        }
        let is_asking = !self.asking.out.is_empty() || self.is_to_find();
        let is_busy = self.ends().is_some() && (self.slots.has_idle_sessions() || is_asking || !self.works.is_empty());
        let is_late = now >= until.saturating_add(PATIENCE);
        self.tell_undrained(now, is_busy);
        if (is_busy || self.shared.is_behind()) && !is_late {
            return;
        }
        if !is_late && self.is_to_look() {
            return;
        }
        if is_late {
            // Sessions that could not be ended are released.
            self.asking.ends_from = None;
            self.shared.may_be_left = false;
            self.closing.iter_mut().for_each(|closing| closing.look = Look::Done);
            self.slots
                .which(|held| held.session.is_some() && !held.doing.is_at_work())
                .into_iter()
                .for_each(|slot| self.release_idle(client, slot));
        }
        let Some(closing) = &mut self.closing else { return };
        closing.is_told = true;
        let commands = std::mem::take(&mut closing.commands);
        for (command, _) in commands {
            self.tell_own_status(client, command);
        }
    }

    /// Tells those who drain the pool, once their grace is over, what still lives; it goes on being terminated.
    fn tell_undrained(&mut self, now: Millis, is_busy: bool) {
        let is_behind = self.shared.is_behind();
        let is_over =
            |closing: &&mut Closing| closing.ends.is_some() && !closing.is_told && now >= closing.told_by && (is_busy || is_behind);
        let Some(closing) = self.closing.as_mut().filter(is_over) else { return };
        closing.is_told = true;
        let living: Vec<&str> = self.slots.iter().filter_map(|(_, held)| Some(held.session.as_ref()?.id.as_str())).collect();
        let more = living.len().saturating_sub(NAMED);
        let named = living.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let what = match (living.len(), more) {
            (0, _) => "was not done in time: the store did not answer".to_owned(),
            (1, _) => format!("was not done in time: {named} still lives, and its termination goes on for a minute"),
            (_, 0) => format!("was not done in time: {named} still live, and their termination goes on for a minute"),
            _ => format!("was not done in time: {named} and {more} more still live, and their termination goes on for a minute"),
        };
        let advice = if living.is_empty() { Advice::MendStore } else { Advice::TerminateAgain };
        for (command, operation) in std::mem::take(&mut closing.commands) {
            self.complete(command, Err(Error::new(Kind::Unavailable, Effect::Unknown, operation, what.clone(), advice)));
        }
    }

    /// Returns true if the pool's record is still to be read, now that everything is released: another client that drains the pool
    /// everywhere meanwhile may have missed a slot of this one.
    fn is_to_look(&mut self) -> bool {
        let Some(closing) = &mut self.closing else { return false };
        if closing.look == Look::Due {
            closing.look = Look::Asked;
        }
        closing.look == Look::Asked
    }
}
