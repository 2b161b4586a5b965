//! The sessions of callers' keys: the same key gets the same session while its exit stays.

use std::collections::{BTreeMap, BTreeSet};

/// A key of a caller's own, hashed: the same key gets the same session.
pub(crate) type CallerKey = u64;
/// The number of a slot of the pool.
pub(crate) type SlotNo = u32;

/// The session of each key, for the keys that were used last.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Keys {
    /// No more keys than these are remembered.
    most: usize,
    slots: BTreeMap<CallerKey, (SlotNo, u64)>,
    /// The keys by when they were used.
    order: BTreeMap<u64, CallerKey>,
    uses: u64,
    /// The keys of each slot.
    of: BTreeMap<SlotNo, BTreeSet<CallerKey>>,
}

impl Keys {
    pub(crate) fn new(most: usize) -> Self {
        Keys { most, ..Keys::default() }
    }

    /// The slot of a key.
    pub(crate) fn slot(&self, key: CallerKey) -> Option<SlotNo> {
        self.slots.get(&key).map(|(slot, _)| *slot)
    }

    /// How many keys have this slot.
    pub(crate) fn count(&self, slot: SlotNo) -> usize {
        self.of.get(&slot).map_or(0, BTreeSet::len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The slots that keys have.
    pub(crate) fn slots(&self) -> impl Iterator<Item = SlotNo> {
        self.of.keys().copied()
    }

    pub(crate) fn remember(&mut self, key: CallerKey, slot: SlotNo) {
        self.forget(key);
        self.uses += 1;
        self.slots.insert(key, (slot, self.uses));
        self.order.insert(self.uses, key);
        self.of.entry(slot).or_default().insert(key);
        if self.slots.len() > self.most {
            let oldest = self.order.first_key_value().map(|(_, key)| *key);
            oldest.into_iter().for_each(|key| self.forget(key));
        }
    }

    fn forget(&mut self, key: CallerKey) {
        let Some((slot, used)) = self.slots.remove(&key) else { return };
        self.order.remove(&used);
        if let Some(keys) = self.of.get_mut(&slot) {
            keys.remove(&key);
            if keys.is_empty() {
                self.of.remove(&slot);
            }
        }
    }

    /// A slot has another exit, or is gone: it is no key's.
    pub(crate) fn release(&mut self, slot: SlotNo) {
        for key in self.of.remove(&slot).into_iter().flatten() {
            let known = self.slots.remove(&key);
            known.map(|(_, used)| self.order.remove(&used));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_remembered_within_bounds_those_used_last() {
        let mut keys = Keys::new(16);
        (0..100).for_each(|key| keys.remember(key, 1));
        assert_eq!((keys.slots.len(), keys.order.len(), keys.count(1)), (16, 16, 16));
        assert_eq!((keys.slot(99), keys.slot(83)), (Some(1), None));
    }

    #[test]
    fn a_slot_that_is_released_is_no_keys() {
        let mut keys = Keys::new(16);
        [(1, 1), (2, 1), (3, 2), (1, 2)].into_iter().for_each(|(key, slot)| keys.remember(key, slot));
        assert_eq!(([1, 2, 3].map(|key| keys.slot(key)), keys.count(1), keys.count(2)), ([Some(2), Some(1), Some(2)], 1, 2));
        keys.release(2);
        assert_eq!(
            ([1, 2, 3].map(|key| keys.slot(key)), keys.count(2), keys.slots().collect::<Vec<_>>()),
            ([None, Some(1), None], 0, vec![1])
        );
        keys.release(1);
        assert!(keys.slots.is_empty() && keys.order.is_empty() && keys.of.is_empty());
    }
}
