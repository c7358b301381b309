//! Provides the locks of `parking_lot` and the threads of the standard library.

use std::num::NonZeroU64;
pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
pub use std::sync::mpsc;
use std::time::{Duration, Instant};
pub use std::{thread, thread_local};

use std::sync::PoisonError;

pub use crossbeam_utils::sync::ShardedLockReadGuard as ShardedRwLockReadGuard;
use crossbeam_utils::sync::{ShardedLock, ShardedLockWriteGuard};
pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A lock that many threads read and few write: readers on different threads write no cache line in
/// common. A writer locks all parts, which takes several times as long as with [`RwLock`].
#[derive(Debug, Default)]
pub struct ShardedRwLock<T>(ShardedLock<T>);

impl<T> ShardedRwLock<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self(ShardedLock::new(value))
    }

    /// Locks for reading.
    pub fn read(&self) -> ShardedRwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks for writing.
    pub fn write(&self) -> ShardedLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A lock for reading that owns a reference to the [`RwLock`].
pub type ArcRwLockReadGuard<T> = parking_lot::ArcRwLockReadGuard<parking_lot::RawRwLock, T>;

/// The delay of timers on a thread after [`set_precise_timers`], in nanoseconds. The kernel's
/// default is 50 microseconds, which is half the duration of a fast sync.
const TIMER_SLACK_NS: NonZeroU64 = NonZeroU64::MIN.saturating_add(999);

/// Makes waits with a deadline end soon after it on this thread.
pub fn set_precise_timers() {
    // Without this setting, waits only end later.
    rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS)).ok();
}

/// Unlocks the state and waits until `event` is notified or `deadline` has passed.
pub fn wait_briefly<T>(event: &Condvar, guard: &mut MutexGuard<'_, T>, deadline: Instant) {
    event.wait_until(guard, deadline);
}

/// Returns the current time.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Returns the time elapsed since `began`.
#[must_use]
pub fn elapsed(began: Instant) -> Duration {
    began.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timer_slack_of_the_thread_becomes_one_microsecond() {
        let slack_ns = || {
            set_precise_timers();
            rustix::thread::current_timer_slack().unwrap()
        };
        assert_eq!(thread::spawn(slack_ns).join().unwrap(), 1000);
    }

    #[test]
    fn wait_ends_at_its_deadline() {
        let (lock, event) = (Mutex::new(()), Condvar::new());
        let (began, limit) = (now(), Duration::from_millis(5));
        wait_briefly(&event, &mut lock.lock(), began + limit);
        assert!(elapsed(began) >= limit);
    }

    #[test]
    fn wait_ends_when_the_event_is_notified() {
        let (lock, event) = (Mutex::new(false), Condvar::new());
        let deadline = now() + Duration::from_mins(1);
        thread::scope(|scope| {
            let mut is_set = lock.lock();
            scope.spawn(|| {
                *lock.lock() = true;
                event.notify_all();
            });
            while !*is_set && now() < deadline {
                wait_briefly(&event, &mut is_set, deadline);
            }
            assert!(*is_set);
        });
        assert!(now() < deadline);
    }
}
