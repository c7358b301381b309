//! Reads parts of a record, also after the segment that contains it was removed.

use std::sync::Arc;

use super::Log;
use crate::error::{Error, Result};
use crate::format::RECORD_HEADER_BYTES;
use crate::lsn::Position;
use crate::segments::Segment;

/// A record whose file stays readable as long as this exists.
///
/// If the segment is removed from the log, its file is not recycled before this is dropped. On a
/// nearly full disk a new segment may need this file, so it should be dropped soon.
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
}

impl PinnedRecord {
    /// Returns the position of the record.
    #[must_use]
    pub fn position(&self) -> Position {
        self.at
    }

    /// Reads the bytes of the payload from `offset` on into `buffer`, with one request. The checksum
    /// of the record is not verified, because it covers the whole payload. Use this only if the
    /// payload contains other checksums.
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

    /// Returns the offset in the file of the bytes of the payload from `offset` on.
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
