//! Defines the source of wall-clock time and of the local time zone: the system, or a test.

use std::fmt;
use std::time::SystemTime;

use haul_disk::File;
use time::{OffsetDateTime, UtcOffset};

use super::utc::micros;

/// A source of wall-clock time and of the local time zone, for file names and rotations.
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

    /// Returns the offset of local time from UTC at `utc`, both in seconds. By default, this is the
    /// time zone of the system: that of `TZ` or `/etc/localtime` when it was first used.
    fn local_offset(&self, utc: i64) -> i64 {
        let time = OffsetDateTime::from_unix_timestamp(utc);
        let offset = time.ok().and_then(|time| UtcOffset::local_offset_at(time).ok());
        offset.map_or(0, |offset| offset.whole_seconds().into())
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
