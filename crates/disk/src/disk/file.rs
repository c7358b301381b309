//! The trait [`File`], through which storage code reads, writes, allocates and syncs a file.

use std::fmt;
use std::os::fd::BorrowedFd;

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};

/// Options for [`crate::Disk::open`] and [`crate::Disk::create`]. The default is a file for reading
/// and writing through the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Open {
    /// `true` to bypass the page cache (`O_DIRECT`). Each call's memory address, offset and length
    /// must then be multiples of [`crate::PAGE_BYTES`]. If the file system has no direct I/O, the
    /// file uses the page cache.
    pub direct: bool,
    /// `true` to make every write return only when its bytes are durable (`O_DSYNC`).
    pub dsync: bool,
    /// `true` to disable readahead, for random access (`POSIX_FADV_RANDOM`).
    pub random: bool,
    /// `true` to open the file read-only; writes then fail.
    pub read_only: bool,
}

/// A sync's scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The bytes, and the metadata needed to read them (`fdatasync`).
    Data,
    /// The bytes and all metadata, timestamps included (`fsync`).
    Everything,
}

/// How blocks are allocated before they are written.
///
/// On ext4 and xfs, `Reserve` and `ZeroRange` leave extents that are marked as *unwritten*. The
/// first write to such an extent changes the mark, so the next sync commits the journal. Later
/// writes avoid this cost; [`crate::fill`] therefore writes all blocks in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// `fallocate` with mode 0: reserves unwritten blocks, which read as zeros, and keeps blocks
    /// that are already written.
    Reserve,
    /// `FALLOC_FL_ZERO_RANGE`: reserves as `Reserve` does, and turns blocks already written into
    /// unwritten ones, so that the whole range reads as zeros.
    ZeroRange,
    /// `FALLOC_FL_WRITE_ZEROES` (Linux 6.17): makes written extents, which the device zeroes. Fails
    /// with `Unsupported` if the kernel or the file system lacks this mode.
    WriteZeroes,
}

/// An open file. All methods may be called from several threads at once.
pub trait File: Send + Sync + fmt::Debug {
    /// Reads up to `buffer.len()` bytes at `offset`; returns 0 at end of file.
    ///
    /// # Errors
    /// Returns the system call's error. An interrupted call is retried.
    fn read_some(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;

    /// Reads like [`Self::read_some`], but only bytes that are in memory, and never waits for the
    /// device; the kernel may begin to read other bytes (`RWF_NOWAIT`). Fewer bytes than requested
    /// are read if the others are not in memory, or if the file ends. Returns `None` if none are in
    /// memory, or if the file system does not support this.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn read_cached(&self, buffer: &mut [u8], offset: u64) -> Result<Option<usize>> {
        let (_, _) = (buffer, offset);
        Ok(None)
    }

    /// Writes some or all of `bytes` at `offset`; returns the number of bytes written.
    ///
    /// # Errors
    /// Returns the system call's error. An interrupted call is retried.
    ///
    /// # Durability
    /// None, unless the file was opened with [`Open::dsync`].
    fn write_some(&self, bytes: &[u8], offset: u64) -> Result<usize>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn bytes(&self) -> Result<u64>;

    /// Sets the file length to `bytes`: truncates the file or extends it with a hole.
    ///
    /// # Errors
    /// Returns the system call's error.
    fn resize(&self, bytes: u64) -> Result<()>;

    /// Allocates blocks for `bytes` bytes at `offset`, extending the file where needed.
    ///
    /// # Errors
    /// A full disk, or `Unsupported` if the file system lacks the method.
    fn allocate(&self, method: Allocation, offset: u64, bytes: u64) -> Result<()>;

    /// Makes all written bytes durable.
    ///
    /// # Errors
    /// A failed sync is final: the kernel may already have dropped the pages, and a second call
    /// that succeeds proves nothing (Rebello et al., ATC '20). Never retry it.
    fn sync(&self, scope: Durability) -> Result<()>;

    /// `true` if reads take the bytes from this machine's storage. `false` if they may fetch them
    /// from elsewhere: a background task should then not read the whole file.
    fn is_local(&self) -> bool {
        true
    }

    /// Returns the file descriptor, for system calls without a method in this trait; `None` on a
    /// simulated disk.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

impl<F: File + ?Sized> HasFd for F {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor()
    }
}

/// Reads until `buffer` is full or the file ends; returns the number of bytes read.
///
/// # Errors
/// Fails like [`File::read_some`].
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
/// Fails like [`File::write_some`], and with `WriteZero` if a write accepts no bytes.
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
