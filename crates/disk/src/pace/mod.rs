//! Bulk data goes to the device while it is written, so that little of it is dirty at any time.

mod plan;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{OFlags, fcntl_getfl, fstatfs};

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::residency::evict;
use crate::sys;
use plan::Windows;

/// The default of [`Pace::window_bytes`]. Whoever syncs a record beside bulk data waits for about two
/// windows; much smaller ones leave the device without work (`haul bench pacing`).
pub const WINDOW_BYTES: u64 = 4 << 20;

/// Smaller windows are raised to this: the device would run dry between two of them.
pub const WINDOW_BYTES_MIN: u64 = 256 << 10;

/// Larger windows are cut to this: two of them must stay far below what the kernel lets be dirty.
pub const WINDOW_BYTES_MAX: u64 = 64 << 20;

/// How bulk data is paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How much is written before it is sent on: at most twice as much is dirty or on its way.
    pub window_bytes: u64,
    /// Drops from the page cache what the device has taken, for data nobody reads soon.
    pub drop_behind: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { window_bytes: WINDOW_BYTES, drop_behind: false }
    }
}

/// Why a file is not paced. It is written as without a pacer, which is slower for others at worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotPaced {
    /// The file is simulated: there is no page cache.
    Simulated,
    /// It was opened with `O_DIRECT`: writes go past the page cache.
    Direct,
    /// The file system is in memory, and its pages have nowhere to go.
    InMemory,
    /// Kernel, file system or sandbox refuse `sync_file_range`.
    Refused,
}

impl fmt::Display for NotPaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulated => "a simulated file has no page cache",
            Self::Direct => "writes go past the page cache",
            Self::InMemory => "the file system is in memory",
            Self::Refused => "sync_file_range is refused here",
        })
    }
}

/// Keeps the dirty pages of one file bounded while bulk data is written into it.
///
/// The kernel lets a writer fill gigabytes of memory before it begins to write them out. Then
/// everybody who writes waits for the device, whoever's pages those are. A pacer has each full
/// window of [`Pace::window_bytes`] written out at once, and waits for the window before it: the
/// device always has something to do, and never more than two windows are dirty or on their way.
///
/// Data may come in any order; upward, with holes or without, is what it is good for. Pieces much
/// longer than a window would widen the bound.
///
/// # Example
/// ```
/// use haul_disk::{Disk, Durability, Open, OsDisk, Pace, Pacer, write_full};
///
/// # fn main() -> haul_disk::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// let disk = OsDisk::open(dir.path())?;
/// let file = disk.create("bulk", Open::default())?;
/// let mut pacer = Pacer::of(&*file, Pace::default());
/// let piece = vec![7; 1 << 20];
/// for number in 0..4 {
///     write_full(&*file, &piece, number << 20)?;
///     pacer.wrote(number << 20, 1 << 20)?; // may wait for the device
/// }
/// file.sync(Durability::Data)?; // only this makes it durable
/// # Ok(())
/// # }
/// ```
///
/// # Durability
/// None, ever: `sync_file_range` empties no write cache of a device, and saves neither the length
/// of the file nor where its blocks are. [`crate::File::sync`] afterwards has less to wait for.
///
/// # Source
/// \[Morton06\], `sync_file_range(2)`.
#[derive(Debug)]
pub struct Pacer<'f> {
    /// `None` when there is nothing to pace.
    fd: Option<BorrowedFd<'f>>,
    why_not: Option<NotPaced>,
    windows: Windows,
    drop_behind: bool,
    failed: Option<io::ErrorKind>,
}

impl<'f> Pacer<'f> {
    /// A pacer of a file that is written from now on.
    #[must_use]
    pub fn of(file: &'f (impl HasFd + ?Sized), pace: Pace) -> Self {
        let window_bytes = pace.window_bytes.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let (fd, why_not) = match file.fd() {
            None => (None, Some(NotPaced::Simulated)),
            Some(fd) => match useless(fd) {
                None => (Some(fd), None),
                why => (None, why),
            },
        };
        let windows = Windows::new(window_bytes, rustix::param::page_size() as u64);
        Self { fd, why_not, windows, drop_behind: pace.drop_behind, failed: None }
    }

    /// Why nothing is paced, as far as is known by now; `None` when it is.
    #[must_use]
    pub fn why_not(&self) -> Option<NotPaced> {
        self.why_not
    }

    /// Takes note of `bytes` that were written at `offset`. Now and then it waits until the device
    /// took what was written a window before.
    ///
    /// # Errors
    /// What could not be written, such as by a broken or full device. It is final, like that of a
    /// failed sync: the kernel tells it once, so **a sync of the same file may succeed afterwards**
    /// while bytes are lost. Every later call of this pacer fails; write the data anew elsewhere.
    ///
    /// # Durability
    /// None.
    pub fn wrote(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.check(offset)?;
        let Some(fd) = self.fd else { return Ok(()) };
        let Some(step) = self.windows.wrote(offset, bytes) else { return Ok(()) };
        self.start(fd, &step.start)?;
        step.finish.map_or(Ok(()), |range| self.finish_range(&range))
    }

    /// Waits until the device took all there is, and drops it from the page cache if it is to be
    /// dropped. Nobody needs this before a sync.
    ///
    /// # Errors
    /// As [`Pacer::wrote`].
    ///
    /// # Durability
    /// None.
    pub fn finish(&mut self) -> Result<()> {
        self.check(0)?;
        let Some(fd) = self.fd else { return Ok(()) };
        let rest = self.windows.rest();
        if let [_, Some(filling)] = &rest {
            self.start(fd, filling)?;
        }
        rest.into_iter().flatten().try_for_each(|range| self.finish_range(&range))
    }

    fn start(&mut self, fd: BorrowedFd<'_>, range: &Range<u64>) -> Result<()> {
        let answer = signed(range).and_then(|(at, bytes)| sys::start_write_out(fd, at, bytes));
        self.judge(answer, range)
    }

    fn finish_range(&mut self, range: &Range<u64>) -> Result<()> {
        // A refusal just now leaves nothing to wait for.
        let Some(fd) = self.fd else { return Ok(()) };
        let answer = signed(range).and_then(|(at, bytes)| sys::write_out(fd, at, bytes));
        self.judge(answer, range)?;
        if self.drop_behind {
            // It is advice; a page that stays does no harm.
            evict(&fd, range.start, range.end - range.start).ok();
        }
        Ok(())
    }

    /// What the kernel does not offer ends the pacing; everything else is a failure, for good.
    fn judge(&mut self, answer: io::Result<()>, range: &Range<u64>) -> Result<()> {
        let Err(source) = answer else { return Ok(()) };
        if is_refusal(&source) {
            self.why_not = Some(NotPaced::Refused);
            self.fd = None;
            return Ok(());
        }
        self.failed = Some(source.kind());
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        Err(self.error(source).at(range.start, length))
    }

    fn check(&self, offset: u64) -> Result<()> {
        let Some(kind) = self.failed else { return Ok(()) };
        let why = "an earlier part of it could not be written, and may be lost: write it anew";
        let mut error = self.error(io::Error::new(kind, why));
        error.offset = Some(offset);
        Err(error)
    }

    fn error(&self, source: io::Error) -> Error {
        let path = self.fd.as_ref().map(path_of).unwrap_or_default();
        Error::new(Op::Write, path, source)
    }
}

/// Why pacing would do nothing for an open file, where that can be told beforehand.
fn useless(fd: BorrowedFd<'_>) -> Option<NotPaced> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    const HUGETLBFS: u64 = 0x9584_58F6;
    if fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT)) {
        return Some(NotPaced::Direct);
    }
    // Of 32 bits, whatever the kernel's type for it.
    let magic = fstatfs(fd).ok()?.f_type.cast_unsigned() & 0xFFFF_FFFF;
    [TMPFS, RAMFS, HUGETLBFS].contains(&magic).then_some(NotPaced::InMemory)
}

/// Whether the call is not offered for this file at all: by the kernel, the file system, the kind
/// of file, or a sandbox.
fn is_refusal(error: &io::Error) -> bool {
    let refusals = [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::ESPIPE, libc::EPERM];
    error.raw_os_error().is_some_and(|errno| refusals.contains(&errno))
}

fn signed(range: &Range<u64>) -> io::Result<(i64, i64)> {
    let signed = |number| i64::try_from(number).map_err(io::Error::other);
    Ok((signed(range.start)?, signed(range.end - range.start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_offered_is_told_from_what_failed() {
        let error = io::Error::from_raw_os_error;
        for errno in [libc::EINVAL, libc::ENOSYS, libc::EOPNOTSUPP, libc::ESPIPE, libc::EPERM] {
            assert!(is_refusal(&error(errno)), "{errno}");
        }
        for errno in [libc::EIO, libc::ENOSPC, libc::EDQUOT, libc::ENOMEM, libc::EBADF] {
            assert!(!is_refusal(&error(errno)), "{errno}");
        }
        assert!(!is_refusal(&io::Error::other("no errno")));
    }
}
