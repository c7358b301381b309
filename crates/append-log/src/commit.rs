//! Group commit: while one buffer is being written and synced, the next one fills.
//!
//! Many threads put records into the filling buffer; one thread takes it whole, hands it to the
//! kernel with one write, syncs once, and wakes everybody whose record was in it. There is no
//! deliberate wait: a batch is what came while the one before was being synced.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use haul_disk::{AlignedBuf, Durability, PAGE_BYTES, align_down, align_up, write_full};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::error::{Error, Result};
use crate::format::{Kind, RECORD_HEADER_BYTES, RecordHeader, record_bytes};
use crate::lsn::{Lsn, Position};
use crate::prepare::Next;
use crate::segment::Segment;
use crate::stats::Counters;

/// What the threads of a log share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// The filling buffer has something to commit, or the log is closing.
    pub(crate) work: Condvar,
    /// A buffer or a segment became free, or never will.
    pub(crate) room: Condvar,
    /// More is on the medium, or nothing will be any more.
    pub(crate) done: Condvar,
    /// All segments begun, for readers.
    pub(crate) segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filling: Batch,
    /// The other buffer, when it is not being committed.
    spare: Option<AlignedBuf>,
    /// Everything before this is on the medium.
    pub(crate) synced: Lsn,
    pub(crate) next: Next,
    pub(crate) waiting_for_next: usize,
    pub(crate) closing: bool,
    /// The failed write or sync that stopped the log for good.
    pub(crate) latched: Option<Arc<haul_disk::Error>>,
}

impl Shared {
    /// A log that goes on at `end` of `segment`.
    pub(crate) fn new(
        segments: BTreeMap<u32, Arc<Segment>>,
        segment: Arc<Segment>,
        end: u32,
        next: Option<Arc<Segment>>,
        buffer_bytes: usize,
    ) -> haul_disk::Result<Self> {
        let synced = Lsn::new(segment.number, end);
        let filling = Batch::resume(segment, end, buffer_bytes)?;
        Ok(Self {
            state: Mutex::new(State {
                filling,
                spare: Some(AlignedBuf::zeroed(buffer_bytes)),
                synced,
                next: next.map_or(Next::Unasked, Next::Ready),
                waiting_for_next: 0,
                closing: false,
                latched: None,
            }),
            work: Condvar::new(),
            room: Condvar::new(),
            done: Condvar::new(),
            segments: RwLock::new(segments),
            counters: Counters::default(),
        })
    }

    /// Waits until everything before `end` is on the medium.
    pub(crate) fn wait_for(&self, end: Lsn) -> Result<()> {
        self.wait_until(|state| state.synced >= end)
    }

    /// Waits until everything appended is on the medium.
    pub(crate) fn wait_for_all(&self) -> Result<()> {
        self.wait_until(|state| !state.filling.has_new() && state.spare.is_some())
    }

    fn wait_until(&self, is_done: impl Fn(&State) -> bool) -> Result<()> {
        let mut state = self.state.lock();
        while !is_done(&state) {
            if let Some(source) = &state.latched {
                return Err(Error::Latched { source: Arc::clone(source) });
            }
            self.done.wait(&mut state);
        }
        Ok(())
    }

    /// The commit thread: takes batches until the log closes or latches.
    pub(crate) fn commit_until_closed(&self) {
        while let Some(mut batch) = self.take_batch() {
            let began = batch.carry_out(&self.counters);
            let mut state = self.state.lock();
            match began {
                Ok(()) => {
                    state.synced = batch.end();
                    state.spare = Some(batch.buffer);
                }
                Err(error) => state.latched = Some(Arc::new(error)),
            }
            let latched = state.latched.is_some();
            drop(state);
            self.done.notify_all();
            self.room.notify_all();
            if latched {
                return;
            }
        }
    }

    /// Waits for a batch with something new in it, and puts the other buffer in its place.
    fn take_batch(&self) -> Option<Batch> {
        let mut state = self.state.lock();
        while !state.filling.has_new() {
            if state.closing {
                return None;
            }
            self.work.wait(&mut state);
        }
        let buffer = state.spare.take().expect("only this thread takes the other buffer");
        let following = if state.filling.sealed {
            let Next::Ready(segment) = std::mem::replace(&mut state.next, Next::Unasked) else {
                unreachable!("a batch is sealed only when the next segment is ready");
            };
            self.segments.write().insert(segment.number, Arc::clone(&segment));
            Batch::begin(segment, buffer)
        } else {
            state.filling.followed_in(buffer)
        };
        let batch = std::mem::replace(&mut state.filling, following);
        drop(state);
        self.room.notify_all();
        Some(batch)
    }
}

/// Records on their way to one segment: whole pages of it, beginning with what is already there.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) segment: Arc<Segment>,
    buffer: AlignedBuf,
    /// The offset in the segment of the buffer's first byte, a multiple of the page.
    start: u32,
    /// Bytes at the front of the buffer that are on the medium already. They are written again,
    /// bit for bit the same, so that a torn page cannot harm them.
    carried: usize,
    used: usize,
    /// The last record is the segment's seal.
    pub(crate) sealed: bool,
}

impl Batch {
    fn begin(segment: Arc<Segment>, buffer: AlignedBuf) -> Self {
        let start = crate::format::HEADER_BYTES;
        Self { segment, buffer, start, carried: 0, used: 0, sealed: false }
    }

    /// Goes on at `end`, with the begun page read back.
    fn resume(segment: Arc<Segment>, end: u32, buffer_bytes: usize) -> haul_disk::Result<Self> {
        let mut buffer = AlignedBuf::zeroed(buffer_bytes);
        let start = page_start(end);
        let carried = (end - start) as usize;
        haul_disk::read_full(&*segment.file, &mut buffer[..carried], u64::from(start))?;
        Ok(Self { segment, buffer, start, carried, used: carried, sealed: false })
    }

    /// The batch behind this one in the same segment: it begins with this one's last page.
    fn followed_in(&self, mut buffer: AlignedBuf) -> Self {
        let end = self.offset();
        let start = page_start(end);
        let carried = (end - start) as usize;
        buffer[..carried].copy_from_slice(&self.buffer[self.used - carried..self.used]);
        let segment = Arc::clone(&self.segment);
        Self { segment, buffer, start, carried, used: carried, sealed: false }
    }

    fn has_new(&self) -> bool {
        self.used > self.carried
    }

    /// Where the next record goes in the segment.
    pub(crate) fn offset(&self) -> u32 {
        self.start + offset_of(self.used)
    }

    fn end(&self) -> Lsn {
        Lsn::new(self.segment.number, self.offset())
    }

    /// Whether a record and a seal behind it fit in what is left of the buffer.
    pub(crate) fn fits(&self, record_bytes: usize) -> bool {
        self.used + record_bytes + crate::format::record_bytes(0) <= self.buffer.len()
    }

    /// Puts a record behind the others; there must be room.
    ///
    /// Its watermark is where the new records of its batch begin: the batch is written only when
    /// the one before it has been synced.
    pub(crate) fn push(
        &mut self,
        kind: Kind,
        payload: &[&[u8]],
        payload_checksum: u32,
    ) -> Position {
        let lsn = self.end();
        let synced = Lsn::new(self.segment.number, self.start + offset_of(self.carried));
        let bytes: usize = payload.iter().map(|part| part.len()).sum();
        let payload_bytes = offset_of(bytes);
        let header = RecordHeader { kind, payload_bytes, lsn, synced, payload_checksum };
        let record = &mut self.buffer[self.used..self.used + record_bytes(bytes)];
        let (head, mut rest) = record.split_at_mut(RECORD_HEADER_BYTES);
        head.copy_from_slice(&header.encode(self.segment.nonce));
        for part in payload {
            rest[..part.len()].copy_from_slice(part);
            rest = &mut rest[part.len()..];
        }
        rest.fill(0);
        self.used += record_bytes(bytes);
        self.sealed = kind == Kind::Seal;
        Position { lsn, payload_bytes }
    }

    /// One write of whole pages and one sync.
    ///
    /// 1. The write. After a crash any of its sectors may be there: the carried bytes are the
    ///    same as before, and new records that are torn do not check out.
    /// 2. The sync. Now all of them are there, and may be acknowledged.
    fn carry_out(&mut self, counters: &Counters) -> haul_disk::Result<()> {
        let bytes = align_up(self.used as u64, PAGE_BYTES as u64);
        let whole_pages = usize::try_from(bytes).expect("a buffer fits in memory");
        // The buffer was used before; what it still holds must not look like a torn tail.
        self.buffer[self.used..whole_pages].fill(0);
        write_full(&*self.segment.file, &self.buffer[..whole_pages], u64::from(self.start))?;
        let began = Instant::now();
        self.segment.file.sync(Durability::Data)?;
        counters.batch(bytes, began.elapsed());
        Ok(())
    }
}

fn offset_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("what is in a buffer fits in a segment")
}

fn page_start(offset: u32) -> u32 {
    u32::try_from(align_down(u64::from(offset), PAGE_BYTES as u64)).expect("rounded down")
}
