//! Defines the source of wall-clock time: the system clock, or a clock controlled by a test.

use std::fmt;
use std::time::SystemTime;

use haul_disk::File;

use crate::utc::micros;

/// A source of wall-clock time, for file names and rotation intervals.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the time in microseconds since the Unix epoch.
    fn now_us(&self) -> u64;

    /// Returns the modification time of `file` in microseconds since the Unix epoch; `None` if the
    /// disk has no modification times.
    fn modified_us(&self, file: &dyn File) -> Option<u64> {
        let status = rustix::fs::fstat(file.descriptor()?).ok()?;
        let seconds = u64::try_from(status.st_mtime).ok()?;
        seconds.checked_mul(1_000_000)?.checked_add(status.st_mtime_nsec / 1000)
    }
}

/// The system clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> u64 {
        micros(SystemTime::now())
    }
}
