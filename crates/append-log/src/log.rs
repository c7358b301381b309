//! The log itself: opening, reading, removing, closing.

use std::cmp::Ordering;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use haul_disk::{Disk, probe};

use crate::append::batch::Tail;
use crate::append::commit::Shared;
use crate::append::writer::{Writer, choose};
use crate::error::{Error, Result};
use crate::format::{HEADER_BYTES, RECORD_HEADER_BYTES};
use crate::lsn::{Lsn, Position};
use crate::options::Options;
use crate::read::feeder::Windows;
use crate::read::scan::{Known, scan};
use crate::recover::replay::{Damage, Recovered, Replay, SegmentInfo};
use crate::recover::{Opened, recover};
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::segments::prepare::Preparer;
use crate::stats::Stats;
use crate::ways::{Ways, ways};

/// An append log in a directory of its own.
///
/// All calls may be made from several threads at once.
#[derive(Debug)]
pub struct Log {
    pub(crate) options: Options,
    pub(crate) shared: Arc<Shared>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) ways: Ways,
    preparer: Preparer,
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
        // A simulated disk has a root that is not there.
        let mut ways = ways(probe(disk.root()).ok().as_ref());
        let opened = recover(&disk, &options, &ways, replay)?;
        let Opened { segments, pool, current, end, next, recovered } = opened;
        choose(&*disk, &current, end, options.sync_method, &mut ways)?;
        let tail = |segment: Arc<Segment>| -> Result<Tail> {
            let writer = Writer::open(&*disk, &segment, ways.sync_method)?;
            Ok(Tail { segment, writer })
        };
        let (current, next) = (tail(current)?, next.map(tail).transpose()?);
        let buffer_bytes = options.buffer_bytes as usize;
        let shared = Shared::new(Arc::clone(&disk), segments, current, end, next, buffer_bytes)?;
        let (shared, pool) = (Arc::new(shared), Arc::new(pool));

        let no_thread = |source| haul_disk::Error::new(haul_disk::Op::Open, disk.root(), source);
        let preparer = Preparer::start(Arc::clone(&shared), Arc::clone(&pool), ways.sync_method)
            .map_err(no_thread)?;
        let committer = thread::Builder::new()
            .name("log-commit".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.commit_until_closed()
            })
            .map_err(no_thread)?;
        let log = Self { options, shared, pool, ways, preparer, committer: Some(committer) };
        Ok((log, recovered))
    }

    /// How this log writes on its storage, and why.
    #[must_use]
    pub fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Reads a record with one request and checks it.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the medium does not return what was written there,
    /// [`Error::Invalid`] when it was removed.
    pub fn read(&self, at: Position) -> Result<Record> {
        let bytes = self.segment_of(at)?.read(at)?;
        Ok(Record { bytes })
    }

    /// Reads the first bytes of a record's payload, as many as `buffer` takes, without the check
    /// that the whole record allows: for payloads with a checksum of their own in front.
    ///
    /// # Errors
    /// As [`Log::read`], except that damage goes unnoticed.
    pub fn read_front(&self, at: Position, buffer: &mut [u8]) -> Result<()> {
        let segment = self.segment_of(at)?;
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
        let file = segment.sequential(&*self.shared.disk, false)?;
        let synced = self.synced();
        let known = match number.cmp(&synced.segment()) {
            Ordering::Less if segment.end() < segment.bytes => Known::SyncedTo(segment.end()),
            Ordering::Less => Known::Sealed,
            Ordering::Equal => Known::SyncedTo(synced.offset()),
            Ordering::Greater => Known::SyncedTo(HEADER_BYTES),
        };
        Ok(scan(&segment, &file, known, &Windows::default(), &mut each)?.damage)
    }

    fn segment_of(&self, at: Position) -> Result<Arc<Segment>> {
        let segment = self.segment(at.lsn.segment())?;
        if at.lsn.offset() < segment.end() {
            return Ok(segment);
        }
        Err(Error::Invalid("the record was removed by a truncation"))
    }

    pub(crate) fn segment(&self, number: u32) -> Result<Arc<Segment>> {
        let segments = self.shared.segments.read();
        segments.get(&number).cloned().ok_or(Error::Invalid("there is no segment of this number"))
    }

    /// Everything before this is on the medium.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        self.shared.state.lock().synced
    }

    /// Waits until everything appended before is on the medium, whoever appended it.
    ///
    /// # Errors
    /// [`Error::Latched`].
    ///
    /// # Durability
    /// When this returns `Ok`, all records appended before survive a power cut.
    pub fn sync(&self) -> Result<()> {
        self.shared.wait_for_all()
    }

    /// The segments begun and not removed, oldest first; the last is the one being written.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.segments.read().values().map(|segment| SegmentInfo::of(segment)).collect()
    }

    /// How many removed segments are kept to be used again.
    #[must_use]
    pub fn spare_segments(&self) -> usize {
        self.pool.spares()
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
        let mut state = self.shared.state.lock();
        state.is_closing = true;
        self.shared.tell_more(&mut state);
        drop(state);
        self.shared.work.notify_all();
        self.shared.prepare.notify_all();
        drop(committer.join());
        self.preparer.join();
        closed
    }

    /// The mark goes out alone, when all else is on the medium: so it proves that all else was.
    fn mark_closed(&self) -> Result<()> {
        self.shared.wait_for_all()?;
        match self.push_close() {
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
