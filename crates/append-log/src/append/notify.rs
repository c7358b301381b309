//! Notifies threads and futures, and stops the log after a failure.
//!
//! Threads are notified under the lock. Wakers of futures are code of the caller and are called
//! after the lock is released, see [`crate::append::wakers`].

use std::sync::Arc;

use crate::append::commit::Shared;
use crate::append::lock::Locked;
use crate::append::state::State;
use crate::names;

impl Shared {
    /// Notifies one thread that can commit the next batch, and all threads and futures that wait
    /// for the batch just synced.
    ///
    /// The notified threads get the lock one after the other, in the order of the notifications. If
    /// the committing thread were not the first, the device would be idle until all threads of the
    /// last batch have run.
    pub(super) fn notify_committed(&self, state: &mut State) {
        let committed = state.committed;
        self.notify_committer(state);
        self.done(committed - 1).notify_all();
        state.wakers.wake_committed(committed);
        self.notify_more(state);
        self.notify_room(state);
    }

    /// Notifies one thread that can commit the first unsynced batch: a thread that waits for that
    /// batch, or else the commit thread.
    ///
    /// The return value of `notify_one` shows whether a thread still waits. A counter of waiting
    /// threads in the state would include threads that were already notified but have not run
    /// since.
    pub(super) fn notify_committer(&self, state: &State) {
        let was_notified = self.done(state.committed).notify_one();
        if !was_notified && (state.is_wanted || state.taken.is_some()) {
            self.state.notify_commit_thread();
        }
    }

    /// Notifies all threads and futures that wait to append.
    pub(crate) fn notify_room(&self, state: &mut State) {
        self.room.notify_all();
        state.wakers.wake_room();
    }

    /// Notifies all readers that have reached the end of the log.
    pub(crate) fn notify_more(&self, state: &mut State) {
        self.more.notify_all();
        state.wakers.wake_more();
    }

    /// Stops the log permanently and notifies all waiting threads and futures.
    pub(crate) fn latch(&self, state: &mut Locked<'_>, error: haul_disk::Error) {
        state.latched = Some(Arc::new(error));
        state.wakers.wake_committed(u64::MAX);
        self.notify_room(state);
        self.notify_more(state);
        for generation in [0, 1] {
            self.done(generation).notify_all();
        }
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
