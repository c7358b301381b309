//! The writers who want to be quick while bulk data is written beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use haul_disk::{Disk, Durability, File, Open, PAGE_BYTES, write_full};

use super::dirty::waiting_bytes;
use super::plan::Foreground;
use crate::error::Result;
use crate::stats::Latencies;
use crate::write_modes::place::Place;

/// The only names they make in their directory.
pub(super) const RECORDS: &str = "records";
pub(super) const PAGES: &str = "pages";

/// Somebody writes a record and syncs it that often, or a page.
pub(super) const SYNC_EVERY: Duration = Duration::from_millis(5);
pub(super) const OVERWRITE_EVERY: Duration = Duration::from_millis(1);

pub(super) const RECORD_BYTES: usize = 512;

/// How many pages are overwritten, in no order.
const PAGES_COUNT: u64 = 4096;
/// A prime number of pages from one to the next.
const STRIDE: u64 = 1597;

/// How often it is looked how much is dirty.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the writes of one writer took.
#[derive(Debug, Clone, Default)]
pub(super) struct Written {
    pub(super) latencies: Latencies,
    pub(super) writes: u64,
}

/// One writer with its file, ready to begin.
#[derive(Debug)]
pub(super) struct Writer {
    file: Arc<dyn File>,
    what: Foreground,
}

impl Writer {
    /// A fresh file, on the medium.
    pub(super) fn new(place: &Place, what: Foreground) -> Result<Self> {
        let name = match what {
            Foreground::Syncing => RECORDS,
            Foreground::Overwriting => PAGES,
        };
        let file = place.disk.create(name, Open::default())?;
        if what == Foreground::Overwriting {
            for page in 0..PAGES_COUNT {
                write_full(&*file, &[b'p'; PAGE_BYTES], page * PAGE_BYTES as u64)?;
            }
        }
        file.sync(Durability::Everything)?;
        Ok(Self { file, what })
    }

    /// Writes until `stop`, each time when its moment has come, or at once when it is late.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<Written> {
        let every = match self.what {
            Foreground::Syncing => SYNC_EVERY,
            Foreground::Overwriting => OVERWRITE_EVERY,
        };
        let mut written = Written::default();
        let mut due = Instant::now();
        // Once at least, however busy the machine is.
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
        match self.what {
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

/// The most that was dirty or on its way, of the whole machine, until `stop`.
pub(super) fn most_waiting(stop: &AtomicBool) -> Option<u64> {
    let mut most = waiting_bytes()?;
    while !stop.load(Ordering::Relaxed) {
        sleep(LOOK_EVERY);
        most = most.max(waiting_bytes()?);
    }
    Some(most)
}
