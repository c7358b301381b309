//! Tracks the dirty sectors of the drive's write cache, which are not yet written to the medium.

use std::collections::BTreeMap;

/// The dirty sectors, as runs that do not overlap. `runs` maps the first sector of each run to its
/// end (exclusive).
#[derive(Debug, Clone, Default)]
pub(crate) struct WriteCache {
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl WriteCache {
    /// Returns the number of dirty sectors.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns `true` if all sectors from `sector` to `end` are in the cache.
    pub(crate) fn covers(&self, sector: u64, end: u64) -> bool {
        self.runs.range(..=sector).next_back().is_some_and(|(_, run_end)| end <= *run_end)
    }

    /// Adds a run, merging overlapping and adjacent runs.
    pub(crate) fn add(&mut self, mut sector: u64, mut end: u64) {
        while let Some((&start, &run_end)) = self.runs.range(..=end).next_back() {
            if run_end < sector {
                break;
            }
            self.runs.remove(&start);
            self.sectors -= run_end - start;
            (sector, end) = (sector.min(start), end.max(run_end));
        }
        self.runs.insert(sector, end);
        self.sectors += end - sector;
    }

    /// Returns the dirty runs in ascending order, beginning with the first one that starts at or
    /// above `sector` and wrapping around.
    pub(crate) fn ascending_from(&self, sector: u64) -> impl Iterator<Item = (u64, u64)> {
        let (above, below) = (self.runs.range(sector..), self.runs.range(..sector));
        above.chain(below).map(|(start, end)| (*start, *end))
    }

    /// Removes and returns the run that starts at `sector`, or its first `sectors_max` sectors if
    /// it is longer.
    pub(crate) fn take(&mut self, sector: u64, sectors_max: u64) -> Option<(u64, u64)> {
        let run_end = self.runs.remove(&sector)?;
        let end = run_end.min(sector + sectors_max);
        if end < run_end {
            self.runs.insert(end, run_end);
        }
        self.sectors -= end - sector;
        Some((sector, end))
    }

    /// Empties the cache, as a power cut does.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use haul_testing::Random;

    use super::*;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "of a few hundred sectors")]
    fn runs_match_a_set_of_sectors() {
        for seed in 0..20 {
            let (mut random, mut cache, mut set) =
                (Random(seed), WriteCache::default(), [false; 300]);
            for _ in 0..200 {
                let (start, length) = (random.below(280), 1 + random.below(20));
                if random.below(3) > 0 {
                    cache.add(start, start + length);
                    (start..start + length).for_each(|sector| set[sector as usize] = true);
                    continue;
                }
                let next = cache.ascending_from(start).next();
                if let Some((start, end)) = next {
                    let taken = cache.take(start, length).unwrap();
                    assert_eq!(taken, (start, end.min(start + length)));
                    (taken.0..taken.1).for_each(|sector| set[sector as usize] = false);
                }
                let count = set.iter().filter(|is_dirty| **is_dirty).count();
                assert_eq!(cache.sectors(), count as u64, "seed {seed}");
                for sector in 0..299 {
                    assert_eq!(cache.covers(sector, sector + 1), set[sector as usize]);
                }
                let runs: Vec<_> = cache.ascending_from(0).collect();
                assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "{runs:?}");
            }
        }
    }
}
