//! Directories for one measurement each, which go away with all that is in them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// An empty directory, removed with its contents when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes `name` in `dir`, where there must be nothing of this name.
    pub(crate) fn new(dir: &Path, name: &str) -> Result<Self> {
        let path = dir.join(name);
        let what = || format!("make the directory {} to measure in", path.display());
        fs::create_dir(&path).map_err(Error::other(what()))?;
        Ok(Self { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed can still be looked at.
        drop(fs::remove_dir_all(&self.path));
        // What comes next shall not wait for blocks to be given back.
        rustix::fs::sync();
    }
}
