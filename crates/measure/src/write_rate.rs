//! Measures the sequential write rate of a disk, and judges whether the disk rotates. These results
//! suffice to predict how long the kernel throttles writers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Durability, Open, probe, write_full};
use rustix::fs::statvfs;

use crate::error::{Error, Result};
use crate::load::load;
use crate::options::{LONG_BYTES, LONG_DEPTH, Options};
use crate::reads::{on_threads, random};
use crate::scratch::{Scratch, noise, stamp};
use crate::verdict::{Rotation, rotation};
use crate::watch::Watcher;

/// The divisor of the free space: a measurement writes at most an eighth of it.
const FREE_PART: u64 = 8;
/// The minimum number of bytes written; fewer would fit into the cache of many devices.
const BYTES_MIN: u64 = 16 << 20;
/// The number of bytes written between two checks of the clock and of cancellation.
const CHECK_BYTES: u64 = BYTES_MIN;
/// The time for random reads with one read in flight; reads with `READ_DEPTH` in flight then take
/// the same time.
const READ_TIME: Duration = Duration::from_millis(100);
const READ_DEPTH: usize = 16;

/// The options of [`write_rate`]: the directory, and limits of bytes and time.
#[derive(Debug, Clone)]
pub struct RateOptions {
    /// The directory whose disk is measured.
    pub dir: PathBuf,
    /// The maximum number of bytes written; fewer are written if little space is free.
    pub bytes_max: u64,
    /// The maximum time spent writing.
    pub time_max: Duration,
}

impl RateOptions {
    /// Returns the default limits for `dir`: 256 MiB and 10 seconds, whichever is reached first.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), bytes_max: 256 << 20, time_max: Duration::from_secs(10) }
    }
}

/// The result of [`write_rate`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRate {
    /// The number of bytes written and synced.
    pub bytes: u64,
    /// The time of the writes, including the sync at the end.
    pub time: Duration,
    /// The verdict on whether the disk rotates.
    pub rotation: Rotation,
    /// Circumstances that affect the figures, as sentences for a report.
    pub notes: Vec<String>,
}

impl WriteRate {
    /// Returns the write rate in bytes per second.
    #[must_use]
    pub fn bytes_per_s(&self) -> u64 {
        let micros = self.time.as_micros().max(1);
        u64::try_from(u128::from(self.bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }
}

/// Returns the number of bytes to write if `free_bytes` are free; `None` if that is too little for
/// a meaningful result.
fn amount(free_bytes: u64, bytes_max: u64) -> Option<u64> {
    let bytes = bytes_max.min(free_bytes / FREE_PART) / LONG_BYTES as u64 * LONG_BYTES as u64;
    (bytes >= BYTES_MIN).then_some(bytes)
}

/// Measures the sequential write rate: writes an unnamed file sequentially and syncs it. Then reads
/// the file at random offsets for 0.2 seconds, to judge whether the disk rotates. No file remains.
///
/// # Errors
/// [`Error::Cancelled`] if `watcher` cancels; [`Error::Missing`] if too little space is free;
/// [`Error::Disk`] if an operation on the disk fails.
pub fn write_rate(options: &RateOptions, watcher: &dyn Watcher) -> Result<WriteRate> {
    const STEPS: usize = 2;
    let dir = &options.dir;
    let (storage, load) = (probe(dir)?, load());
    let status =
        statvfs(dir).map_err(Error::other(format!("get the free space of {}", dir.display())))?;
    let free = status.f_bavail.saturating_mul(status.f_frsize);
    let bytes = amount(free, options.bytes_max).ok_or_else(|| {
        Error::Missing(format!(
            "{} has {} MiB free, too little to measure its disk: an eighth of that would be written, \
             and {} MiB at least",
            dir.display(),
            free >> 20,
            BYTES_MIN >> 20
        ))
    })?;
    watcher.step(0, STEPS, "writing in sequence");
    let scratch = Scratch::empty(&Options { bytes, ..Options::new(dir) })?;
    let (written, time) = fill(&scratch, options.time_max, watcher)?;
    watcher.check()?;
    watcher.step(1, STEPS, "reading at random");
    let known = if scratch.is_direct { reads(&scratch, written)? } else { None };
    let rotation = rotation(storage.queue.rotational, known);
    let notes = load.into_iter().collect();
    Ok(WriteRate { bytes: written, time, rotation, notes })
}

/// Writes the file from its start with [`LONG_DEPTH`] requests in flight until it is full or
/// `time_max` has passed, and syncs it. Returns the number of bytes written and the time taken.
fn fill(scratch: &Scratch, time_max: Duration, watcher: &dyn Watcher) -> Result<(u64, Duration)> {
    let file = scratch.open(Open { direct: true, ..Open::default() })?;
    let content = noise(LONG_BYTES);
    let started = Instant::now();
    let mut written = 0;
    while written < scratch.bytes && (written == 0 || started.elapsed() < time_max) {
        watcher.check()?;
        let end = scratch.bytes.min(written + CHECK_BYTES);
        let next = AtomicU64::new(written);
        on_threads(LONG_DEPTH, |_number| {
            let mut block = AlignedBuf::zeroed(LONG_BYTES);
            block.copy_from_slice(&content);
            loop {
                let offset = next.fetch_add(LONG_BYTES as u64, Ordering::Relaxed);
                if offset >= end {
                    return Ok(());
                }
                stamp(&mut block, offset);
                write_full(&*file, &block, offset)?;
            }
        })?;
        written = end;
    }
    file.sync(Durability::Data)?;
    Ok((written, started.elapsed()))
}

/// Returns the median latency of single random reads in microseconds, and the factor by which
/// `READ_DEPTH` reads in flight raise the read rate.
fn reads(scratch: &Scratch, written: u64) -> Result<Option<(f64, f64)>> {
    let file = scratch.open(Open { direct: true, read_only: true, ..Open::default() })?;
    let one = random(&*file, written, 1, READ_TIME, 0)?;
    let many = random(&*file, written, READ_DEPTH, READ_TIME, 1 << 32)?;
    let known = || {
        let gain = many.per_second()? / one.per_second()?;
        Some((one.latencies.percentile_us(50.0)?, gain))
    };
    Ok(known())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Silent;

    #[test]
    fn measurement_leaves_most_free_space_free() {
        const MIB: u64 = 1 << 20;
        for (free, wanted, expected) in [
            (100_000 * MIB, 256 * MIB, Some(256 * MIB)),
            (1000 * MIB, 256 * MIB, Some(125 * MIB)),
            (128 * MIB + 5, 256 * MIB, Some(16 * MIB)),
            (127 * MIB, 256 * MIB, None),
            (0, 256 * MIB, None),
            (100_000 * MIB, 5 * MIB, None),
        ] {
            assert_eq!(amount(free, wanted), expected, "{free} free, {wanted} wanted");
        }
    }

    #[test]
    fn rate_is_measured_and_nothing_left_behind() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = RateOptions { bytes_max: 16 << 20, ..RateOptions::new(dir.path()) };
        let rate = write_rate(&options, &Silent).unwrap();
        assert_eq!(rate.bytes, 16 << 20);
        assert!(rate.bytes_per_s() > 0 && rate.time > Duration::ZERO);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn ends_on_timeout_and_on_cancellation() {
        struct Stop;
        impl Watcher for Stop {
            fn is_cancelled(&self) -> bool {
                true
            }
        }
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = RateOptions::new(dir.path());
        assert!(matches!(write_rate(&options, &Stop), Err(Error::Cancelled)));
        let hasty = RateOptions { time_max: Duration::ZERO, ..options };
        assert_eq!(write_rate(&hasty, &Silent).unwrap().bytes, CHECK_BYTES);
    }
}
