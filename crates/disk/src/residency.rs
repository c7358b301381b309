//! Counts, loads and evicts a file's pages in the page cache.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, fadvise, fstat};

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::sys;
use crate::units::{align_down, align_up};

/// The maximum number of bytes per `POSIX_FADV_WILLNEED`. The kernel silently truncates a longer
/// request to the device's readahead size, which is 128 KiB unless configured otherwise.
const WARM_STEP_BYTES: u64 = 128 << 10;

/// The cached part of a file range, in whole pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residency {
    /// The cached bytes, dirty pages included.
    pub resident_bytes: u64,
    /// The dirty bytes: modified and not yet under writeback. `None` before Linux 6.5.
    pub dirty_bytes: Option<u64>,
    /// The bytes under writeback. `None` before Linux 6.5.
    pub writeback_bytes: Option<u64>,
}

/// Returns the cached part of the `bytes` bytes at `offset`, without changing the page cache.
/// `u64::MAX` means up to the end of the file; bytes past the end are never resident.
///
/// # Errors
/// `Unsupported` for a simulated file. The kernel may reject the query for a file that the caller
/// neither owns nor may write.
///
/// # Source
/// `cachestat` (Linux 6.5), which takes one call for any range. On older kernels, `mincore` on a
/// mapping; for files that the caller neither owns nor may write, `mincore` reports all pages as
/// resident.
pub fn resident(file: &(impl HasFd + ?Sized), offset: u64, bytes: u64) -> Result<Residency> {
    let fd = descriptor(file)?;
    let page_bytes = rustix::param::page_size() as u64;
    let end = match bytes {
        u64::MAX => align_up(file_bytes(file, fd)?, page_bytes),
        // The caller passes an exact range, so it knows the file length: no `fstat` is needed. This
        // saves a system call for each of many small files.
        _ => offset.saturating_add(bytes),
    };
    if end <= offset {
        let none = Some(0);
        return Ok(Residency { resident_bytes: 0, dirty_bytes: none, writeback_bytes: none });
    }
    let start = align_down(offset, page_bytes);
    let result = match sys::cachestat(fd, start, end - start) {
        Ok(pages) => Ok(Residency {
            resident_bytes: pages.resident * page_bytes,
            dirty_bytes: Some(pages.dirty * page_bytes),
            writeback_bytes: Some(pages.writeback * page_bytes),
        }),
        Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => {
            sys::mincore(fd, start, end - start).map(|pages| Residency {
                resident_bytes: pages * page_bytes,
                dirty_bytes: None,
                writeback_bytes: None,
            })
        }
        Err(error) => Err(error),
    };
    result.map_err(|source| fail(file, source, offset, bytes))
}

/// Drops the `bytes` bytes at `offset` from the page cache; `u64::MAX` means up to the end of the
/// file.
///
/// The kernel drops only whole, clean, unmapped pages: dirty pages stay, so sync first. The call is
/// advice to the kernel: check the result with [`resident`].
///
/// # Errors
/// `Unsupported` for a simulated file.
pub fn evict(file: &(impl HasFd + ?Sized), offset: u64, bytes: u64) -> Result<()> {
    let fd = descriptor(file)?;
    let Some(length) = NonZeroU64::new(bytes) else { return Ok(()) };
    let length = (length != NonZeroU64::MAX).then_some(length);
    fadvise(fd, offset, length, Advice::DontNeed)
        .map_err(|source| fail(file, source, offset, bytes))
}

/// Starts reading the `bytes` bytes at `offset` into the page cache, without waiting; `u64::MAX`
/// means up to the end of the file.
///
/// # Errors
/// `Unsupported` for a simulated file.
pub fn warm(file: &(impl HasFd + ?Sized), offset: u64, bytes: u64) -> Result<()> {
    let fd = descriptor(file)?;
    let end = offset.saturating_add(bytes).min(file_bytes(file, fd)?);
    let mut at = offset;
    while at < end {
        let step = (end - at).min(WARM_STEP_BYTES);
        fadvise(fd, at, NonZeroU64::new(step), Advice::WillNeed)
            .map_err(|source| fail(file, source, offset, bytes))?;
        at += step;
    }
    Ok(())
}

fn descriptor(file: &(impl HasFd + ?Sized)) -> Result<BorrowedFd<'_>> {
    file.fd().ok_or_else(|| {
        let why = "a simulated file has no page cache";
        Error::new(Op::Cache, path_of(file), io::Error::new(io::ErrorKind::Unsupported, why))
    })
}

fn file_bytes(file: &(impl HasFd + ?Sized), fd: BorrowedFd<'_>) -> Result<u64> {
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path_of(file), errno))?;
    u64::try_from(status.st_size)
        .map_err(|why| Error::new(Op::Status, path_of(file), io::Error::other(why)))
}

fn fail(
    file: &(impl HasFd + ?Sized),
    source: impl Into<io::Error>,
    offset: u64,
    bytes: u64,
) -> Error {
    let mut error = Error::new(Op::Cache, path_of(file), source);
    // The message for a whole file contains no range.
    if (offset, bytes) != (0, u64::MAX) {
        error.offset = Some(offset);
        error.bytes = (bytes != u64::MAX).then_some(bytes);
    }
    error
}
