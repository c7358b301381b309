//! Reads single records by their position, and whole segments in order.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Log;
use crate::error::{Error, Result};
use crate::format::HEADER_BYTES;
use crate::lsn::{Lsn, Position};
use crate::read::read_ahead::Windows;
use crate::read::scan::{SegmentState, scan};
use crate::record::Record;
use crate::replay::{Damage, Replay};
use crate::segments::Segment;

impl Log {
    /// Reads the record at `at` with one request and verifies its checksum.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if the checksum does not match, and [`Error::Invalid`] if the
    /// record was removed.
    pub fn read(&self, at: Position) -> Result<Record> {
        self.segment_of(at.lsn)?.read(at)
    }

    /// Reads the record at `lsn`, whose length is unknown, and verifies its checksum.
    ///
    /// Reads with one request if the payload has at most `payload_bytes_hint` bytes, otherwise
    /// reads the rest with a second request. The request with the hint may read bytes after the
    /// record, which are not returned. [`Record::position`] returns the record's length.
    ///
    /// # Errors
    /// Fails like [`Log::read`].
    pub fn read_hinted(&self, lsn: Lsn, payload_bytes_hint: u32) -> Result<Record> {
        self.read_hinted_into(lsn, payload_bytes_hint, Vec::new())
    }

    /// Reads a record like [`Log::read_hinted`], into `buffer`, which the record then owns. The
    /// buffer's length and content do not matter; a buffer that is long enough is neither
    /// reallocated nor zeroed.
    ///
    /// # Errors
    /// Fails like [`Log::read`].
    pub fn read_hinted_into(
        &self,
        lsn: Lsn,
        payload_bytes_hint: u32,
        buffer: Vec<u8>,
    ) -> Result<Record> {
        self.segment_of(lsn)?.read_hinted(lsn, payload_bytes_hint, buffer)
    }

    /// Reads a record like [`Log::read_hinted_into`] if all of it is in the page cache, and never
    /// waits for the device. Returns `None` if it is not, if the system cannot tell, or if the
    /// payload has more than `payload_bytes_max` bytes.
    ///
    /// # Errors
    /// Fails like [`Log::read`].
    pub fn read_hinted_cached(
        &self,
        lsn: Lsn,
        payload_bytes_hint: u32,
        payload_bytes_max: u32,
        buffer: Vec<u8>,
    ) -> Result<Option<Record>> {
        let segment = self.segment_of(lsn)?;
        segment.read_hinted_cached(lsn, payload_bytes_hint, payload_bytes_max, buffer)
    }

    /// Reads the first bytes of a record's payload into `buffer`. The record's checksum is not
    /// verified, because it covers the whole payload. Use this only if the first payload bytes
    /// contain another checksum.
    ///
    /// # Errors
    /// Fails like [`Log::read`], but detects damage only if the file is too short.
    pub fn read_front(&self, at: Position, buffer: &mut [u8]) -> Result<()> {
        let wanted = buffer.len().min(at.payload_bytes as usize);
        self.pin(at)?.read_payload_at(0, &mut buffer[..wanted])
    }

    /// Reads the front of the record at `lsn`, whose length is unknown, with one request. Returns
    /// the record's position and its first payload bytes: all of them, or as many as `buffer` holds
    /// after the record header, which takes [`crate::RECORD_HEADER_BYTES`].
    ///
    /// The header's checksum is verified, so the position and the payload's end are correct. The
    /// payload's checksum is not verified, because it covers the whole payload. Use this only if
    /// the first payload bytes contain another checksum.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if the header is damaged or the file is too short, and
    /// [`Error::Invalid`] if the record was removed or `buffer` is shorter than a record header.
    pub fn read_front_hinted<'a>(
        &self,
        lsn: Lsn,
        buffer: &'a mut [u8],
    ) -> Result<(Position, &'a [u8])> {
        self.segment_of(lsn)?.read_front_hinted(lsn, buffer)
    }

    /// Reads the front of a record like [`Log::read_front_hinted`] if it is in the page cache, and
    /// never waits for the device. Returns `None` if it is not, or if the system cannot tell.
    ///
    /// # Errors
    /// Fails like [`Log::read_front_hinted`].
    pub fn read_front_hinted_cached<'a>(
        &self,
        lsn: Lsn,
        buffer: &'a mut [u8],
    ) -> Result<Option<(Position, &'a [u8])>> {
        self.segment_of(lsn)?.read_front_hinted_cached(lsn, buffer)
    }

    /// Reads a whole segment in order, using the kernel's readahead. Passes every valid record to
    /// `each` and returns the damage found. If the segment is being written, the scan ends at the
    /// last record that was synced when the scan began.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read, and [`Error::Invalid`] if the log has no
    /// such segment.
    pub fn scan(
        &self,
        number: u32,
        mut each: &mut dyn FnMut(Position, &[u8]),
    ) -> Result<Vec<Damage>> {
        self.scan_segment(number, false, &mut each)
    }

    /// Scans a segment like [`Log::scan`], but bypasses the page cache, so that a background check
    /// for damage evicts no other data. [`Replay::wants_more`] can end the scan early.
    ///
    /// # Errors
    /// Fails like [`Log::scan`].
    pub fn scan_direct(&self, number: u32, replay: &mut dyn Replay) -> Result<Vec<Damage>> {
        self.scan_segment(number, true, replay)
    }

    fn scan_segment(
        &self,
        number: u32,
        direct: bool,
        replay: &mut dyn Replay,
    ) -> Result<Vec<Damage>> {
        let segment = self.segment(number)?;
        let file = segment.sequential(&*self.shared.disk, direct)?;
        let synced = self.synced();
        let known = match number.cmp(&synced.segment()) {
            Ordering::Less if segment.end() < segment.limit => {
                SegmentState::SyncedTo(segment.end())
            }
            Ordering::Less => SegmentState::Sealed,
            Ordering::Equal => SegmentState::SyncedTo(synced.offset()),
            Ordering::Greater => SegmentState::SyncedTo(HEADER_BYTES),
        };
        Ok(scan(&segment, &file, (HEADER_BYTES, known), &Windows::default(), replay)?.damage)
    }

    pub(super) fn segment_of(&self, lsn: Lsn) -> Result<Arc<Segment>> {
        let segment = self.segment(lsn.segment())?;
        if lsn.offset() < segment.end() {
            return Ok(segment);
        }
        Err(Error::Invalid("the record was removed by a truncation"))
    }
}
