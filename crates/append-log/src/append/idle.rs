//! Writes a watermark when the log becomes idle: a record that proves that the last batch was
//! synced.
//!
//! Each record header contains the LSN up to which the log was synced before the record's batch was
//! written. A later record therefore proves that damaged bytes before that LSN were durable once
//! and do not come from a write that a crash interrupted. No later record proves this for the last
//! batch. Therefore, when the log becomes idle, the commit thread appends one more record, in a
//! batch of its own.

use std::time::Instant;

use haul_sync::now;

use crate::append::commit::Shared;
use crate::append::state::{Next, State};
use crate::error::Result;
use crate::format::{Kind, record_bytes};

impl Shared {
    /// Records that a batch with `records` data records was synced at `now`.
    pub(super) fn restart_idle_time(&self, state: &mut State, records: u32, now: Instant) {
        // A batch without data records contains a seal (the segment's end), a close record or a
        // watermark, each of which proves that the previous batch was synced.
        let before = std::mem::replace(&mut state.unproven_since, (records > 0).then_some(now));
        if self.idle_after.is_some() && before.is_none() && records > 0 {
            // The commit thread waits without a deadline while no watermark is needed, so it must
            // be woken to set a deadline.
            self.state.notify_commit_thread();
        }
    }

    /// Returns the time at which the commit thread must check whether the log is idle; `None` if no
    /// watermark is needed.
    pub(super) fn idle_deadline(&self, state: &State) -> Option<Instant> {
        let idle_after = self.idle_after.filter(|_| state.latched.is_none())?;
        let idle_at = state.unproven_since? + idle_after;
        // If there are unwritten records, the idle period starts again when they are written.
        Some(if is_quiet(state) { idle_at } else { idle_at.max(now() + idle_after) })
    }

    /// Begins a watermark batch if one is due. Returns `true` if there is a batch to commit.
    pub(super) fn begin_due_watermark(&self, state: &mut State) -> bool {
        let is_due = self.idle_deadline(state).is_some_and(|deadline| deadline <= now());
        is_due && self.begin_watermark(state)
    }

    /// Begins a batch that contains only a watermark, which proves that the previous batch was
    /// synced. Any thread may commit the batch. It delays only the appends that arrive during its
    /// sync.
    ///
    /// In a full segment, a seal (the record that ends a segment) is appended instead, which proves
    /// the same. A seal needs the next segment. If the next segment is not ready, the function
    /// returns `false` and is called again after another idle period.
    fn begin_watermark(&self, state: &mut State) -> bool {
        if !is_quiet(state) {
            return false;
        }
        let segment = &state.filling.tail.segment;
        let is_full =
            state.filling.offset() as usize + record_bytes(0) > segment.records_end() as usize;
        let kind = match &state.next {
            Next::Ready(_) if is_full => Kind::Seal,
            _ if is_full => {
                state.unproven_since = Some(now());
                return false;
            }
            _ => Kind::Watermark,
        };
        debug_assert!(state.unwritten.is_none(), "a watermark proves that all before it is synced");
        state.filling.push_empty(kind);
        self.take_batch(state);
        true
    }

    /// Implements [`crate::Log::write_watermark`].
    pub(crate) fn write_watermark(&self) -> Result<()> {
        let mut state = self.state.lock();
        self.wait_for_all(&mut state)?;
        if state.unproven_since.is_some() && self.begin_watermark(&mut state) {
            let generation = state.generation - 1;
            return self.wait_for(&mut state, generation);
        }
        Ok(())
    }
}

/// `true` if all records are synced, no truncation is in progress, and the log has not stopped. A
/// thread may still be notifying the threads that waited for the last batch, or waiting for more
/// records. It commits the next batch, or hands it over to another thread.
fn is_quiet(state: &State) -> bool {
    state.committed == state.generation
        && !state.filling.has_new()
        && !state.is_paused
        && state.latched.is_none()
}
