//! A lock, and the condition variables on which its holders wait.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use shuttle::rand::Rng;
use shuttle::thread;

use crate::model::time::advance_to;

/// A lock without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// A locked [`Mutex`]. The inner guard is `None` only while the mutex is temporarily unlocked.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates an unlocked lock.
    pub fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// Locks.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, guard: Some(self.lock_inner()) }
    }

    fn lock_inner(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    /// Unlocks while `body` runs.
    pub fn unlocked<U>(guard: &mut Self, body: impl FnOnce() -> U) -> U {
        guard.guard = None;
        let result = body();
        guard.guard = Some(guard.mutex.lock_inner());
        result
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("the lock is held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("the lock is held")
    }
}

/// A condition variable that counts the threads waiting on it.
///
/// A wait with a deadline either times out at once, or waits until it is notified: the test then
/// finds a lost notification that the deadline would hide.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: shuttle::sync::Condvar,
    /// The number of waiting threads that were not notified yet. It is exact while the lock is
    /// held.
    waiters: AtomicUsize,
}

/// The result of a wait with a deadline: `true` if it timed out.
#[derive(Debug, Clone, Copy)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns `true` if the wait timed out.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// Creates a condition variable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Unlocks and waits until it is notified.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let Some(inner) = guard.guard.take() else { return };
        self.waiters.fetch_add(1, Ordering::Relaxed);
        guard.guard = Some(self.inner.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// Unlocks and waits like [`Self::wait`], or until `deadline` has passed.
    pub fn wait_until<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        deadline: Instant,
    ) -> WaitTimeoutResult {
        let times_out = shuttle::rand::thread_rng().r#gen::<bool>();
        if times_out {
            advance_to(deadline);
            MutexGuard::unlocked(guard, thread::yield_now);
        } else {
            self.wait(guard);
        }
        WaitTimeoutResult(times_out)
    }

    /// Wakes one waiting thread. Returns `true` if a thread was waiting.
    pub fn notify_one(&self) -> bool {
        let waiters = self.waiters.load(Ordering::Relaxed);
        self.waiters.store(waiters.saturating_sub(1), Ordering::Relaxed);
        self.inner.notify_one();
        waiters > 0
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.waiters.store(0, Ordering::Relaxed);
        self.inner.notify_all();
    }
}

/// Unlocks the state once, as if `event` were notified at any time before the deadline.
pub fn wait_briefly<T>(_event: &Condvar, guard: &mut MutexGuard<'_, T>, _: Instant) {
    MutexGuard::unlocked(guard, thread::yield_now);
}
