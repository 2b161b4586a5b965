//! The free numbers, as ranges, so that finding one costs the same among a million as among ten. A crate (`rangemap`) is not needed,
//! because one `BTreeMap` and three functions are all that is used.

use std::collections::BTreeMap;

/// The free ranges, each by its beginning and its exclusive end.
#[derive(Debug, Clone, Hash)]
pub(crate) struct FreeRanges(BTreeMap<u32, u32>);

impl Default for FreeRanges {
    fn default() -> Self {
        FreeRanges(BTreeMap::from([(0, u32::MAX)]))
    }
}

impl FreeRanges {
    /// Takes a number.
    pub(crate) fn take(&mut self, number: u32) {
        let Some((from, to)) = self.0.range(..=number).next_back().map(|(from, to)| (*from, *to)).filter(|(_, to)| number < *to) else {
            return;
        };
        self.0.remove(&from);
        [(from, number), (number.saturating_add(1), to)].into_iter().filter(|(from, to)| from < to).for_each(|(from, to)| {
            self.0.insert(from, to);
        });
    }

    /// Frees a number.
    pub(crate) fn free(&mut self, number: u32) {
        let before = self.0.range(..=number).next_back().map(|(from, to)| (*from, *to));
        if before.is_some_and(|(_, to)| number < to) {
            return;
        }
        let from = before.filter(|(_, to)| *to == number).map_or(number, |(from, _)| from);
        let next = number.saturating_add(1);
        let to = self.0.remove(&next).unwrap_or(next);
        self.0.insert(from, to);
    }

    /// Free numbers below that one, from `first` on and then from 0.
    pub(crate) fn from(&self, first: u32, below: u32) -> impl Iterator<Item = u32> {
        let first = first.min(below);
        let within = self.0.range(..first).next_back().map(|(_, to)| first..(*to).min(below)).unwrap_or(0..0);
        let behind = self.0.range(first..below).flat_map(move |(from, to)| *from..(*to).min(below));
        let before = self.0.range(..first).flat_map(move |(from, to)| *from..(*to).min(first).min(below));
        within.chain(behind).chain(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn they_are_what_a_set_would_hold() {
        let (mut ranges, mut taken, mut random) = (FreeRanges::default(), BTreeSet::new(), 7_u64);
        let mut below = |most: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32 % most
        };
        for _ in 0..5000 {
            let number = below(24);
            if below(2) == 0 {
                ranges.take(number);
                taken.insert(number);
            } else {
                ranges.free(number);
                taken.remove(&number);
            }
            let (first, size) = (below(24), 20);
            let expected: Vec<u32> =
                (0..size).map(|offset| (first.min(size) + offset) % size).filter(|number| !taken.contains(number)).collect();
            assert_eq!(ranges.from(first, size).collect::<Vec<_>>(), expected, "from {first}: {ranges:?}");
        }
        assert!(ranges.0.len() <= 13, "they are joined again: {ranges:?}");
    }
}
