//! Read leases (`fcntl(2)`): a process that opens a leased file for writing, or truncates it, waits
//! until the lease is released.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys::fcntl;

/// The `fcntl` command that selects the signal sent when a lease is broken; `libc` does not define
/// it for every target.
const F_SETSIG: i32 = 10;

/// The outcome of [`Lease::take`].
#[derive(Debug)]
pub enum LeaseOutcome<'fd> {
    /// The lease was taken: no process has the file open for writing, and opening the file for
    /// writing blocks until the lease is dropped.
    Granted(Lease<'fd>),
    /// A process has the file open for writing, or mapped writable.
    HasWriter,
    /// The file cannot be leased: the file system has no leases (NFS, some FUSE), or the file
    /// belongs to another user.
    Unsupported,
}

/// A read lease: the file's bytes do not change until the lease is dropped.
///
/// A process that opens the file for writing or truncates it blocks until the lease is dropped, at
/// most for `/proc/sys/fs/lease-break-time` (45 s by default). While such a process waits,
/// [`Lease::is_held`] returns `false`. A lease does not protect names: the file can be renamed and
/// removed. A lease has no effect on other machines that use the same file system.
///
/// The kernel sends the holder a signal when another process breaks the lease. [`Lease::take`]
/// selects `SIGURG`, which processes ignore by default, because the kernel's default `SIGIO` would
/// terminate the process.
///
/// # Source
/// `fcntl(2)`, "Leases".
#[derive(Debug)]
pub struct Lease<'fd>(BorrowedFd<'fd>);

impl<'fd> Lease<'fd> {
    /// Takes a read lease on the file behind `fd`, which must be open for reading only.
    ///
    /// # Errors
    /// Fails if `fcntl(2)` fails, unless a variant of [`LeaseOutcome`] stands for the error.
    pub fn take(fd: BorrowedFd<'fd>) -> Result<LeaseOutcome<'fd>> {
        match set(fd, libc::F_RDLCK) {
            Ok(()) => Ok(LeaseOutcome::Granted(Self(fd))),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::BUSY) => Ok(LeaseOutcome::HasWriter),
                Some(errno) if is_unsupported(errno) => Ok(LeaseOutcome::Unsupported),
                _ => Err(Error::new(Op::Lock, path_of(&fd), error)),
            },
        }
    }

    /// Returns `true` if `fd` is the only open descriptor of its file, found by taking a write lease
    /// for a moment; `None` if the file cannot be leased. Descriptors through which other file
    /// systems (overlay, FUSE) have the file open count, those of other machines do not.
    ///
    /// # Errors
    /// The errors of `fcntl(2)` other than those that say whether the lease was granted.
    pub fn is_only_open(fd: BorrowedFd<'fd>) -> Result<Option<bool>> {
        match set(fd, libc::F_WRLCK) {
            Ok(()) => {
                drop(Self(fd));
                Ok(Some(true))
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::BUSY) => Ok(Some(false)),
                Some(errno) if is_unsupported(errno) => Ok(None),
                _ => Err(Error::new(Op::Lock, path_of(&fd), error)),
            },
        }
    }

    /// `true` if no process has tried to open the file for writing, or to truncate it, since the
    /// lease was taken.
    #[must_use]
    pub fn is_held(&self) -> bool {
        fcntl(self.0, libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_RDLCK)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // An error is ignored: the lease ends anyway when the descriptor is closed.
        let ended: io::Result<i32> = fcntl(self.0, libc::F_SETLEASE, libc::F_UNLCK);
        drop(ended);
    }
}

fn set(fd: BorrowedFd<'_>, kind: i32) -> io::Result<()> {
    fcntl(fd, F_SETSIG, libc::SIGURG)?;
    fcntl(fd, libc::F_SETLEASE, kind).map(drop)
}

fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::ACCESS | Errno::PERM | Errno::INVAL | Errno::NOLCK | Errno::OPNOTSUPP)
}
