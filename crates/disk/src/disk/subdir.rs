//! A [`Disk`] whose root is a directory on another disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, File, Locked, Open, SeekScheduler};
use crate::error::Result;

/// A disk's directory, used as a disk: names are resolved below this directory.
#[derive(Debug)]
pub struct Subdir {
    disk: Arc<dyn Disk>,
    dir: String,
    root: PathBuf,
}

impl Subdir {
    /// Wraps the directory `dir` of `disk`. The directory need not exist yet.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: &str) -> Self {
        let root = disk.root().join(dir);
        Self { disk, dir: dir.to_owned(), root }
    }

    fn name(&self, name: &str) -> String {
        if name.is_empty() { self.dir.clone() } else { format!("{}/{name}", self.dir) }
    }
}

impl Disk for Subdir {
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.disk.open(&self.name(name), options)
    }

    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>> {
        self.disk.create(&self.name(name), options)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.disk.create_dir(&self.name(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(&self.name(from), &self.name(to))
    }

    fn link(&self, file: &dyn File, name: &str) -> Result<()> {
        self.disk.link(file, &self.name(name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.disk.remove(&self.name(name))
    }

    fn list(&self, dir: &str) -> Result<Vec<String>> {
        self.disk.list(&self.name(dir))
    }

    fn sync_dir(&self, dir: &str) -> Result<()> {
        self.disk.sync_dir(&self.name(dir))
    }

    fn lock(&self, name: &str, holder: &str) -> Result<Locked> {
        self.disk.lock(&self.name(name), holder)
    }

    fn free_bytes(&self) -> Result<Option<u64>> {
        self.disk.free_bytes()
    }

    fn scheduler(&self) -> Option<&SeekScheduler> {
        self.disk.scheduler()
    }

    fn root(&self) -> &Path {
        &self.root
    }
}
