//! The store, and its closing.

use std::path::Path;
use std::sync::Arc;

use haul_append_log::Position;

use crate::error::{Error, Result};
use crate::events::queue::StoreEvents;
use crate::failures::OngoingFailure;
use crate::index::entry::Change;
use crate::inner::Inner;
use crate::worker::Worker;

/// A store of objects in buckets, in its own directory.
///
/// All calls block except [`Store::start_put`], and may be made from several threads concurrently.
#[derive(Debug)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    /// The threads, in the order in which they are stopped: first the thread that completes puts,
    /// then the threads that wait for writers.
    pub(crate) workers: Vec<Box<dyn Worker>>,
}

impl Store {
    /// Returns the store's directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Returns the kinds of work that currently fail, because the disk is full or rejects files.
    /// The store retries them with the next change, and in the background.
    #[must_use]
    pub fn ongoing_failures(&self) -> Vec<OngoingFailure> {
        self.inner.maintenance.failures.all()
    }

    /// Applies the needles of a durable record; see [`Inner::apply`].
    pub(crate) fn apply(&self, changes: Vec<Change>, at: Position) {
        self.inner.apply(changes, at);
    }

    /// Returns the queues of events.
    #[must_use]
    pub fn events(&self) -> StoreEvents<'_> {
        StoreEvents::new(&self.inner)
    }

    /// Completes all puts that [`Store::start_put`] started, and closes the store. Dropping the
    /// store does the same but ignores failures.
    ///
    /// # Errors
    /// If a write or sync failed, now or earlier.
    pub fn close(mut self) -> Result<()> {
        self.workers.drain(..).for_each(|mut worker| worker.stop());
        let objects = Arc::clone(&self.inner.objects);
        let manifest = self.inner.volumes.check_manifest();
        let latched = self.inner.volumes.log.is_latched();
        if !latched {
            self.inner.keyspace.index.read().check_totals();
        }
        // Readers may still reference `inner`; the last of them closes the log.
        match Arc::try_unwrap(self.inner) {
            Ok(inner) => inner.volumes.log.close()?,
            Err(_shared) if latched => {
                return Err(Error::Stopped { what: "a sync of the log failed" });
            }
            Err(_shared) => {}
        }
        objects.check().and(manifest)
    }
}
