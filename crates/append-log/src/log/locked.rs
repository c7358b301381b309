//! Locks bytes of a record in the page cache.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use haul_disk::{Map, resident};

use super::{Log, PinnedRecord};
use crate::error::{Error, Result};
use crate::segments::Segment;

/// The longest unit of the page cache, in pages of the processor: ext4 and XFS use no longer folios
/// (`MAX_PAGECACHE_ORDER`). Each begins at a multiple of its length.
const FOLIO_PAGES_MAX: u64 = 2048;

/// Bytes of a record in the page cache, which are neither dropped nor overwritten as long as this
/// exists, nor as long as the kernel sends them.
#[derive(Debug)]
pub struct LockedBytes {
    segment: Arc<Segment>,
    pages: Map,
    /// The first byte in the file.
    offset: u64,
    bytes: usize,
    /// The offset of the first byte in its page.
    skipped: usize,
}

impl Log {
    /// Locks `bytes` bytes of a record's payload, from `from` on, in the page cache (`mlock`), if
    /// they are there already: then they can be verified once, and be sent by `sendfile(2)` as often
    /// as needed, without a copy.
    ///
    /// Returns `None` if not all of them are in the page cache, if the file is not on this machine,
    /// or if the log still writes so close to them that its direct writes could remove their pages
    /// from the page cache.
    ///
    /// The file of the segment will not be recycled, because sockets may hold its pages for a long
    /// time: when the segment is removed, its file is removed. Drop the bytes soon after that, so
    /// that its space is free: [`LockedBytes::is_removed`], [`Log::shared_removals`].
    ///
    /// # Errors
    /// The error of the system call, such as the limit `RLIMIT_MEMLOCK`; [`Error::Invalid`] if the
    /// payload ends before these bytes.
    pub fn lock(
        &self,
        record: &PinnedRecord,
        from: u32,
        bytes: u32,
    ) -> Result<Option<LockedBytes>> {
        let offset = record.payload_at(from, bytes.into())?;
        let segment = &record.segment;
        let end = offset + u64::from(bytes);
        let is_possible = bytes > 0 && segment.file.is_local() && self.is_settled(segment, end);
        if !is_possible || segment.file.descriptor().is_none() {
            return Ok(None);
        }
        if resident(&*segment.file, offset, bytes.into())?.resident_bytes < u64::from(bytes)
            || !segment.pages.share()
        {
            return Ok(None);
        }
        let page_bytes = rustix::param::page_size() as u64;
        let start = offset - offset % page_bytes;
        let [skipped, bytes] = [offset - start, bytes.into()].map(|n| n as usize);
        let pages = Map::range_for_reading(Arc::clone(&segment.file), start, skipped + bytes)?;
        pages.lock()?;
        Ok(Some(LockedBytes { segment: Arc::clone(segment), pages, offset, bytes, skipped }))
    }

    /// `true` if the log writes to no unit of the page cache that begins before `end`. A direct
    /// write removes the units that it touches, also if they are locked.
    fn is_settled(&self, segment: &Segment, end: u64) -> bool {
        let synced = self.synced();
        let unit = FOLIO_PAGES_MAX * rustix::param::page_size() as u64;
        segment.number < synced.segment()
            || segment.number == synced.segment()
                && end.next_multiple_of(unit) <= synced.offset().into()
    }

    /// Returns the number of segments that were removed after [`Log::lock`] had locked bytes of them.
    #[must_use]
    pub fn shared_removals(&self) -> u64 {
        self.pool.shared_removals()
    }
}

impl LockedBytes {
    /// Returns the offset of the first byte in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// `true` if the segment was removed: the space of its file is free when all bytes of it are
    /// dropped.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.segment.pages.is_retired()
    }

    /// Copies the bytes from `at` on into `buffer`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are fewer.
    pub fn read(&self, at: usize, buffer: &mut [u8]) -> Result<()> {
        if at.checked_add(buffer.len()).is_none_or(|end| end > self.bytes) {
            return Err(Error::Invalid("fewer bytes are locked"));
        }
        Ok(self.pages.read(buffer, self.skipped + at)?)
    }
}

impl AsFd for LockedBytes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.segment.file.descriptor().expect("only files with a descriptor can be mapped")
    }
}
