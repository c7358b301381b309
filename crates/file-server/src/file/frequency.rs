//! Counts recent requests in little memory: a count-min sketch with aging.
//!
//! As in \[TinyLFU17\], keys share counters, the smallest counter of a key is its estimate, and all
//! counters are halved from time to time, so that former requests lose their weight.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const ROWS: usize = 4;
const COLUMNS: usize = 1 << 16;

/// The number of counts after which all counters are halved. It is lower than the number of columns,
/// so that few keys share all of their counters.
const COUNTS_MAX: u32 = 1 << 15;

/// The counters, which always take 256 KiB. Threads count without locks; a count that is lost between
/// two of them does not matter.
#[derive(Debug)]
pub(crate) struct FrequencySketch {
    counters: Box<[AtomicU8]>,
    counts: AtomicU32,
    /// Random, so that clients cannot choose keys that share counters.
    hasher: RandomState,
}

impl FrequencySketch {
    pub(crate) fn new() -> Self {
        Self {
            counters: (0..ROWS * COLUMNS).map(|_| AtomicU8::new(0)).collect(),
            counts: AtomicU32::new(0),
            hasher: RandomState::new(),
        }
    }

    /// Counts a request for `key`, and returns the estimated number of recent ones: at least the true
    /// number since the last halving.
    pub(crate) fn count(&self, key: impl Hash) -> u32 {
        if self.counts.fetch_add(1, Ordering::Relaxed) + 1 >= COUNTS_MAX {
            self.halve();
        }
        let cells = self.cells(self.hasher.hash_one(key));
        // Only the smallest are incremented: the others count other keys, too.
        let before = smallest(&cells);
        let after = before.saturating_add(1);
        for cell in cells.iter().filter(|cell| cell.load(Ordering::Relaxed) == before) {
            cell.store(after, Ordering::Relaxed);
        }
        u32::from(after)
    }

    fn cells(&self, hash: u64) -> [&AtomicU8; ROWS] {
        std::array::from_fn(|row| {
            let column = (hash >> (16 * row)) & (COLUMNS as u64 - 1);
            // Masked to 16 bits, so the conversion cannot fail.
            &self.counters[row * COLUMNS + usize::from(u16::try_from(column).unwrap_or(0))]
        })
    }

    fn halve(&self) {
        self.counts.store(0, Ordering::Relaxed);
        for cell in &self.counters {
            cell.store(cell.load(Ordering::Relaxed) / 2, Ordering::Relaxed);
        }
    }
}

fn smallest(cells: &[&AtomicU8]) -> u8 {
    cells.iter().map(|cell| cell.load(Ordering::Relaxed)).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_a_key_is_exact_among_many() {
        let sketch = FrequencySketch::new();
        for time in 1..=3 {
            assert!(sketch.count(("hot", 7)) >= time);
        }
        let overestimated = (0..10_000).filter(|key| sketch.count(*key) > 1).count();
        assert!(overestimated < 50, "{overestimated} of 10,000");
        assert!(sketch.count(("hot", 7)) >= 4);
    }

    #[test]
    fn old_requests_lose_their_weight() {
        let sketch = FrequencySketch::new();
        for _ in 0..8 {
            sketch.count("once");
        }
        for key in 0..6 * COUNTS_MAX {
            sketch.count(key);
        }
        assert!(sketch.count("once") <= 4, "halved six times, and shared since");
    }

    #[test]
    fn count_is_limited() {
        let sketch = FrequencySketch::new();
        for _ in 0..1000 {
            sketch.count(1);
        }
        assert_eq!(sketch.count(1), 255);
    }
}
