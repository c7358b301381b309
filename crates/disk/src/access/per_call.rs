//! Reads and writes with options for a single call: uncached reads, durable writes, writeback.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::BorrowedFd;

use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwritev2};

use crate::disk::{Durability, File, read_full, write_full};
use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys;

/// The flag `RWF_DONTCACHE`: a read adds no pages to the page cache (Linux 6.14). It is not yet in
/// libc.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);
const DSYNC: ReadWriteFlags = ReadWriteFlags::DSYNC;

/// Reads until `buffer` is full or the file ends, without adding pages to the page cache, and
/// returns the number of bytes read. Unlike direct I/O, this needs no alignment.
///
/// If the kernel or the file system does not support `RWF_DONTCACHE`, or the file is simulated, the
/// function does a plain read, which adds pages to the page cache; [`crate::evict`] drops them.
///
/// # Errors
/// Fails like [`File::read_some`].
///
/// # Source
/// `RWF_DONTCACHE`, `preadv2(2)`.
pub fn read_uncached(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    match file.descriptor() {
        Some(fd) => read_uncached_fd(fd, buffer, offset),
        None => read_full(file, buffer, offset),
    }
}

/// Reads as [`read_uncached`] does, from a file descriptor.
///
/// # Errors
/// Returns the system call's error.
pub fn read_uncached_fd(fd: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let (mut done, mut is_uncached) = (0, true);
    while done < buffer.len() {
        let at = offset + done as u64;
        let rest = &mut buffer[done..];
        let bytes = rest.len();
        // The kernel takes the offset -1 for the current file offset.
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

/// Writes all of `bytes` and makes them durable, in a single call unless the kernel writes only a
/// part of them.
///
/// # Errors
/// Fails like [`File::write_some`] and like [`File::sync`]. The caller cannot distinguish a failed
/// write from a failed sync, so every error is final, as for a sync. Therefore this function does
/// not retry an interrupted call.
///
/// # Durability
/// The bytes, and the metadata needed to read them, are durable when this returns. Earlier writes
/// to the same file may not be durable.
///
/// # Source
/// `RWF_DSYNC` (Linux 4.7), `pwritev2(2)`. A simulated file is written and then synced.
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

/// Writes a range's dirty pages to the device and waits until the device has received them.
///
/// # Errors
/// Returns the system call's error; `Unsupported` for a simulated file.
///
/// # Durability
/// None: the kernel sends no flush request to the device and writes no metadata. The next
/// [`File::sync`] has less left to write.
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
