//! Links and copies a snapshot's files.

use haul_disk::{Allocation, Disk, Durability, File, Open, read_full, write_full};

use crate::error::Result;

/// The bytes that one call copies.
const COPY_BYTES: usize = 1 << 20;

/// The header page at the end of a volume.
pub(super) const END_PAGE_BYTES: u64 = 4096;

const READ: Open = Open { direct: false, dsync: false, random: false, read_only: true };

/// The sizes of the files that were written to a snapshot.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) linked_bytes: u64,
    pub(super) copied_bytes: u64,
}

impl Progress {
    /// Links the immutable file `name` of `from` to the same name in `to`. Copies it if it cannot
    /// be linked, because `to` is on another file system or is simulated. Returns `false` if the
    /// file does not exist.
    ///
    /// # Errors
    /// The error of a failed system call.
    ///
    /// # Durability
    /// The bytes are durable. The name is durable after a sync of the directory.
    pub(super) fn link(&mut self, from: &dyn Disk, to: &dyn Disk, name: &str) -> Result<bool> {
        let file = match from.open(name, READ) {
            Err(error) if error.is_not_found() => return Ok(false),
            opened => opened?,
        };
        let bytes = file.bytes()?;
        match to.link(&*file, name) {
            Ok(()) => self.linked_bytes += bytes,
            // The file was removed after it was opened.
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) if must_copy(&error) => return self.copy_file(from, to, name),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Copies the file `name`. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// The error of a failed system call.
    ///
    /// # Durability
    /// Like [`Progress::link`].
    pub(super) fn copy_file(&mut self, from: &dyn Disk, to: &dyn Disk, name: &str) -> Result<bool> {
        let file = match from.open(name, READ) {
            Err(error) if error.is_not_found() => return Ok(false),
            opened => opened?,
        };
        let copy = to.create(name, Open::default())?;
        self.copy(&*file, &*copy, file.bytes()?)?;
        copy.sync(Durability::Everything)?;
        Ok(true)
    }

    /// Copies the first `end` bytes of a volume and its last page `end_page`. The space in between
    /// reads as zeros, and is allocated, because an open store writes to it.
    ///
    /// # Errors
    /// The error of a failed system call.
    ///
    /// # Durability
    /// Like [`Progress::link`].
    pub(super) fn copy_volume(
        &mut self,
        (from, to): (&dyn Disk, &dyn Disk),
        name: &str,
        end: u64,
        end_page: &[u8],
    ) -> Result<()> {
        let file = from.open(name, READ)?;
        let bytes = file.bytes()?;
        let copy = to.create(name, Open::default())?;
        match copy.allocate(Allocation::Reserve, 0, bytes) {
            Err(error) if error.is_full() => return Err(error.into()),
            _ => copy.resize(bytes)?,
        }
        self.copy(&*file, &*copy, end.min(bytes))?;
        write_full(&*copy, end_page, bytes.saturating_sub(end_page.len() as u64))?;
        Ok(copy.sync(Durability::Everything)?)
    }

    fn copy(&mut self, from: &dyn File, to: &dyn File, bytes: u64) -> Result<()> {
        let mut buffer = vec![0; COPY_BYTES];
        let mut done = 0;
        while done < bytes {
            let wanted = usize::try_from(bytes - done).unwrap_or(usize::MAX).min(COPY_BYTES);
            let read = read_full(from, &mut buffer[..wanted], done)?;
            write_full(to, &buffer[..read], done)?;
            done += read as u64;
            if read < wanted {
                break;
            }
        }
        self.copied_bytes += done;
        Ok(())
    }
}

/// Reads a volume's last page, which contains a copy of the volume's header.
///
/// # Errors
/// The error of a failed system call.
pub(super) fn read_end_page(disk: &dyn Disk, name: &str) -> Result<Vec<u8>> {
    let file = disk.open(name, READ)?;
    let mut page = vec![0; usize::try_from(END_PAGE_BYTES).unwrap_or_default()];
    let read = read_full(&*file, &mut page, file.bytes()?.saturating_sub(END_PAGE_BYTES))?;
    page.truncate(read);
    Ok(page)
}

fn must_copy(error: &haul_disk::Error) -> bool {
    use std::io::ErrorKind::{CrossesDevices, PermissionDenied, TooManyLinks};
    let is_refused = matches!(
        error.source.kind(),
        // Some file systems without hard links refuse them with EPERM.
        CrossesDevices | TooManyLinks | PermissionDenied
    );
    is_refused || error.is_unsupported()
}
