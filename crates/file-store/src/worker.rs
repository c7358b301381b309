//! The threads of an open store.

use std::fmt::Debug;

/// A thread that works in the background until it is stopped.
pub(crate) trait Worker: Debug + Send + Sync {
    /// Makes the thread end at its next step, and waits for that. Dropping the worker does the same.
    fn stop(&mut self);
}
