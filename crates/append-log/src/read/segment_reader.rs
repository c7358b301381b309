//! Finding records in the file of a segment, whatever else is in it.

use std::sync::Arc;

use haul_disk::{File, PAGE_BYTES, align_down};

use crate::error::Result;
use crate::format::{
    HEADER_BYTES, Kind, RECORD_ALIGN, RECORD_HEADER_BYTES, RecordHeader, record_bytes,
};
use crate::lsn::{Lsn, Position};
use crate::read::feeder::{FEED_BYTES, Feeder, Window, Windows};
use crate::segments::Segment;

/// Most of an unused segment looks like this.
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// How many bytes a record takes.
pub(crate) fn padded(header: &RecordHeader) -> u32 {
    u32::try_from(record_bytes(header.payload_bytes as usize)).unwrap_or(u32::MAX)
}

/// What lies behind bytes that do not check out.
pub(crate) struct Beyond {
    /// The furthest watermark of the records there.
    pub(crate) synced_max: Lsn,
    /// Behind the last byte that is not zero; in a recycled file behind the last record.
    pub(crate) written_end: u32,
}

/// Reads the records of one segment, wherever they are in it.
#[derive(Debug)]
pub(crate) struct SegmentReader {
    pub(crate) segment: Arc<Segment>,
    file: Arc<dyn File>,
    /// Nothing is looked at from here on.
    limit: u32,
    /// How much is read at a time.
    window_bytes_max: usize,
    /// What was read last.
    window: Window,
    /// Reads the rest in order.
    feeder: Option<Feeder>,
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
            feeder: None,
        }
    }

    /// The same, for reading all of it in order: a thread reads ahead.
    pub(crate) fn ahead(
        segment: &Arc<Segment>,
        file: &Arc<dyn File>,
        limit: u32,
        windows: &Windows,
    ) -> Self {
        let end = u64::from(limit).next_multiple_of(PAGE_BYTES as u64);
        let mut reader = Self::new(segment, file, limit, FEED_BYTES);
        reader.feeder = Feeder::start(file, u64::from(HEADER_BYTES), end, windows);
        reader
    }

    /// Looks at everything up to another limit. What was read beyond the old one is forgotten.
    pub(crate) fn set_limit(&mut self, limit: u32) {
        self.window.forget_from(self.limit.min(limit).into());
        self.limit = limit;
    }

    /// The payload of the record that was just read there.
    pub(crate) fn payload(&mut self, at: Position) -> Result<&[u8]> {
        let bytes = RECORD_HEADER_BYTES + at.payload_bytes as usize;
        Ok(self.bytes_at(at.lsn.offset(), bytes)?.get(RECORD_HEADER_BYTES..).unwrap_or(&[]))
    }

    /// The bytes at `offset`, `bytes` of them unless the file ends before.
    fn bytes_at(&mut self, at: u32, bytes: usize) -> Result<&[u8]> {
        let offset = u64::from(at);
        if !self.window.has(offset, bytes) {
            let start = align_down(offset, PAGE_BYTES as u64);
            let is_fed = match &mut self.feeder {
                Some(feeder) => feeder.go_on(&mut self.window, start)?,
                None => false,
            };
            if !is_fed || !self.window.has(offset, bytes) && self.window.end() < self.limit.into() {
                let rest = self.limit.next_multiple_of(HEADER_BYTES).saturating_sub(at) as usize;
                let wanted = (bytes + PAGE_BYTES).max(self.window_bytes_max.min(rest));
                let wanted = wanted.next_multiple_of(PAGE_BYTES);
                self.window.read(&*self.file, start, wanted)?;
            }
        }
        Ok(self.window.get(offset, bytes))
    }

    /// The record at `offset`, whole, if there is one and it checks out.
    pub(crate) fn record_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let record = self.claimed_at(offset)?;
        Ok(record.filter(|(header, payload)| header.is_of(payload)))
    }

    /// The record of data at `offset` whose header checks out and whose payload does not.
    pub(crate) fn damaged_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let record = self.claimed_at(offset)?;
        Ok(record.filter(|(header, payload)| header.kind == Kind::Data && !header.is_of(payload)))
    }

    /// The record the header at `offset` claims, if that checks out, and all its bytes are there.
    fn claimed_at(&mut self, offset: u32) -> Result<Option<(RecordHeader, &[u8])>> {
        let (salt, number) = (self.segment.salt, self.segment.number);
        let room = self.limit.saturating_sub(offset) as usize;
        if room < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let bytes = self.bytes_at(offset, RECORD_HEADER_BYTES)?;
        if bytes.len() < RECORD_HEADER_BYTES {
            return Ok(None);
        }
        let Some(header) = RecordHeader::decode(salt, bytes, Lsn::new(number, offset)) else {
            return Ok(None);
        };
        let whole = RECORD_HEADER_BYTES + header.payload_bytes as usize;
        if whole > room {
            return Ok(None);
        }
        let payload = self.bytes_at(offset, whole)?.get(RECORD_HEADER_BYTES..);
        let is_whole = |payload: &&[u8]| payload.len() == header.payload_bytes as usize;
        Ok(payload.filter(is_whole).map(|payload| (header, payload)))
    }

    /// The first page, or rest of one, from `offset` on that is not all zeros: where it begins
    /// and where its zeros do.
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

    /// The first record that checks out at `offset` or behind, and where the bytes before it that
    /// are not zero end; in a recycled file, where they mean nothing, that is `offset`.
    pub(crate) fn next_record(
        &mut self,
        offset: u32,
    ) -> Result<(Option<(u32, RecordHeader)>, u32)> {
        let (mut offset, mut written_end) = (offset, offset);
        while let Some((start, end)) = self.next_written_page(offset)? {
            let page_end = (start + 1).next_multiple_of(HEADER_BYTES).min(self.limit);
            for at in self.claims_in(start, page_end)? {
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

    /// The places between `start` and `end` where a header says that it belongs there.
    fn claims_in(&mut self, start: u32, end: u32) -> Result<Vec<u32>> {
        let number = self.segment.number;
        let bytes = self.bytes_at(start, (end - start) as usize + RECORD_HEADER_BYTES)?;
        let claims = (start..end).zip(bytes.windows(RECORD_HEADER_BYTES)).step_by(RECORD_ALIGN);
        let is_claim =
            |(at, header): &(u32, &[u8])| RecordHeader::claims(header, Lsn::new(number, *at));
        Ok(claims.filter(is_claim).map(|(at, _)| at).collect())
    }

    /// Looks at everything behind `from`, where no record begins.
    pub(crate) fn survey(&mut self, from: u32) -> Result<Beyond> {
        let mut beyond = Beyond { synced_max: Lsn(0), written_end: from };
        let mut offset = from;
        loop {
            let (found, written_end) = self.next_record(offset)?;
            beyond.written_end = beyond.written_end.max(written_end);
            let Some((at, header)) = found else { return Ok(beyond) };
            offset = at + padded(&header);
            beyond.written_end = beyond.written_end.max(offset);
            beyond.synced_max = beyond.synced_max.max(header.synced);
        }
    }
}

impl Drop for SegmentReader {
    fn drop(&mut self) {
        if let Some(feeder) = &self.feeder {
            feeder.give_back(std::mem::take(&mut self.window));
        }
    }
}
