//! What time it is: the machine's clock, or that of a test.

use std::fmt;
use std::time::SystemTime;

use haul_disk::File;

use crate::utc::micros;

/// Tells the time, for names of files and for their intervals.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Microseconds since 1970.
    fn now_us(&self) -> u64;

    /// When a file was last written to, in the same count; unknown on a disk without times.
    fn modified_us(&self, file: &dyn File) -> Option<u64> {
        let status = rustix::fs::fstat(file.descriptor()?).ok()?;
        let seconds = u64::try_from(status.st_mtime).ok()?;
        seconds.checked_mul(1_000_000)?.checked_add(status.st_mtime_nsec / 1000)
    }
}

/// The clock of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_us(&self) -> u64 {
        micros(SystemTime::now())
    }
}
