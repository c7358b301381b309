//! Creates the file of a page file if it is missing.

use haul_disk::{Disk, Durability, LOCK_NAME, Open};

use crate::error::{Error, Result};

/// Creates the file `name` if it is missing and `log` is empty, and extends it with zeros to
/// `bytes` bytes if it is shorter and `log` is empty.
///
/// 1. Creates the file. After a crash during this step, the file is too short and the log is empty.
/// 2. Extends the file, and syncs the file and its directory entry. After a crash during this step,
///    the next call repeats it, because the log gets its first segment only later.
///
/// If the log has segments and the file is missing, the file was lost. A new file would contain
/// only the last writes, so this function returns an error.
pub(crate) fn create_missing(
    disk: &dyn Disk,
    name: &str,
    bytes: u64,
    log: &dyn Disk,
) -> Result<()> {
    let is_new = log.list("")?.iter().all(|name| name == LOCK_NAME);
    let file = match disk.open(name, Open::default()) {
        Err(error) if error.is_not_found() && !is_new => {
            let what = format!("its file {name} is missing");
            return Err(Error::LogMismatch { dir: log.root().to_path_buf(), what });
        }
        Err(error) if error.is_not_found() => match disk.create(name, Open::default()) {
            // Another thread or process created the file first. The page file's lock decides which
            // of the two may use it.
            Err(error) if error.is_already_exists() => disk.open(name, Open::default())?,
            created => created?,
        },
        opened => opened?,
    };
    if is_new && file.bytes()? < bytes {
        file.resize(bytes)?;
        file.sync(Durability::Everything)?;
        disk.sync_dir("")?;
    }
    Ok(())
}
