//! The page cache: what of a file is in it, and taking it in or out.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::BorrowedFd;

use rustix::fs::{Advice, fadvise, fstat};

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::sys;
use crate::units::{align_down, align_up};

/// How much is asked for at a time: the kernel cuts a longer wish down to its readahead size,
/// silently, and this is the smallest default.
const WARM_STEP_BYTES: u64 = 128 << 10;

/// How much of a range of a file is in the page cache, counted in whole pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Residency {
    /// In memory, the dirty included.
    pub resident_bytes: u64,
    /// Written but not yet on the medium nor on the way to it; unknown before Linux 6.5.
    pub dirty_bytes: Option<u64>,
    /// On the way to the medium; unknown before Linux 6.5.
    pub writeback_bytes: Option<u64>,
}

/// How much of the `bytes` at `offset` is in the page cache, without changing that. `u64::MAX`
/// means up to the end; past the end of the file nothing is resident.
///
/// # Errors
/// A simulated file is `Unsupported`; a file that we may neither write nor own may be refused.
///
/// # Source
/// `cachestat` (Linux 6.5), one call for any range; before that `mincore` on a mapping. For files
/// we may not write, `mincore` answers that everything is resident.
pub fn resident(file: &(impl HasFd + ?Sized), offset: u64, bytes: u64) -> Result<Residency> {
    let fd = descriptor(file)?;
    let page_bytes = rustix::param::page_size() as u64;
    let end = match bytes {
        u64::MAX => align_up(file_bytes(file, fd)?, page_bytes),
        // Whoever names a range knows the file: a call less for each of many small ones.
        _ => offset.saturating_add(bytes),
    };
    if end <= offset {
        let none = Some(0);
        return Ok(Residency { resident_bytes: 0, dirty_bytes: none, writeback_bytes: none });
    }
    let start = align_down(offset, page_bytes);
    let answer = match sys::cachestat(fd, start, end - start) {
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
    answer.map_err(|source| fail(file, source, offset, bytes))
}

/// Drops the `bytes` at `offset` from the page cache; `u64::MAX` means up to the end.
///
/// Only whole pages go, and only clean ones that nobody has mapped: what was written stays until
/// it is on the medium, so sync first. It is advice, so ask [`resident`] what came of it.
///
/// # Errors
/// A simulated file is `Unsupported`.
pub fn evict(file: &(impl HasFd + ?Sized), offset: u64, bytes: u64) -> Result<()> {
    let fd = descriptor(file)?;
    let Some(length) = NonZeroU64::new(bytes) else { return Ok(()) };
    let length = (length != NonZeroU64::MAX).then_some(length);
    fadvise(fd, offset, length, Advice::DontNeed)
        .map_err(|source| fail(file, source, offset, bytes))
}

/// Has the kernel start to read the `bytes` at `offset` into the page cache; `u64::MAX` means up
/// to the end. It does not wait for them.
///
/// # Errors
/// A simulated file is `Unsupported`.
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
    // Of the whole file there is nothing more to say.
    if (offset, bytes) != (0, u64::MAX) {
        error.offset = Some(offset);
        error.bytes = (bytes != u64::MAX).then_some(bytes);
    }
    error
}
