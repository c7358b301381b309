//! Empties a directory in which the restore of a copy was interrupted.

use haul_disk::{Disk, LOCK_NAME};
use haul_file_store::Result;

use crate::pool_file;

/// A directory that a new file system contains.
pub(crate) const LOST_AND_FOUND: &str = "lost+found";

/// Removes what an earlier restore left in a directory, except its mark.
///
/// # Errors
/// A failed system call.
pub(crate) fn clear(disk: &dyn Disk) -> Result<()> {
    let stays = [LOCK_NAME, LOST_AND_FOUND, pool_file::MARK];
    for name in disk.list("")?.iter().filter(|name| !stays.contains(&&***name)) {
        match disk.list(name) {
            Ok(files) => {
                files.iter().try_for_each(|file| disk.remove(&format!("{name}/{file}")))?;
                disk.sync_dir(name)?;
            }
            // It is a file.
            Err(_) => disk.remove(name)?,
        }
    }
    Ok(disk.sync_dir("")?)
}
