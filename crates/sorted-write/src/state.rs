//! What writers, readers and the writing thread share.

use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::options::{Options, Role};
use crate::stats::{Counters, Stats};
use crate::target::Target;

/// What somebody else has to say about a round: the log of a page file.
pub(crate) trait Gate: Send + Sync {
    /// Before the first byte is written. `last` is the greatest tag of the writes in the round.
    fn before(&self, last: u64) -> Result<()>;
    /// After all files of the round were synced.
    fn after(&self, last: u64) -> Result<()>;
}

/// A file, and what is in memory of it: one batch fills while the other is written.
pub(crate) struct Queue {
    pub(crate) target: Arc<Target>,
    pub(crate) filling: Batch,
    pub(crate) writing: Option<Arc<Batch>>,
    /// Emptied memory for the next one.
    pub(crate) spare: Batch,
    /// Where the last write given ended.
    last_end: u64,
}

impl Queue {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target: Arc::new(target),
            filling: Batch::default(),
            writing: None,
            spare: Batch::default(),
            last_end: 0,
        }
    }

    /// Where the file ends, with what is in memory.
    pub(crate) fn end(&self) -> u64 {
        let writing = self.writing.as_ref().map_or(0, |batch| batch.end());
        self.target.end().max(writing).max(self.filling.end())
    }
}

pub(crate) struct State {
    pub(crate) queues: Vec<Queue>,
    /// The memory that is filling, of bulk and of index files.
    bulk_bytes: usize,
    index_bytes: usize,
    /// The greatest tag of what is filling.
    tag: u64,
    /// Rounds whose memory was given back.
    pub(crate) rounds_done: u64,
    /// Rounds begun without index files since the last one with them.
    rounds_without_index: u32,
    /// Barriers are numbered; one that begins takes all that is filling with it.
    barriers_wanted: u64,
    barriers_begun: u64,
    barriers_done: u64,
    pub(crate) is_closing: bool,
    latched: Option<Arc<Error>>,
    pub(crate) stats: Stats,
}

/// A round to be carried out.
pub(crate) struct Round {
    pub(crate) batches: Vec<(Arc<Target>, Arc<Batch>)>,
    /// The number of the barrier it is, if it is one.
    pub(crate) barrier: Option<u64>,
    pub(crate) tag: u64,
}

impl State {
    pub(crate) fn check_latch(&self) -> Result<()> {
        match &self.latched {
            Some(source) => Err(Error::Latched { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    fn filled(&mut self, role: Role) -> &mut usize {
        match role {
            Role::Bulk => &mut self.bulk_bytes,
            Role::Index => &mut self.index_bytes,
        }
    }

    /// Whether memory of a kind is full, so that a round must begin.
    fn is_full(&self, options: &Options) -> bool {
        self.bulk_bytes >= options.generation_bytes || self.index_bytes >= options.index_bytes
    }

    /// Takes the next round out of what is filling, if there is a reason for one.
    fn next_round(&mut self, options: &Options) -> Option<Round> {
        let barrier = (self.barriers_wanted > self.barriers_begun).then_some(self.barriers_wanted);
        if barrier.is_none() && !self.is_full(options) {
            return None;
        }
        self.rounds_without_index += 1;
        let with_index = barrier.is_some()
            || self.rounds_without_index >= options.index_every
            || self.index_bytes >= options.index_bytes;
        if let Some(number) = barrier {
            self.barriers_begun = number;
        }
        let mut batches = self.take(Role::Bulk);
        self.bulk_bytes = 0;
        if with_index {
            self.rounds_without_index = 0;
            self.index_bytes = 0;
            batches.append(&mut self.take(Role::Index));
        }
        Some(Round { batches, barrier, tag: self.tag })
    }

    fn take(&mut self, role: Role) -> Vec<(Arc<Target>, Arc<Batch>)> {
        let queues = self.queues.iter_mut();
        let filled = queues.filter(|q| q.target.role == role && !q.filling.is_empty());
        let take = |queue: &mut Queue| {
            let next = std::mem::take(&mut queue.spare);
            let full = Arc::new(std::mem::replace(&mut queue.filling, next));
            queue.writing = Some(Arc::clone(&full));
            (Arc::clone(&queue.target), full)
        };
        filled.map(take).collect()
    }
}

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    pub(crate) counters: Counters,
    /// For the writing thread: there may be a round.
    pub(crate) work: Condvar,
    /// For all others: a round is over, has begun, or writing stopped.
    pub(crate) change: Condvar,
}

impl Shared {
    pub(crate) fn new(options: Options) -> Self {
        let state = State {
            queues: Vec::new(),
            bulk_bytes: 0,
            index_bytes: 0,
            tag: 0,
            rounds_done: 0,
            rounds_without_index: 0,
            barriers_wanted: 0,
            barriers_begun: 0,
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

    /// Puts a write behind the others, once there is memory for it.
    pub(crate) fn push(&self, file: usize, offset: u64, bytes: &[u8], tag: u64) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            state.check_latch()?;
            let queue = state.queues.get(file).ok_or(NO_FILE)?;
            let role = queue.target.role;
            let room = match role {
                Role::Bulk => self.options.generation_bytes,
                Role::Index => self.options.index_bytes,
            };
            if *state.filled(role) < room {
                let queue = &mut state.queues[file];
                let taken = queue.filling.push(offset, bytes);
                let distance = offset.abs_diff(queue.last_end);
                queue.last_end = offset + bytes.len() as u64;
                *state.filled(role) += taken;
                state.tag = state.tag.max(tag);
                let stats = &mut state.stats;
                stats.records += 1;
                stats.record_bytes += bytes.len() as u64;
                stats.absorbed += u64::from(taken == 0);
                stats.given_travel_bytes = stats.given_travel_bytes.saturating_add(distance);
                if state.is_full(&self.options) {
                    self.work.notify_one();
                }
                return Ok(());
            }
            self.change.wait(&mut state);
        }
    }

    /// Waits until all that was written before is on the medium.
    pub(crate) fn barrier(&self) -> Result<()> {
        let mut state = self.state.lock();
        let mine = state.barriers_begun + 1;
        state.barriers_wanted = state.barriers_wanted.max(mine);
        self.work.notify_one();
        while state.barriers_done < mine {
            state.check_latch()?;
            self.change.wait(&mut state);
        }
        Ok(())
    }

    /// Asks for a round of everything, and does not wait for it.
    pub(crate) fn begin_round(&self) {
        let mut state = self.state.lock();
        let next = state.barriers_begun + 1;
        state.barriers_wanted = state.barriers_wanted.max(next);
        self.work.notify_one();
    }

    /// The next round, waited for; `None` when it is closed or has failed.
    pub(crate) fn wait_for_round(&self) -> Option<Round> {
        let mut state = self.state.lock();
        loop {
            if state.latched.is_some() {
                return None;
            }
            if let Some(round) = state.next_round(&self.options) {
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

    /// Gives the memory of a round back, or latches.
    pub(crate) fn end_round(&self, round: Round, outcome: Result<()>) {
        let mut state = self.state.lock();
        match outcome {
            Ok(()) => {
                drop(round.batches);
                for queue in &mut state.queues {
                    if let Some(mut batch) = queue.writing.take().and_then(Arc::into_inner) {
                        batch.clear();
                        queue.spare = batch;
                    }
                }
                state.rounds_done += 1;
                state.barriers_done = round.barrier.unwrap_or(state.barriers_done);
            }
            // What was being written stays, for readers.
            Err(error) => state.latched = Some(Arc::new(error)),
        }
        drop(state);
        self.change.notify_all();
    }

    pub(crate) fn latch(&self, error: Error) {
        self.state.lock().latched.get_or_insert(Arc::new(error));
        self.change.notify_all();
        self.work.notify_all();
    }
}

const NO_FILE: Error = Error::Invalid("the file is not one of this writer");
