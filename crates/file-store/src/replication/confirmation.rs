//! Waiting until the copy of the store contains a change.

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::replication::interface::ReplicationStatus;
use crate::store::Store;

impl Store {
    /// Returns the state of the copy; `None` if the store has none.
    #[must_use]
    pub fn replication_status(&self) -> Option<ReplicationStatus> {
        self.inner.options.replication.as_ref().map(|replication| replication.status())
    }

    /// Waits until the copy of the store, if there is one, contains all changes that are durable
    /// now. A caller that finds the change of an earlier request, which may not have been confirmed,
    /// calls this before it acknowledges the repeated request.
    ///
    /// # Errors
    /// [`Error::NotReplicated`].
    ///
    /// # Durability
    /// If the store waits for its copy, all changes survive the loss of this machine when this
    /// returns.
    pub fn confirm(&self) -> Result<()> {
        self.inner.replicate()
    }
}

impl Inner {
    /// Waits until the copy of the store, if there is one, contains all changes that are durable
    /// now. The caller holds no lock.
    ///
    /// # Errors
    /// [`Error::NotReplicated`].
    pub(crate) fn replicate(&self) -> Result<()> {
        let Some(replication) = &self.options.replication else { return Ok(()) };
        replication.wait(self.log.synced()).map_err(|what| Error::NotReplicated { what })
    }

    /// Waits like [`Self::replicate`] if a call has changed the store, and returns its outcome.
    pub(crate) fn replicated<T>(&self, outcome: Result<T>) -> Result<T> {
        let changed = outcome?;
        self.replicate()?;
        Ok(changed)
    }

    /// Waits once like [`Self::replicate`] if any of the outcomes of a batch is a change. If that
    /// fails, each of these outcomes becomes an error.
    pub(crate) fn replicate_batch<T>(
        &self,
        outcomes: &mut [Result<T>],
        is_change: impl Fn(&T) -> bool,
    ) {
        let is_change = |outcome: &Result<T>| outcome.as_ref().is_ok_and(&is_change);
        if !outcomes.iter().any(is_change) {
            return;
        }
        let Err(Error::NotReplicated { what }) = self.replicate() else { return };
        for outcome in outcomes.iter_mut().filter(|outcome| is_change(outcome)) {
            *outcome = Err(Error::NotReplicated { what: what.clone() });
        }
    }
}
