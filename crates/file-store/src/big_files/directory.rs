//! The directory of the files of big objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_disk::{Disk, File, Open};

use crate::big_files::pinned::PinnedFiles;
use crate::big_files::read_buffers::ReadBuffers;
use crate::error::{Error, Result};
use crate::names;

/// For reads through the page cache.
const CACHED: Open = Open { direct: false, read_only: true, ..DIRECT };

const DIRECT: Open = Open { direct: true, dsync: false, random: false, read_only: false };

/// Where big objects are kept, each in a file named by its identifier.
#[derive(Debug)]
pub(crate) struct Objects {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) pinned: PinnedFiles,
    pub(crate) buffers: Arc<ReadBuffers>,
    /// A sync of the directory failed. Which of its names survive a crash is not known, and a
    /// later sync that succeeds proves nothing: no file is published any more.
    failed: AtomicBool,
}

impl Objects {
    pub(crate) fn new(disk: Arc<dyn Disk>, pinned_bytes_max: u64) -> Self {
        Self {
            disk,
            pinned: PinnedFiles::new(pinned_bytes_max),
            buffers: Arc::default(),
            failed: AtomicBool::new(false),
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::SeqCst)
    }

    /// Begins the file of a big object, under the name of an unfinished one.
    pub(crate) fn create(&self, id: u128) -> Result<Arc<dyn File>> {
        Ok(self.disk.create(&names::unfinished(&names::big_file(id)), DIRECT)?)
    }

    /// Opens the file of a big object for reading.
    pub(crate) fn open(&self, id: u128) -> haul_disk::Result<Arc<dyn File>> {
        self.disk.open(&names::big_file(id), Open { read_only: true, ..DIRECT })
    }

    /// Opens the file of a big object for reading through the page cache.
    pub(crate) fn open_cached(&self, id: u128) -> haul_disk::Result<Arc<dyn File>> {
        self.disk.open(&names::big_file(id), CACHED)
    }

    /// Gives a file that is complete and synced its name.
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
        // One that failed meanwhile for another name makes this one doubtful, too.
        let published = synced.map_err(Error::from).and_then(|()| self.check());
        if published.is_err() {
            self.remove(id);
        }
        published
    }

    /// An error when a sync of the directory failed.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_failed() {
            return Ok(());
        }
        let what = "a sync of the big objects' directory failed; close the store and open it again";
        Err(Error::Invalid { what: what.to_owned() })
    }

    /// Removes the file of a big object nobody refers to. What cannot be removed now is found
    /// when the store is opened next.
    pub(crate) fn remove(&self, id: u128) {
        self.pinned.forget(id);
        drop(self.disk.remove(&names::big_file(id)));
    }

    /// Removes a file that was not published; the next opening does so otherwise.
    pub(crate) fn remove_unfinished(&self, id: u128) {
        drop(self.disk.remove(&names::unfinished(&names::big_file(id))));
    }
}
