//! The index files: their numbers, their catalog, and their removal.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul_append_log::Lsn;
use haul_disk::{Disk, Durability, Open, write_full};
use haul_sync::{AtomicBool, AtomicU64, Mutex};

use crate::catalog::format::Catalog;
use crate::error::Result;
use crate::index::keys::Memtable;
use crate::index::runs::merge_runs::{Output, merge_runs};
use crate::index::runs::plan::{RunSize, choose};
use crate::index::runs::run::Run;
use crate::index::runs::writer::RunWriter;
use crate::names::{self, IndexFile};

/// The directory with the index files.
#[derive(Debug)]
pub(crate) struct IndexFiles {
    pub(crate) disk: Arc<dyn Disk>,
    last_file: AtomicU64,
    /// The catalog on disk, locked while it is replaced.
    pub(crate) catalog: Mutex<Option<Catalog>>,
    /// The catalog's position, for callers that hold the index lock: the catalog lock must be taken
    /// before the index lock.
    applied: AtomicU64,
    is_damaged: AtomicBool,
    /// Locked while a checkpoint is written.
    pub(crate) checkpointing: Mutex<()>,
}

impl IndexFiles {
    /// Opens a directory whose files have numbers up to `last_file`. `catalog` is the loaded one.
    pub(crate) fn new(disk: Arc<dyn Disk>, last_file: u64, catalog: Option<Catalog>) -> Self {
        Self {
            disk,
            last_file: AtomicU64::new(last_file),
            applied: AtomicU64::new(catalog.as_ref().map_or(0, |catalog| catalog.applied.0)),
            catalog: Mutex::new(catalog),
            is_damaged: AtomicBool::new(false),
            checkpointing: Mutex::default(),
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.last_file.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn last_number(&self) -> u64 {
        self.last_file.load(Ordering::Relaxed)
    }

    /// Returns the log position of the checkpoint on disk, which contains all earlier needles.
    pub(crate) fn applied(&self) -> Lsn {
        Lsn(self.applied.load(Ordering::Relaxed))
    }

    /// Writes a run of recent changes and syncs it.
    ///
    /// # Errors
    /// A failed system call. The file is removed.
    pub(crate) fn write_run(&self, recent: &Memtable) -> Result<Arc<Run>> {
        let number = self.next_number();
        let name = names::index_file(IndexFile::Run, number);
        let write = || {
            let mut writer = RunWriter::create(&*self.disk, &name, number)?;
            recent.for_each(|key, value| writer.push(key, value))?;
            writer.finish()?;
            Ok(Arc::new(Run::open(&*self.disk, &name)?))
        };
        write().inspect_err(|_| drop(self.disk.remove(&name)))
    }

    /// Merges runs, given from newest to oldest, into one. `None` if `pace` cancelled the merge.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] if a run is damaged; a failed system call.
    pub(crate) fn merge(
        &self,
        inputs: &[Arc<Run>],
        with_oldest: bool,
        pace: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Option<Arc<Run>>> {
        let number = self.next_number();
        let name = names::index_file(IndexFile::Run, number);
        let output = Output { name: &name, id: number };
        let mut merge = || match merge_runs(&*self.disk, inputs, output, with_oldest, pace)? {
            Some(_) => Ok(Some(Arc::new(Run::open(&*self.disk, &name)?))),
            None => Ok(None),
        };
        let merged = merge();
        if !matches!(merged, Ok(Some(_))) {
            drop(self.disk.remove(&name));
        }
        merged
    }

    /// Replaces the catalog on disk, and removes the files that the new one does not list.
    ///
    /// 1. Syncs the directory: the files that the catalog lists are synced, and now their names are
    ///    durable.
    /// 2. Writes the catalog under a temporary name and syncs it. After a crash the old one is
    ///    used.
    /// 3. Renames the catalog and syncs the directory.
    /// 4. Removes the files of the old catalog. After a crash, opening the store removes them.
    ///
    /// # Errors
    /// A failed system call; the old catalog stays in use.
    pub(crate) fn publish(&self, current: &mut Option<Catalog>, catalog: Catalog) -> Result<()> {
        debug_assert!(catalog.applied >= self.applied(), "a checkpoint covers the one before it");
        debug_assert!(catalog.files().all(|number| number <= catalog.last_file));
        self.disk.sync_dir("")?;
        let unfinished = names::unfinished(names::CATALOG);
        match self.disk.remove(&unfinished) {
            Err(error) if !error.is_not_found() => return Err(error.into()),
            _ => {}
        }
        let file = self.disk.create(&unfinished, Open::default())?;
        write_full(&*file, &catalog.encode(), 0)?;
        file.sync(Durability::Data)?;
        self.disk.rename(&unfinished, names::CATALOG)?;
        self.disk.sync_dir("")?;
        self.applied.store(catalog.applied.0, Ordering::Relaxed);
        let old = current.replace(catalog);
        let listed: Vec<u64> = current.iter().flat_map(Catalog::files).collect();
        let is_unlisted = |number: &u64| !listed.contains(number);
        self.remove(old.iter().flat_map(Catalog::files).filter(is_unlisted));
        Ok(())
    }

    /// Removes index files. If this fails, opening the store removes them.
    pub(crate) fn remove(&self, numbers: impl Iterator<Item = u64>) {
        for number in numbers {
            for kind in [IndexFile::Run, IndexFile::Locations, IndexFile::Changes] {
                drop(self.disk.remove(&names::index_file(kind, number)));
            }
        }
    }

    /// Discards the catalog and publishes no other one: the next opening of the store rebuilds the
    /// index.
    pub(crate) fn discard_catalog(&self) {
        self.is_damaged.store(true, Ordering::Relaxed);
        let mut catalog = self.catalog.lock();
        if catalog.take().is_some()
            && self.disk.remove(names::CATALOG).is_ok()
            && self.disk.sync_dir("").is_ok()
        {
            self.applied.store(0, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }
}

/// Returns the runs to merge next, and `true` if they include the oldest run.
pub(crate) fn choose_runs(runs: &[Arc<Run>], objects: u64) -> Option<(Vec<Arc<Run>>, bool)> {
    let size = |run: &Arc<Run>| {
        let info = run.info();
        RunSize { entries: info.entries, deletions: info.deletions, bytes: info.bytes }
    };
    let sizes: Vec<RunSize> = runs.iter().map(size).collect();
    let range = choose(&sizes, Some(objects))?;
    let with_oldest = range.end == runs.len();
    Some((runs[range].to_vec(), with_oldest))
}
