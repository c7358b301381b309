//! A directory of a disk, as a disk of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Result;
use crate::file::{Disk, File, Open};

/// The part of a [`Disk`] below one of its directories.
#[derive(Debug)]
pub struct Subdir {
    disk: Arc<dyn Disk>,
    dir: String,
    root: PathBuf,
}

impl Subdir {
    /// The directory `dir` of `disk`; it need not be there yet.
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
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.disk.open(&self.name(name), how)
    }

    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>> {
        self.disk.create(&self.name(name), how)
    }

    fn create_dir(&self, name: &str) -> Result<()> {
        self.disk.create_dir(&self.name(name))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.disk.rename(&self.name(from), &self.name(to))
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

    fn root(&self) -> &Path {
        &self.root
    }
}
