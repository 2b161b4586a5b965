//! The use of a slot that the store has given, by its content.

use super::slots::Doing;
use crate::client::SlotState;
use crate::pool::rules::{PoolRule, holds};
use crate::time::Millis;

/// The time after which a slot whose key may be sent again, or that is left alone, is checked again, where no trial does so before.
pub(super) const DOUBT_AGAIN: Millis = 600_000;
/// The time after which a slot that may change soon is checked again.
pub(super) const READ_AGAIN: Millis = 60_000;

/// The use of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotUse {
    /// One is bought there, if one is wanted.
    Buys,
    /// The slot's session is taken over.
    Takes,
    /// The slot's purchase is in doubt, and is sent again with its key.
    Sends,
    /// Its session has expired: it is read, and renewed where that is wanted and somebody has not done it by hand.
    Reads,
    /// Its session is ended.
    Ends,
    /// The slot is released, and this client notes this work for it, until it checks again after that time.
    Leaves(Doing, Option<Millis>),
    /// The slot is released.
    Releases,
}

/// The decision on renewing an expired session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    Now,
    /// Not while nothing may be bought.
    Later,
    Never,
}

/// The situation of a slot, beside its content.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each of them is so by itself")]
pub(super) struct Situation {
    /// The pool is closed.
    pub(super) closes: bool,
    /// Found sessions are to be ended.
    pub(super) ends: bool,
    /// Another client has opened the pool with another request, which is the pool's by now.
    pub(super) is_replaced: bool,
    /// The slot's content is of another request than the pool's.
    pub(super) is_old: bool,
    /// True if the slot may be bought for: it is below the pool's size.
    pub(super) is_within: bool,
    /// True if a request that may buy may be sent.
    pub(super) may_send: bool,
    pub(super) is_dynamic: bool,
    /// True if another session is bought for one that is over.
    pub(super) replaces: bool,
    pub(super) renewal: Renewal,
    /// True if the session was read a short time ago, and had expired.
    pub(super) is_checked: bool,
}

impl Situation {
    pub(super) fn use_of(self, slot: SlotState) -> SlotUse {
        let for_next = match (self.is_within, self.replaces) {
            (false, _) => SlotUse::Releases,
            (true, true) => SlotUse::Buys,
            (true, false) => SlotUse::Leaves(Doing::Empty, Some(READ_AGAIN)),
        };
        match slot {
            SlotState::Taken if self.ends => SlotUse::Ends,
            _ if self.closes || self.is_replaced => SlotUse::Releases,
            // A static one is left, since it is not refunded.
            SlotState::Taken if self.is_old && !holds(PoolRule::OldIsNotLent) => SlotUse::Takes,
            SlotState::Taken if self.is_old && self.is_dynamic => SlotUse::Ends,
            SlotState::Taken if self.is_old => SlotUse::Leaves(Doing::Left, Some(DOUBT_AGAIN)),
            SlotState::Taken => SlotUse::Takes,
            SlotState::Doubt if !self.is_old && self.may_send => SlotUse::Sends,
            SlotState::Doubt => SlotUse::Leaves(Doing::Doubts { resends: !self.is_old }, Some(DOUBT_AGAIN)),
            // A person may settle it.
            SlotState::DoubtForGood => SlotUse::Leaves(Doing::Doubts { resends: false }, Some(READ_AGAIN)),
            SlotState::Free if self.is_within => SlotUse::Buys,
            SlotState::Free => SlotUse::Releases,
            SlotState::Expired if !self.is_old && self.renewal == Renewal::Now => SlotUse::Reads,
            SlotState::Expired if !self.is_old && self.renewal == Renewal::Later => SlotUse::Leaves(Doing::Rests, Some(READ_AGAIN)),
            // A person may have renewed it by hand.
            SlotState::Expired if !self.is_old && (!self.replaces || (!self.is_dynamic && !self.is_checked)) => SlotUse::Reads,
            SlotState::Over | SlotState::Expired => for_next,
            SlotState::Stuck => SlotUse::Leaves(Doing::Rests, Some(DOUBT_AGAIN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Situation = Situation {
        closes: false,
        ends: false,
        is_replaced: false,
        is_old: false,
        is_within: true,
        may_send: true,
        is_dynamic: true,
        replaces: true,
        renewal: Renewal::Never,
        is_checked: false,
    };
    const ALL: [SlotState; 7] = [
        SlotState::Free,
        SlotState::Over,
        SlotState::Expired,
        SlotState::Taken,
        SlotState::Doubt,
        SlotState::DoubtForGood,
        SlotState::Stuck,
    ];
    const LEFT: SlotUse = SlotUse::Leaves(Doing::Rests, Some(DOUBT_AGAIN));
    const OLD: SlotUse = SlotUse::Leaves(Doing::Left, Some(DOUBT_AGAIN));

    const FOR_GOOD: SlotUse = SlotUse::Leaves(Doing::Doubts { resends: false }, Some(READ_AGAIN));

    fn doubts(resends: bool) -> SlotUse {
        SlotUse::Leaves(Doing::Doubts { resends }, Some(DOUBT_AGAIN))
    }

    #[test]
    fn what_is_done_with_each_slot() {
        let uses = |situation: Situation| ALL.map(|slot| situation.use_of(slot));
        let renews = Situation { is_dynamic: false, replaces: false, ..USUAL };
        let empty = SlotUse::Leaves(Doing::Empty, Some(READ_AGAIN));
        let (free, over) = (SlotUse::Releases, SlotUse::Releases);
        for (situation, expected) in [
            (USUAL, [SlotUse::Buys, SlotUse::Buys, SlotUse::Buys, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT]),
            (
                Situation { may_send: false, ..USUAL },
                [SlotUse::Buys, SlotUse::Buys, SlotUse::Buys, SlotUse::Takes, doubts(true), FOR_GOOD, LEFT],
            ),
            (Situation { is_within: false, ..USUAL }, [free, over, over, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT]),
            (
                Situation { is_old: true, ..USUAL },
                [SlotUse::Buys, SlotUse::Buys, SlotUse::Buys, SlotUse::Ends, doubts(false), FOR_GOOD, LEFT],
            ),
            (Situation { is_old: true, ..renews }, [SlotUse::Buys, empty, empty, OLD, doubts(false), FOR_GOOD, LEFT]),
            (renews, [SlotUse::Buys, empty, SlotUse::Reads, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT]),
            (
                Situation { renewal: Renewal::Now, ..renews },
                [SlotUse::Buys, empty, SlotUse::Reads, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT],
            ),
            (
                Situation { renewal: Renewal::Now, is_old: true, ..renews },
                [SlotUse::Buys, empty, empty, OLD, doubts(false), FOR_GOOD, LEFT],
            ),
            (
                Situation { replaces: true, ..renews },
                [SlotUse::Buys, SlotUse::Buys, SlotUse::Reads, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT],
            ),
            (
                Situation { replaces: true, is_checked: true, ..renews },
                [SlotUse::Buys, SlotUse::Buys, SlotUse::Buys, SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT],
            ),
            (
                Situation { renewal: Renewal::Later, ..renews },
                [SlotUse::Buys, empty, SlotUse::Leaves(Doing::Rests, Some(READ_AGAIN)), SlotUse::Takes, SlotUse::Sends, FOR_GOOD, LEFT],
            ),
        ] {
            assert_eq!(uses(situation), expected, "{situation:?}");
        }
        for situation in [Situation { closes: true, ..USUAL }, Situation { is_replaced: true, ..USUAL }] {
            assert_eq!(uses(situation), [SlotUse::Releases; 7], "{situation:?}");
        }
        let drains = uses(Situation { closes: true, ends: true, ..USUAL });
        assert_eq!((drains[3], drains.iter().filter(|used| **used == SlotUse::Releases).count()), (SlotUse::Ends, 6));
    }
}
