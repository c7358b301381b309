//! Selects the first names of a directory in bounded memory. Performs no I/O.

use std::collections::BinaryHeap;

/// The smallest names that were added, in bytewise order; at most `limit` of them.
#[derive(Debug)]
pub(crate) struct SmallestNames {
    limit: usize,
    /// The largest name is on top.
    names: BinaryHeap<Vec<u8>>,
    is_cut: bool,
}

impl SmallestNames {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, names: BinaryHeap::new(), is_cut: false }
    }

    pub(crate) fn push(&mut self, name: &[u8]) {
        if self.names.len() < self.limit {
            self.names.push(name.to_vec());
            return;
        }
        self.is_cut = true;
        if let Some(mut largest) = self.names.peek_mut()
            && name < &**largest
        {
            largest.clear();
            largest.extend_from_slice(name);
        }
    }

    /// Returns the names in bytewise order, and whether others were left out.
    pub(crate) fn into_sorted(self) -> (Vec<Vec<u8>>, bool) {
        (self.names.into_sorted_vec(), self.is_cut)
    }
}

#[cfg(test)]
mod tests {
    use haul_testing::Random;

    use super::*;

    #[test]
    fn selection_equals_the_front_of_the_sorted_names() {
        let mut random = Random::from_environment();
        for _ in 0..200 {
            let count = random.below(50);
            let mut names: Vec<Vec<u8>> =
                (0..count).map(|_| random.below(1000).to_string().into_bytes()).collect();
            let limit = 1 + usize::try_from(random.below(30)).unwrap();
            let mut smallest = SmallestNames::new(limit);
            names.iter().for_each(|name| smallest.push(name));
            names.sort();
            let is_cut = names.len() > limit;
            names.truncate(limit);
            assert_eq!(smallest.into_sorted(), (names, is_cut));
        }
    }
}
