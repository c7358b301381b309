//! Sets of offset ranges in a volume. Pure.

use std::collections::BTreeMap;

/// A set of ranges that neither overlap nor touch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u32, u32>);

impl Ranges {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a range and merges it with the ranges that it overlaps or touches.
    pub(crate) fn insert(&mut self, from: u32, to: u32) {
        let (mut from, mut to) = (from, to);
        if from >= to {
            return;
        }
        let meets = |(start, end): (&u32, &u32)| (*end >= from).then_some((*start, *end));
        let met: Vec<(u32, u32)> = self.0.range(..=to).filter_map(meets).collect();
        for (start, end) in met {
            (from, to) = (from.min(start), to.max(end));
            self.0.remove(&start);
        }
        self.0.insert(from, to);
    }

    pub(crate) fn remove(&mut self, from: u32, to: u32) {
        if from >= to {
            return;
        }
        let meets = |(start, end): (&u32, &u32)| (*end > from).then_some((*start, *end));
        let met: Vec<(u32, u32)> = self.0.range(..to).filter_map(meets).collect();
        for (start, end) in met {
            self.0.remove(&start);
            if start < from {
                self.0.insert(start, from);
            }
            if end > to {
                self.0.insert(to, end);
            }
        }
    }

    /// Returns `true` if a part of the range is in the set.
    pub(crate) fn intersects(&self, from: u32, to: u32) -> bool {
        from < to && self.0.range(..to).next_back().is_some_and(|(_, end)| *end > from)
    }

    /// Returns `true` if the set consists of exactly this range.
    pub(crate) fn is_all_of(&self, from: u32, to: u32) -> bool {
        match self.0.iter().next() {
            Some(range) => self.0.len() == 1 && range == (&from, &to),
            None => from >= to,
        }
    }

    /// Returns the end of the last range.
    pub(crate) fn end(&self) -> Option<u32> {
        self.0.last_key_value().map(|(_, end)| *end)
    }

    /// Returns the ranges in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().map(|(from, to)| (*from, *to))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn ranges_are_the_set_of_their_offsets(
            changes in prop::collection::vec((any::<bool>(), 0_u32..40, 0_u32..40), 0..20),
        ) {
            let (mut ranges, mut plain) = (Ranges::default(), [false; 40]);
            for (inserts, a, b) in changes {
                let (from, to) = (a.min(b), a.max(b));
                if inserts { ranges.insert(from, to) } else { ranges.remove(from, to) }
                plain[from as usize..to as usize].fill(inserts);
            }
            for at in 0..40_u32 {
                prop_assert_eq!(ranges.intersects(at, at + 1), plain[at as usize]);
            }
            let ends: Vec<_> = ranges.iter().collect();
            prop_assert!(ends.windows(2).all(|two| two[0].1 < two[1].0), "{:?}", ends);
            let last = (0..40).rev().find(|at| plain[*at as usize]);
            prop_assert_eq!(ranges.end(), last.map(|at| at + 1));
        }
    }
}
