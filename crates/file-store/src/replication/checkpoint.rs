//! The current checkpoint's files, for a copy of the store.

use std::sync::Arc;

use haul_append_log::Lsn;
use haul_disk::File;

use crate::catalog::format::Catalog;
use crate::catalog::load::{decode_catalog, is_unusable};
use crate::checkpoint::write::checkpoint;
use crate::error::Result;
use crate::inner::Inner;
use crate::names::{self, IndexFile};
use crate::replication::source::open;
use crate::store::Store;

/// One index checkpoint's files.
#[derive(Debug)]
pub struct CheckpointFiles {
    /// The checkpoint's position in the log: the checkpoint contains exactly the needles before it.
    /// A copy that does not contain the log up to this position cannot use the checkpoint.
    pub lsn: Lsn,
    /// The files. The last one is the catalog, which lists the others.
    pub files: Vec<CheckpointFile>,
}

/// A file of a checkpoint. It is never changed.
#[derive(Debug)]
pub struct CheckpointFile {
    /// The name, relative to the store's directory. While the store is open, no name except the
    /// catalog's is reused for other content. Each opening skips a random number of names, so that
    /// no later file has an earlier file's name.
    pub name: String,
    /// The length, in bytes.
    pub bytes: u64,
    /// The file, open for reading. It stays readable after the store has removed it.
    pub file: Arc<dyn File>,
}

impl Store {
    /// Returns the current index checkpoint's position in the log, without disk access. `None` if
    /// there is no checkpoint. A merge replaces index files, and does not change the position.
    #[must_use]
    pub fn checkpoint_lsn(&self) -> Option<Lsn> {
        Some(self.inner.keyspace.index_files.applied()).filter(|lsn| *lsn > Lsn::default())
    }

    /// Opens the current index checkpoint's files. `None` if there is no usable checkpoint: the
    /// copy's index is then rebuilt from the volumes. Waits for a checkpoint that is being written.
    ///
    /// # Errors
    /// A failed system call.
    pub fn checkpoint(&self) -> Result<Option<CheckpointFiles>> {
        let files = &self.inner.keyspace.index_files;
        // Listed files are replaced and removed only under this lock.
        let current = files.catalog.lock();
        if current.is_none() {
            return Ok(None);
        }
        match open_checkpoint(&self.inner) {
            // A failed write left a catalog whose files were removed.
            Err(error) if is_unusable(&error) => Ok(None),
            opened => opened,
        }
    }

    /// Writes a checkpoint that contains all needles durable now, unless the current one has them.
    /// Writers wait only while its position is determined. While damage hides needles, no
    /// checkpoint is written.
    ///
    /// # Errors
    /// A failed system call. The earlier checkpoint stays in use.
    ///
    /// # Durability
    /// The checkpoint survives a power cut when this returns.
    pub fn write_checkpoint(&self) -> Result<()> {
        let inner = &self.inner;
        if inner.keyspace.index_files.applied() < inner.volumes.log.synced() {
            checkpoint(inner)?;
            inner.keyspace.checkpoint_due.reset();
        }
        Ok(())
    }
}

/// Opens the files that the catalog on disk lists. The caller holds the catalog lock.
fn open_checkpoint(inner: &Inner) -> Result<Option<CheckpointFiles>> {
    let disk = &*inner.keyspace.index_files.disk;
    let Some(catalog_file) = open(disk, names::CATALOG)? else { return Ok(None) };
    let catalog = decode_catalog(&*catalog_file)?;
    let mut files = Vec::new();
    for name in file_names(&catalog) {
        let Some(file) = open(disk, &name)? else { return Ok(None) };
        files.push(checkpoint_file(&name, file)?);
    }
    files.push(checkpoint_file(names::CATALOG, catalog_file)?);
    Ok(Some(CheckpointFiles { lsn: catalog.applied, files }))
}

fn checkpoint_file(name: &str, file: Arc<dyn File>) -> Result<CheckpointFile> {
    Ok(CheckpointFile { name: format!("{}/{name}", names::INDEX), bytes: file.bytes()?, file })
}

/// Returns the names of the files that a catalog lists.
fn file_names(catalog: &Catalog) -> Vec<String> {
    let named = |kind, numbers: &[u64]| -> Vec<String> {
        numbers.iter().map(|number| names::index_file(kind, *number)).collect()
    };
    let locations = named(IndexFile::Locations, &[catalog.locations]);
    let runs = named(IndexFile::Run, &catalog.runs);
    [locations, named(IndexFile::Changes, &catalog.changes), runs].concat()
}
