//! The interface between a store and its copy.

use std::fmt;
use std::time::Duration;

use haul_append_log::Lsn;

/// A copy of the store elsewhere, which follows the store's log.
///
/// See [`crate::Options::replication`].
pub trait Replication: Send + Sync + fmt::Debug {
    /// Waits until the copy contains the log before `end`.
    ///
    /// The store calls this after a change is durable in its own log and visible, and before the
    /// call that made the change returns. The calling thread holds no lock of the store, so this
    /// function may call the store. [`crate::Store::close`] waits for a background sweep that is in
    /// this function, so the function must end before the store is closed.
    ///
    /// # Errors
    /// The reason why the copy does not contain this part of the log, and may never contain it. The
    /// store returns it in [`crate::Error::NotReplicated`].
    fn wait(&self, end: Lsn) -> Result<(), String>;

    /// Checks like [`Self::wait`], without blocking, that a change may be acknowledged. The change
    /// was started while [`Self::may_wait`] was `false`. The default function always succeeds.
    ///
    /// # Errors
    /// The reason why nothing may be acknowledged now.
    fn check_now(&self) -> Result<(), String> {
        Ok(())
    }

    /// `true` if [`Self::wait`] may block or fail now. Otherwise a put may be acknowledged on a
    /// thread that must not block.
    fn may_wait(&self) -> bool {
        true
    }

    /// Returns the copy's state, for metrics and health checks.
    fn status(&self) -> ReplicationStatus {
        ReplicationStatus::default()
    }
}

/// A copy's state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplicationStatus {
    /// The end of the log in the copy.
    pub copied: Lsn,
    /// The time for which the copy has not contained all durable records; `None` if it does.
    pub behind: Option<Duration>,
    /// The requests to the remote store.
    pub requests: u64,
    /// The bytes sent to the remote store.
    pub sent_bytes: u64,
    /// The error of the last attempt to copy, if it failed.
    pub last_error: Option<String>,
    /// The reason why copying has ended permanently, if it has.
    pub stopped: Option<String>,
    /// The time for which this process still holds its lease on the copy: no change is acknowledged
    /// while it is zero. `None` if it has no lease.
    pub lease: Option<Duration>,
}
