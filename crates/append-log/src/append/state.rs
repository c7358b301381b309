//! Defines an open log's state, which its threads share under one lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_disk::AlignedBuf;
use haul_sync::now;

use crate::append::acknowledged::WaiterCounts;
use crate::append::batch::{Batch, Tail};
use crate::append::buffers::Buffers;
use crate::append::policy::batch_sizes::BatchSizes;
use crate::append::policy::gather::Gather;
use crate::append::wakers::Wakers;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segments::reserve::SpacePriority;

/// The next segment's state.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next segment does not exist yet.
    Missing,
    /// The next segment is ready for its first record.
    Ready(Tail),
    /// The next segment could not be created with this priority. The next append that needs the
    /// segment returns the error.
    Failed(Error, SpacePriority),
}

/// For each priority, the longest segment that waiting records need because the next segment is, or
/// would be, too short for them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needed([u32; 3]);

impl Needed {
    /// Adds a record with this [`SpacePriority`] that needs a segment of `bytes` bytes.
    pub(crate) fn add(&mut self, priority: SpacePriority, bytes: u32) {
        let longest = &mut self.0[priority as usize];
        *longest = bytes.max(*longest);
    }

    /// Returns the segment length that all waiting records need; 0 if none waits.
    pub(crate) fn bytes(self) -> u32 {
        self.0.into_iter().max().unwrap_or(0)
    }

    /// Returns the greatest priority of a waiting record, and the segment length that
    /// [`SpacePriority::Reserve`] and [`SpacePriority::Compaction`] records need. Only these may
    /// use a reserved segment.
    pub(crate) fn reserve_demand(self) -> (SpacePriority, u32) {
        let [_, reserve, compaction] = self.0;
        let priority = match (reserve, compaction) {
            (0, 0) => SpacePriority::Ordinary,
            (_, 0) => SpacePriority::Reserve,
            _ => SpacePriority::Compaction,
        };
        (priority, reserve.max(compaction))
    }
}

/// A failed attempt to create a segment for a long record.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: Error,
    pub(crate) bytes: u32,
    pub(crate) priority: SpacePriority,
}

/// The longest pause between consecutive failed attempts to create a segment.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The pause after the second consecutive failure; each further failure doubles it. After the first
/// failure, the next record that needs the segment tries again at once.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(10);

/// Consecutive failed attempts to create a segment, for a reason other than space.
#[derive(Debug)]
struct Failures {
    count: u32,
    last: Arc<haul_disk::Error>,
    /// Until then, records that need the segment are rejected without another attempt. While the
    /// cause persists, such as a removed directory, a file system that became read-only or too many
    /// open files, creation is thus attempted at most once a second.
    pause_until: Instant,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filling: Batch,
    /// The filling batch's number.
    pub(crate) generation: u64,
    /// The batch before the filling one, from the time it was replaced until its write begins. Any
    /// committing thread may write it.
    pub(super) unwritten: Option<Batch>,
    /// The number of synced batches, which is also the number of the first unsynced batch.
    pub(super) committed: u64,
    /// All records before this LSN are synced.
    pub(crate) synced: Lsn,
    pub(super) buffers: Buffers,
    /// `true` while a thread writes and syncs a batch, waits for more records for it, or wakes the
    /// threads that waited for it.
    pub(crate) is_committing: bool,
    /// `true` if the filling batch must be committed: a thread or future waits for it, or a ticket
    /// for it was dropped. The commit thread then commits it, unless another thread does.
    pub(super) is_wanted: bool,
    pub(super) gather: Gather,
    /// The record count for which the committing thread waits; `None` if it does not wait.
    pub(super) gather_target: Option<u32>,
    pub(super) waiting: WaiterCounts,
    /// The lengths of the batches in the current segment.
    pub(super) batch_sizes: BatchSizes,
    /// The time at which the last batch was synced; `None` if that batch needs no watermark, the
    /// record that proves this sync to recovery.
    pub(super) unproven_since: Option<Instant>,
    pub(crate) next: Next,
    /// The number of threads that wait for the next segment: in total, and by their records'
    /// priority.
    pub(crate) waiting_for_next: usize,
    pub(crate) waiting_by_priority: [usize; 3],
    /// The greatest [`SpacePriority`] among the records that need the next segment and for which no
    /// thread waits.
    pub(crate) requested_next: Option<SpacePriority>,
    /// The segment lengths that records wait for. Waiting records are added again after a segment
    /// was created, if the next segment is still too short for them.
    pub(crate) needed: Needed,
    /// The last failed attempt to create a segment for a long record. The next append that needs
    /// its length returns the error.
    pub(crate) refused: Option<Refused>,
    failures: Option<Failures>,
    /// The offset in the current segment at which an append must notify the preparing thread, which
    /// creates the next segment.
    pub(crate) prepare_at: u32,
    /// `true` while a truncation is in progress, during which appends wait.
    pub(crate) is_paused: bool,
    pub(crate) is_closing: bool,
    /// The error of the write or sync that stopped the log permanently.
    pub(crate) latched: Option<Arc<haul_disk::Error>>,
    pub(super) wakers: Wakers,
}

impl State {
    /// Creates the state for a log that continues with `filling`, which must contain no unsynced
    /// records.
    pub(super) fn new(filling: Batch, next: Option<Tail>, buffers: Buffers) -> Self {
        debug_assert!(!filling.has_new() && !filling.sealed);
        debug_assert!(
            next.as_ref().is_none_or(|next| next.segment.number > filling.tail.segment.number)
        );
        Self {
            synced: filling.end(),
            filling,
            generation: 0,
            unwritten: None,
            committed: 0,
            buffers,
            is_committing: false,
            is_wanted: false,
            gather: Gather::default(),
            gather_target: None,
            waiting: WaiterCounts::default(),
            batch_sizes: BatchSizes::default(),
            unproven_since: None,
            next: next.map_or(Next::Missing, Next::Ready),
            waiting_for_next: 0,
            waiting_by_priority: [0; 3],
            requested_next: None,
            needed: Needed::default(),
            refused: None,
            failures: None,
            prepare_at: u32::MAX,
            is_paused: false,
            is_closing: false,
            latched: None,
            wakers: Wakers::default(),
        }
    }

    pub(crate) fn check_latch(&self) -> Result<()> {
        match &self.latched {
            Some(source) => Err(Error::Latched { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    /// Notes a failed attempt to create a segment, for a reason other than lack of space.
    pub(super) fn creation_failed(&mut self, error: haul_disk::Error) {
        let count = self.failures.as_ref().map_or(1, |failures| failures.count.saturating_add(1));
        let pause = match count {
            1 => Duration::ZERO,
            _ => RETRY_PAUSE_MIN.saturating_mul(1 << (count - 2).min(20)).min(RETRY_PAUSE_MAX),
        };
        let (last, pause_until) = (Arc::new(error), now() + pause);
        self.failures = Some(Failures { count, last, pause_until });
    }

    pub(super) fn creation_succeeded(&mut self) {
        self.failures = None;
    }

    /// Returns the reason why the last attempt to create a segment failed; `None` if it succeeded.
    pub(crate) fn creation_failure(&self) -> Option<Arc<haul_disk::Error>> {
        self.failures.as_ref().map(|failures| Arc::clone(&failures.last))
    }

    /// Rejects a record that needs another segment, during the pause between two attempts.
    pub(crate) fn check_pause(&self) -> Result<()> {
        match &self.failures {
            Some(failures) if now() < failures.pause_until => {
                Err(Error::NoSegment { source: Arc::clone(&failures.last) })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn take_ready_next(&mut self) -> Option<Tail> {
        match std::mem::replace(&mut self.next, Next::Missing) {
            Next::Ready(tail) => Some(tail),
            other => {
                self.next = other;
                None
            }
        }
    }

    /// Requests the next segment for a record with this [`SpacePriority`] for which no thread
    /// waits.
    pub(crate) fn request_next(&mut self, priority: SpacePriority) {
        self.requested_next = self.requested_next.max(Some(priority));
    }

    /// Returns the greatest [`SpacePriority`] of the records that wait for the next segment.
    pub(crate) fn requested_priority(&self) -> SpacePriority {
        let waits = |priority: &SpacePriority| self.waiting_by_priority[*priority as usize] > 0;
        let waiting = [SpacePriority::Compaction, SpacePriority::Reserve].into_iter().find(waits);
        waiting.max(self.requested_next).unwrap_or(SpacePriority::Ordinary)
    }

    /// Takes the error of a failed segment creation if it also applies to a record with this
    /// [`SpacePriority`] that needs a segment of `bytes` bytes.
    pub(crate) fn take_refusal(&mut self, priority: SpacePriority, bytes: u32) -> Option<Error> {
        let applies =
            |refused: &mut Refused| refused.bytes <= bytes && refused.priority >= priority;
        self.refused.take_if(applies).map(|refused| refused.error)
    }

    pub(crate) fn is_committed(&self, generation: u64) -> bool {
        self.committed > generation
    }

    pub(super) fn move_to_longer(&mut self, buffer: AlignedBuf) {
        let unused = self.filling.grow(buffer);
        self.keep_or_free(unused);
    }

    /// Makes a finished batch's buffer available for the batch after the filling one.
    pub(super) fn keep_buffer(&mut self, batch: Batch) {
        debug_assert!(batch.end() <= self.synced || !batch.has_new(), "not durable yet");
        let (buffer, tail) = batch.into_parts();
        self.keep_or_free(buffer);
        // If the filling batch is in another segment, `tail` may hold the last handle to a removed
        // file, and closing such a file takes long.
        if !Arc::ptr_eq(&tail.segment, &self.filling.tail.segment) {
            self.wakers.close_later(tail);
        }
    }

    /// Keeps an unused standard buffer. Frees a longer one when the state is unlocked.
    fn keep_or_free(&mut self, buffer: AlignedBuf) {
        if let Some(longer) = self.buffers.keep(buffer) {
            self.wakers.free_later(longer);
        }
    }

    /// `true` if there is a batch to write and no thread writes one.
    pub(super) fn can_commit(&self) -> bool {
        !self.is_committing && (self.unwritten.is_some() || self.filling.has_new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_needed_segment_is_kept_for_each_room() {
        let mut needed = Needed::default();
        assert_eq!((needed.bytes(), needed.reserve_demand()), (0, (SpacePriority::Ordinary, 0)));
        needed.add(SpacePriority::Ordinary, 9 << 20);
        needed.add(SpacePriority::Ordinary, 7 << 20);
        assert_eq!(
            (needed.bytes(), needed.reserve_demand()),
            (9 << 20, (SpacePriority::Ordinary, 0))
        );
        needed.add(SpacePriority::Reserve, 4 << 20);
        assert_eq!(needed.reserve_demand(), (SpacePriority::Reserve, 4 << 20));
        needed.add(SpacePriority::Compaction, 2 << 20);
        assert_eq!(
            (needed.bytes(), needed.reserve_demand()),
            (9 << 20, (SpacePriority::Compaction, 4 << 20))
        );
    }
}
