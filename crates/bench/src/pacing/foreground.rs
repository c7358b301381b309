//! Issues the small foreground writes of the pacing benchmark and measures their latencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Durability, File, Open, PAGE_BYTES, write_full};

use haul_measure::{Latencies, Result};

use super::dirty::dirty_bytes;
use crate::named::named;
use crate::write_modes::target_fs::TargetFs;

/// The names of the writers' files.
pub(super) const RECORDS: &str = "records";
pub(super) const PAGES: &str = "pages";

/// The intervals between two writes of the writer that syncs, and of the writer that overwrites.
pub(super) const SYNC_EVERY: Duration = Duration::from_millis(5);
pub(super) const OVERWRITE_EVERY: Duration = Duration::from_millis(1);

pub(super) const RECORD_BYTES: usize = 512;

/// The number of pages that are overwritten in pseudo-random order.
const PAGES_COUNT: u64 = 4096;
/// The distance in pages from one overwritten page to the next. It has no factor in common with
/// `PAGES_COUNT`, so every page is overwritten.
const STRIDE: u64 = 1597;

/// The interval between two samples of the dirty memory.
const SAMPLE_EVERY: Duration = Duration::from_millis(20);

named! {
    /// The kind of a foreground writer.
    pub(super) enum Foreground {
        /// Appends a record and syncs it.
        Syncing = "append, fdatasync",
        /// Overwrites a page in the page cache, without a sync.
        Overwriting = "overwrite",
    }
}

/// The latencies and the number of writes of one writer.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    pub(super) latencies: Latencies,
    pub(super) writes: u64,
}

/// A writer with its file.
#[derive(Debug)]
pub(super) struct Writer {
    file: Arc<dyn File>,
    kind: Foreground,
}

impl Writer {
    /// Creates a writer with a new file, and syncs the file.
    pub(super) fn new(place: &TargetFs, kind: Foreground) -> Result<Self> {
        let name = match kind {
            Foreground::Syncing => RECORDS,
            Foreground::Overwriting => PAGES,
        };
        let file = place.disk.create(name, Open::default())?;
        if kind == Foreground::Overwriting {
            for page in 0..PAGES_COUNT {
                write_full(&*file, &[b'p'; PAGE_BYTES], page * PAGE_BYTES as u64)?;
            }
        }
        file.sync(Durability::Everything)?;
        Ok(Self { file, kind })
    }

    /// Writes at each interval until `stop` is set; a write that is late starts at once.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Written> {
        let every = match self.kind {
            Foreground::Syncing => SYNC_EVERY,
            Foreground::Overwriting => OVERWRITE_EVERY,
        };
        let mut written = Written::default();
        let mut due = Instant::now();
        // Writes at least once, even if a busy machine delays this thread until `stop` is set.
        while written.writes == 0 || !stop.load(Ordering::Relaxed) {
            sleep(due.saturating_duration_since(Instant::now()));
            let began = Instant::now();
            self.write(written.writes)?;
            written.latencies.record_every(began.elapsed(), every);
            written.writes += 1;
            due = (due + every).max(Instant::now());
        }
        Ok(written)
    }

    fn write(&self, number: u64) -> Result<()> {
        match self.kind {
            Foreground::Syncing => {
                write_full(&*self.file, &[b'r'; RECORD_BYTES], number * RECORD_BYTES as u64)?;
                self.file.sync(Durability::Data)?;
            }
            Foreground::Overwriting => {
                let page = number.wrapping_mul(STRIDE) % PAGES_COUNT;
                write_full(&*self.file, &[b'q'; PAGE_BYTES], page * PAGE_BYTES as u64)?;
            }
        }
        Ok(())
    }
}

/// Returns the largest number of bytes of the machine's memory that were dirty or under writeback,
/// sampled until `stop` is set.
pub(super) fn most_dirty(stop: &AtomicBool) -> Option<u64> {
    let mut most = dirty_bytes()?;
    while !stop.load(Ordering::Relaxed) {
        sleep(SAMPLE_EVERY);
        most = most.max(dirty_bytes()?);
    }
    Some(most)
}
