//! Locks a record's bytes in the page cache.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use haul_disk::{Map, align_down, resident};

use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segments::Segment;

/// The longest page cache unit, in processor pages: ext4 and XFS use no longer folios
/// (`MAX_PAGECACHE_ORDER`). Each begins at a multiple of its length.
const FOLIO_PAGES_MAX: u64 = 2048;

/// A record's bytes in the page cache. While this value exists, or the kernel sends the bytes, they
/// are neither dropped nor overwritten.
#[derive(Debug)]
pub struct LockedBytes {
    segment: Arc<Segment>,
    pages: Map,
    /// The file offset of the first byte.
    offset: u64,
    bytes: usize,
    /// The first byte's offset in its page.
    skipped: usize,
}

impl LockedBytes {
    /// Locks a segment's bytes, if all of them are in the page cache and the log does not write
    /// near them. The log ends at `synced`.
    pub(super) fn lock(
        segment: &Arc<Segment>,
        offset: u64,
        bytes: u32,
        synced: Lsn,
    ) -> Result<Option<Self>> {
        let is_possible = bytes > 0
            && segment.file.is_local()
            && segment.file.descriptor().is_some()
            && is_settled(segment, offset + u64::from(bytes), synced);
        if !is_possible
            || resident(&*segment.file, offset, bytes.into())?.resident_bytes < u64::from(bytes)
            || !segment.pages.share()
        {
            return Ok(None);
        }
        let start = align_down(offset, rustix::param::page_size() as u64);
        let whole = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (skipped, bytes) = (whole(offset - start), whole(bytes.into()));
        let pages = Map::range_for_reading(Arc::clone(&segment.file), start, skipped + bytes)?;
        pages.lock()?;
        Ok(Some(Self { segment: Arc::clone(segment), pages, offset, bytes, skipped }))
    }

    /// Returns the first byte's offset in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of locked bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// `true` if the segment was removed: its file's space is freed once all its locked bytes are
    /// dropped.
    #[must_use]
    pub fn is_segment_removed(&self) -> bool {
        self.segment.pages.is_retired()
    }

    /// Copies the locked bytes at offset `at` into `buffer`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if fewer bytes are locked.
    pub fn read(&self, at: usize, buffer: &mut [u8]) -> Result<()> {
        if at.checked_add(buffer.len()).is_none_or(|end| end > self.bytes) {
            return Err(Error::Invalid("fewer bytes are locked"));
        }
        Ok(self.pages.read(buffer, self.skipped + at)?)
    }
}

/// `true` if the log writes to no page cache unit that begins before `end`. A direct write removes
/// the page cache units that it overlaps, even if they are locked.
fn is_settled(segment: &Segment, end: u64, synced: Lsn) -> bool {
    let unit = FOLIO_PAGES_MAX * rustix::param::page_size() as u64;
    segment.number < synced.segment()
        || segment.number == synced.segment()
            && end.next_multiple_of(unit) <= synced.offset().into()
}

impl AsFd for LockedBytes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.file.descriptor().expect("only files with a descriptor can be mapped")
    }
}
