//! Which page is read next. Pure.

use super::Options;

/// Offsets that look random, other ones for each seed.
#[derive(Debug, Clone)]
pub(super) struct Places {
    random: u64,
    step: u64,
    read_bytes: u64,
    places: u64,
}

impl Places {
    pub(super) fn new(options: &Options, seed: u64) -> Self {
        let Options { read_bytes, file_bytes, .. } = *options;
        let places = (file_bytes / read_bytes).max(1);
        Self { random: seed, step: seed | 1, read_bytes, places }
    }

    pub(super) fn next(&mut self) -> u64 {
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
        let options = Options { read_bytes: 8192, file_bytes: 100 * 8192, ..Options::new("d") };
        let read = |seed| {
            let mut places = Places::new(&options, seed);
            (0..2000).map(|_| places.next()).collect::<Vec<_>>()
        };
        let offsets = read(1);
        assert!(offsets.iter().all(|at| at.is_multiple_of(8192) && *at < 100 * 8192));
        let different: std::collections::BTreeSet<_> = offsets.iter().collect();
        assert_eq!(different.len(), 100);
        assert!(read(1) == offsets && read(2) != offsets);
    }
}
