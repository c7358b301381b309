//! Wraps the primitives of `shuttle`, a scheduler for tests of concurrent code, in the interface of
//! `parking_lot` and `std`.
//!
//! At each call of these primitives, the test scheduler decides which thread continues, and it can
//! repeat a schedule exactly. Time is part of the schedule: it advances when it is read, and a wait
//! with a deadline either times out at once or waits until it is notified.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

use shuttle::rand::Rng;
pub(crate) use shuttle::sync::atomic::AtomicU64;
pub(crate) use shuttle::thread;

/// The time by which the clock advances each time it is read, so that waiting loops end.
const TICK: Duration = Duration::from_micros(10);

/// The time that [`elapsed`] adds to each measured write and sync. With it, a sync takes so long
/// that the next batch waits for other writers, so tests cover this wait, too.
const WORK: Duration = Duration::from_micros(80);

thread_local! {
    /// The current time of the model. All threads of a schedule run on the same system thread, so a
    /// thread-local variable suffices.
    static TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Advances the time of the model by [`TICK`] and returns the new time.
pub(crate) fn now() -> Instant {
    TIME.set(TIME.get() + TICK);
    epoch() + TIME.get()
}

/// Returns the duration of an operation that began at `began`. First advances the time of the model
/// by [`WORK`], because the operation itself takes no time in the model.
pub(crate) fn elapsed(began: Instant) -> Duration {
    TIME.set(TIME.get() + WORK);
    now() - began
}

fn advance_to(time: Instant) {
    TIME.set(TIME.get().max(time - epoch()));
}

/// A lock without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

/// A locked [`Mutex`]. The inner guard is `None` only while the mutex is temporarily unlocked.
#[derive(Debug)]
pub(crate) struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, guard: Some(self.lock_inner()) }
    }

    fn lock_inner(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    pub(crate) fn unlocked<U>(guard: &mut Self, body: impl FnOnce() -> U) -> U {
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
#[derive(Debug, Default)]
pub(crate) struct Condvar {
    inner: shuttle::sync::Condvar,
    /// The number of waiting threads that were not notified yet. It is exact while the lock is
    /// held.
    waiters: AtomicUsize,
}

/// The result of a wait with a deadline: `true` if it timed out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    pub(crate) fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let Some(inner) = guard.guard.take() else { return };
        self.waiters.fetch_add(1, Ordering::Relaxed);
        guard.guard = Some(self.inner.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn wait_until<T>(
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
    pub(crate) fn notify_one(&self) -> bool {
        let waiters = self.waiters.load(Ordering::Relaxed);
        self.waiters.store(waiters.saturating_sub(1), Ordering::Relaxed);
        self.inner.notify_one();
        waiters > 0
    }

    pub(crate) fn notify_all(&self) {
        self.waiters.store(0, Ordering::Relaxed);
        self.inner.notify_all();
    }
}

/// Unlocks the state once, as if `event` were notified at any time before the deadline.
pub(crate) fn wait_briefly<T>(_event: &Condvar, guard: &mut MutexGuard<'_, T>, _: Instant) {
    MutexGuard::unlocked(guard, thread::yield_now);
}

/// Does nothing: the timers of the model are exact.
pub(crate) fn set_precise_timers() {}

/// The number of lanes of an [`EventWord`].
const LANES: usize = 4;

/// A number on which threads wait in lanes. A lock makes the comparison and the beginning of a wait
/// one step, as the kernel does for a futex.
#[derive(Debug, Default)]
pub(crate) struct EventWord {
    number: shuttle::sync::Mutex<u32>,
    lanes: [shuttle::sync::Condvar; LANES],
}

impl EventWord {
    fn lock(&self) -> shuttle::sync::MutexGuard<'_, u32> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self) -> u32 {
        *self.lock()
    }

    pub(crate) fn advance(&self) {
        *self.lock() += 1;
    }

    pub(crate) fn wait(&self, seen: u32, lane: u32) {
        let number = self.lock();
        if *number == seen {
            drop(self.lanes[lane as usize].wait(number));
        }
    }

    pub(crate) fn wake_one(&self, lane: u32) {
        let _number = self.lock();
        self.lanes[lane as usize].notify_one();
    }

    pub(crate) fn wake_all(&self, lane: u32) {
        let _number = self.lock();
        self.lanes[lane as usize].notify_all();
    }
}

/// A lock for many readers or one writer, without poisoning.
#[derive(Debug)]
pub(crate) struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> impl Deref<Target = T> + '_ {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> impl DerefMut<Target = T> + '_ {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}
