//! A map that numbers its members itself. A crate (`slab`) does not fit, because a slab gives a freed number to the next member, and a late
//! answer must not find another member under its number.

use super::map::Map;

/// A number that an [`IdMap`] gives.
pub(crate) trait Id: Copy + Ord {
    fn of(number: u32) -> Self;
}

impl Id for u32 {
    fn of(number: u32) -> Self {
        number
    }
}

#[derive(Debug, Clone, Hash)]
pub(crate) struct IdMap<K, T> {
    all: Map<K, T>,
    last: u32,
}

impl<K, T> Default for IdMap<K, T> {
    fn default() -> Self {
        IdMap { all: Map::default(), last: 0 }
    }
}

impl<K: Id, T> IdMap<K, T> {
    /// Inserts a member under the next free number. Numbers begin again after the largest one; 0 stands for none.
    pub(crate) fn insert(&mut self, one: T) -> K {
        loop {
            self.last = self.last.wrapping_add(1);
            let number = K::of(self.last);
            if self.last != 0 && !self.all.contains_key(&number) {
                self.all.insert(number, one);
                return number;
            }
        }
    }

    /// Puts back the member that was taken out under that number.
    pub(crate) fn put_back(&mut self, number: K, one: T) {
        self.all.insert(number, one);
    }

    pub(crate) fn get(&self, number: &K) -> Option<&T> {
        self.all.get(number)
    }

    pub(crate) fn get_mut(&mut self, number: &K) -> Option<&mut T> {
        self.all.get_mut(number)
    }

    pub(crate) fn remove(&mut self, number: &K) -> Option<T> {
        self.all.remove(number)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.all.iter()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.all.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.all.values_mut()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_names_something_is_not_given_again() {
        let mut list = IdMap { last: u32::MAX - 2, ..IdMap::default() };
        [u32::MAX, 1, 2, 4].into_iter().for_each(|number| list.put_back(number, ()));
        let given: Vec<u32> = (0..4).map(|_| list.insert(())).collect();
        assert_eq!(given, [u32::MAX - 1, 3, 5, 6]);
    }
}
