//! The log itself: opening, reading, removing, closing.

use std::cmp::Ordering;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_disk::Disk;

use crate::append::Room;
use crate::commit::Shared;
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, Kind, RECORD_HEADER_BYTES};
use crate::lsn::Position;
use crate::names;
use crate::options::Options;
use crate::prepare::Preparer;
use crate::recover::{Opened, recover};
use crate::replay::{Damage, Recovered, Replay, SegmentInfo};
use crate::scan::{Known, scan};
use crate::segment::Segment;
use crate::stats::Stats;

/// An append log in a directory of its own.
///
/// All calls may be made from several threads at once.
#[derive(Debug)]
pub struct Log {
    disk: Arc<dyn Disk>,
    pub(crate) options: Options,
    pub(crate) shared: Arc<Shared>,
    pub(crate) preparer: Preparer,
    committer: Option<JoinHandle<()>>,
}

/// A record read back and checked.
#[derive(Debug, Clone)]
pub struct Record {
    bytes: Vec<u8>,
}

impl Record {
    /// What was appended.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[RECORD_HEADER_BYTES..]
    }

    /// The memory it was read into, and where in it the payload begins: to pass it on uncopied.
    #[must_use]
    pub fn into_bytes(self) -> (Vec<u8>, usize) {
        (self.bytes, RECORD_HEADER_BYTES)
    }
}

impl Log {
    /// Opens the log in the root of `disk`, or begins one in an empty directory, delivering its
    /// records to `replay`.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Foreign`] for files that are not what a log wrote,
    /// [`Error::Full`] when a new log finds no space for its first segment.
    ///
    /// # Durability
    /// Every record delivered is on the medium.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<(Self, Recovered)> {
        options.check()?;
        let opened = recover(&*disk, &options, replay)?;
        let Opened { segments, current, end, next, recovered } = opened;
        let buffer_bytes = options.buffer_bytes as usize;
        let shared = Arc::new(Shared::new(segments, current, end, next, buffer_bytes)?);
        let no_thread = |source| haul_disk::Error::new(haul_disk::Op::Open, disk.root(), source);
        let preparer = Preparer::start(Arc::clone(&disk), Arc::clone(&shared), options.clone())
            .map_err(no_thread)?;
        let committer = thread::Builder::new()
            .name("log-commit".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.commit_until_closed()
            })
            .map_err(no_thread)?;
        let log = Self { disk, options, shared, preparer, committer: Some(committer) };
        Ok((log, recovered))
    }

    /// Reads a record with one request and checks it.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the medium does not return what was written there,
    /// [`Error::Invalid`] when its segment was removed.
    pub fn read(&self, at: Position) -> Result<Record> {
        let bytes = self.segment(at.lsn.segment())?.read(at)?;
        Ok(Record { bytes })
    }

    /// Reads the first bytes of a record's payload, as many as `buffer` takes, without the check
    /// that the whole record allows: for payloads with a checksum of their own in front.
    ///
    /// # Errors
    /// As [`Log::read`], except that damage goes unnoticed.
    pub fn read_front(&self, at: Position, buffer: &mut [u8]) -> Result<()> {
        let segment = self.segment(at.lsn.segment())?;
        let offset = u64::from(at.lsn.offset()) + RECORD_HEADER_BYTES as u64;
        let wanted = buffer.len().min(at.payload_bytes as usize);
        let read = haul_disk::read_full(&*segment.file, &mut buffer[..wanted], offset)?;
        if read < wanted {
            let what = "the file ends within the record".to_owned();
            return Err(Error::Damaged { file: segment.path.clone(), offset, what });
        }
        Ok(())
    }

    /// Reads a whole segment in order, with the kernel's readahead, delivering every record that
    /// checks out; what does not is returned. Of the segment being written, it reads what is on
    /// the medium when it begins.
    ///
    /// # Errors
    /// When the file cannot be read, or the segment was removed.
    pub fn scan(
        &self,
        number: u32,
        mut each: &mut dyn FnMut(Position, &[u8]),
    ) -> Result<Vec<Damage>> {
        let segment = self.segment(number)?;
        let file = segment.sequential(&*self.disk)?;
        let synced = self.shared.state.lock().synced;
        let known = match number.cmp(&synced.segment()) {
            Ordering::Less => Known::Sealed,
            Ordering::Equal => Known::SyncedTo(synced.offset()),
            Ordering::Greater => Known::SyncedTo(HEADER_BYTES),
        };
        Ok(scan(&segment, &*file, known, &mut each)?.damage)
    }

    fn segment(&self, number: u32) -> Result<Arc<Segment>> {
        let segments = self.shared.segments.read();
        segments.get(&number).cloned().ok_or(Error::Invalid("there is no segment of this number"))
    }

    /// The segments begun and not removed, oldest first; the last is the one being written.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.segments.read().values().map(|segment| SegmentInfo::of(segment)).collect()
    }

    /// Removes a segment that is sealed, with all its records. Reads of them that began before
    /// still succeed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the segment being written and for one that is not there.
    ///
    /// # Durability
    /// It is gone for good when this returns.
    pub fn remove_segment(&self, number: u32) -> Result<()> {
        let is_last = self.shared.segments.read().keys().next_back() == Some(&number);
        if is_last {
            return Err(Error::Invalid("the segment being written cannot be removed"));
        }
        self.segment(number)?;
        self.disk.remove(&names::segment(number))?;
        self.shared.segments.write().remove(&number);
        self.disk.sync_dir("")?;
        Ok(())
    }

    /// Counters since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// Whether an earlier write or sync failed, so that nothing more can be appended.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.shared.state.lock().latched.is_some()
    }

    /// Waits until everything appended is on the medium, and marks the log as closed. Dropping
    /// does the same and keeps failures to itself.
    ///
    /// # Errors
    /// [`Error::Latched`].
    pub fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        let Some(committer) = self.committer.take() else { return Ok(()) };
        let closed = self.mark_closed();
        self.shared.state.lock().closing = true;
        self.shared.work.notify_all();
        drop(committer.join());
        self.preparer.stop();
        closed
    }

    /// The mark goes out alone, when all else is on the medium: so it proves that all else was.
    fn mark_closed(&self) -> Result<()> {
        self.shared.wait_for_all()?;
        match self.push(Kind::Close, &[], 0, Room::Reserve) {
            Ok(ticket) => ticket.wait().map(drop),
            // There is no room for the mark; the log reads as one that was not closed.
            Err(Error::Full { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(self.finish());
    }
}
