//! The two traits through which storage code accesses files: [`Disk`] opens, renames and removes
//! files by name, and [`File`] reads and writes one file's bytes.
//!
//! [`crate::OsDisk`] implements both with system calls; tests may substitute a simulated disk.

mod file;
mod lock;
mod scheduler;
mod subdir;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Op, Result};

pub use file::{Allocation, Durability, File, Open, read_full, write_full};
pub use lock::{LOCK_NAME, Lock, Locked, this_process};
pub use scheduler::{SeekScheduler, SyncTurn};
pub use subdir::Subdir;

/// The files below one directory, the root. Names are relative, separated by `/`, and cannot leave
/// the root by `..` or by a symbolic link.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens an existing file.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn open(&self, name: &str, options: Open) -> Result<Arc<dyn File>>;

    /// Creates a file; fails if the name exists.
    ///
    /// # Errors
    /// Returns the system call's error; [`crate::Error::is_already_exists`] if the name exists.
    ///
    /// # Durability
    /// The name survives a crash only after [`Disk::sync_dir`].
    fn create(&self, name: &str, options: Open) -> Result<Arc<dyn File>>;

    /// Creates a directory unless it exists.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn create_dir(&self, name: &str) -> Result<()>;

    /// Renames a file, replacing an existing one.
    ///
    /// # Errors
    /// Returns the system call's error.
    ///
    /// # Durability
    /// Until [`Disk::sync_dir`] returns, a crash may undo the rename. After the crash, the
    /// directory has either its old or its new names, never a mixture.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Gives the open file `file`, which may belong to another disk, the additional name `name` (a
    /// hard link); fails if the name exists. Both names then refer to the same bytes, so that a
    /// write through one is visible through the other. [`crate::link_count`] returns the number of
    /// names.
    ///
    /// # Errors
    /// Returns the system call's error, such as [`std::io::ErrorKind::CrossesDevices`] for a file
    /// in another file system; `Unsupported` on a simulated disk.
    ///
    /// # Durability
    /// The name survives a crash only after [`Disk::sync_dir`].
    fn link(&self, file: &dyn File, name: &str) -> Result<()> {
        let _ = file;
        let source = std::io::Error::from(std::io::ErrorKind::Unsupported);
        Err(Error::new(Op::Link, self.root().join(name), source))
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn remove(&self, name: &str) -> Result<()>;

    /// Returns the names in a directory ("" is the root), sorted.
    ///
    /// # Errors
    /// Returns the system call's error, or an error for a name that is not UTF-8.
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// Makes the names in a directory ("" is the root) durable.
    ///
    /// # Errors
    /// Returns the system call's error. A failed sync is final.
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// Locks a directory ("" is the root) or an existing file exclusively, without waiting. While
    /// the lock is held, every other call for the same name, in this process or another one,
    /// returns [`Locked::HeldBy`] with `holder`, the description of the caller that holds the lock
    /// (see [`crate::this_process`]).
    ///
    /// [`crate::OsDisk`] takes `flock(2)` on the directory or file itself. Locking a directory
    /// needs no permission to write in it. On a network file system, a directory lock excludes only
    /// processes on the same machine, and a file lock excludes other machines only if the server
    /// supports locks. A program that runs on two machines must exclude the other machine by
    /// another method.
    ///
    /// # Errors
    /// Fails if the directory or file cannot be opened, or if its file system has no locks. A lock
    /// held by another opener is not an error; the result is then [`Locked::HeldBy`].
    fn lock(&self, name: &str, holder: &str) -> Result<Locked>;

    /// Returns the free bytes available to unprivileged writers; `None` on a simulated disk without
    /// a size limit.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn free_bytes(&self) -> Result<Option<u64>>;

    /// Returns the scheduler of this disk's reads and syncs; `None` if they need none. A caller that
    /// collects writes for a sync should wait for [`SeekScheduler::sync_turn`] before it ends the
    /// collection, and hold the turn until the sync is done.
    fn scheduler(&self) -> Option<&SeekScheduler> {
        None
    }

    /// Returns the root's path, for messages and for [`crate::probe`].
    fn root(&self) -> &Path;
}
