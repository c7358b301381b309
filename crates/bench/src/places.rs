//! Which page is read next. Pure.

/// Offsets that look random, other ones for each seed.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    random: u64,
    step: u64,
    read_bytes: u64,
    places: u64,
}

impl Places {
    /// Pieces of `read_bytes` of a file of `file_bytes`.
    pub(crate) fn new(read_bytes: u64, file_bytes: u64, seed: u64) -> Self {
        let places = (file_bytes / read_bytes).max(1);
        Self { random: seed, step: seed | 1, read_bytes, places }
    }

    pub(crate) fn next(&mut self) -> u64 {
        // Knuth's constants for a linear congruential generator, whose upper bits are good.
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(self.step);
        (self.random >> 20) % self.places * self.read_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_file_is_read_in_whole_pieces_and_each_seed_reads_it_in_another_order() {
        let read = |seed| {
            let mut places = Places::new(8192, 100 * 8192, seed);
            (0..2000).map(|_| places.next()).collect::<Vec<_>>()
        };
        let offsets = read(1);
        assert!(offsets.iter().all(|at| at.is_multiple_of(8192) && *at < 100 * 8192));
        let different: std::collections::BTreeSet<_> = offsets.iter().collect();
        assert_eq!(different.len(), 100);
        assert!(read(1) == offsets && read(2) != offsets);
    }
}
