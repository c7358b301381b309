//! Holds the state that callers share with the writing thread: buffered writes, barriers, and the
//! first error, which is latched: it stops the writer, and later calls return it.

use std::sync::Arc;

use haul_sync::{Condvar, Mutex};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::memory::generation_bytes;
use crate::options::Options;
use crate::stats::{Counters, Stats};
use crate::target::Target;

/// Callbacks before and after a round, by which a page file maintains its write-ahead log.
pub(crate) trait RoundHook: Send + Sync {
    /// Runs before the first byte of the round is written. `last` is the greatest tag among the
    /// writes accepted before the round started. A page file tags each write with its log record's
    /// LSN (log sequence number).
    fn before(&self, last: u64) -> Result<()>;
    /// Runs after all files in the round were synced, with the same value of `last`.
    fn after(&self, last: u64) -> Result<()>;
}

/// A file and its buffered writes. Callers fill one batch while the writing thread writes the other
/// to the file.
pub(crate) struct Queue {
    pub(crate) target: Arc<Target>,
    pub(crate) filling: Batch,
    pub(crate) writing: Option<Arc<Batch>>,
    /// An empty batch whose memory is reused for the next one.
    spare: Batch,
    /// The file offset at which the last submitted write ends, for the seek distance in [`Stats`].
    last_end: u64,
}

impl Queue {
    fn new(target: Target) -> Self {
        Self {
            target: Arc::new(target),
            filling: Batch::default(),
            writing: None,
            spare: Batch::default(),
            last_end: 0,
        }
    }

    /// Returns the file length in bytes, including buffered writes.
    pub(crate) fn end(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |batch| batch.end());
        self.target.end().max(writing).max(self.filling.end())
    }
}

pub(crate) struct State {
    pub(crate) queues: Vec<Queue>,
    /// Bytes of memory used by the batches being filled.
    used_bytes: usize,
    /// The used memory, in bytes, at which a round starts.
    generation_bytes: usize,
    /// The greatest tag among the writes accepted so far.
    tag: u64,
    /// The completed rounds, whose memory was released.
    pub(crate) rounds_done: u64,
    /// The numbers of the last barriers that were requested, started and completed. A barrier's
    /// round includes all batches that are being filled when the round starts.
    barriers_requested: u64,
    barriers_started: u64,
    barriers_done: u64,
    is_closing: bool,
    latched: Option<Arc<Error>>,
    pub(crate) stats: Stats,
}

/// The batches that one round writes to the files.
pub(crate) struct Round {
    pub(crate) batches: Vec<(Arc<Target>, Arc<Batch>)>,
    /// The number of the barrier that the round completes, if any.
    pub(crate) barrier: Option<u64>,
    pub(crate) tag: u64,
}

impl State {
    fn check_latch(&self) -> Result<()> {
        match &self.latched {
            Some(source) => Err(Error::Latched { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    /// `true` if the generation's memory is full, so that a round must start.
    fn is_full(&self) -> bool {
        self.used_bytes >= self.generation_bytes
    }

    /// Returns the next round, made of the batches being filled, or `None` if no round is due.
    fn next_round(&mut self) -> Option<Round> {
        let barrier =
            (self.barriers_requested > self.barriers_started).then_some(self.barriers_requested);
        if barrier.is_none() && !self.is_full() {
            return None;
        }
        debug_assert!(
            self.queues.iter().all(|queue| queue.writing.is_none()),
            "one round at a time"
        );
        if let Some(number) = barrier {
            debug_assert!(number > self.barriers_started);
            self.barriers_started = number;
        }
        self.used_bytes = 0;
        let nonempty = self.queues.iter_mut().filter(|queue| !queue.filling.is_empty());
        let take = |queue: &mut Queue| {
            let next = std::mem::take(&mut queue.spare);
            let full = Arc::new(std::mem::replace(&mut queue.filling, next));
            queue.writing = Some(Arc::clone(&full));
            (Arc::clone(&queue.target), full)
        };
        let batches = nonempty.map(take).collect();
        Some(Round { batches, barrier, tag: self.tag })
    }
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    pub(crate) counters: Counters,
    /// Notifies the writing thread that a round may be due or that the writer is closing.
    pub(crate) work: Condvar,
    /// Notifies callers that a round has started or ended, or that a failure stopped the writer.
    pub(crate) change: Condvar,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        let state = State {
            queues: Vec::new(),
            used_bytes: 0,
            generation_bytes: generation_bytes(&options),
            tag: 0,
            rounds_done: 0,
            barriers_requested: 0,
            barriers_started: 0,
            barriers_done: 0,
            is_closing: false,
            latched: None,
            stats: Stats::default(),
        };
        Self {
            options,
            state: Mutex::new(state),
            counters: Counters::default(),
            work: Condvar::new(),
            change: Condvar::new(),
        }
    }

    /// Buffers a write. Blocks until there is memory for it.
    pub(crate) fn push(&self, file: usize, offset: u64, bytes: &[u8], tag: u64) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            state.check_latch()?;
            let is_full = state.is_full();
            let queue = state.queues.get_mut(file).ok_or(NO_FILE)?;
            if !is_full {
                debug_assert!(!bytes.is_empty() && bytes.len() <= crate::options::WRITE_BYTES_MAX);
                let memory = queue.filling.push(offset, bytes);
                debug_assert!(queue.filling.end() >= offset + bytes.len() as u64);
                let distance = offset.abs_diff(queue.last_end);
                queue.last_end = offset + bytes.len() as u64;
                state.used_bytes += memory;
                state.tag = state.tag.max(tag);
                let stats = &mut state.stats;
                stats.records += 1;
                stats.record_bytes += bytes.len() as u64;
                stats.absorbed += u64::from(memory == 0);
                debug_assert!(stats.absorbed <= stats.records);
                stats.unsorted_seek_bytes = stats.unsorted_seek_bytes.saturating_add(distance);
                if state.is_full() {
                    self.work.notify_one();
                }
                return Ok(());
            }
            self.change.wait(&mut state);
        }
    }

    /// Waits until all writes accepted before this call are durable.
    pub(crate) fn barrier(&self) -> Result<()> {
        let mut state = self.state.lock();
        let number = state.barriers_started + 1;
        state.barriers_requested = state.barriers_requested.max(number);
        self.work.notify_one();
        while state.barriers_done < number {
            state.check_latch()?;
            self.change.wait(&mut state);
        }
        Ok(())
    }

    /// Requests a round of all buffered writes, without waiting for it.
    pub(crate) fn request_round(&self) {
        let mut state = self.state.lock();
        let next = state.barriers_started + 1;
        state.barriers_requested = state.barriers_requested.max(next);
        self.work.notify_one();
    }

    /// Waits until a round is due and returns it; `None` if the writer is closed or has failed.
    pub(crate) fn wait_for_round(&self) -> Option<Round> {
        let mut state = self.state.lock();
        loop {
            if state.latched.is_some() {
                return None;
            }
            if let Some(round) = state.next_round() {
                drop(state);
                self.change.notify_all();
                return Some(round);
            }
            if state.is_closing {
                return None;
            }
            self.work.wait(&mut state);
        }
    }

    /// Releases a completed round's memory, or latches a failed round's error.
    pub(crate) fn finish_round(&self, round: Round, result: Result<()>) {
        let mut state = self.state.lock();
        match result {
            Ok(()) => {
                drop(round.batches);
                for queue in &mut state.queues {
                    if let Some(mut batch) = queue.writing.take().and_then(Arc::into_inner) {
                        batch.clear();
                        queue.spare = batch;
                    }
                }
                debug_assert!(state.queues.iter().all(|queue| queue.spare.is_empty()));
                state.rounds_done += 1;
                let done = round.barrier.unwrap_or(state.barriers_done);
                debug_assert!((state.barriers_done..=state.barriers_started).contains(&done));
                state.barriers_done = done;
            }
            // The failed round's batches stay in memory, so that they can still be read.
            Err(error) => state.latched = Some(Arc::new(error)),
        }
        drop(state);
        self.change.notify_all();
    }

    /// Adds a file and returns its index in `queues`.
    pub(crate) fn add_file(&self, target: Target) -> usize {
        let mut state = self.state.lock();
        state.queues.push(Queue::new(target));
        state.queues.len() - 1
    }

    pub(crate) fn targets(&self) -> Vec<Arc<Target>> {
        self.state.lock().queues.iter().map(|queue| Arc::clone(&queue.target)).collect()
    }

    /// Makes the writing thread end after all rounds that are due.
    pub(crate) fn close(&self) {
        self.state.lock().is_closing = true;
        self.work.notify_all();
    }

    pub(crate) fn latch(&self, error: Error) {
        self.state.lock().latched.get_or_insert(Arc::new(error));
        self.change.notify_all();
        self.work.notify_all();
    }
}

const NO_FILE: Error = Error::Invalid("the file id does not belong to this writer");
