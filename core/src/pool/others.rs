//! The slots that this client does not have, as it saw them last in the store.

use std::collections::BTreeMap;

use super::leases::SlotNo;
use crate::client::SlotState;

/// A slot that this client does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum SeenSlot {
    /// Another client has it.
    WithOthers,
    /// Its session is free for whoever asks for it.
    FreeInStore,
    /// Its purchase is in doubt, and no client has it.
    InDoubt,
    /// The slot has no session, or one that is over.
    Empty,
    /// The same, or another client has it.
    EmptyOrTaken,
}

impl SeenSlot {
    /// A slot that no other client has, by its content.
    pub(crate) fn of(found: SlotState) -> Self {
        match found {
            SlotState::Taken => SeenSlot::FreeInStore,
            SlotState::Doubt | SlotState::DoubtForGood | SlotState::Stuck => SeenSlot::InDoubt,
            SlotState::Free | SlotState::Over | SlotState::Expired => SeenSlot::Empty,
        }
    }
}

/// How many of them are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct OtherCounts {
    pub(crate) with_others: u32,
    pub(crate) free_in_store: u32,
    pub(crate) in_doubt: u32,
    pub(crate) empty: u32,
    pub(crate) empty_or_taken: u32,
}

impl OtherCounts {
    fn of(&mut self, seen: SeenSlot) -> &mut u32 {
        match seen {
            SeenSlot::WithOthers => &mut self.with_others,
            SeenSlot::FreeInStore => &mut self.free_in_store,
            SeenSlot::InDoubt => &mut self.in_doubt,
            SeenSlot::Empty => &mut self.empty,
            SeenSlot::EmptyOrTaken => &mut self.empty_or_taken,
        }
    }

    /// How many were seen at all.
    pub(crate) fn seen(self) -> u32 {
        self.with_others + self.free_in_store + self.in_doubt + self.empty + self.empty_or_taken
    }
}

/// The slots that were seen.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct OtherSlots {
    seen: BTreeMap<SlotNo, SeenSlot>,
    pub(crate) counts: OtherCounts,
}

impl OtherSlots {
    pub(crate) fn note(&mut self, slot: SlotNo, seen: SeenSlot) {
        self.forget(slot);
        self.seen.insert(slot, seen);
        *self.counts.of(seen) += 1;
    }

    /// The store gave a slot with nothing under it in place of this one: it has nothing, or another client has it.
    pub(crate) fn not_given(&mut self, slot: SlotNo) -> bool {
        let is_news = self.seen.get(&slot) != Some(&SeenSlot::WithOthers);
        if is_news {
            self.note(slot, SeenSlot::EmptyOrTaken);
        }
        is_news
    }

    /// How likely there is a session to take over: the less, the higher.
    pub(crate) fn likely(&self, slot: SlotNo) -> u8 {
        match self.seen.get(&slot) {
            Some(SeenSlot::FreeInStore) => 0,
            None => 1,
            Some(SeenSlot::WithOthers) => 2,
            Some(SeenSlot::InDoubt) => 3,
            Some(SeenSlot::Empty | SeenSlot::EmptyOrTaken) => 4,
        }
    }

    /// The slot is this client's, or may be anybody's by now.
    pub(crate) fn forget(&mut self, slot: SlotNo) {
        if let Some(seen) = self.seen.remove(&slot) {
            *self.counts.of(seen) -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_counts_once_as_it_was_seen_last() {
        let mut others = OtherSlots::default();
        for (slot, seen) in [(0, SeenSlot::WithOthers), (1, SeenSlot::FreeInStore), (0, SeenSlot::Empty), (2, SeenSlot::InDoubt)] {
            others.note(slot, seen);
        }
        let counts = OtherCounts { free_in_store: 1, in_doubt: 1, empty: 1, ..OtherCounts::default() };
        assert_eq!((others.counts, counts.seen()), (counts, 3));
        let mut slots = [0, 1, 2, 3];
        slots.sort_by_key(|slot| others.likely(*slot));
        assert_eq!(slots, [1, 3, 2, 0]);
        (0..4).for_each(|slot| others.forget(slot));
        assert_eq!(others.counts, OtherCounts::default());
    }

    #[test]
    fn what_the_store_does_not_give_has_nothing_unless_it_was_with_others() {
        let mut others = OtherSlots::default();
        others.note(0, SeenSlot::WithOthers);
        others.note(1, SeenSlot::FreeInStore);
        assert_eq!([0, 1, 2].map(|slot| others.not_given(slot)), [false, true, true]);
        assert_eq!(others.counts, OtherCounts { with_others: 1, empty_or_taken: 2, ..OtherCounts::default() });
        assert_eq!((others.counts.seen(), others.likely(2)), (3, 4));
    }

    #[test]
    fn what_is_in_a_slot_that_nobody_has() {
        for (found, seen) in [
            (SlotState::Free, SeenSlot::Empty),
            (SlotState::Over, SeenSlot::Empty),
            (SlotState::Expired, SeenSlot::Empty),
            (SlotState::Taken, SeenSlot::FreeInStore),
            (SlotState::Doubt, SeenSlot::InDoubt),
            (SlotState::DoubtForGood, SeenSlot::InDoubt),
            (SlotState::Stuck, SeenSlot::InDoubt),
        ] {
            assert_eq!(SeenSlot::of(found), seen, "{found:?}");
        }
    }
}
