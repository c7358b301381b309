//! The file `POOL` in a member's directory: read, and replaced as a whole.

use haul_disk::{Disk, Durability, Open, read_full, write_full};
use haul_file_store::Result;

use crate::table::PoolFile;

/// The file's name.
pub(crate) const NAME: &str = "POOL";

/// The name of a file that is not complete.
const UNFINISHED: &str = "POOL.new";

/// A longer file is not read: the longest table has one range for each slot.
const BYTES_MAX: usize = 1 << 20;

/// Reads the file; `None` if the directory has none, or the violated rule.
///
/// # Errors
/// A failed system call.
pub(crate) fn read(disk: &dyn Disk) -> Result<Option<std::result::Result<PoolFile, &'static str>>> {
    let file = match disk.open(NAME, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; BYTES_MAX];
    let read = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(read);
    let text = String::from_utf8(bytes).map_err(|_not_utf8| "it is not text");
    Ok(Some(text.and_then(|text| PoolFile::decode(&text))))
}

/// Replaces the file.
///
/// 1. Writes and syncs it under a temporary name. After a crash the old file counts.
/// 2. Renames it, and syncs the directory. After a crash either file counts.
///
/// # Errors
/// A failed system call.
///
/// # Durability
/// The new file survives a power cut when this returns.
pub(crate) fn replace(disk: &dyn Disk, file: &PoolFile) -> Result<()> {
    match disk.remove(UNFINISHED) {
        Err(error) if !error.is_not_found() => return Err(error.into()),
        _ => {}
    }
    let new = disk.create(UNFINISHED, Open::default())?;
    write_full(&*new, file.encode().as_bytes(), 0)?;
    new.sync(Durability::Everything)?;
    disk.rename(UNFINISHED, NAME)?;
    Ok(disk.sync_dir("")?)
}
