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
use crate::segments::reserve::Room;

/// Whether the next segment is ready.
#[derive(Debug)]
pub(crate) enum Next {
    /// The next segment does not exist yet.
    Missing,
    /// The next segment is ready for its first record.
    Ready(Tail),
    /// The next segment could not be created in this [`Room`], the part of the disk space that a
    /// record may use. The next append that needs the segment returns the error.
    Failed(Error, Room),
}

/// The segment lengths that waiting records need because the next segment is too short for them, or
/// would be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Needed([u32; 3]);

impl Needed {
    /// Adds a record with this [`Room`] that needs a segment of `bytes` bytes.
    pub(crate) fn add(&mut self, room: Room, bytes: u32) {
        let longest = &mut self.0[room as usize];
        *longest = bytes.max(*longest);
    }

    /// Returns the length that all waiting records need, 0 if none waits.
    pub(crate) fn bytes(self) -> u32 {
        self.0.into_iter().max().unwrap_or(0)
    }

    /// Returns the greatest [`Room`] of a waiting record, and the length that the records with more
    /// than the least room need. Only these may use a reserved segment.
    pub(crate) fn in_reserve(self) -> (Room, u32) {
        let [_, reserve, compaction] = self.0;
        let room = match (reserve, compaction) {
            (0, 0) => Room::Ordinary,
            (_, 0) => Room::Reserve,
            _ => Room::Compaction,
        };
        (room, reserve.max(compaction))
    }
}

/// A failed attempt to create a segment for a long record.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: Error,
    pub(crate) bytes: u32,
    pub(crate) room: Room,
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
    /// thread that commits may write it.
    pub(super) taken: Option<Batch>,
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
    /// How many threads wait for the next segment: in total, and by their record's [`Room`].
    pub(crate) waiting_for_next: usize,
    pub(crate) waiting_by_room: [usize; 3],
    /// The greatest [`Room`] among the records that need the next segment and for which no thread
    /// waits.
    pub(crate) requested_next: Option<Room>,
    /// The segment lengths that records wait for. Waiting records are added again after a segment
    /// was created, if the next segment is still too short for them.
    pub(crate) needed: Needed,
    /// The error of the last attempt to create a segment of such a length. The next append that
    /// needs this length returns it.
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
            taken: None,
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
            waiting_by_room: [0; 3],
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

    /// Records that creating a segment failed for a reason other than space.
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

    /// Returns the reason why no segment could be created at the last attempt; `None` if it
    /// succeeded.
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

    /// Requests the next segment for a record with this [`Room`] for which no thread waits.
    pub(crate) fn request_next(&mut self, room: Room) {
        self.requested_next = self.requested_next.max(Some(room));
    }

    /// Returns the greatest [`Room`] of the records that wait for the next segment.
    pub(crate) fn room_requested(&self) -> Room {
        let waits = |room: &Room| self.waiting_by_room[*room as usize] > 0;
        let waiting = [Room::Compaction, Room::Reserve].into_iter().find(waits);
        waiting.max(self.requested_next).unwrap_or(Room::Ordinary)
    }

    /// Takes the error of a failed segment creation if it also applies to a record with this
    /// [`Room`] that needs a segment of `bytes` bytes.
    pub(crate) fn take_refusal(&mut self, room: Room, bytes: u32) -> Option<Error> {
        let applies = |refused: &mut Refused| refused.bytes <= bytes && refused.room >= room;
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
        !self.is_committing && (self.taken.is_some() || self.filling.has_new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_needed_segment_is_kept_for_each_room() {
        let mut needed = Needed::default();
        assert_eq!((needed.bytes(), needed.in_reserve()), (0, (Room::Ordinary, 0)));
        needed.add(Room::Ordinary, 9 << 20);
        needed.add(Room::Ordinary, 7 << 20);
        assert_eq!((needed.bytes(), needed.in_reserve()), (9 << 20, (Room::Ordinary, 0)));
        needed.add(Room::Reserve, 4 << 20);
        assert_eq!(needed.in_reserve(), (Room::Reserve, 4 << 20));
        needed.add(Room::Compaction, 2 << 20);
        assert_eq!((needed.bytes(), needed.in_reserve()), (9 << 20, (Room::Compaction, 4 << 20)));
    }
}
