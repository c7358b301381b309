//! The directory with big objects' files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_disk::{Disk, File, Open};

use crate::big_files::pinned::PinnedFiles;
use crate::big_files::read_buffers::ReadBuffers;
use crate::error::{Error, Result};
use crate::failures::{OngoingFailures, WorkKind};
use crate::names;

/// Options for reads through the page cache.
const CACHED: Open = Open { direct: false, read_only: true, ..DIRECT };

const DIRECT: Open = Open { direct: true, dsync: false, random: false, read_only: false };

/// The directory with big objects' files. Each file is named after its ID.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) pinned: PinnedFiles,
    pub(crate) buffers: Arc<ReadBuffers>,
    /// `true` after a failed sync of the directory. It is then unknown which names survive a crash,
    /// and a later successful sync does not change that, so no more files are published.
    failed: AtomicBool,
    failures: Arc<OngoingFailures>,
}

impl Objects {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        pinned_bytes_max: u64,
        failures: Arc<OngoingFailures>,
    ) -> Self {
        Self {
            disk,
            pinned: PinnedFiles::new(pinned_bytes_max),
            buffers: Arc::default(),
            failed: AtomicBool::new(false),
            failures,
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Creates a big object's file under its temporary name.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Refused`].
    pub(crate) fn create(&self, id: u128) -> Result<Arc<dyn File>> {
        let created = self.disk.create(&names::unfinished(&names::big_file(id)), DIRECT);
        let created = created.map_err(|error| match Error::from(error) {
            Error::Disk(error) => Error::Refused { source: Arc::new(error) },
            error => error,
        });
        self.failures.note(WorkKind::BigObjects, &created);
        created
    }

    pub(crate) fn open(&self, id: u128) -> haul_disk::Result<Arc<dyn File>> {
        self.disk.open(&names::big_file(id), Open { read_only: true, ..DIRECT })
    }

    /// Opens a big object's file for reading through the page cache.
    pub(crate) fn open_cached(&self, id: u128) -> haul_disk::Result<Arc<dyn File>> {
        self.disk.open(&names::big_file(id), CACHED)
    }

    /// Renames a complete, synced file to its final name.
    ///
    /// # Durability
    /// The name survives a power cut when this returns.
    pub(crate) fn publish(&self, id: u128) -> Result<()> {
        self.check()?;
        let name = names::big_file(id);
        self.disk.rename(&names::unfinished(&name), &name)?;
        let synced = self.disk.sync_dir("");
        if synced.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        // If the sync for another name failed in the meantime, this name may not be durable either.
        let published = synced.map_err(Error::from).and_then(|()| self.check());
        if published.is_err() {
            self.remove(id);
        }
        published
    }

    /// Returns an error if a sync of the directory failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        Err(Error::Stopped { what: "a sync of the directory of big objects failed" })
    }

    /// Removes a big object's unreferenced file. If this fails, the next opening of the store
    /// removes it.
    pub(crate) fn remove(&self, id: u128) {
        self.pinned.forget(id);
        drop(self.disk.remove(&names::big_file(id)));
    }

    /// Removes an unpublished file. If this fails, the next opening of the store removes it.
    pub(crate) fn remove_unfinished(&self, id: u128) {
        drop(self.disk.remove(&names::unfinished(&names::big_file(id))));
    }
}
