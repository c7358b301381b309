//! A store checkpoint's files, in the directory that follows the copy.

use haul_disk::{Disk, Open, read_full};

use crate::error::Result;
use crate::follow::fetch::{fetch, replace_file};
use crate::manifest::names::{self, INDEX_FILES};
use crate::manifest::{IndexFile, Manifest};
use crate::remote::Remote;

/// The checkpoint files that the directory has.
#[derive(Debug, Default)]
pub(super) struct IndexFiles {
    local: Vec<IndexFile>,
}

impl IndexFiles {
    /// Fetches the manifest's files that the directory lacks, and removes others. Returns the
    /// number of bytes fetched.
    ///
    /// # Durability
    /// The files are durable when this returns.
    pub(super) fn advance(
        &mut self,
        remote: &Remote,
        manifest: &Manifest,
        disk: &dyn Disk,
    ) -> Result<u64> {
        if self.local == manifest.index {
            return Ok(0);
        }
        let mut fetched = 0;
        for file in &manifest.index {
            if self.local.contains(file) || checksum(disk, &file.name)? == Some(file.checksum) {
                continue;
            }
            let bytes = fetch(remote, &names::index_file(file), file.checksum)?;
            replace_file(disk, &file.name, &bytes)?;
            self.local.retain(|local| local.name != file.name);
            fetched += bytes.len() as u64;
        }
        for name in disk.list(INDEX_FILES)? {
            let name = format!("{INDEX_FILES}/{name}");
            if !manifest.index.iter().any(|file| file.name == name) {
                disk.remove(&name)?;
            }
        }
        disk.sync_dir(INDEX_FILES)?;
        self.local.clone_from(&manifest.index);
        Ok(fetched)
    }
}

/// Returns a local file's checksum; `None` if it does not exist.
fn checksum(disk: &dyn Disk, name: &str) -> Result<Option<u32>> {
    let file = match disk.open(name, Open { read_only: true, ..Open::default() }) {
        Err(error) if error.is_not_found() => return Ok(None),
        opened => opened?,
    };
    let mut bytes = vec![0; usize::try_from(file.bytes()?).unwrap_or(usize::MAX)];
    let read = read_full(&*file, &mut bytes, 0)?;
    Ok(Some(haul_crc::crc32c(&bytes[..read])))
}
