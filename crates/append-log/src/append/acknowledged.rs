//! Lets threads wait until a batch is synced, and see that it is, without the state lock.

use std::sync::atomic::Ordering;

use haul_sync::{AtomicU64, EventWord};

/// The number of lanes, the groups in which threads wait. All threads that wait for one batch share
/// a lane. Batches that are unsynced at the same time have different lanes.
const LANES: usize = 4;

/// The number of synced batches, and the threads that wait for the next ones.
#[derive(Debug, Default)]
pub(super) struct Acknowledged {
    /// The number of synced batches, written under the state lock.
    batches: AtomicU64,
    /// Changes when a batch is synced, when a thread should commit a batch, and when the log stops.
    event: EventWord,
}

/// The number of threads in each lane, guarded by the state lock. A number may be too large,
/// because a thread can stop waiting without changing it.
#[derive(Debug, Default)]
pub(super) struct WaiterCounts([u32; LANES]);

impl WaiterCounts {
    pub(super) fn add(&mut self, generation: u64) {
        self.0[lane(generation) as usize] += 1;
    }

    /// Returns how many threads wait for the batch `generation`.
    pub(super) fn count(&self, generation: u64) -> u32 {
        self.0[lane(generation) as usize]
    }

    /// Returns `true` if threads wait for the batch `generation`, and resets their number to 0.
    pub(super) fn take(&mut self, generation: u64) -> bool {
        std::mem::take(&mut self.0[lane(generation) as usize]) > 0
    }
}

/// An event's number, taken under the state lock. A thread that found no reason to continue before
/// the event waits for the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event(u32);

impl Acknowledged {
    /// `true` if the batch `generation` is synced.
    pub(super) fn has(&self, generation: u64) -> bool {
        self.batches.load(Ordering::Acquire) > generation
    }

    /// Publishes the number of synced batches. No thread is woken.
    pub(super) fn publish(&self, batches: u64) {
        let before = self.batches.load(Ordering::Relaxed);
        debug_assert_eq!(batches, before + 1, "batches are synced one after the other");
        self.batches.store(batches, Ordering::Release);
        self.event.advance();
    }

    /// Returns the last event. The caller holds the state lock.
    pub(super) fn last_event(&self) -> Event {
        Event(self.event.get())
    }

    /// Blocks until the batch `generation` is synced, a thread should commit it, or the log has
    /// stopped. May return earlier. Does not block if there was an event after `last`.
    pub(super) fn wait(&self, generation: u64, last: Event) {
        self.event.wait(last.0, lane(generation));
    }

    /// Wakes all threads that wait for the batch `generation`.
    pub(super) fn wake_all(&self, generation: u64) {
        self.event.wake_all(lane(generation));
    }

    /// Wakes one thread that waits for the batch `generation`, so that it commits the batch.
    pub(super) fn wake_committer(&self, generation: u64) {
        // A thread that was about to wait continues as well, because the event is a new one.
        self.event.advance();
        self.event.wake_one(lane(generation));
    }

    /// Wakes all waiting threads after the log has stopped.
    pub(super) fn stop(&self) {
        self.event.advance();
        (0..LANES as u64).for_each(|generation| self.wake_all(generation));
    }
}

fn lane(generation: u64) -> u32 {
    u32::try_from(generation % LANES as u64).expect("a remainder of a small number")
}
