//! Reads a log's records in order, from any LSN to the newest durable record, while other threads
//! append.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::File;
use haul_sync::now;

use super::Log;
use crate::append::commit::Shared;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};
use crate::lsn::{Lsn, Position};
use crate::read::segment_reader::{SegmentReader, padded};
use crate::segments::Segment;

/// The number of bytes per read request.
const WINDOW_BYTES: usize = 256 << 10;

/// A reader that delivers a log's records in order, including records appended after the reader was
/// created.
///
/// It delivers only durable records, which no crash can remove. A log may have any number of
/// readers. Appending threads never wait for a reader.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    /// The LSN of the first record to deliver.
    from: Lsn,
    /// The LSN at which the reader looks for the next record.
    at: Lsn,
    open: Option<SegmentReader>,
    /// The LSN up to which the log was synced when the reader last checked.
    synced: Lsn,
}

/// A segment and a file handle for sequential reading.
type OpenSegment = (Arc<Segment>, Arc<dyn File>);

impl Log {
    /// Returns a reader that delivers the records at `from` and after it. With `Lsn::default()` it
    /// begins with the oldest record.
    #[must_use]
    pub fn reader(&self, from: Lsn) -> Reader {
        let shared = Arc::clone(&self.shared);
        Reader { shared, from, at: from, open: None, synced: Lsn(0) }
    }

    /// Returns the position of the newest durable record; `None` if there is none. Reads the last
    /// segment with a record.
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if this segment or a later one has invalid bytes, and
    /// [`Error::Disk`] if a file cannot be read.
    pub fn last_record(&self) -> Result<Option<Position>> {
        for segment in self.segments().iter().rev() {
            let mut reader = self.reader(Lsn::new(segment.number, 0));
            let mut last = None;
            while let Some((at, _)) = reader.read_next()? {
                last = Some(at);
            }
            if last.is_some() {
                return Ok(last);
            }
        }
        Ok(None)
    }
}

impl Reader {
    /// Returns the next record, or `None` if no further record is durable yet.
    ///
    /// Skips segments that were removed before the reader reached them, and records removed by
    /// [`Log::truncate_back`].
    ///
    /// # Errors
    /// Returns [`Error::Damaged`] if the segment has invalid bytes. The next call continues at the
    /// first valid record after the damage.
    pub fn read_next(&mut self) -> Result<Option<(Position, &[u8])>> {
        match self.advance()? {
            Some(at) => self.deliver(at).map(Some),
            None => Ok(None),
        }
    }

    /// Waits for the next record and returns it. Returns `None` if `timeout` expires first, if the
    /// log is closed, or if a failed write or sync has stopped it.
    ///
    /// # Errors
    /// Fails like [`Reader::read_next`].
    pub fn wait_next(&mut self, timeout: Option<Duration>) -> Result<Option<(Position, &[u8])>> {
        let deadline = timeout.and_then(|timeout| now().checked_add(timeout));
        loop {
            if let Some(at) = self.advance()? {
                return self.deliver(at).map(Some);
            }
            let mut state = self.shared.state.lock();
            while state.synced == self.synced {
                if state.is_closing || state.latched.is_some() {
                    return Ok(None);
                }
                let timed_out = match deadline {
                    Some(deadline) => state.wait_until(&self.shared.more, deadline),
                    None => {
                        state.wait(&self.shared.more);
                        false
                    }
                };
                if timed_out && state.synced == self.synced {
                    return Ok(None);
                }
            }
        }
    }

    fn deliver(&mut self, at: Position) -> Result<(Position, &[u8])> {
        let open = self.open.as_mut().ok_or(Error::Invalid("no segment is open"))?;
        Ok((at, open.payload(at)?))
    }

    /// Finds the next record and advances past it. Returns `None` if no further record is durable
    /// yet.
    fn advance(&mut self) -> Result<Option<Position>> {
        self.synced = self.shared.state.lock().synced;
        loop {
            if self.open.is_none() && !self.open_segment()? {
                return Ok(None);
            }
            let Some(open) = &mut self.open else { return Ok(None) };
            let number = open.segment.number;
            let is_last = number == self.synced.segment();
            let limit = if is_last { self.synced.offset() } else { open.segment.end() };
            if self.at.offset() >= limit {
                if is_last {
                    return Ok(None);
                }
                self.leave_segment(number);
                continue;
            }
            open.set_limit(limit);
            let lsn = self.at;
            let found = open.record_at(lsn.offset())?;
            match found.map(|(header, payload)| (header, Position::of(lsn, payload))) {
                Some((header, at)) => {
                    self.at = Lsn::new(number, lsn.offset() + padded(&header));
                    match header.kind {
                        Kind::Data if lsn >= self.from => {
                            return Ok(Some(at));
                        }
                        Kind::Data | Kind::Close | Kind::Watermark => {}
                        Kind::Seal => self.leave_segment(number),
                    }
                }
                // The log was truncated before this record while the reader read the segment.
                None if lsn.offset() >= open.segment.end() => self.leave_segment(number),
                None => return self.skip_damage(limit).map(|()| None),
            }
        }
    }

    /// Opens the segment that contains the next record or, if that segment was removed, the first
    /// segment after it. Returns `false` if there is no such segment with synced records.
    fn open_segment(&mut self) -> Result<bool> {
        let Some((segment, file)) = self.next_segment()? else { return Ok(false) };
        let number = segment.number;
        let is_inside = number == self.at.segment() && self.at.offset() > HEADER_BYTES;
        let wanted = if is_inside { self.at.offset() } else { HEADER_BYTES };
        let is_last = number == self.synced.segment();
        let limit = if is_last { self.synced.offset() } else { segment.end() };
        let mut open = SegmentReader::new(&segment, &file, limit, WINDOW_BYTES);
        // If no record begins at the offset `wanted`, the segment is read from its beginning.
        let begins = wanted >= limit || open.record_at(wanted)?.is_some();
        self.at = Lsn::new(number, if begins { wanted } else { HEADER_BYTES });
        self.open = Some(open);
        Ok(true)
    }

    /// Opens the first existing segment at or after the position of the next record. Returns `None`
    /// if no such segment has synced records.
    fn next_segment(&self) -> Result<Option<OpenSegment>> {
        loop {
            let segments = self.shared.segments.read();
            let Some((number, segment)) = segments.range(self.at.segment()..).next() else {
                return Ok(None);
            };
            if *number > self.synced.segment() {
                return Ok(None);
            }
            let (number, segment) = (*number, Arc::clone(segment));
            drop(segments);
            match segment.sequential(&*self.shared.disk, false) {
                Ok(file) => return Ok(Some((segment, file))),
                // The segment was removed in the meantime: the loop tries the next one.
                Err(_) if !self.shared.segments.read().contains_key(&number) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn leave_segment(&mut self, number: u32) {
        self.open = None;
        self.at = Lsn::new(number.saturating_add(1), HEADER_BYTES);
    }

    /// Advances past the invalid bytes at the current position and returns them as an error.
    fn skip_damage(&mut self, limit: u32) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let offset = self.at.offset();
        let next = match open.next_record(offset.saturating_add(8))?.0 {
            Some((next, _)) => next,
            None => limit,
        };
        let file = open.segment.path.clone();
        self.at = Lsn::new(open.segment.number, next);
        let what = format!("{} bytes are invalid", next - offset);
        Err(Error::Damaged { file, offset: offset.into(), what })
    }
}
