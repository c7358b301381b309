//! Defines the state of an open log, which its threads share under one lock.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use haul_disk::AlignedBuf;

use crate::append::acknowledged::WaiterCounts;
use crate::append::batch::{Batch, Tail};
use crate::append::policy::batch_sizes::BatchSizes;
use crate::append::policy::gather::Gather;
use crate::append::wakers::Wakers;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::segments::reserve::Room;

/// The state of the next segment.
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

/// The state of an open log.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) filling: Batch,
    /// The number of the filling batch.
    pub(crate) generation: u64,
    /// The batch before the filling one, from the time it was replaced until its write begins. Any
    /// thread that commits may write it.
    pub(super) taken: Option<Batch>,
    /// The number of synced batches, which is also the number of the first unsynced batch.
    pub(super) committed: u64,
    /// All records before this LSN are synced.
    pub(crate) synced: Lsn,
    /// The second buffer; `None` while a batch uses it.
    pub(super) spare: Option<AlignedBuf>,
    /// `true` while a thread writes and syncs a batch, waits for more records for it, or wakes the
    /// threads that waited for it.
    pub(crate) is_committing: bool,
    /// `true` if the filling batch must be committed: a thread or future waits for it, or a ticket
    /// of it was dropped. The commit thread then commits it, unless another thread does.
    pub(super) is_wanted: bool,
    pub(super) gather: Gather,
    /// The number of records for which the committing thread waits; `None` if it does not wait.
    pub(super) gather_target: Option<u32>,
    /// The threads that wait for batches.
    pub(super) waiting: WaiterCounts,
    /// The lengths of the batches written to the current segment.
    pub(super) batch_sizes: BatchSizes,
    /// The time at which the last batch was synced; `None` if that batch needs no watermark, the
    /// record that proves this sync to recovery.
    pub(super) unproven_since: Option<Instant>,
    pub(crate) next: Next,
    /// The number of threads that wait for the next segment: in total, and by the [`Room`] of their
    /// record.
    pub(crate) waiting_for_next: usize,
    pub(crate) waiting_by_room: [usize; 3],
    /// The greatest [`Room`] of the records with which futures wait for the next segment.
    pub(crate) requested_next: Option<Room>,
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
    /// Creates the state of a log that continues with `filling`, which must contain no unsynced
    /// records.
    pub(super) fn new(filling: Batch, next: Option<Tail>, spare: AlignedBuf) -> Self {
        Self {
            synced: filling.end(),
            filling,
            generation: 0,
            taken: None,
            committed: 0,
            spare: Some(spare),
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

    /// Requests the next segment for a future that waits to append a record with this [`Room`].
    pub(crate) fn request_next(&mut self, room: Room) {
        self.requested_next = self.requested_next.max(Some(room));
    }

    /// Returns the greatest [`Room`] of the records that wait for the next segment.
    pub(crate) fn room_requested(&self) -> Room {
        let waits = |room: &Room| self.waiting_by_room[*room as usize] > 0;
        let waiting = [Room::Compaction, Room::Reserve].into_iter().find(waits);
        waiting.max(self.requested_next).unwrap_or(Room::Ordinary)
    }

    /// Registers the waker of a reader that has reached the end of the log.
    pub(crate) fn register_more(&mut self, waker: Waker) {
        self.wakers.register_more(waker);
    }

    pub(crate) fn is_committed(&self, generation: u64) -> bool {
        self.committed > generation
    }

    /// Makes the buffer of a finished batch available for the batch after the filling one.
    pub(super) fn keep_buffer(&mut self, batch: Batch) {
        let (buffer, tail) = batch.into_parts();
        self.spare = Some(buffer);
        // If the filling batch is in another segment, `tail` may hold the last handle of a removed
        // file, and closing such a file takes long.
        if !Arc::ptr_eq(&tail.segment, &self.filling.tail.segment) {
            self.wakers.close_later(tail);
        }
    }

    /// `true` if there is a batch to write and no thread writes one.
    pub(super) fn can_commit(&self) -> bool {
        !self.is_committing && (self.taken.is_some() || self.filling.has_new())
    }
}
