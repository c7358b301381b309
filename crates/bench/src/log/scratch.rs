//! Creates temporary directories and removes them.

use std::fs;
use std::path::{Path, PathBuf};

use haul_measure::{Error, Result};

/// A new directory, which is removed with its contents when this value is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates the directory `name` in `dir`; `name` must not exist there.
    pub(crate) fn new(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let what = || format!("create the directory {}", path.display());
        fs::create_dir(&path).map_err(Error::other(what()))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // An error is ignored: a directory that cannot be removed stays for inspection.
        drop(fs::remove_dir_all(&self.path));
        // Frees the blocks now, so that the file system does not free them during the next
        // measurement.
        rustix::fs::sync();
    }
}
