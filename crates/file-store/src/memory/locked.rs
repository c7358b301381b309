//! Objects in volumes whose bytes are locked in the page cache, and verified once. From then on the
//! kernel can send them without a copy: their pages are neither evicted nor overwritten, so the
//! kernel sends exactly the verified bytes.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use haul_append_log::{LockedBytes, Log, PinnedRecord};
use haul_sync::Mutex;

use crate::error::Result;
use crate::format::BLOCK_BYTES;

/// The number of locked objects. Each has a mapping, of which the kernel allows a process 65,530
/// (`vm.max_map_count`).
const OBJECTS_MAX: u64 = 16 << 10;

/// The memory for locked objects in volumes.
#[derive(Debug)]
pub(crate) struct LockedMemory {
    bytes_max: u64,
    /// `true` after the kernel refused to lock memory.
    is_refused: AtomicBool,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    objects: u64,
    bytes: u64,
}

/// One object's share, until the object is neither cached nor being sent.
#[derive(Debug)]
struct Share {
    bytes: u64,
    used: Arc<Mutex<Used>>,
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.used.lock();
        used.objects -= 1;
        used.bytes -= self.bytes;
    }
}

/// The location of an object's data, and its block checksums.
pub(crate) struct DataLocation<'a> {
    pub(crate) record: &'a PinnedRecord,
    pub(crate) data_at: u32,
    pub(crate) bytes: u32,
    pub(crate) checksums: &'a [u32],
}

impl LockedMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, is_refused: AtomicBool::new(false), used: Arc::default() }
    }

    /// Returns the number of locked bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.used.lock().bytes
    }

    /// Locks an object's data, and verifies it. Returns `None` if the data is damaged: a normal
    /// read then reports the damage.
    pub(crate) fn lock(&self, log: &Log, data: &DataLocation<'_>) -> Option<LockedObject> {
        let share = self.share(data.bytes.into())?;
        let bytes = match log.lock_payload(data.record, data.data_at, data.bytes) {
            Ok(bytes) => bytes?,
            Err(_) => {
                self.is_refused.store(true, Relaxed);
                return None;
            }
        };
        let mut block = [0; BLOCK_BYTES];
        for (number, checksum) in data.checksums.iter().enumerate() {
            let at = number * BLOCK_BYTES;
            let block = &mut block[..BLOCK_BYTES.min(bytes.bytes().checked_sub(at)?)];
            bytes.read(at, block).ok()?;
            if haul_crc::crc32c(block) != *checksum {
                return None;
            }
        }
        Some(LockedObject { bytes, _share: share })
    }

    fn share(&self, bytes: u64) -> Option<Share> {
        if self.is_refused.load(Relaxed) {
            return None;
        }
        let mut used = self.used.lock();
        let after = Used { objects: used.objects + 1, bytes: used.bytes + bytes };
        if after.objects > OBJECTS_MAX || after.bytes > self.bytes_max {
            return None;
        }
        *used = after;
        Some(Share { bytes, used: Arc::clone(&self.used) })
    }
}

/// An object's bytes in a volume, locked in the page cache and verified.
#[derive(Debug)]
pub struct LockedObject {
    bytes: LockedBytes,
    _share: Share,
}

impl LockedObject {
    /// Returns the offset of the first byte in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.bytes.offset()
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.bytes() as u64
    }

    /// Returns `true` if the volume was removed. Its file's space is freed only when all its locked
    /// objects are dropped, so drop them.
    #[must_use]
    pub fn is_volume_removed(&self) -> bool {
        self.bytes.is_segment_removed()
    }

    /// Copies up to `bytes_max` bytes at `offset`.
    pub(crate) fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.bytes());
        let mut copy = vec![0; bytes_max.min(self.bytes.bytes() - from)];
        self.bytes.read(from, &mut copy)?;
        Ok(Bytes::from(copy))
    }
}

impl AsFd for LockedObject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bytes.as_fd()
    }
}
