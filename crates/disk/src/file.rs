//! The two seams everything above stands on: [`Disk`] knows names, [`File`] knows bytes.
//!
//! The kernel implements them in [`crate::OsDisk`]; tests put a disk of their own underneath.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;

/// How a file is opened. The default is buffered reading and writing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// Past the page cache (`O_DIRECT`): memory, offset and length are multiples of
    /// [`crate::PAGE_BYTES`]. A file system that cannot do this opens the file buffered.
    pub direct: bool,
    /// Every write returns only when its bytes are on the medium (`O_DSYNC`).
    pub dsync: bool,
    /// Tells the kernel that reads jump about, so that it fetches just what is asked for.
    pub random: bool,
    /// For reading only; writes fail.
    pub read_only: bool,
}

/// What a sync waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The bytes, and of the metadata only what is needed to find them (`fdatasync`).
    Data,
    /// The bytes and all metadata, times included (`fsync`).
    Everything,
}

/// How blocks are set aside before they are written.
///
/// On ext4 and xfs the first two leave *unwritten* extents: the first write to each block still
/// costs a journal commit. Only blocks really written once are cheap; see [`crate::fill`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// `fallocate(0)`: reserved, reads as zeros, unwritten.
    Reserve,
    /// `FALLOC_FL_ZERO_RANGE`: the same, and blocks already written become unwritten again.
    ZeroRange,
    /// `FALLOC_FL_WRITE_ZEROES` (Linux 6.17): written extents, zeroed by the device itself where
    /// it can; "not supported" elsewhere.
    WriteZeroes,
}

/// The bytes of one open file. All calls may be made from several threads at once.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads up to `buffer.len()` bytes at `offset`; 0 means the end of the file.
    ///
    /// # Errors
    /// As the kernel says. An interrupted call is repeated.
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Writes some of `bytes` at `offset`.
    ///
    /// # Errors
    /// As the kernel says. An interrupted call is repeated.
    ///
    /// # Durability
    /// None, unless the file was opened with [`Open::dsync`].
    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize>;

    /// The length in bytes.
    ///
    /// # Errors
    /// As the kernel says.
    fn bytes(&self) -> Result<u64>;

    /// Cuts or extends (with a hole) to `bytes`.
    ///
    /// # Errors
    /// As the kernel says.
    fn resize(&self, bytes: u64) -> Result<()>;

    /// Sets blocks aside for `bytes` bytes at `offset`, extending the file where needed.
    ///
    /// # Errors
    /// A full disk, or `Unsupported` where the file system cannot do it.
    fn allocate(&self, how: Allocation, offset: u64, bytes: u64) -> Result<()>;

    /// Waits until all that was written is on the medium.
    ///
    /// # Errors
    /// A failed sync is final: the kernel may already have dropped the pages, and a second
    /// call that succeeds proves nothing (Rebello et al., ATC '20). Never retry it.
    fn sync(&self, what: Durability) -> Result<()>;

    /// The descriptor below, for calls that are about the kernel's view of the file; `None` on a
    /// simulated disk.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// The names below one directory, its root. Names are relative, separated by `/`, and cannot
/// leave the root by `..` or by a symbolic link.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Opens an existing file.
    ///
    /// # Errors
    /// As the kernel says.
    fn open(&self, name: &str, how: Open) -> Result<Arc<dyn File>>;

    /// Creates a file that must not be there yet.
    ///
    /// # Errors
    /// As the kernel says; [`Error::is_already_there`] when the name is taken.
    ///
    /// # Durability
    /// The name survives a crash only after [`Disk::sync_dir`].
    fn create(&self, name: &str, how: Open) -> Result<Arc<dyn File>>;

    /// Creates a directory; one that is there already is as good.
    ///
    /// # Errors
    /// As the kernel says.
    fn create_dir(&self, name: &str) -> Result<()>;

    /// Gives a file another name, taking the place of what was there.
    ///
    /// # Errors
    /// As the kernel says.
    ///
    /// # Durability
    /// After a crash either the old or the new state stands, until [`Disk::sync_dir`].
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the kernel says.
    fn remove(&self, name: &str) -> Result<()>;

    /// The names in a directory ("" is the root), sorted.
    ///
    /// # Errors
    /// As the kernel says; a name that is not UTF-8 is an error, since none of ours is like that.
    fn list(&self, dir: &str) -> Result<Vec<String>>;

    /// Waits until the names in a directory ("" is the root) are on the medium.
    ///
    /// # Errors
    /// As the kernel says. A failed sync is final.
    fn sync_dir(&self, dir: &str) -> Result<()>;

    /// The root, for messages and for [`crate::probe`].
    fn root(&self) -> &Path;
}

/// Reads until `buffer` is full or the file ends, and says how many bytes it got.
///
/// # Errors
/// Those of [`File::read_some`].
pub fn read_full(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_some(&mut buffer[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Writes all of `bytes`.
///
/// # Errors
/// Those of [`File::write_some`]; a device that takes no byte at all is a `WriteZero` error.
///
/// # Durability
/// None; see [`File::sync`].
pub fn write_full(file: &dyn File, bytes: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_some(&bytes[done..], offset + done as u64)? {
            0 => {
                let source = std::io::Error::from(std::io::ErrorKind::WriteZero);
                return Err(Error::new(Op::Write, path_of(file), source)
                    .at(offset + done as u64, bytes.len() - done));
            }
            written => done += written,
        }
    }
    Ok(())
}
