//! A map that keeps its keys in order. A crate or `BTreeMap` is too large: a program carries a copy for each kind of map, and this one is a
//! quarter of the code of a tree. The map keeps lists of a few dozen members each: a search is two searches in lists, and an insertion or
//! removal moves one of them.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem;

/// The longest list.
const MOST: usize = 64;

/// The number of members that were visited, for the tests that count work.
#[cfg(test)]
pub(crate) mod walked {
    use std::cell::Cell;

    thread_local! { static WALKED: Cell<u64> = const { Cell::new(0) } }

    pub(crate) fn one() {
        WALKED.set(WALKED.get() + 1);
    }

    /// The number since the last call.
    pub(crate) fn take() -> u64 {
        WALKED.replace(0)
    }
}

#[derive(Clone)]
pub(crate) struct Map<K, V> {
    /// None of the lists is empty.
    lists: Vec<Vec<(K, V)>>,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Map { lists: Vec::new() }
    }
}

impl<K, V> Map<K, V> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.lists.iter().flatten().map(|(key, value)| {
            #[cfg(test)]
            walked::one();
            (key, value)
        })
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.lists.iter_mut().flatten().map(|(_, value)| {
            #[cfg(test)]
            walked::one();
            value
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }
}

impl<K: Ord, V> Map<K, V> {
    /// The list in which a key is, or would be, and its position there: `Ok` if the key is there.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
    where
        K: Borrow<Q>,
    {
        // The last list that begins with the key or before it.
        let list = self.lists.partition_point(|list| list.first().is_some_and(|(first, _)| first.borrow() <= key)).saturating_sub(1);
        let at = self.lists.get(list).map_or(Err(0), |list| list.binary_search_by(|(known, _)| known.borrow().cmp(key)));
        (list, at)
    }

    pub(crate) fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (list, at) = self.find(key);
        Some(&self.lists.get(list)?.get(at.ok()?)?.1)
    }

    pub(crate) fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        let (list, at) = self.find(key);
        Some(&mut self.lists.get_mut(list)?.get_mut(at.ok()?)?.1)
    }

    pub(crate) fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).1.is_ok()
    }

    /// Inserts a value and returns the old one.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (list, at) = self.find(&key);
        match at {
            Ok(at) => Some(mem::replace(&mut self.lists.get_mut(list)?.get_mut(at)?.1, value)),
            Err(at) => {
                self.add(list, at, (key, value));
                None
            }
        }
    }

    /// Returns the value of a key, and inserts one first if there is none.
    pub(crate) fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        match self.find(&key) {
            #[expect(clippy::indexing_slicing, reason = "it was found there")]
            (list, Ok(at)) => &mut self.lists[list][at].1,
            (list, Err(at)) => self.add(list, at, (key, value())),
        }
    }

    pub(crate) fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (list, at) = self.find(key);
        at.ok().and_then(|at| self.take(list, at)).map(|(_, value)| value)
    }

    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        self.take(0, 0)
    }

    pub(crate) fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// The members from a key on, including it.
    pub(crate) fn from<Q: Ord + ?Sized>(&self, key: &Q) -> impl Iterator<Item = (&K, &V)>
    where
        K: Borrow<Q>,
    {
        let (list, Ok(at) | Err(at)) = self.find(key);
        let (first, others) = match self.lists.get(list..) {
            Some([first, others @ ..]) => (first.get(at..).unwrap_or_default(), others),
            _ => (&[][..], &[][..]),
        };
        first.iter().chain(others.iter().flatten()).map(|(key, value)| {
            #[cfg(test)]
            walked::one();
            (key, value)
        })
    }

    pub(crate) fn retain(&mut self, mut stays: impl FnMut(&K, &mut V) -> bool) {
        #[cfg(test)]
        let mut stays = |key: &K, value: &mut V| {
            walked::one();
            stays(key, value)
        };
        self.lists.iter_mut().for_each(|list| list.retain_mut(|(key, value)| stays(key, value)));
        self.lists.retain(|list| !list.is_empty());
    }

    /// Inserts a member where `find` said.
    fn add(&mut self, mut list: usize, mut at: usize, one: (K, V)) -> &mut V {
        let is_last = list + 1 >= self.lists.len();
        match self.lists.get_mut(list) {
            None => self.lists.push(Vec::new()),
            // Keys that come in order fill their lists; any other order divides them.
            Some(full) if full.len() == MOST && at == MOST && is_last => {
                (list, at) = (list + 1, 0);
                self.lists.push(Vec::new());
            }
            Some(full) if full.len() == MOST => {
                let behind = full.split_off(MOST / 2);
                self.lists.insert(list + 1, behind);
                if at > MOST / 2 {
                    (list, at) = (list + 1, at - MOST / 2);
                }
            }
            Some(_) => {}
        }
        #[expect(clippy::indexing_slicing, reason = "the list was found or made")]
        let found = &mut self.lists[list];
        found.insert(at, one);
        #[expect(clippy::indexing_slicing, reason = "it was put there")]
        &mut found[at].1
    }

    /// Removes a member from there.
    fn take(&mut self, list: usize, at: usize) -> Option<(K, V)> {
        let found = self.lists.get_mut(list)?;
        let one = (at < found.len()).then(|| found.remove(at));
        let left = found.len();
        if left == 0 {
            self.lists.remove(list);
        } else if self.lists.get(list + 1).is_some_and(|next| left + next.len() <= MOST / 2) {
            let next = self.lists.remove(list + 1);
            self.lists.get_mut(list)?.extend(next);
        }
        one
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Self {
        let mut map = Map::default();
        members.into_iter().for_each(|(key, value)| _ = map.insert(key, value));
        map
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Map<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Two maps with the same members are alike, however they are divided.
impl<K: Hash, V: Hash> Hash for Map<K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.iter().for_each(|member| member.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The invariant of the lists: in order, none empty, none too long.
    fn is_in_order(map: &Map<u32, u32>) -> bool {
        map.lists.iter().all(|list| (1..=MOST).contains(&list.len())) && map.keys().is_sorted_by(|one, next| one < next)
    }

    #[test]
    fn it_has_what_a_tree_has_whatever_comes_and_goes() {
        let (mut map, mut tree, mut dice) = (Map::default(), BTreeMap::new(), 1_u32);
        for step in 0..40_000_u32 {
            dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // The map grows, and shrinks again.
            let (key, comes) = (dice >> 8 & 0x7ff, (dice >> 24) % 5 < if step / 8_000 % 2 == 0 { 4 } else { 1 });
            match dice >> 20 & 7 {
                0 => assert_eq!(map.pop_first(), tree.pop_first()),
                1 => assert_eq!(*map.get_or_insert_with(key, || step), *tree.entry(key).or_insert(step)),
                _ if comes => assert_eq!(map.insert(key, step), tree.insert(key, step)),
                _ => assert_eq!(map.remove(&key), tree.remove(&key)),
            }
            assert_eq!((map.get(&key), map.first(), map.len()), (tree.get(&key), tree.first_key_value(), tree.len()));
            if step % 64 == 0 {
                assert!(is_in_order(&map) && map.iter().eq(&tree) && map.from(&key).eq(tree.range(key..)), "{step}");
            }
        }
        map.retain(|key, _| key % 3 == 0);
        tree.retain(|key, _| key % 3 == 0);
        assert!(is_in_order(&map) && map.iter().eq(&tree));
    }

    #[test]
    fn what_comes_in_order_fills_its_lists() {
        let mut map = Map::default();
        (0..10_000_u32).for_each(|key| _ = map.insert(key, key));
        assert_eq!(map.lists.len(), 10_000_usize.div_ceil(MOST));
        (0..10_000_u32).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
        assert!(map.lists.is_empty());
    }

    #[test]
    fn maps_with_the_same_members_are_alike() {
        let hash = |map: &Map<u32, u32>| {
            let mut state = std::hash::DefaultHasher::new();
            map.hash(&mut state);
            state.finish()
        };
        let (mut up, mut down) = (Map::default(), Map::default());
        (0..500).for_each(|key| _ = (up.insert(key, 0), down.insert(499 - key, 0)));
        assert_eq!((hash(&up), format!("{up:?}")), (hash(&down), format!("{down:?}")));
        assert!(up.lists != down.lists);
    }
}
