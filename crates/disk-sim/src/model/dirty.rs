//! The write cache: sectors that were taken and are not on the medium yet, as runs without overlap.

use std::collections::BTreeMap;

/// Runs of sectors, from begin to end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    runs: BTreeMap<u64, u64>,
    sectors: u64,
}

impl Dirty {
    /// How many sectors are in it.
    pub(crate) fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Whether all of a run is in it.
    pub(crate) fn covers(&self, sector: u64, end: u64) -> bool {
        self.runs.range(..=sector).next_back().is_some_and(|(_, run_end)| end <= *run_end)
    }

    /// Adds a run; what touches it becomes one with it.
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

    /// The next runs upwards from a sector, then from the beginning again.
    pub(crate) fn upwards(&self, sector: u64) -> impl Iterator<Item = (u64, u64)> {
        let (above, below) = (self.runs.range(sector..), self.runs.range(..sector));
        above.chain(below).map(|(start, end)| (*start, *end))
    }

    /// Takes the run that begins here out, or its first `sectors_max`.
    pub(crate) fn take(&mut self, sector: u64, sectors_max: u64) -> Option<(u64, u64)> {
        let run_end = self.runs.remove(&sector)?;
        let end = run_end.min(sector + sectors_max);
        if end < run_end {
            self.runs.insert(end, run_end);
        }
        self.sectors -= end - sector;
        Some((sector, end))
    }

    /// Nothing is left: the power is gone.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "of a few hundred sectors")]
    fn runs_are_those_of_a_set_of_sectors() {
        for seed in 0..20 {
            let (mut random, mut dirty, mut set) = (Random(seed), Dirty::default(), [false; 300]);
            for _ in 0..200 {
                let (start, length) = (random.below(280), 1 + random.below(20));
                if random.below(3) > 0 {
                    dirty.add(start, start + length);
                    (start..start + length).for_each(|sector| set[sector as usize] = true);
                    continue;
                }
                let next = dirty.upwards(start).next();
                if let Some((start, end)) = next {
                    let taken = dirty.take(start, length).unwrap();
                    assert_eq!(taken, (start, end.min(start + length)));
                    (taken.0..taken.1).for_each(|sector| set[sector as usize] = false);
                }
                let count = set.iter().filter(|is_dirty| **is_dirty).count();
                assert_eq!(dirty.sectors(), count as u64, "seed {seed}");
                for sector in 0..299 {
                    assert_eq!(dirty.covers(sector, sector + 1), set[sector as usize]);
                }
                let runs: Vec<_> = dirty.upwards(0).collect();
                assert!(runs.windows(2).all(|pair| pair[0].1 < pair[1].0), "{runs:?}");
            }
        }
    }
}
