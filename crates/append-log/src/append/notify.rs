//! Notifies threads and futures, and stops the log after a failure.
//!
//! Threads are notified under the lock. The futures' wakers are the caller's code and are called
//! after the lock is released, see [`crate::append::wakers`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::append::commit::Shared;
use crate::append::lock::Locked;
use crate::append::state::State;
use crate::names;

/// Up to this many waiting threads, one of them commits the batch. For few threads, this saves a
/// wake-up that costs more than a separate commit thread gains.
const FEW_WAITING: u32 = 3;

impl Shared {
    /// Publishes that a batch is synced, and notifies all futures, readers and appends that wait
    /// for it. The committing thread then wakes the threads that wait for the batch.
    pub(super) fn notify_committed(&self, state: &mut State) {
        let committed = state.committed;
        self.acknowledged.publish(committed);
        state.wakers.wake_committed(committed);
        self.more.notify_all();
        self.room.notify_all();
    }

    /// Leaves a batch that must be committed to another thread: to a thread that waits for the
    /// batch if few wait, otherwise to the commit thread, which then also commits the batches after
    /// it. If the commit thread is busy with a waker, a waiting thread commits. This may be a
    /// thread that waits for space in the batch, even the commit thread in a waker.
    ///
    /// A thread that is registered as waiting, but does not wait yet, locks the state again before
    /// it waits, and then commits. The return value of the notification shows whether the commit
    /// thread waits. If it does not and is not in a waker either, it checks the state before it
    /// waits, and a woken thread that finds no batch to commit waits again.
    pub(super) fn hand_over(&self, state: &State) {
        if !state.is_wanted && state.unwritten.is_none() {
            return;
        }
        let are_few = (1..=FEW_WAITING).contains(&state.waiting.count(state.committed));
        if are_few || !self.state.notify_commit_thread() {
            self.acknowledged.wake_committer(state.committed);
            self.room.notify_all();
        }
    }

    /// Stops the log permanently and notifies all waiting threads and futures.
    pub(crate) fn latch(&self, state: &mut Locked<'_>, error: haul_disk::Error) {
        state.latched = Some(Arc::new(error));
        // Before any waiting thread returns: what it tells its caller must not be contradicted by
        // another thread that does not know yet.
        self.is_latched.store(true, Ordering::SeqCst);
        state.wakers.wake_committed(u64::MAX);
        self.room.notify_all();
        self.more.notify_all();
        self.acknowledged.stop();
        self.state.notify_commit_thread();
        self.prepare.notify_all();
        // The marker file makes the next opening continue in another segment, because the log must
        // not write to a file whose sync failed. If the marker file cannot be created, the next
        // opening nevertheless delivers only durable records, because it bypasses the page cache.
        state.unlocked(|| {
            if self.disk.create(names::LATCHED, haul_disk::Open::default()).is_ok() {
                drop(self.disk.sync_dir(""));
            }
        });
    }
}
