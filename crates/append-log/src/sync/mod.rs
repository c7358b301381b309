//! Provides locks, threads and the clock to the rest of the crate. With the feature `shuttle` they
//! come from a model, so that tests can explore thread schedules. Otherwise they come from
//! `parking_lot` and the standard library.

#[cfg(not(feature = "shuttle"))]
mod event_word;
#[cfg(feature = "shuttle")]
mod model;

#[cfg(feature = "shuttle")]
pub(crate) use model::{
    AtomicU64, Condvar, EventWord, Mutex, MutexGuard, RwLock, elapsed, now, set_precise_timers,
    thread, wait_briefly,
};

#[cfg(not(feature = "shuttle"))]
pub(crate) use event_word::EventWord;
#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{sync::atomic::AtomicU64, thread};

/// The delay of timers on a thread after [`set_precise_timers`], in nanoseconds. The kernel's
/// default is 50 microseconds, which is half the duration of a fast sync.
#[cfg(not(feature = "shuttle"))]
const TIMER_SLACK_NS: std::num::NonZeroU64 = std::num::NonZeroU64::MIN.saturating_add(999);

/// Makes waits with a deadline end soon after it on this thread.
#[cfg(not(feature = "shuttle"))]
pub(crate) fn set_precise_timers() {
    // Without this setting, waits only end later.
    rustix::thread::set_current_timer_slack(Some(TIMER_SLACK_NS)).ok();
}

/// Unlocks the state and waits until `event` is notified or `deadline` has passed.
#[cfg(not(feature = "shuttle"))]
pub(crate) fn wait_briefly<T>(
    event: &Condvar,
    guard: &mut MutexGuard<'_, T>,
    deadline: std::time::Instant,
) {
    event.wait_until(guard, deadline);
}

/// Returns the current time.
#[cfg(not(feature = "shuttle"))]
pub(crate) fn now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Returns the time elapsed since `began`.
#[cfg(not(feature = "shuttle"))]
pub(crate) fn elapsed(began: std::time::Instant) -> std::time::Duration {
    began.elapsed()
}
