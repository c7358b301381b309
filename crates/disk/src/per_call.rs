//! Reads and writes that differ from the others of their file: an option of the single call.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwritev2};

use crate::error::{Error, Op, Result};
use crate::file::{Durability, File, read_full, write_full};
use crate::has_fd::path_of;
use crate::sys;

/// `RWF_DONTCACHE`, newer than the headers this is built with (Linux 6.14).
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
const DSYNC: ReadWriteFlags = ReadWriteFlags::DSYNC;

/// Reads until `buffer` is full or the file ends, leaving in the page cache only what was there
/// before, and says how many bytes it got. Unlike direct I/O it asks for no alignment.
///
/// Where kernel or file system do not offer that, or the file is simulated, it is a plain read,
/// which fills the cache; see [`crate::evict`].
///
/// # Errors
/// Those of [`File::read_some`].
///
/// # Source
/// `RWF_DONTCACHE`, `preadv2(2)`.
pub fn read_uncached(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    match file.descriptor() {
        Some(fd) => read_uncached_fd(fd, buffer, offset),
        None => read_full(file, buffer, offset),
    }
}

/// The same for a bare descriptor.
///
/// # Errors
/// As the kernel says.
pub fn read_uncached_fd(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let (mut done, mut is_uncached) = (0, true);
    while done < buffer.len() {
        let at = offset + done as u64;
        let rest = &mut buffer[done..];
        let bytes = rest.len();
        // The offset of all ones would mean "wherever the descriptor stands".
        let read = if is_uncached && at != u64::MAX {
            preadv2(fd, &mut [IoSliceMut::new(rest)], at, DONTCACHE)
        } else {
            pread(fd, &mut *rest, at)
        };
        match read {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(Errno::OPNOTSUPP) if is_uncached => is_uncached = false,
            Err(errno) => return Err(Error::new(Op::Read, path_of(&fd), errno).at(at, bytes)),
        }
    }
    Ok(done)
}

/// Writes all of `bytes` and waits until they are on the medium, in one call where the kernel
/// takes them at once.
///
/// # Errors
/// Those of [`File::write_some`] and of [`File::sync`]. They cannot be told apart, so each is
/// final like a failed sync; not even an interrupted call is repeated.
///
/// # Durability
/// The bytes, and the metadata needed to find them, are on the medium when this returns; other
/// writes to the same file need not be.
///
/// # Source
/// `RWF_DSYNC` (Linux 4.7), `pwritev2(2)`; a simulated file is written and synced.
pub fn write_durable(file: &dyn File, bytes: &[u8], offset: u64) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset + done as u64;
        let rest = &bytes[done..];
        let fallback = || {
            write_full(file, rest, at)?;
            file.sync(Durability::Data)
        };
        let Some(fd) = file.descriptor().filter(|_| at != u64::MAX) else { return fallback() };
        let source: io::Error = match pwritev2(fd, &[IoSlice::new(rest)], at, DSYNC) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(written) => {
                done += written;
                continue;
            }
            Err(Errno::OPNOTSUPP) => return fallback(),
            Err(errno) => errno.into(),
        };
        return Err(Error::new(Op::Write, path_of(file), source).at(at, rest.len()));
    }
    Ok(())
}

/// Hands the pages of a range to the device, and waits until it has taken them.
///
/// # Errors
/// As the kernel says; a simulated file is `Unsupported`.
///
/// # Durability
/// None: neither the device's write cache nor the metadata that leads to the bytes is on the
/// medium. It is good for having less to wait for at the next [`File::sync`].
///
/// # Source
/// `sync_file_range(2)`.
pub fn write_out(file: &dyn File, offset: u64, bytes: u64) -> Result<()> {
    let fail = |source: io::Error| {
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        Error::new(Op::Write, path_of(file), source).at(offset, length)
    };
    let fd = file.descriptor().ok_or_else(|| fail(io::ErrorKind::Unsupported.into()))?;
    let signed = |number| i64::try_from(number).map_err(|why| fail(io::Error::other(why)));
    sys::write_out(fd, signed(offset)?, signed(bytes)?).map_err(fail)
}
