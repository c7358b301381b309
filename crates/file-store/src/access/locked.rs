//! Objects of volumes whose bytes are locked in the page cache, and verified once. From then on the
//! kernel can send them without a copy: their pages are neither evicted nor overwritten, so the
//! bytes that are sent are those that were verified.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use haul_append_log::{LockedBytes, RECORD_HEADER_BYTES};
use haul_sync::Mutex;

use crate::access::block_data::BlockData;
use crate::access::get::candidate_at;
use crate::access::lookup::HEAD_READ_BYTES;
use crate::access::object::{Content, Object};
use crate::counters::Counters;
use crate::error::Result;
use crate::format::BLOCK_BYTES;
use crate::inner::Inner;
use crate::object::ObjectLocation;
use crate::store::Store;

/// The number of locked objects. Each has a mapping, of which the kernel allows a process 65,530
/// (`vm.max_map_count`).
const OBJECTS_MAX: u64 = 16 << 10;

/// The memory for locked objects of volumes.
#[derive(Debug)]
pub(crate) struct LockedMemory {
    bytes_max: u64,
    /// The kernel refused to lock memory.
    is_refused: AtomicBool,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Used {
    objects: u64,
    bytes: u64,
}

/// The share of one object, until it is neither cached nor being sent.
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

impl LockedMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, is_refused: AtomicBool::new(false), used: Arc::default() }
    }

    /// Returns the number of locked bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.used.lock().bytes
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

/// The bytes of an object in a volume, locked in the page cache and verified.
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
        self.bytes.len() as u64
    }

    /// `true` if the volume was removed. The space of its file is free once all of its locked
    /// objects are dropped, so they should be.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.bytes.is_removed()
    }

    /// Copies the object.
    pub(super) fn read(&self, offset: u64, bytes_max: usize) -> Result<Bytes> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let mut copy = vec![0; bytes_max.min(self.bytes.len() - from)];
        self.bytes.read(from, &mut copy)?;
        Ok(Bytes::from(copy))
    }
}

impl AsFd for LockedObject {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bytes.as_fd()
    }
}

impl Store {
    /// Returns the object at a location like [`Store::get_cached_at`], with its bytes locked in the
    /// page cache and verified: [`Object::locked`]. Copies nothing, and waits for no disk.
    ///
    /// Returns `None` if the object has at most 64 KiB, is stored in an encoded form, is not in a
    /// volume or not wholly in the page cache, if the log still writes near it, or if
    /// [`crate::Options::locked_bytes_max`] or the system forbids it. Use another function then.
    #[must_use]
    pub fn get_locked_at(
        &self,
        bucket: &str,
        key: &str,
        location: ObjectLocation,
    ) -> Option<Object> {
        let inner = &self.inner;
        let mut buffer = [0; RECORD_HEADER_BYTES + HEAD_READ_BYTES];
        let candidate = candidate_at(location);
        let (at, front) = inner.log.read_front_hinted_cached(candidate.lsn, &mut buffer).ok()??;
        inner.counters.needle_read(front.len());
        let (entry, attributes, data) = inner.blocks(at, front, bucket, key).ok()??;
        if entry.etag.is_encoded() {
            return None;
        }
        let locked = inner.lock(&data)?;
        Counters::count(&inner.counters.gets);
        let content = Content::Locked(Arc::new(locked));
        Some(Object { info: entry.info(key), attributes, content })
    }

    /// Returns the number of volumes that were removed while objects of them were locked: after a
    /// change, look for those whose [`LockedObject::is_removed`] is `true`.
    #[must_use]
    pub fn locked_removals(&self) -> u64 {
        self.inner.log.shared_removals()
    }
}

impl Inner {
    /// Locks the data of an object, and verifies it. Damage is left to a read, which reports it.
    fn lock(&self, data: &BlockData) -> Option<LockedObject> {
        let share = self.locked.share(data.bytes.into())?;
        let bytes = match self.log.lock(&data.record, data.data_at, data.bytes) {
            Ok(bytes) => bytes?,
            Err(_) => {
                self.locked.is_refused.store(true, Relaxed);
                return None;
            }
        };
        let mut block = [0; BLOCK_BYTES];
        for (number, checksum) in data.blocks.iter().enumerate() {
            let at = number * BLOCK_BYTES;
            let block = &mut block[..BLOCK_BYTES.min(bytes.len().checked_sub(at)?)];
            bytes.read(at, block).ok()?;
            if haul_crc::crc32c(block) != *checksum {
                return None;
            }
        }
        Some(LockedObject { bytes, _share: share })
    }
}
