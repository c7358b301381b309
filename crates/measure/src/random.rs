//! Generates pseudo-random numbers from a seed.

/// A SplitMix64 generator \[Steele14\].
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The result is the high half of the product, which is nearly uniform if `end` is far below
        // 2^64.
        let wide = u128::from(self.next()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_the_end_and_reach_all_of_it() {
        let mut random = Random::new(7);
        let mut seen = [0; 10];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| (50..200).contains(count)), "{seen:?}");
        assert_eq!(Random::new(7).below(1), 0);
    }
}
