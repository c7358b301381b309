//! Finds records in a segment's file, at any offset and among invalid bytes.

use std::sync::Arc;

use haul_disk::{File, PAGE_BYTES, align_down};

use crate::error::Result;
use crate::format::{
    HEADER_BYTES, Kind, RECORD_ALIGN, RECORD_HEADER_BYTES, RecordHeader, record_bytes,
};
use crate::lsn::{Lsn, Position};
use crate::read::read_ahead::{READ_AHEAD_BYTES, ReadAhead, Window, Windows};
use crate::segments::Segment;

/// A page of zeros, as in a segment's unused part.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Returns the length in bytes that a record takes in its segment, padding included.
pub(crate) fn padded(header: &RecordHeader) -> u32 {
    u32::try_from(record_bytes(header.payload_bytes as usize)).unwrap_or(u32::MAX)
}

/// A summary of the records and bytes after an offset at which no record begins.
pub(crate) struct TailSurvey {
    /// The greatest `synced` field of the records after that offset.
    pub(crate) synced_max: Lsn,
    /// The offset after the last non-zero byte or, in a recycled file, after the last record.
    pub(crate) written_end: u32,
}

/// A reader for one segment's records, at any offset.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    pub(crate) segment: Arc<Segment>,
    file: Arc<dyn File>,
    /// The offset at which reading ends.
    limit: u32,
    /// The maximum number of bytes per read request, except for longer records.
    window_bytes_max: usize,
    /// The range of the file that was read last.
    window: Window,
    /// The readahead thread, if the reader is sequential.
    read_ahead: Option<ReadAhead>,
}

impl SegmentReader {
    pub(crate) fn new(
        segment: &Arc<Segment>,
        file: &Arc<dyn File>,
        limit: u32,
        window_bytes_max: usize,
    ) -> Self {
        Self {
            segment: Arc::clone(segment),
            file: Arc::clone(file),
            limit,
            window_bytes_max,
            window: Window::default(),
            read_ahead: None,
        }
    }

    /// Creates a reader for sequential reading from offset `from`, with a readahead thread.
    pub(crate) fn sequential(
        segment: &Arc<Segment>,
        file: &Arc<dyn File>,
        (from, limit): (u32, u32),
        windows: &Windows,
    ) -> Self {
        let start = align_down(from.into(), PAGE_BYTES as u64);
        let end = u64::from(limit).next_multiple_of(PAGE_BYTES as u64);
        let mut reader = Self::new(segment, file, limit, READ_AHEAD_BYTES);
        reader.read_ahead = ReadAhead::start(file, start, end, windows);
        reader
    }

    /// Changes the offset at which reading ends. Discards bytes already read after the old limit,
    /// because they may have been overwritten since.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.window.truncate(self.limit.min(limit).into());
        self.limit = limit;
    }

    /// Returns the payload of the record at `at`, which the caller has just found with
    /// [`Self::record_at`].
    pub(crate) fn payload(&mut self, at: Position) -> Result<&[u8]> {
        let bytes = RECORD_HEADER_BYTES + at.payload_bytes as usize;
        Ok(self.bytes_at(at.lsn.offset(), bytes)?.get(RECORD_HEADER_BYTES..).unwrap_or(&[]))
    }

    /// Returns `bytes` bytes at offset `at`, or fewer if the file ends before.
    fn bytes_at(&mut self, at: u32, bytes: usize) -> Result<&[u8]> {
        let offset = u64::from(at);
        if !self.window.has(offset, bytes) {
            let start = align_down(offset, PAGE_BYTES as u64);
            let has_advanced = match &mut self.read_ahead {
                Some(read_ahead) => read_ahead.advance(&mut self.window, start)?,
                None => false,
            };
            if !has_advanced
                || !self.window.has(offset, bytes) && self.window.end() < self.limit.into()
            {
                let rest = self.limit.next_multiple_of(HEADER_BYTES).saturating_sub(at) as usize;
                let wanted = (bytes + PAGE_BYTES).max(self.window_bytes_max.min(rest));
                let wanted = wanted.next_multiple_of(PAGE_BYTES);
                self.window.read(&*self.file, start, wanted)?;
            }
        }
        Ok(self.window.get(offset, bytes))
    }

    /// Returns the record at `offset` if it is complete and its checksums match.
    pub(crate) fn record_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let record = self.with_header_at(offset)?;
        Ok(record.filter(|(header, payload)| header.matches(payload)))
    }

    /// Returns the record at `offset` as it is stored, padding included. The caller has just found
    /// it with [`Self::record_at`].
    pub(crate) fn stored(&mut self, offset: u32, header: &RecordHeader) -> Result<&[u8]> {
        self.bytes_at(offset, padded(header) as usize)
    }

    /// Returns the data record at `offset` if its header is valid and its payload is not.
    pub(crate) fn damaged_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        if self.record_at(offset)?.is_some() {
            return Ok(None);
        }
        let record = self.with_header_at(offset)?;
        Ok(record.filter(|(header, _)| header.kind == Kind::Data))
    }

    /// Returns the record at `offset` if its header is valid and its payload lies within the limit
    /// and the file. The payload is not verified.
    fn with_header_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let Some(header) = self.header_at(offset)? else { return Ok(None) };
        let whole = RECORD_HEADER_BYTES + header.payload_bytes as usize;
        let payload = self.bytes_at(offset, whole)?.get(RECORD_HEADER_BYTES..);
        let is_whole = |payload: &&[u8]| payload.len() == header.payload_bytes as usize;
        Ok(payload.filter(is_whole).map(|payload| (header, payload)))
    }

    /// Returns the header at `offset` if it is valid and its payload lies within the limit. The
    /// payload is not read.
    pub(crate) fn header_at(&mut self, offset: u32) -> Result<Option<RecordHeader>> {
        let (salt, number) = (self.segment.salt, self.segment.number);
        let room = self.limit.saturating_sub(offset) as usize;
        if room < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let bytes = self.bytes_at(offset, RECORD_HEADER_BYTES)?;
        if bytes.len() < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let header = RecordHeader::decode(salt, bytes, Lsn::new(number, offset));
        let fits =
            |header: &RecordHeader| RECORD_HEADER_BYTES + header.payload_bytes as usize <= room;
        Ok(header.filter(fits))
    }

    /// Searches for a page that is not all zeros, beginning with the rest of the page at `offset`.
    /// Returns its start and the offset after its last non-zero byte.
    pub(crate) fn next_written_page(&mut self, offset: u32) -> Result<Option<(u32, u32)>> {
        let mut offset = offset;
        while offset < self.limit {
            let page_end = (offset + 1).next_multiple_of(HEADER_BYTES).min(self.limit);
            let page = self.bytes_at(offset, (page_end - offset) as usize)?;
            if *page != ZEROS[..page.len()] {
                let last = page.iter().rposition(|byte| *byte != 0).unwrap_or(0);
                return Ok(Some((offset, offset + u32::try_from(last).unwrap_or(0) + 1)));
            }
            offset = page_end;
        }
        Ok(None)
    }

    /// Returns the first valid record at or after `offset`, and the offset after the last non-zero
    /// byte in the pages before that record. In a recycled file, which contains stale bytes, the
    /// second value is `offset` itself.
    pub(crate) fn next_record(
        &mut self,
        offset: u32,
    ) -> Result<(Option<(u32, RecordHeader)>, u32)> {
        let (mut offset, mut written_end) = (offset, offset);
        while let Some((start, end)) = self.next_written_page(offset)? {
            let page_end = (start + 1).next_multiple_of(HEADER_BYTES).min(self.limit);
            for at in self.candidates_in(start, page_end)? {
                if let Some((header, _)) = self.record_at(at)? {
                    return Ok((Some((at, header)), written_end));
                }
            }
            offset = page_end;
            if !self.segment.is_recycled {
                written_end = end;
            }
        }
        Ok((None, written_end))
    }

    /// Returns the offsets between `start` and `end` at which the bytes contain the offset's own
    /// LSN, as a record header does.
    fn candidates_in(&mut self, start: u32, end: u32) -> Result<Vec<u32>> {
        let number = self.segment.number;
        let bytes = self.bytes_at(start, (end - start) as usize + RECORD_HEADER_BYTES)?;
        let offsets = (start..end).zip(bytes.windows(RECORD_HEADER_BYTES)).step_by(RECORD_ALIGN);
        let is_candidate =
            |(at, header): &(u32, &[u8])| RecordHeader::has_lsn(header, Lsn::new(number, *at));
        Ok(offsets.filter(is_candidate).map(|(at, _)| at).collect())
    }

    /// Summarizes the records and bytes after `from`, an offset at which no record begins.
    pub(crate) fn survey(&mut self, from: u32) -> Result<TailSurvey> {
        let mut survey = TailSurvey { synced_max: Lsn(0), written_end: from };
        let mut offset = from;
        loop {
            let (found, written_end) = self.next_record(offset)?;
            survey.written_end = survey.written_end.max(written_end);
            let Some((at, header)) = found else { return Ok(survey) };
            offset = at + padded(&header);
            survey.written_end = survey.written_end.max(offset);
            survey.synced_max = survey.synced_max.max(header.synced);
        }
    }
}

impl Drop for SegmentReader {
    fn drop(&mut self) {
        if let Some(read_ahead) = &self.read_ahead {
            read_ahead.release(std::mem::take(&mut self.window));
        }
    }
}
