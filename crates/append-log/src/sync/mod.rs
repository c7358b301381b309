//! Provides locks, threads and the clock to the rest of the crate. With the feature `shuttle` they
//! come from a model, so that tests can explore thread schedules. Otherwise they come from
//! `parking_lot` and the standard library.

#[cfg(feature = "shuttle")]
mod model;

#[cfg(feature = "shuttle")]
pub(crate) use model::{Condvar, Mutex, MutexGuard, RwLock, elapsed, now, thread};

#[cfg(not(feature = "shuttle"))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::thread;

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
