//! A standby's directory.

use haul_disk::{Disk, Durability, LOCK_NAME, Lock, Locked, Open, this_process, write_full};

use crate::error::{Error, Result};
use crate::follow::{MARKER, remove_unfinished};

/// The file that makes a directory a standby, until its takeover is complete.
pub(super) const NAME: &str = "STANDBY";

const TEXT: &str = "This directory follows a copy: open it with haul serve --standby.\n";

/// The use of a directory.
pub(super) enum Directory {
    /// A standby, which this process has locked.
    Standby(Lock),
    /// A log or store.
    Complete,
}

impl Directory {
    /// Determines the use of a directory, and makes an empty one a standby.
    pub(super) fn of(disk: &dyn Disk) -> Result<Self> {
        let lock = match disk.lock("", &this_process())? {
            Locked::Acquired(lock) => lock,
            Locked::HeldBy(holder) => {
                let dir = disk.root().display();
                return Err(Error::Invalid(format!("{dir} is in use by {holder}")));
            }
        };
        let names = disk.list("")?;
        let has = |name: &str| names.iter().any(|found| found == name);
        if has(MARKER) || !has(NAME) && has(crate::session::NAME) {
            return Ok(Self::Complete);
        }
        if !has(NAME) {
            if let Some(other) = names.iter().find(|name| *name != LOCK_NAME) {
                let dir = disk.root().display();
                let what = format!("{dir} is neither empty nor a standby: it contains {other}");
                return Err(Error::Invalid(what));
            }
            let file = disk.create(NAME, Open::default())?;
            write_full(&*file, TEXT.as_bytes(), 0)?;
            file.sync(Durability::Everything)?;
            disk.sync_dir("")?;
        }
        remove_unfinished(disk)?;
        Ok(Self::Standby(lock))
    }
}

/// `true` if a directory's takeover is not complete.
pub(super) fn is_standby(disk: &dyn Disk) -> Result<bool> {
    Ok(disk.list("")?.iter().any(|name| name == NAME))
}

/// Marks the directory as complete.
pub(super) fn complete(disk: &dyn Disk) -> Result<()> {
    disk.remove(NAME)?;
    Ok(disk.sync_dir("")?)
}
