//! Implements group commit: while one buffer is written and synced, threads append records to the
//! other one.
//!
//! Many threads append records to the filling batch. A thread that waits for its record while no
//! thread commits takes the batch, writes it with one request, syncs it once, and notifies the
//! waiting threads and futures for all its records. A lone writer thus commits in its own thread.
//! The log's commit thread commits batches for futures and for tickets dropped without waiting. It
//! also commits the next batch if threads wait for it when a batch is synced, and all further
//! batches while several threads append: these threads then only append and wait.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::{AlignedBuf, Disk, SyncTurn};
use haul_sync::{AtomicBool, Condvar, RwLock, now, set_precise_timers, thread};

use crate::append::acknowledged::{Acknowledged, Event};
use crate::append::batch::{Batch, Tail};
use crate::append::buffers::Buffers;
use crate::append::lock::{Locked, StateLock};
use crate::append::state::{Next, State};
use crate::error::Result;
use crate::format::Kind;
use crate::options::Options;
use crate::segments::Segment;
use crate::stats::Counters;

/// The number of times that the committing thread yields without a new record before it sleeps
/// until the expected records are appended. Two writers append within that time, which is shorter
/// than a sleep; many writers need the processor.
const YIELDS_MAX: u32 = 4;

/// A log's state, which its threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) state: StateLock,
    /// Notifies the preparing thread that it has work or that the log is closing.
    pub(crate) prepare: Condvar,
    /// Notifies threads waiting to append that a buffer or the next segment is available, or that
    /// the log has stopped.
    pub(crate) room: Condvar,
    /// The number of synced batches, and the threads that wait for more.
    pub(super) acknowledged: Acknowledged,
    /// Notifies the committing thread that enough records were appended to the filling batch.
    gathered: Condvar,
    /// Notifies readers that more records are synced or that the log is closing or has stopped.
    pub(crate) more: Condvar,
    /// The segments with records and the segment being written.
    pub(crate) segments: RwLock<BTreeMap<u32, Arc<Segment>>>,
    pub(crate) counters: Counters,
    /// `true` once the log has stopped. Readable without the state lock.
    pub(crate) is_latched: AtomicBool,
    /// The time without appends after which the log writes a watermark, a record that proves that
    /// the last batch was synced; `None` if it writes none.
    pub(super) idle_after: Option<Duration>,
    /// See [`Options::pads_records`].
    pads_records: bool,
}

/// The position at which a log continues after recovery.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) tail: Tail,
    pub(crate) end: u32,
    /// `true` if the last record is a close record or a watermark, which prove that all records
    /// before them were synced, or if the log is new.
    pub(crate) is_proven: bool,
}

impl Shared {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        segments: BTreeMap<u32, Arc<Segment>>,
        start: Start,
        next: Option<Tail>,
        options: &Options,
    ) -> haul_disk::Result<Self> {
        let buffer_bytes = options.buffer_bytes as usize;
        let filling = Batch::resume(start.tail, start.end, buffer_bytes)?;
        let mut state = State::new(filling, next, Buffers::new(buffer_bytes));
        state.unproven_since = (!start.is_proven).then(now);
        Ok(Self {
            disk,
            state: StateLock::new(state),
            prepare: Condvar::new(),
            room: Condvar::new(),
            acknowledged: Acknowledged::default(),
            gathered: Condvar::new(),
            more: Condvar::new(),
            segments: RwLock::new(segments),
            counters: Counters::default(),
            is_latched: AtomicBool::new(false),
            idle_after: options.idle_after(),
            pads_records: options.pads_records,
        })
    }

    /// Waits until the batch `generation` is synced. Commits batches on this thread while no other
    /// thread does.
    pub(crate) fn wait_for(&self, state: &mut Locked<'_>, generation: u64) -> Result<()> {
        debug_assert!(generation <= state.generation, "no such batch");
        while !state.is_committed(generation) {
            state.check_latch()?;
            if !state.is_committing {
                self.commit_and_hand_over(state);
            } else if !state.deliver() {
                let last = self.register_waiter(state, generation);
                state.unlocked(|| self.acknowledged.wait(generation, last));
            }
        }
        Ok(())
    }

    /// Waits like [`Self::wait_for`]. A thread that was woken because its batch is synced does not
    /// lock the state again: with many threads, each would wait for all others.
    pub(crate) fn wait_unlocked(&self, generation: u64) -> Result<()> {
        while !self.acknowledged.has(generation) {
            let mut state = self.state.lock();
            if state.is_committed(generation) {
                break;
            }
            state.check_latch()?;
            if !state.is_committing {
                self.commit_and_hand_over(&mut state);
                continue;
            }
            // A registered thread may be chosen to commit, so it must not call wakers any more.
            if state.deliver() {
                continue;
            }
            let last = self.register_waiter(&mut state, generation);
            drop(state);
            self.acknowledged.wait(generation, last);
        }
        Ok(())
    }

    /// Registers this thread to be woken for the batch `generation`. Returns the last event, for
    /// [`Acknowledged::wait`].
    fn register_waiter(&self, state: &mut State, generation: u64) -> Event {
        debug_assert!((state.committed..=state.generation).contains(&generation));
        state.waiting.add(generation);
        state.is_wanted |= generation == state.generation;
        self.acknowledged.last_event()
    }

    /// Waits until all records appended before this call are synced.
    pub(crate) fn wait_for_all(&self, state: &mut Locked<'_>) -> Result<()> {
        state.check_latch()?;
        let behind = if state.filling.has_new() { state.generation + 1 } else { state.generation };
        behind.checked_sub(1).map_or(Ok(()), |last| self.wait_for(state, last))
    }

    /// Requests that the filling batch be committed, by the commit thread if no other thread does.
    pub(crate) fn request_commit(&self, state: &mut State) {
        state.is_wanted = true;
        if !state.is_committing {
            self.state.notify_commit_thread();
        }
    }

    /// Requests a commit for a thread that waits for space in the filling batch.
    pub(super) fn request_room(&self, state: &mut State) {
        self.end_gathering(state);
        state.is_wanted |= state.filling.has_new();
    }

    /// Runs the commit thread until the log is closed. The thread continues after a failed write or
    /// sync, because other threads leave deferred waker calls to it.
    pub(crate) fn commit_until_closed(&self) {
        set_precise_timers();
        let mut state = self.state.lock();
        loop {
            let is_wanted = state.is_wanted || state.unwritten.is_some();
            if is_wanted && state.can_commit() && state.latched.is_none() {
                self.commit(&mut state);
                self.gather_ahead(&mut state);
            } else if state.is_closing {
                return;
            } else if !self.begin_due_watermark(&mut state) {
                let deadline = self.idle_deadline(&state);
                state.wait_for_work(deadline);
            }
        }
    }

    /// Commits on the caller's thread, and leaves the next batch to another thread.
    pub(super) fn commit_and_hand_over(&self, state: &mut Locked<'_>) {
        self.commit(state);
        self.hand_over(state);
    }

    /// Executes the next step of committing a batch. No thread may be writing a batch. The caller
    /// then checks the state again and calls this function until its batch is synced.
    ///
    /// 1. Makes the deferred waker calls. A waker may run for long or wait for the log. Meanwhile
    ///    this thread must not hold a batch, so that another thread can execute any of these steps.
    /// 2. Waits briefly for the last batch's writers to append again, and on a rotational disk for
    ///    the turn of syncs. Then takes the filling batch and replaces it by a batch with the other
    ///    buffer. Waiting appends may now continue, so their wakers are called as in step 1.
    /// 3. Writes and syncs the batch, see [`Batch::write_and_sync`]. No record in the batch is
    ///    acknowledged before the sync has returned.
    /// 4. Publishes that the batch is synced, and wakes all threads that wait for it with one call.
    ///    No other thread commits before all are awake: the first of them would otherwise commit
    ///    its next record alone. Wakers of futures are called in step 1 of the next batch.
    pub(super) fn commit(&self, state: &mut Locked<'_>) {
        debug_assert!(!state.is_committing, "one thread commits at a time");
        if self.deliver_first(state) {
            return;
        }
        if state.unwritten.is_none() {
            self.gather(state);
        }
        let mut turn = match state.unwritten.is_some() || state.filling.has_new() {
            true => self.wait_for_turn(state),
            false => return,
        };
        // While this thread waited, the batch may have been taken for a long record.
        if state.unwritten.is_none() {
            if !state.filling.has_new() {
                return;
            }
            self.take_batch(state);
            if state.wakers.has_deferred() {
                // A waker may wait for the log, and then for a sync, which must not wait for this
                // turn.
                turn = None;
            }
            if self.deliver_first(state) {
                return;
            }
        }
        let Some(mut batch) = state.unwritten.take() else { return };
        debug_assert_eq!(state.committed + 1, state.generation, "at most one batch is not written");
        debug_assert!(!state.is_committing && batch.has_new());
        state.is_committing = true;
        let outcome = state.unlocked(|| {
            let outcome = batch.write_and_sync(&self.counters);
            drop(turn);
            outcome
        });
        match outcome {
            Ok(took) => {
                let generation = state.committed;
                self.finish_batch(state, batch, took);
                if state.waiting.take(generation) {
                    state.unlocked(|| self.acknowledged.wake_all(generation));
                }
                state.is_committing = false;
            }
            Err(error) => {
                state.is_committing = false;
                self.latch(state, error);
            }
        }
    }

    /// Waits on a rotational disk until it is the turn of syncs. The batch is taken afterwards, so
    /// that it has all records that were appended meanwhile.
    fn wait_for_turn(&self, state: &mut Locked<'_>) -> Option<SyncTurn<'_>> {
        let scheduler = self.disk.scheduler()?;
        state.is_committing = true;
        let turn = state.unlocked(|| scheduler.sync_turn());
        state.is_committing = false;
        Some(turn)
    }

    /// Makes the deferred waker calls, if there are any. First notifies another thread, which can
    /// commit meanwhile. Returns `true` if it made a call.
    fn deliver_first(&self, state: &mut Locked<'_>) -> bool {
        if state.wakers.has_deferred() {
            self.hand_over(state);
        }
        state.deliver()
    }

    /// Executes step 4 of [`Self::commit`] and updates the state after a batch is synced.
    fn finish_batch(&self, state: &mut State, batch: Batch, took: Duration) {
        let (now, pending) = (now(), state.filling.records);
        state.gather.batch_done(now, took, batch.bytes(), (batch.records, pending));
        self.restart_idle_time(state, batch.records, now);
        debug_assert!(batch.end() > state.synced, "LSNs increase");
        debug_assert!(batch.end() <= state.filling.end());
        state.synced = batch.end();
        state.committed += 1;
        debug_assert!(state.committed <= state.generation);
        state.batch_sizes.add(batch.bytes());
        if batch.sealed {
            debug_assert!(state.filling.tail.segment.number > batch.tail.segment.number);
            batch.tail.segment.end_at(batch.offset());
            state.batch_sizes = state.batch_sizes.next_segment();
        }
        state.keep_buffer(batch);
        self.notify_committed(state);
    }

    /// Waits on the commit thread, after it has committed a batch of several records, for their
    /// writers to append again. A writer that appended first would otherwise commit its record
    /// alone.
    fn gather_ahead(&self, state: &mut Locked<'_>) {
        let is_free = !state.is_committing && state.unwritten.is_none() && !state.is_closing;
        let may_commit = is_free && state.gather.expects_several();
        // Before this thread waits, it must make the deferred calls.
        if may_commit && !state.wakers.has_deferred() && state.latched.is_none() {
            self.gather(state);
        }
    }

    /// Waits until the expected number of records was appended or the time for waiting has passed.
    fn gather(&self, state: &mut Locked<'_>) {
        let (mut now, from) = (now(), state.filling.records);
        let Some(wait) = state.gather.wait_for(now, from) else { return };
        let (mut records, mut last) = (from, now);
        state.is_committing = true;
        state.gather_target = Some(wait.expected);
        let mut yields = 0;
        while state.gather_target.is_some() && wait.continues(now, records, last) {
            if yields < YIELDS_MAX {
                yields += 1;
                state.unlocked(thread::yield_now);
            } else {
                state.wait_briefly(&self.gathered, wait.deadline(last));
            }
            now = haul_sync::now();
            if state.filling.records > records {
                (records, last) = (state.filling.records, now);
                yields = 0;
            }
        }
        state.gather_target = None;
        state.is_committing = false;
        state.gather.waited(from, records);
    }

    /// Ends the committing thread's wait for more records.
    pub(super) fn end_gathering(&self, state: &mut State) {
        if state.gather_target.take().is_some() {
            self.gathered.notify_one();
        }
    }

    /// Moves the filling batch to `unwritten` and replaces it by a new batch in the other buffer.
    pub(super) fn take_batch(&self, state: &mut State) {
        let buffer = state.buffers.take().expect("a batch not yet written is committed first");
        self.take_batch_into(state, buffer);
    }

    /// Seals the filling batch, which must not be sealed, and continues in the next segment, which
    /// must be ready. The new batch uses `buffer`. There may be no unwritten batch.
    pub(super) fn continue_in_next(&self, state: &mut State, buffer: AlignedBuf) {
        debug_assert!(matches!(state.next, Next::Ready(_)), "what follows a seal is ready");
        state.filling.push_empty(Kind::Seal);
        self.end_gathering(state);
        self.take_batch_into(state, buffer);
        if !state.is_committing {
            self.state.notify_commit_thread();
        }
    }

    fn take_batch_into(&self, state: &mut State, buffer: AlignedBuf) {
        debug_assert!(state.unwritten.is_none() && state.filling.has_new());
        if self.pads_records {
            state.filling.pad_lone_record();
        }
        let following = if state.filling.sealed {
            let Next::Ready(tail) = std::mem::replace(&mut state.next, Next::Missing) else {
                unreachable!("a batch is sealed only when the next segment is ready");
            };
            debug_assert!(tail.segment.number > state.filling.tail.segment.number);
            self.segments.write().insert(tail.segment.number, Arc::clone(&tail.segment));
            self.prepare.notify_one();
            Batch::in_new_segment(tail, buffer)
        } else {
            state.filling.followed_in(buffer)
        };
        debug_assert!(following.end() >= state.filling.end());
        state.generation += 1;
        state.is_wanted = false;
        self.room.notify_all();
        state.unwritten = Some(std::mem::replace(&mut state.filling, following));
    }

    /// Replaces the filling batch, which must have no new records, by a batch in another segment,
    /// whose header declares where the earlier log ends.
    pub(crate) fn continue_with(&self, state: &mut State, batch: impl FnOnce(AlignedBuf) -> Batch) {
        let buffer = state.buffers.take().expect("no batch is being committed");
        debug_assert!(!state.filling.has_new() && state.unwritten.is_none());
        let before = std::mem::replace(&mut state.filling, batch(buffer));
        debug_assert!(state.filling.end() > before.end(), "an LSN is never used again");
        state.keep_buffer(before);
        state.unproven_since = None;
        self.prepare.notify_one();
    }
}
