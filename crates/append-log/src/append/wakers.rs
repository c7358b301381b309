//! Stores the waiting futures' wakers, and defers calling them until the state is unlocked.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use haul_disk::AlignedBuf;

use crate::append::batch::Tail;

/// Wakers that are registered for an event, and deferred calls to wakers whose event has occurred.
///
/// Waking, cloning and dropping a waker run the caller's code, which may call the log. Under the
/// lock, a registered waker is therefore only moved to [`Deferred`].
/// [`crate::append::lock::Locked`] makes the deferred calls after it has released the lock.
#[derive(Debug, Default)]
pub(super) struct Wakers {
    /// The wakers of futures that wait for a batch's sync, with the batch's number.
    committed: Vec<(u64, Waker)>,
    deferred: Deferred,
}

impl Wakers {
    /// Registers a waker to be called when the batch `generation` is synced, unless the same waker
    /// is registered already: a future may be polled many times before.
    pub(super) fn register_committed(&mut self, generation: u64, waker: Waker) {
        // `will_wake` compares two pointers and runs none of the caller's code.
        let is_same = |(at, other): &(u64, Waker)| *at == generation && other.will_wake(&waker);
        if self.committed.iter().any(is_same) {
            self.deferred.to_drop.push(waker);
        } else {
            self.committed.push((generation, waker));
        }
    }

    /// Defers waking the futures that wait for a batch with a number below `committed`.
    pub(super) fn wake_committed(&mut self, committed: u64) {
        let synced = self.committed.extract_if(.., |(generation, _)| *generation < committed);
        self.deferred.to_wake.extend(synced.map(|(_, waker)| waker));
    }

    /// Defers closing a segment's files.
    pub(super) fn close_later(&mut self, tail: Tail) {
        self.deferred.to_close.push(tail);
    }

    /// Defers freeing a long buffer.
    pub(super) fn free_later(&mut self, buffer: AlignedBuf) {
        self.deferred.to_free.push(buffer);
    }

    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Returns all deferred calls. They are made when the result is dropped, which must happen
    /// without the lock.
    pub(super) fn take_deferred(&mut self) -> Deferred {
        std::mem::take(&mut self.deferred)
    }
}

/// Calls that must not be made under the lock. They are made when this value is dropped.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    to_wake: Vec<Waker>,
    to_drop: Vec<Waker>,
    to_close: Vec<Tail>,
    to_free: Vec<AlignedBuf>,
}

impl Deferred {
    fn is_empty(&self) -> bool {
        self.to_wake.is_empty()
            && self.to_drop.is_empty()
            && self.to_close.is_empty()
            && self.to_free.is_empty()
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        self.to_wake.drain(..).for_each(|waker| contain_panic(|| waker.wake()));
        self.to_drop.drain(..).for_each(|waker| contain_panic(|| drop(waker)));
        self.to_close.drain(..).for_each(|tail| contain_panic(|| drop(tail)));
    }
}

/// Catches a panic in the caller's code. The panic hook has already reported it, the committing
/// thread has not caused it, and the other wakers must still be called.
fn contain_panic(call: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(call)) {
        // The panic payload is leaked, because dropping it could panic again.
        std::mem::forget(payload);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Counter {
        wakes: AtomicUsize,
        panics: bool,
    }

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
            if self.panics {
                std::panic::resume_unwind(Box::new("a waker panics"));
            }
        }
    }

    #[test]
    fn registering_calls_no_waker_and_keeps_each_once() {
        let counter = Arc::new(Counter::default());
        let mut wakers = Wakers::default();
        for _ in 0..3 {
            wakers.register_committed(7, Arc::clone(&counter).into());
        }
        assert_eq!(Arc::strong_count(&counter), 1 + 3, "those not needed are dropped later");
        drop(wakers.take_deferred());
        assert_eq!(Arc::strong_count(&counter), 1 + 1);
        assert_eq!(counter.wakes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn deferred_wakers_are_called_when_taken_and_dropped() {
        let counter = Arc::new(Counter::default());
        let mut wakers = Wakers::default();
        wakers.register_committed(7, Arc::clone(&counter).into());
        wakers.register_committed(8, Arc::clone(&counter).into());
        wakers.wake_committed(8);
        assert_eq!(counter.wakes.load(Ordering::Relaxed), 0);
        drop(wakers.take_deferred());
        assert_eq!(counter.wakes.load(Ordering::Relaxed), 1, "batch 8 is not synced");
        assert!(!wakers.has_deferred());
    }

    #[test]
    fn panicking_wakers_keep_no_other_waker_from_being_called() {
        let of = |panics| Arc::new(Counter { panics, ..Counter::default() });
        let counters = [of(true), of(false), of(true), of(false)];
        let mut wakers = Wakers::default();
        counters
            .iter()
            .for_each(|counter| wakers.register_committed(7, Arc::clone(counter).into()));
        wakers.wake_committed(8);
        drop(wakers.take_deferred());
        let called = |counter: &Arc<Counter>| counter.wakes.load(Ordering::Relaxed);
        assert_eq!(counters.each_ref().map(called), [1; 4]);
    }
}
