//! Wraps the primitives of `shuttle`, a scheduler for tests of concurrent code, in the interface of
//! `parking_lot` and `std`.
//!
//! At each call of these primitives, the test scheduler decides which thread continues, and it can
//! repeat a schedule exactly.

mod event_word;
mod mutex;
mod rw_lock;
mod time;

pub use event_word::EventWord;
pub use mutex::{Condvar, Mutex, MutexGuard, wait_briefly};
pub use rw_lock::{ArcRwLockReadGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
pub use shuttle::sync::mpsc;
pub use shuttle::{thread, thread_local};
pub use time::{advance, elapsed, now, set_precise_timers};
