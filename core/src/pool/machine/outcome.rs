//! The results of opening a slot, for the buyer and for its hold: a session, or none and why.

use super::action::PoolAction;
use super::root::Machine;
use super::slots::{Doing, PoolSession};
use super::takeover::{DOUBT_AGAIN, READ_AGAIN};
use crate::client::Client;
use crate::contract::Json;
use crate::contract::pools::PoolHoldReason;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::buyer::Scope;
use crate::pool::leases::SlotNo;
use crate::pool::others::SeenSlot;
use crate::time::Millis;

impl Machine {
    /// A slot was opened in vain.
    pub(super) fn not_opened(&mut self, client: &mut Client, slot: SlotNo, doing: Doing, error: &Error) {
        let now = self.now.monotonic;
        self.asking.next = now;
        if matches!(doing, Doing::Buys { .. }) {
            self.refused = Some(Box::new(error.clone()));
        }
        match (error.kind, error.effect) {
            (Kind::Ended, _) if error.session_id.as_deref().is_some_and(|id| client.is_expired(id)) => {
                self.settle(doing, Came::Bought);
                let id = client.shared_id(error.session_id.as_deref().unwrap_or_default());
                let ends_after_leases = doing == Doing::Takes { ends: true };
                self.slots.set_session(slot, PoolSession { ends_after_leases, ..PoolSession::new(id, Json::default(), now) });
                self.expired(client, slot, false);
                match self.replaces() {
                    _ if self.slots.is_known(slot) => {}
                    true => {
                        self.asking.checked.retain(|_, until| *until > now);
                        self.asking.checked.insert(slot, now.saturating_add(READ_AGAIN));
                    }
                    false => self.slots.set(slot, Doing::Empty, Some(now.saturating_add(READ_AGAIN))),
                }
            }
            // Another client has it, or its session is over: the next one takes its place when one is wanted.
            (Kind::Busy | Kind::Ended, _) => {
                self.settle(doing, Came::Bought);
                // A session that is over as soon as it was bought did not live.
                if error.kind == Kind::Ended && matches!(doing, Doing::Buys { .. }) {
                    let change = self.buyer.ended(0, self.now.unix);
                    self.tell_all(change);
                }
                error.session_id.iter().for_each(|id| self.act(PoolAction::ReleaseSession(id.as_str().into())));
                self.slots.remove(slot);
            }
            // The purchase was withdrawn: that says nothing of further ones.
            (Kind::Cancelled, Effect::None) => {
                if let Doing::Buys { is_trial } = doing {
                    let (_, tried) = self.buyer.ended_purchase(is_trial);
                    self.tell_all(tried);
                }
                self.slots.remove(slot);
            }
            (_, Effect::None) => {
                self.settle(doing, Came::Failed(PoolHoldReason::of_error(error)));
                self.slots.remove(slot);
                self.slots.others.note(slot, SeenSlot::Empty);
            }
            // The session was bought, and a later step failed: it is found there. A session that the service has forgotten is over by then.
            (_, Effect::Done) if error.session_id.is_some() => {
                let is_missing = error.code.as_deref() == Some("SESSION_NOT_FOUND");
                self.settle(doing, if is_missing { Came::NotReady(None) } else { Came::NotReady(Some(slot)) });
                let after = if is_missing { FORGOTTEN_AGAIN } else { READ_AGAIN };
                self.slots.set(slot, Doing::Rests, Some(now.saturating_add(after)));
                self.asking.look_anew();
            }
            _ => {
                self.settle(doing, Came::Failed(PoolHoldReason::of_error(error)));
                // Its record decides; a doubt that is to be resumed has its key.
                let resends = error.kind != Kind::InDoubt || error.advice == Advice::Resume;
                // A doubt that a person has to settle may be settled soon.
                let after = if resends { DOUBT_AGAIN } else { READ_AGAIN };
                self.slots.set(slot, Doing::Doubts { resends }, Some(now.saturating_add(after)));
            }
        }
    }

    /// A purchase is not under way any more.
    pub(super) fn settle(&mut self, doing: Doing, came: Came) {
        let Doing::Buys { is_trial } = doing else { return };
        let unix = self.now.unix;
        let changes = match came {
            Came::Ready => self.buyer.ready(is_trial, unix),
            Came::Bought => self.buyer.bought(is_trial, unix),
            Came::NotReady(slot) => self.buyer.not_ready(is_trial, slot, unix),
            Came::Failed(why) => self.buyer.failed(is_trial, why, unix),
        };
        self.tell_all(changes);
    }
}

/// The result of a purchase.
pub(super) enum Came {
    Ready,
    /// The purchase was made, or found to be; and its session can't be used any more, or is somebody else's.
    Bought,
    /// The purchase was made, and its session can't be used yet; or can't be read, in this slot.
    NotReady(Option<SlotNo>),
    Failed((PoolHoldReason, Scope)),
}

/// The slot of a session that the service does not know any more is looked at again after this.
pub(super) const FORGOTTEN_AGAIN: Millis = 5000;
