//! Reads parts of a record, even after its segment was removed.

use std::sync::Arc;

use super::{LockedBytes, Log};
use crate::error::{Error, Result};
use crate::format::RECORD_HEADER_BYTES;
use crate::lsn::Position;
use crate::segments::Segment;

/// A record whose file stays readable while this value exists.
///
/// If the segment is removed from the log, its file is not recycled before this value is dropped.
/// On a nearly full disk a new segment may need this file, so drop it soon.
#[derive(Debug, Clone)]
pub struct PinnedRecord {
    pub(super) segment: Arc<Segment>,
    at: Position,
}

impl Log {
    /// Pins the record at `at`, so that parts of it can be read. Performs no I/O.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the record was removed.
    pub fn pin(&self, at: Position) -> Result<PinnedRecord> {
        Ok(PinnedRecord { segment: self.segment_of(at.lsn)?, at })
    }

    /// Locks `bytes` bytes of a record's payload, beginning at offset `from`, in the page cache
    /// (`mlock`), if they are already there. The caller can then verify them once, and send them
    /// with `sendfile(2)` any number of times without a copy.
    ///
    /// Returns `None` if not all of them are in the page cache, if the file is not on this machine,
    /// or if the log still writes so close to them that its direct writes could remove their pages
    /// from the page cache.
    ///
    /// The segment's file will not be recycled, because sockets may hold its pages for a long time:
    /// when the segment is removed, its file is removed. Then drop the bytes soon, so that their
    /// space is freed: [`LockedBytes::is_segment_removed`] and [`Log::locked_removals`] report the removal.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the payload ends before these bytes, and [`Error::Disk`] if a
    /// system call fails, such as at the limit `RLIMIT_MEMLOCK`.
    pub fn lock_payload(
        &self,
        record: &PinnedRecord,
        from: u32,
        bytes: u32,
    ) -> Result<Option<LockedBytes>> {
        let offset = record.payload_at(from, bytes.into())?;
        LockedBytes::lock(&record.segment, offset, bytes, self.synced())
    }

    /// Returns the number of segments that were removed while [`Log::lock_payload`] had locked some
    /// of their bytes.
    #[must_use]
    pub fn locked_removals(&self) -> u64 {
        self.pool.locked_removals()
    }
}

impl PinnedRecord {
    /// Returns the record's position and length.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Fills `buffer` with the payload bytes at `offset`, with one request. The record's checksum
    /// is not verified, because it covers the whole payload. Use this only if the payload contains
    /// other checksums.
    ///
    /// # Errors
    /// Returns [`Error::Invalid`] if the payload ends before the end of `buffer`, or if the record
    /// was removed by [`Log::truncate_back`]. Returns [`Error::Damaged`] if the file is too short.
    pub fn read_payload_at(&self, offset: u32, buffer: &mut [u8]) -> Result<()> {
        let from = self.payload_at(offset, buffer.len() as u64)?;
        if haul_disk::read_full(&*self.segment.file, buffer, from)? < buffer.len() {
            let what = "the file ends within the record".to_owned();
            return Err(Error::Damaged { file: self.segment.path.clone(), offset: from, what });
        }
        Ok(())
    }

    /// Returns the file offset of the payload byte `offset`. Fails if the payload ends within
    /// `bytes` bytes of it, or if the record was removed.
    pub(super) fn payload_at(&self, offset: u32, bytes: u64) -> Result<u64> {
        if u64::from(offset) + bytes > u64::from(self.at.payload_bytes) {
            return Err(Error::Invalid("the record ends before the bytes to read"));
        }
        let lsn = self.at.lsn;
        if lsn.offset() >= self.segment.end() {
            return Err(Error::Invalid("the record was removed by a truncation"));
        }
        Ok(u64::from(lsn.offset()) + RECORD_HEADER_BYTES as u64 + u64::from(offset))
    }
}
