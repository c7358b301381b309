//! What a device was really asked to do: the kernel's count of its requests.

use std::io;

use crate::error::{Error, Op, Result};
use crate::probe::{Device, sysfs};

/// The requests a whole disk has completed since it appeared, whoever made them.
///
/// A claim about disk work is best made in these: unlike seconds, they do not change with the
/// load of the machine.
///
/// # Source
/// `Documentation/block/stat.rst` of the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Read requests.
    pub reads: u64,
    /// Bytes they read.
    pub read_bytes: u64,
    /// Time they took, added up, in milliseconds.
    pub read_ms: u64,
    /// Write requests. Each sync counts as one too, of no bytes, unless data went along with it.
    pub writes: u64,
    /// Bytes they wrote.
    pub written_bytes: u64,
    /// Time they took, added up, in milliseconds.
    pub write_ms: u64,
    /// Requests to forget blocks.
    pub discards: u64,
    /// Bytes they forgot.
    pub discarded_bytes: u64,
    /// Times the write cache was emptied; syncs made at the same time share one.
    pub syncs: u64,
    /// Time they took, added up, in milliseconds.
    pub sync_ms: u64,
    /// Time with at least one request under way, in milliseconds.
    pub busy_ms: u64,
}

impl DeviceCounters {
    /// The counters of the whole disk that `device` is on.
    ///
    /// # Errors
    /// When the kernel does not give them: the device is gone, `/sys` is not mounted, or it is
    /// older than Linux 5.5.
    pub fn of(device: &Device) -> Result<Self> {
        let path = device.disk_dir().join("stat");
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Error::new(Op::Status, &path, source))?;
        sysfs::counters(&text).ok_or_else(|| {
            let why = "not the 17 counters of Linux 5.5 or newer";
            Error::new(Op::Status, &path, io::Error::new(io::ErrorKind::InvalidData, why))
        })
    }

    /// What was added since `before`; 0 where the device began to count anew.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads.saturating_sub(before.reads),
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            read_ms: self.read_ms.saturating_sub(before.read_ms),
            writes: self.writes.saturating_sub(before.writes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            write_ms: self.write_ms.saturating_sub(before.write_ms),
            discards: self.discards.saturating_sub(before.discards),
            discarded_bytes: self.discarded_bytes.saturating_sub(before.discarded_bytes),
            syncs: self.syncs.saturating_sub(before.syncs),
            sync_ms: self.sync_ms.saturating_sub(before.sync_ms),
            busy_ms: self.busy_ms.saturating_sub(before.busy_ms),
        }
    }
}
