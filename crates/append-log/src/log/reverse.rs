//! Reads the records of a log from the newest to the oldest.

use std::sync::Arc;

use super::Log;
use crate::append::commit::Shared;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind, RecordHeader};
use crate::lsn::{Lsn, Position};
use crate::read::segment_reader::{SegmentReader, padded};

/// The number of bytes that are searched for the beginnings of records at a time.
const WINDOW_BYTES: u32 = 256 << 10;

/// A reader that delivers the durable records of a log in reverse order, beginning with the newest
/// one before an LSN.
///
/// A record does not contain the position of the record before it. The reader therefore searches
/// the bytes before a record for the header of another one. It reads the file in pieces of 256 KiB,
/// each once unless a record crosses their border.
#[derive(Debug)]
pub struct ReverseReader {
    shared: Arc<Shared>,
    /// The number of the segment being read; older segments follow.
    number: u32,
    /// The end of the next record in this segment; `None` if it is not known, because the segment
    /// ends at an unknown offset.
    end: Option<u32>,
    open: Option<SegmentReader>,
    /// The range of the file that was searched last, and the offsets of the records that begin in
    /// it and were not delivered yet, in ascending order.
    piece: (u32, u32),
    found: Vec<u32>,
}

impl Log {
    /// Returns a reader that delivers the durable records before `before`, newest first. With
    /// [`Log::synced`] it begins with the newest record of the log.
    ///
    /// `before` must be the LSN of a record or of the end of the log. The reader does not deliver
    /// records that are appended after this call.
    #[must_use]
    pub fn reverse_reader(&self, before: Lsn) -> ReverseReader {
        let before = before.min(self.synced());
        let end = Some(before.offset());
        let shared = Arc::clone(&self.shared);
        let number = before.segment();
        ReverseReader { shared, number, end, open: None, piece: (0, 0), found: Vec::new() }
    }

    /// Returns the position of the oldest record of the log; `None` if no record is durable.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if bytes before this record are invalid, and [`Error::Disk`] if a
    /// file cannot be read.
    pub fn first_record(&self) -> Result<Option<Position>> {
        Ok(self.reader(Lsn::default()).read_next()?.map(|(at, _)| at))
    }

    /// Returns the position of the newest durable record of the log; `None` if there is none.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if bytes after this record are invalid, and [`Error::Disk`] if a
    /// file cannot be read.
    pub fn last_record(&self) -> Result<Option<Position>> {
        Ok(self.reverse_reader(self.synced()).read_previous()?.map(|(at, _)| at))
    }

    /// Returns the greatest length of a payload that can be appended: a record must fit into a
    /// segment of [`crate::Options::segment_bytes`], and a payload has at most 256 MiB.
    /// [`Log::append`] returns [`Error::TooLong`] for a longer one. Set
    /// [`crate::Options::segment_bytes`] to append longer records, or append their parts.
    #[must_use]
    pub fn payload_bytes_max(&self) -> u32 {
        self.appender.payload_bytes_max
    }
}

impl ReverseReader {
    /// Returns the next older record; `None` after the oldest one.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if bytes of the segment are invalid. The next call continues at
    /// the next older valid record.
    pub fn read_previous(&mut self) -> Result<Option<(Position, &[u8])>> {
        while self.open.is_some() || self.open_segment()? {
            let Some((offset, header)) = self.next_header()? else {
                self.leave_segment()?;
                continue;
            };
            let Some(open) = &mut self.open else { continue };
            let after = offset + padded(&header);
            // A segment with an unknown end is sealed, so its last record is the seal or ends where
            // no seal fits.
            let has_ended = header.kind == Kind::Seal || after > open.segment.records_end();
            let end = self.end.unwrap_or(if has_ended { after } else { open.segment.limit });
            self.end = Some(offset);
            if after != end {
                // The next call delivers the record before the invalid bytes.
                self.end = Some(after);
                self.found.push(offset);
                return Err(damaged(open, after, end));
            }
            open.load(offset - offset % HEADER_BYTES, after)?;
            let found = open.record_at(offset)?;
            let Some(at) = found.map(|(header, payload)| Position::of(header.lsn, payload)) else {
                return Err(damaged(open, offset, end));
            };
            if header.kind == Kind::Data {
                let open = self.open.as_mut().ok_or(Error::Invalid("no segment is open"))?;
                return Ok(Some((at, open.payload(at)?)));
            }
        }
        Ok(None)
    }

    /// Returns the newest record that begins before the current position in the segment; `None` if
    /// there is none.
    fn next_header(&mut self) -> Result<Option<(u32, RecordHeader)>> {
        let Some(open) = &mut self.open else { return Ok(None) };
        loop {
            let (from, to) = self.piece;
            if let Some(offset) = self.found.pop() {
                // The bytes after the piece complete a header or a search at its end.
                open.load(from, to + HEADER_BYTES)?;
                if let Some(header) = open.header_at(offset)? {
                    return Ok(Some((offset, header)));
                }
            } else if from <= HEADER_BYTES {
                return Ok(None);
            } else {
                let start = from.saturating_sub(WINDOW_BYTES).max(HEADER_BYTES);
                self.piece = (start - start % HEADER_BYTES, from);
                open.load(self.piece.0, from + HEADER_BYTES)?;
                self.found = open.headers_between(self.piece.0, from)?;
            }
        }
    }

    /// Opens the newest existing segment up to the current one. Returns `false` if there is none.
    fn open_segment(&mut self) -> Result<bool> {
        loop {
            let segments = self.shared.segments.read();
            let Some((number, segment)) = segments.range(..=self.number).next_back() else {
                return Ok(false);
            };
            let (number, segment) = (*number, Arc::clone(segment));
            drop(segments);
            if number != self.number {
                (self.number, self.end) = (number, None);
            }
            let file = match segment.sequential(&*self.shared.disk, false) {
                Ok(file) => file,
                // The segment was removed in the meantime: the loop tries the one before it.
                Err(_) if !self.shared.segments.read().contains_key(&number) => continue,
                Err(error) => return Err(error),
            };
            let known_end = (segment.end() < segment.limit).then(|| segment.end());
            self.end = match (self.end, known_end) {
                (Some(end), Some(known)) => Some(end.min(known)),
                (end, known) => end.or(known),
            };
            let limit = self.end.unwrap_or(segment.limit);
            self.open = Some(SegmentReader::new(&segment, &file, limit, HEADER_BYTES as usize));
            (self.piece, self.found) = ((limit, limit), Vec::new());
            return Ok(true);
        }
    }

    /// Continues with the segment before the current one. Reports invalid bytes at the beginning of
    /// the current segment.
    fn leave_segment(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        let end = self.end.take().unwrap_or(open.segment.limit);
        let has_older = self.number.checked_sub(1);
        self.number = has_older.unwrap_or(0);
        if end > HEADER_BYTES {
            return Err(damaged(&open, HEADER_BYTES, end));
        }
        Ok(())
    }
}

fn damaged(open: &SegmentReader, from: u32, to: u32) -> Error {
    let what = format!("{} bytes are invalid", to.saturating_sub(from));
    Error::Damaged { file: open.segment.path.clone(), offset: from.into(), what }
}
