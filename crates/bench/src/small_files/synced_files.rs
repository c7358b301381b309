//! One file for each put, as a program without a store writes them.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::{Disk, Durability, Open, OsDisk, write_full};

use crate::log::{Contender, Failure};

/// New files, in one directory for each writer.
pub(super) struct SyncedFiles {
    disk: OsDisk,
    next: AtomicU64,
}

impl SyncedFiles {
    /// Creates the directories of the writers in `dir`.
    pub(super) fn open(dir: &Path, writers: usize) -> Result<Self, Failure> {
        let disk = OsDisk::open(dir)?;
        (0..writers).try_for_each(|writer| disk.create_dir(&writer.to_string()))?;
        disk.sync_dir("")?;
        Ok(Self { disk, next: AtomicU64::new(0) })
    }
}

impl Contender for SyncedFiles {
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure> {
        let name = format!("{writer}/{:010}", self.next.fetch_add(1, Ordering::Relaxed));
        let file = self.disk.create(&name, Open::default())?;
        write_full(&*file, record, 0)?;
        file.sync(Durability::Everything)?;
        self.disk.sync_dir(&writer.to_string())?;
        Ok(())
    }
}
