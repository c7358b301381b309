//! Opens and locks the file to patch, and manages the journal directory beside the file.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, OsDisk};

use crate::report::{Exit, Failure, OrFail, Result};

/// A file to patch, locked against concurrent runs.
pub(super) struct PatchTarget {
    pub(super) path: PathBuf,
    pub(super) disk: OsDisk,
    pub(super) name: String,
    pub(super) bytes: u64,
    lock: File,
}

impl PatchTarget {
    pub(super) fn open(target: &Path) -> Result<Self> {
        let cannot = || format!("cannot patch {}", target.display());
        let fail =
            |reason: &str| Failure::new(format!("{}: {reason}", cannot())).exit(Exit::NotStarted);
        let not_started = |failure: Failure| failure.exit(Exit::NotStarted);
        // Symbolic links are resolved first, because the journal is beside the target of the link.
        let path = fs::canonicalize(target).or_fail(cannot).map_err(not_started)?;
        let lock = File::open(&path).or_fail(cannot).map_err(not_started)?;
        let status = lock.metadata().or_fail(cannot).map_err(not_started)?;
        if !status.is_file() {
            return Err(fail("not a regular file"));
        }
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(fail("locked by another process")
                    .advise("wait until the other \"haul patch\" of this file ends"));
            }
            Err(TryLockError::Error(error)) => {
                return Err(not_started(Failure::new(cannot()).because(error)));
            }
        }
        let (dir, name) = match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Some(dir), Some(name)) => (dir, name.to_owned()),
            _ => return Err(fail("the file name is not valid UTF-8")),
        };
        let disk = OsDisk::open(dir).or_fail(cannot).map_err(not_started)?;
        Ok(Self { disk, name, bytes: status.len(), lock, path })
    }

    /// Updates `bytes` to the current length of the file.
    pub(super) fn refresh_length(&mut self) -> Result {
        let status = self.lock.metadata();
        let cannot = || format!("cannot patch {}", self.path.display());
        self.bytes = status.or_fail(cannot)?.len();
        Ok(())
    }

    fn dir_name(&self) -> String {
        format!("{}.haul-patch", self.name)
    }

    /// Returns the path of the journal directory.
    pub(super) fn dir(&self) -> PathBuf {
        self.path.with_file_name(self.dir_name())
    }

    /// Opens the journal directory, if it exists.
    pub(super) fn log(&self) -> Result<Option<Arc<dyn Disk>>> {
        match OsDisk::open(self.dir()) {
            Ok(disk) => Ok(Some(Arc::new(disk))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.fail_log().because(error)),
        }
    }

    /// Creates the journal directory.
    pub(super) fn create_log(&self) -> Result<Arc<dyn Disk>> {
        let disk = OsDisk::open_or_create(self.dir()).map_err(|e| self.fail_log().because(e))?;
        Ok(Arc::new(disk))
    }

    /// Removes the journal directory, which must be empty.
    pub(super) fn remove_log(&self) -> Result {
        fs::remove_dir(self.dir()).map_err(|error| self.fail_log().because(error))?;
        self.disk.sync_dir("").map_err(|error| self.fail_log().because(error))
    }

    pub(super) fn fail_log(&self) -> Failure {
        Failure::new(format!("cannot use {}", self.dir().display()))
    }
}
