//! The interface between a store and its copy.

use std::fmt;

use haul_append_log::Lsn;

/// A copy of the store elsewhere, which follows the log of the store.
///
/// See [`crate::Options::replication`].
pub trait Replication: Send + Sync + fmt::Debug {
    /// Waits until the copy contains the log before `end`.
    ///
    /// The store calls this after a change is durable in its own log and visible, and before the
    /// call that made the change returns. The calling thread holds no lock of the store, so this
    /// function may call the store. [`crate::Store::close`] waits for a sweep of the background
    /// thread that is in this function, so the function must end before the store is closed.
    ///
    /// # Errors
    /// The reason why the copy does not contain this part of the log, and may never contain it. The
    /// store returns it in [`crate::Error::NotReplicated`].
    fn wait(&self, end: Lsn) -> Result<(), String>;
}
