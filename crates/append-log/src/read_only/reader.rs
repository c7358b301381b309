//! Reads a read-only log's records in order.

use super::snapshot::ReadOnlyLog;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::{Lsn, Position};
use crate::read::segment_reader::{SegmentReader, padded};
use crate::replay::Damage;

/// The number of bytes per read request.
const WINDOW_BYTES: usize = 256 << 10;

/// A reader that delivers a [`ReadOnlyLog`]'s records in order, up to that log's end.
#[derive(Debug)]
pub struct ReadOnlyReader<'a> {
    log: &'a ReadOnlyLog,
    /// The LSN of the first record to deliver.
    from: Lsn,
    /// The LSN at which the reader looks for the next record.
    at: Lsn,
    open: Option<SegmentReader>,
}

impl ReadOnlyLog {
    /// Reads a whole segment in order, up to the end that the log had when it was opened. Passes
    /// every valid record to `each` and returns the damage found, in which [`Damage::end`] is
    /// always `u64::MAX`.
    ///
    /// # Errors
    /// Returns [`Error::Disk`] if the file cannot be read, [`Error::Invalid`] if the log has no
    /// such segment, and [`Error::SegmentRemoved`] if the writing process removed it and its bytes
    /// are invalid.
    pub fn scan(&self, number: u32, each: &mut dyn FnMut(Position, &[u8])) -> Result<Vec<Damage>> {
        let path = &self.segment(number)?.segment.path;
        let mut reader = self.reader(Lsn::new(number, 0));
        let mut damage = Vec::new();
        loop {
            match reader.read_next() {
                Ok(Some((at, payload))) if at.lsn.segment() == number => each(at, payload),
                Ok(_) => return Ok(damage),
                Err(Error::Damaged { file, offset, what }) if file == *path => {
                    damage.push(Damage { file, offset, end: u64::MAX, what });
                }
                // The damage is in a later segment.
                Err(Error::Damaged { .. }) => return Ok(damage),
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns a reader that delivers the records at `from` and after it. With `Lsn::default()` it
    /// begins with the oldest record.
    #[must_use]
    pub fn reader(&self, from: Lsn) -> ReadOnlyReader<'_> {
        ReadOnlyReader::new(self, from)
    }
}

impl<'a> ReadOnlyReader<'a> {
    fn new(log: &'a ReadOnlyLog, from: Lsn) -> Self {
        Self { log, from, at: Lsn::new(from.segment(), HEADER_BYTES), open: None }
    }

    /// Returns the next record, or `None` at the end of the log.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if the segment has invalid bytes; the next call continues at the
    /// first valid record after the damage. Returns [`Error::SegmentRemoved`] if bytes are invalid
    /// because the writing process removed the segment.
    pub fn read_next(&mut self) -> Result<Option<(Position, &[u8])>> {
        let Some(at) = self.advance()? else { return Ok(None) };
        let open = self.open.as_mut().ok_or(Error::Invalid("no segment is open"))?;
        Ok(Some((at, open.payload(at)?)))
    }

    /// Finds the next record and advances past it. Returns `None` at the end of the log.
    fn advance(&mut self) -> Result<Option<Position>> {
        loop {
            let mut segments = self.log.segments.range(self.at.segment()..);
            let Some((number, read)) = segments.next() else { return Ok(None) };
            if *number != self.at.segment() {
                self.at = Lsn::new(*number, HEADER_BYTES);
                self.open = None;
            }
            let lsn = self.at;
            if lsn.offset() >= read.end {
                self.open = None;
                let Some(next) = number.checked_add(1) else { return Ok(None) };
                self.at = Lsn::new(next, HEADER_BYTES);
                continue;
            }
            let open = self.open.get_or_insert_with(|| {
                SegmentReader::new(&read.segment, &read.segment.file, read.end, WINDOW_BYTES)
            });
            let found = open.record_at(lsn.offset())?;
            let found = found.map(|(header, payload)| (header, Position::of(lsn, payload)));
            let Some((header, at)) = found else { return self.skip_damage().map(|()| None) };
            // The bytes after a seal are ignored. If opening did not read a segment's records, its
            // end is unknown.
            let after =
                if header.kind == Kind::Seal { read.end } else { lsn.offset() + padded(&header) };
            self.at = Lsn::new(*number, after);
            if header.kind == Kind::Data && lsn >= self.from {
                return Ok(Some(at));
            }
        }
    }

    /// Advances past the invalid bytes at the current position and returns them as an error.
    fn skip_damage(&mut self) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let offset = self.at.offset();
        let next = open.next_record(offset.saturating_add(8))?.0;
        let segment = &open.segment;
        let file = segment.path.clone();
        if !self.log.has_name(segment)? {
            return Err(Error::SegmentRemoved { file });
        }
        let end = self.log.segment(segment.number)?.end;
        let next = next.map_or(end, |(next, _)| next);
        self.at = Lsn::new(segment.number, next);
        let what = format!("{} bytes are invalid", next - offset);
        Err(Error::Damaged { file, offset: offset.into(), what })
    }
}
