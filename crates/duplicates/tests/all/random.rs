//! Chance that can be replayed.

use std::time::SystemTime;

/// A small generator of numbers: `SplitMix64`.
pub(crate) struct Random(u64);

impl Random {
    /// Starts from `SEED` of the environment, else from the clock, and prints which.
    pub(crate) fn from_environment() -> Self {
        let clock = || {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            since.map_or(1, |since| u64::from(since.subsec_nanos()))
        };
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(clock);
        println!("SEED={seed}");
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub(crate) fn bytes(&mut self, bytes: usize) -> Vec<u8> {
        let mut content: Vec<u8> =
            (0..bytes.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        content.truncate(bytes);
        content
    }
}
