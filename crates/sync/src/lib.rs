//! Locks, threads and the clock for the crates of Haul whose threads meet, or a model of them.
//!
//! # What it is
//! Without features, this crate only re-exports locks of `parking_lot` and `crossbeam-utils` and
//! threads of the standard library, and adds [`EventWord`], a futex, and [`Sharded`], a value with a
//! part for each thread. With the feature `shuttle`, the same names are a model
//! by the crate `shuttle`: a test runs the unchanged code of a log, a store or a reactor on it, in
//! thousands of orders of its threads. A crate that uses these names can be tested in this way
//! without a second version of its code.
//!
//! In the model, all threads run on one thread of the system. The test scheduler decides at each
//! call of these names which thread continues, and can repeat its decisions exactly.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//!
//! use haul_sync::{Condvar, Mutex, thread};
//!
//! let shared = Arc::new((Mutex::new(0), Condvar::new()));
//! let other = Arc::clone(&shared);
//! let adding = thread::spawn(move || {
//!     *other.0.lock() += 1;
//!     other.1.notify_all();
//! });
//! let mut number = shared.0.lock();
//! while *number == 0 {
//!     shared.1.wait(&mut number);
//! }
//! drop(number);
//! adding.join().unwrap();
//! ```
//!
//! # Promises
//! - Without the feature, nothing is added to the locks and threads that it re-exports.
//! - With the feature, a thread that waits forever ends the test with a panic ("deadlock!"). The
//!   model of [`RwLock`] lets no reader overtake a waiting writer, as `parking_lot` does, so a thread
//!   that locks twice for reading is found, too.
//!
//! # What it is not
//! The model is sequentially consistent: it does not reorder the operations of a thread as
//! processors may, so it finds no missing memory barrier.
//!
//! # Sources
//! The manual page `futex(2)`; the documentation of the crate `shuttle`.

#[cfg(not(feature = "shuttle"))]
mod event_word;
#[cfg(feature = "shuttle")]
mod model;
mod sharded;
#[cfg(not(feature = "shuttle"))]
mod system;

#[cfg(feature = "shuttle")]
pub use model::{
    ArcRwLockReadGuard, AtomicBool, AtomicU8, AtomicU64, Condvar, EventWord, Mutex, MutexGuard,
    RwLock, RwLock as ShardedRwLock, RwLockReadGuard, RwLockReadGuard as ShardedRwLockReadGuard,
    RwLockWriteGuard, advance, elapsed, mpsc, now, set_precise_timers, thread, thread_local,
    wait_briefly,
};
pub use sharded::Sharded;
#[cfg(feature = "shuttle")]
pub use shuttle;

#[cfg(not(feature = "shuttle"))]
pub use event_word::EventWord;
#[cfg(not(feature = "shuttle"))]
pub use system::{
    ArcRwLockReadGuard, AtomicBool, AtomicU8, AtomicU64, Condvar, Mutex, MutexGuard, RwLock,
    RwLockReadGuard, RwLockWriteGuard, ShardedRwLock, ShardedRwLockReadGuard, elapsed, mpsc, now,
    set_precise_timers, thread, thread_local, wait_briefly,
};
