//! Paces bulk writes: starts writeback after every few written MiB (a *window*), so that few pages
//! are dirty at any time.

mod budget;
mod plan;

use std::fmt;
use std::io;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use rustix::fs::{OFlags, fcntl_getfl, fstatfs};

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};
use crate::residency::evict;
use crate::sys;
use budget::Share;
use plan::{Windows, next_window_bytes};

pub use budget::PaceBudget;

/// The default for [`Pace::window_bytes`] (4 MiB). Another file's sync during bulk writes waits for
/// about two windows. Much smaller windows leave the device idle, as measured by `haul bench
/// pacing`.
pub const WINDOW_BYTES: u64 = 4 << 20;

/// The minimum for [`Pace::window_bytes`] (256 KiB): with smaller windows the device would idle
/// between two windows' writeback.
pub const WINDOW_BYTES_MIN: u64 = 256 << 10;

/// The maximum for [`Pace::window_bytes`] (64 MiB): up to two windows are dirty or under writeback,
/// and two windows must stay far below the kernel's dirty memory limit.
pub const WINDOW_BYTES_MAX: u64 = 64 << 20;

/// Options for a [`Pacer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The maximum number of dirty bytes at which the pacer starts writeback, clamped to
    /// [`WINDOW_BYTES_MIN`] and [`WINDOW_BYTES_MAX`]. At most twice as many bytes are dirty or
    /// under writeback. On a slow device, which takes more than 5 ms to write back a window, the
    /// pacer uses shorter windows.
    pub window_bytes: u64,
    /// `true` to drop pages from the page cache after their writeback, for data that is not read
    /// soon.
    pub drop_behind: bool,
}

impl Default for Pace {
    fn default() -> Self {
        Self { window_bytes: WINDOW_BYTES, drop_behind: false }
    }
}

/// The reason why a [`Pacer`] does not pace a file. Writes to this file succeed without pacing; at
/// worst they slow down other files' writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotPaced {
    /// The file is simulated and has no page cache.
    Simulated,
    /// The file was opened with `O_DIRECT`: writes bypass the page cache.
    Direct,
    /// The file system is in memory: the kernel never writes its pages back.
    InMemory,
    /// The kernel, file system or sandbox rejects `sync_file_range`.
    Refused,
}

impl fmt::Display for NotPaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulated => "a simulated file has no page cache",
            Self::Direct => "writes bypass the page cache",
            Self::InMemory => "the file system is in memory",
            Self::Refused => "sync_file_range is not supported or not permitted",
        })
    }
}

/// Bounds one file's dirty pages during bulk writes.
///
/// The kernel lets a writer dirty gigabytes of memory before it starts writeback. When dirty memory
/// reaches its limit, all processes' writers wait for the device. A pacer starts to write back each
/// full window ([`Pace::window_bytes`]) at once and waits for the previous window. Therefore the
/// device always has work, and at most two windows are dirty or under writeback.
///
/// Writes may be in any order; pacing works best in ascending order, with or without holes. A
/// single write much longer than a window exceeds the bound.
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
/// None: `sync_file_range` sends no flush request to the device, and writes neither the file length
/// nor the location of its blocks. A later [`crate::File::sync`] has less to write.
///
/// # Source
/// `sync_file_range(2)`; \[Morton06\] in `docs/sources.md`.
#[derive(Debug)]
pub struct Pacer<'f> {
    /// `None` if the file is not paced.
    fd: Option<BorrowedFd<'f>>,
    not_paced: Option<NotPaced>,
    windows: Windows,
    /// The current window's length, and its limits.
    window_bytes: u64,
    limits: Range<u64>,
    /// The share in a budget, if other pacers take the rest.
    share: Option<Share>,
    drop_behind: bool,
    failed: Option<io::ErrorKind>,
}

impl<'f> Pacer<'f> {
    /// Creates a pacer for the writes that the caller is about to make to `file`.
    #[must_use]
    pub fn of(file: &'f (impl HasFd + ?Sized), pace: Pace) -> Self {
        let limits = WINDOW_BYTES_MIN..pace.window_bytes.clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let (fd, not_paced) = match file.fd() {
            None => (None, Some(NotPaced::Simulated)),
            Some(fd) => match reason_not_to_pace(fd) {
                None => (Some(fd), None),
                reason => (None, reason),
            },
        };
        Self {
            fd,
            not_paced,
            windows: Windows::new(rustix::param::page_size() as u64),
            window_bytes: limits.end,
            limits,
            share: None,
            drop_behind: pace.drop_behind,
            failed: None,
        }
    }

    /// Lets the pacer share a budget with other pacers. Their windows together are then as long as
    /// a single pacer's window, but each is at least [`WINDOW_BYTES_MIN`].
    #[must_use]
    pub fn sharing(self, budget: &PaceBudget) -> Self {
        Self { share: Some(budget.share()), ..self }
    }

    /// Returns the reason why the file is not paced. `None` may change to [`NotPaced::Refused`] at
    /// the first writeback.
    #[must_use]
    pub fn not_paced(&self) -> Option<NotPaced> {
        self.not_paced
    }

    /// Records a write of `bytes` bytes at `offset`. When the window is full, starts its writeback
    /// and waits for the previous window's writeback.
    ///
    /// # Errors
    /// Fails if writeback fails, such as on a broken or full device. The failure is final, like a
    /// failed sync: the kernel reports it once, so **a sync of the same file may succeed
    /// afterwards** although bytes are lost. Every later call to this pacer fails; write the data
    /// again to another file.
    ///
    /// # Durability
    /// None.
    pub fn wrote(&mut self, offset: u64, bytes: u64) -> Result<()> {
        self.check(offset)?;
        let Some(fd) = self.fd else { return Ok(()) };
        let pacers = self.share.as_ref().map_or(1, Share::pacers);
        let window_bytes = (self.window_bytes / pacers).max(self.limits.start);
        let Some(step) = self.windows.wrote(offset, bytes, window_bytes) else { return Ok(()) };
        self.start(fd, &step.start)?;
        let Some(range) = step.finish else { return Ok(()) };
        let started = Instant::now();
        self.finish_range(&range)?;
        self.window_bytes = next_window_bytes(self.window_bytes, started.elapsed(), &self.limits);
        Ok(())
    }

    /// Waits until all recorded writes have been written back, and drops their pages from the page
    /// cache if [`Pace::drop_behind`] is set. This is not needed before a sync.
    ///
    /// # Errors
    /// Fails like [`Pacer::wrote`].
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
        let result = signed(range).and_then(|(at, bytes)| sys::start_write_out(fd, at, bytes));
        self.check_result(result, range)
    }

    fn finish_range(&mut self, range: &Range<u64>) -> Result<()> {
        // `fd` is `None` if the kernel has just rejected starting writeback; there is nothing to
        // wait for.
        let Some(fd) = self.fd else { return Ok(()) };
        let result = signed(range).and_then(|(at, bytes)| sys::write_out(fd, at, bytes));
        self.check_result(result, range)?;
        if self.drop_behind {
            // An error is ignored: eviction is only advice, and pages that stay cached do no harm.
            evict(&fd, range.start, range.end - range.start).ok();
        }
        Ok(())
    }

    /// Ends the pacing if the kernel rejects the call; records any other error as a permanent
    /// failure.
    fn check_result(&mut self, result: io::Result<()>, range: &Range<u64>) -> Result<()> {
        let Err(source) = result else { return Ok(()) };
        if is_refusal(&source) {
            self.not_paced = Some(NotPaced::Refused);
            self.fd = None;
            return Ok(());
        }
        self.failed = Some(source.kind());
        let length = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        Err(self.error(source).at(range.start, length))
    }

    fn check(&self, offset: u64) -> Result<()> {
        let Some(kind) = self.failed else { return Ok(()) };
        let why = "data of an earlier write may be lost: write the data again to another file";
        let mut error = self.error(io::Error::new(kind, why));
        error.offset = Some(offset);
        Err(error)
    }

    fn error(&self, source: io::Error) -> Error {
        let path = self.fd.as_ref().map(path_of).unwrap_or_default();
        Error::new(Op::Write, path, source)
    }
}

/// Returns the reason why pacing would have no effect on an open file, if known in advance.
fn reason_not_to_pace(fd: BorrowedFd<'_>) -> Option<NotPaced> {
    const TMPFS: u64 = 0x0102_1994;
    const RAMFS: u64 = 0x8584_58F6;
    const HUGETLBFS: u64 = 0x9584_58F6;
    if fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::DIRECT)) {
        return Some(NotPaced::Direct);
    }
    // The magic number has 32 bits, but `f_type` may be wider and sign-extended.
    let magic = fstatfs(fd).ok()?.f_type.cast_unsigned() & 0xFFFF_FFFF;
    [TMPFS, RAMFS, HUGETLBFS].contains(&magic).then_some(NotPaced::InMemory)
}

/// `true` if the kernel, the file system, the file type or a sandbox does not support or permit
/// `sync_file_range`.
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
    fn refusals_are_distinguished_from_failures() {
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
