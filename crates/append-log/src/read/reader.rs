//! Reading on: records in order from any LSN, up to the newest, while the log is written.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use haul_disk::File;

use crate::append::commit::Shared;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind};

use crate::log::Log;
use crate::lsn::{Lsn, Position};
use crate::read::segment_reader::{SegmentReader, padded};
use crate::segments::Segment;

/// How much is read at a time.
const WINDOW_BYTES: usize = 256 << 10;

/// Reads the records of a log in order, and what is appended meanwhile.
///
/// It sees what is on the medium and nothing else: no record it delivers can be lost in a crash.
/// Any number of them may read beside the writers, which never wait for them.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    /// The first record to deliver is here or behind.
    from: Lsn,
    /// Where the next record is looked for.
    at: Lsn,
    open: Option<SegmentReader>,
    /// What was on the medium when it last looked.
    synced: Lsn,
}

/// A segment, and its file for reading it in order.
type OpenSegment = (Arc<Segment>, Arc<dyn File>);

impl Log {
    /// A reader of the records at `from` and behind; `Lsn::default()` is the oldest.
    #[must_use]
    pub fn reader(&self, from: Lsn) -> Reader {
        let shared = Arc::clone(&self.shared);
        Reader { shared, from, at: from, open: None, synced: Lsn(0) }
    }
}

impl Reader {
    /// The next record, or `None` where there is none yet.
    ///
    /// Where segments were removed before it came to them, it goes on behind them; what a
    /// truncation took from the back is not delivered any more.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the medium does not return what was written; the next call goes on
    /// behind the damage.
    pub fn read_next(&mut self) -> Result<Option<(Position, &[u8])>> {
        match self.advance()? {
            Some(at) => self.deliver(at).map(Some),
            None => Ok(None),
        }
    }

    /// The next record, waited for: until `timeout` is over, if there is one, or the log is
    /// closed or stopped by a failed sync. `None` then.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub fn wait_next(&mut self, timeout: Option<Duration>) -> Result<Option<(Position, &[u8])>> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            if let Some(at) = self.advance()? {
                return self.deliver(at).map(Some);
            }
            let mut state = self.shared.state.lock();
            while state.synced == self.synced {
                if state.is_closing || state.latched.is_some() {
                    return Ok(None);
                }
                let is_late = match deadline {
                    Some(deadline) => self.shared.more.wait_until(&mut state, deadline).timed_out(),
                    None => {
                        self.shared.more.wait(&mut state);
                        false
                    }
                };
                if is_late && state.synced == self.synced {
                    return Ok(None);
                }
            }
        }
    }

    /// The next record, awaited; `None` when the log is closed or stopped by a failed sync.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub async fn next_async(&mut self) -> Result<Option<(Position, &[u8])>> {
        loop {
            if let Some(at) = self.advance()? {
                return self.deliver(at).map(Some);
            }
            let (shared, synced) = (&self.shared, self.synced);
            let has_more = poll_fn(|context| {
                let mut state = shared.state.lock();
                if state.synced != synced {
                    return Poll::Ready(true);
                }
                if state.is_closing || state.latched.is_some() {
                    return Poll::Ready(false);
                }
                state.wake_for_more(context.waker());
                Poll::Pending
            });
            if !has_more.await {
                return Ok(None);
            }
        }
    }

    fn deliver(&mut self, at: Position) -> Result<(Position, &[u8])> {
        let open = self.open.as_mut().ok_or(Error::Invalid("no segment is open"))?;
        Ok((at, open.payload(at)?))
    }

    /// Finds the next record and goes behind it.
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
            match open.record_at(lsn.offset())?.map(|(header, _)| header) {
                Some(header) => {
                    self.at = Lsn::new(number, lsn.offset() + padded(&header));
                    match header.kind {
                        Kind::Data if lsn >= self.from => {
                            let payload_bytes = header.payload_bytes;
                            return Ok(Some(Position { lsn, payload_bytes }));
                        }
                        Kind::Data | Kind::Close => {}
                        Kind::Seal => self.leave_segment(number),
                    }
                }
                // Taken back while it was looked at.
                None if lsn.offset() >= open.segment.end() => self.leave_segment(number),
                None => return self.pass_damage(limit).map(|()| None),
            }
        }
    }

    /// Opens the segment of the next record; where that is not there, the first one behind.
    fn open_segment(&mut self) -> Result<bool> {
        let Some((segment, file)) = self.next_segment()? else { return Ok(false) };
        let number = segment.number;
        let is_there = number == self.at.segment() && self.at.offset() > HEADER_BYTES;
        let wanted = if is_there { self.at.offset() } else { HEADER_BYTES };
        let is_last = number == self.synced.segment();
        let limit = if is_last { self.synced.offset() } else { segment.end() };
        let mut open = SegmentReader::new(&segment, &file, limit, WINDOW_BYTES);
        // Where no record begins, the way there is from the front.
        let begins = wanted >= limit || open.record_at(wanted)?.is_some();
        self.at = Lsn::new(number, if begins { wanted } else { HEADER_BYTES });
        self.open = Some(open);
        Ok(true)
    }

    /// The first segment there is at or behind the next record, opened for reading.
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
                // It was removed in this moment: the next one, then.
                Err(_) if !self.shared.segments.read().contains_key(&number) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn leave_segment(&mut self, number: u32) {
        self.open = None;
        self.at = Lsn::new(number.saturating_add(1), HEADER_BYTES);
    }

    /// Goes behind bytes that do not check out, and tells them.
    fn pass_damage(&mut self, limit: u32) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let offset = self.at.offset();
        let next = match open.next_record(offset.saturating_add(8))?.0 {
            Some((next, _)) => next,
            None => limit,
        };
        let file = open.segment.path.clone();
        self.at = Lsn::new(open.segment.number, next);
        let what = format!("{} bytes do not check out", next - offset);
        Err(Error::Damaged { file, offset: offset.into(), what })
    }
}
