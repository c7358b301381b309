//! Group commit: while one buffer is being written and synced, the next one fills.
//!
//! Many threads put records into the filling buffer; one thread takes it whole, hands it to the
//! kernel with one write, syncs once, and wakes everybody whose record was in it. There is no
//! deliberate wait: a batch is what came while the one before was being synced.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_disk::AlignedBuf;
use parking_lot::{Condvar, Mutex, RwLock};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segment::Segment;
use crate::stats::Counters;

/// How far the next segment has come.
#[derive(Debug)]
pub(crate) enum Next {
    /// Nobody asked for it yet.
    Unasked,
    /// It is being made.
    Preparing,
    /// It can be written to.
    Ready(Arc<Segment>),
    /// It could not be made, and somebody waits to hear why.
    Failed(Error),
}

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
            let outcome = batch.carry_out(&self.counters);
            let mut state = self.state.lock();
            match outcome {
                Ok(()) => {
                    state.synced = batch.end();
                    state.spare = Some(batch.into_buffer());
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
