//! How often things were asked for lately, in little memory: a count-min sketch that forgets.
//!
//! The idea is that of \[TinyLFU17\]: counters that keys share, of which the least is nearest to the truth,
//! and all of them halved now and then, so that what was wanted once does not stay wanted.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

const ROWS: usize = 4;
const COLUMNS: usize = 1 << 16;

/// After so many counts all are halved; fewer than columns, so that few keys share all counters.
const COUNTS_MAX: u32 = 1 << 15;

/// The counters: 256 KiB, whatever happens. Threads may count at once; a count lost between them
/// is one of many.
#[derive(Debug)]
pub(crate) struct Sketch {
    counters: Box<[AtomicU8]>,
    counts: AtomicU32,
    /// Random, so that nobody can choose keys that share counters.
    hasher: RandomState,
}

impl Sketch {
    pub(crate) fn new() -> Self {
        Self {
            counters: (0..ROWS * COLUMNS).map(|_| AtomicU8::new(0)).collect(),
            counts: AtomicU32::new(0),
            hasher: RandomState::new(),
        }
    }

    /// Counts `key` once more, and tells how often that was lately: never less than the truth
    /// since the last halving.
    pub(crate) fn count(&self, key: impl Hash) -> u32 {
        if self.counts.fetch_add(1, Ordering::Relaxed) + 1 >= COUNTS_MAX {
            self.halve();
        }
        let cells = self.cells(self.hasher.hash_one(key));
        // Only the least are raised: the others count other keys already.
        let before = least(&cells);
        let after = before.saturating_add(1);
        for cell in cells.iter().filter(|cell| cell.load(Ordering::Relaxed) == before) {
            cell.store(after, Ordering::Relaxed);
        }
        u32::from(after)
    }

    fn cells(&self, hash: u64) -> [&AtomicU8; ROWS] {
        std::array::from_fn(|row| {
            let column = (hash >> (16 * row)) & (COLUMNS as u64 - 1);
            // Masked to 16 bits, so nothing is lost.
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

fn least(cells: &[&AtomicU8]) -> u8 {
    cells.iter().map(|cell| cell.load(Ordering::Relaxed)).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_counted_by_itself_among_many() {
        let sketch = Sketch::new();
        for time in 1..=3 {
            assert!(sketch.count(("wanted", 7)) >= time);
        }
        let mistaken = (0..10_000).filter(|key| sketch.count(*key) > 1).count();
        assert!(mistaken < 50, "{mistaken} of 10,000 were taken for others");
        assert!(sketch.count(("wanted", 7)) >= 4);
    }

    #[test]
    fn what_is_not_asked_for_any_more_is_forgotten() {
        let sketch = Sketch::new();
        for _ in 0..8 {
            sketch.count("once");
        }
        for key in 0..6 * COUNTS_MAX {
            sketch.count(key);
        }
        assert!(sketch.count("once") <= 4, "halved six times, and shared since");
    }

    #[test]
    fn a_count_stays_at_its_end() {
        let sketch = Sketch::new();
        for _ in 0..1000 {
            sketch.count(1);
        }
        assert_eq!(sketch.count(1), 255);
    }
}
