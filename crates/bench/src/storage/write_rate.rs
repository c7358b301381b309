//! How fast a disk takes what is written to it in sequence, and whether it rotates: all that is
//! needed to tell how long its writers wait.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_disk::{AlignedBuf, Durability, Open, probe, write_full};
use rustix::fs::statvfs;

use super::reads::{on_threads, random};
use super::scratch::{Scratch, noise, stamp};
use super::verdict::rotation;
use super::{LONG_BYTES, LONG_DEPTH, Options, Rotation};
use crate::error::{Error, Result};
use crate::host::load;
use crate::watch::Watcher;

/// Of what is free, at most this part is written.
const ROOM_PART: u64 = 8;
/// With less than this the disk would hardly begin to work.
const BYTES_MIN: u64 = 16 << 20;
/// After so much it hears whether it shall stop, and looks at the clock.
const TURN_BYTES: u64 = BYTES_MIN;
/// How long random reads are tried, and how many at a time.
const READ_TIME: Duration = Duration::from_millis(100);
const READ_DEPTH: usize = 16;

/// Where, and how much at most.
#[derive(Debug, Clone)]
pub struct RateOptions {
    /// The directory whose disk it is about.
    pub dir: PathBuf,
    /// The most that is written; less where there is little room.
    pub bytes_max: u64,
    /// How long it writes at most; a slow disk gets less to write.
    pub time_max: Duration,
}

impl RateOptions {
    /// The defaults, in `dir`: 256 MiB, or as much as is written in 10 seconds.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), bytes_max: 256 << 20, time_max: Duration::from_secs(10) }
    }
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteRate {
    /// What was written, and is on the medium.
    pub bytes: u64,
    /// How long that took, the sync at the end included.
    pub time: Duration,
    /// What random reads say of the claim that the disk rotates.
    pub rotation: Rotation,
    /// What must be known to read the figures.
    pub notes: Vec<String>,
}

impl WriteRate {
    /// The rate.
    #[must_use]
    pub fn bytes_per_s(&self) -> u64 {
        let micros = self.time.as_micros().max(1);
        u64::try_from(u128::from(self.bytes) * 1_000_000 / micros).unwrap_or(u64::MAX)
    }
}

/// How much of `free_bytes` is written when `bytes_max` are wanted; `None` where that would be too
/// little to tell anything.
fn amount(free_bytes: u64, bytes_max: u64) -> Option<u64> {
    let bytes = bytes_max.min(free_bytes / ROOM_PART) / LONG_BYTES as u64 * LONG_BYTES as u64;
    (bytes >= BYTES_MIN).then_some(bytes)
}

/// Writes in sequence into a file without a name, syncs it, and reads it at random for a moment.
/// Nothing is left behind.
///
/// # Errors
/// [`Error::Cancelled`] when it was told to stop; [`Error::Missing`] when there is too little room;
/// else as the disk says.
pub fn write_rate(options: &RateOptions, watcher: &dyn Watcher) -> Result<WriteRate> {
    const STEPS: usize = 2;
    let dir = &options.dir;
    let (storage, load) = (probe(dir)?, load());
    let status =
        statvfs(dir).map_err(Error::other(format!("ask how full {} is", dir.display())))?;
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

/// Writes the file from its beginning, a few requests under way at a time, and syncs it. Says how
/// much it wrote before its time was over.
fn fill(scratch: &Scratch, time_max: Duration, watcher: &dyn Watcher) -> Result<(u64, Duration)> {
    let file = scratch.open(Open { direct: true, ..Open::default() })?;
    let content = noise(LONG_BYTES);
    let started = Instant::now();
    let mut written = 0;
    while written < scratch.bytes && (written == 0 || started.elapsed() < time_max) {
        watcher.check()?;
        let end = scratch.bytes.min(written + TURN_BYTES);
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

/// The median of single random reads in microseconds, and how many times as many there are when
/// many are under way.
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
    fn a_disk_is_never_filled_for_having_been_measured() {
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
    fn a_rate_is_measured_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let options = RateOptions { bytes_max: 16 << 20, ..RateOptions::new(dir.path()) };
        let rate = write_rate(&options, &Silent).unwrap();
        assert_eq!(rate.bytes, 16 << 20);
        assert!(rate.bytes_per_s() > 0 && rate.time > Duration::ZERO);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn it_ends_when_its_time_is_over_or_it_is_told_to() {
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
        assert_eq!(write_rate(&hasty, &Silent).unwrap().bytes, TURN_BYTES);
    }
}
