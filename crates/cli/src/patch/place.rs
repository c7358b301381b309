//! The file to be patched, and the directory beside it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use haul_disk::{Disk, OsDisk};

use crate::report::{Exit, Failure, OrFail, Result};

/// The file, held against other runs.
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) disk: OsDisk,
    pub(super) name: String,
    pub(super) bytes: u64,
    lock: File,
}

impl Place {
    pub(super) fn open(target: &Path) -> Result<Self> {
        let cannot = || format!("cannot patch {}", target.display());
        let fail = |why: &str| Failure::new(format!("{}: {why}", cannot())).exit(Exit::NotStarted);
        let not_started = |failure: Failure| failure.exit(Exit::NotStarted);
        // A link is followed now: the directory of the patch stands beside the file itself.
        let path = fs::canonicalize(target).or_fail(cannot).map_err(not_started)?;
        let lock = File::open(&path).or_fail(cannot).map_err(not_started)?;
        let status = lock.metadata().or_fail(cannot).map_err(not_started)?;
        if !status.is_file() {
            return Err(fail("it is not a regular file"));
        }
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(fail("another process has it locked")
                    .advise("wait for the other \"haul patch\" of this file to end"));
            }
            Err(TryLockError::Error(error)) => {
                return Err(not_started(Failure::new(cannot()).because(error)));
            }
        }
        let (dir, name) = match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
            (Some(dir), Some(name)) => (dir, name.to_owned()),
            _ => return Err(fail("its name is not UTF-8")),
        };
        let disk = OsDisk::open(dir).or_fail(cannot).map_err(not_started)?;
        Ok(Self { disk, name, bytes: status.len(), lock, path })
    }

    /// Sees how long the file is now.
    pub(super) fn look_again(&mut self) -> Result {
        let status = self.lock.metadata();
        let what = || format!("cannot patch {}", self.path.display());
        self.bytes = status.or_fail(what)?.len();
        Ok(())
    }

    fn dir_name(&self) -> String {
        format!("{}.haul-patch", self.name)
    }

    /// Where an atomic patch is kept.
    pub(super) fn dir(&self) -> PathBuf {
        self.path.with_file_name(self.dir_name())
    }

    /// The directory of an atomic patch, if it is there.
    pub(super) fn log(&self) -> Result<Option<Arc<dyn Disk>>> {
        match OsDisk::open(self.dir()) {
            Ok(disk) => Ok(Some(Arc::new(disk))),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.fail_log().because(error)),
        }
    }

    /// Makes it.
    pub(super) fn make_log(&self) -> Result<Arc<dyn Disk>> {
        let disk = OsDisk::open_or_create(self.dir()).map_err(|e| self.fail_log().because(e))?;
        Ok(Arc::new(disk))
    }

    /// Removes it; it is empty.
    pub(super) fn remove_log(&self) -> Result {
        fs::remove_dir(self.dir()).map_err(|error| self.fail_log().because(error))?;
        self.disk.sync_dir("").map_err(|error| self.fail_log().because(error))
    }

    pub(super) fn fail_log(&self) -> Failure {
        Failure::new(format!("cannot use {}", self.dir().display()))
    }
}
