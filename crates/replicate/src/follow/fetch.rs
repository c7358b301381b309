//! Fetches objects, and writes them to local files.

use bytes::Bytes;
use haul_disk::{Disk, Durability, Open, write_full};

use crate::error::{Error, Result};
use crate::manifest::names;
use crate::remote::Remote;

/// Called between two requests. An error ends the work, which may be continued later.
pub(crate) type Between<'a> = &'a mut dyn FnMut() -> Result<()>;

/// Fetches an object and verifies its checksum.
pub(crate) fn fetch(remote: &Remote, name: &str, checksum: u32) -> Result<Bytes> {
    let damaged =
        |what: &str| Error::Damaged { name: remote.full_name(name), what: what.to_owned() };
    let (bytes, _) = remote.get(name)?.ok_or_else(|| damaged("it does not exist"))?;
    if haul_crc::crc32c(&bytes) != checksum {
        return Err(damaged("its checksum does not match"));
    }
    Ok(bytes)
}

/// Writes a file under another name, and then replaces the file by it.
///
/// # Durability
/// The content is durable when this returns, the name after [`Disk::sync_dir`].
pub(crate) fn replace_file(disk: &dyn Disk, name: &str, bytes: &[u8]) -> Result<()> {
    remove_unfinished(disk)?;
    let file = disk.create(names::UNFINISHED, Open::default())?;
    write_full(&*file, bytes, 0)?;
    file.sync(Durability::Everything)?;
    Ok(disk.rename(names::UNFINISHED, name)?)
}

/// Removes an unfinished file that an interrupted write left.
pub(crate) fn remove_unfinished(disk: &dyn Disk) -> Result<()> {
    match disk.remove(names::UNFINISHED) {
        Err(error) if !error.is_not_found() => Err(error.into()),
        _ => Ok(()),
    }
}
