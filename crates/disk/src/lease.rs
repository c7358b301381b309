//! Notice of whoever is about to change a file.

use std::io;
use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys::fcntl;

/// Sets the signal that tells of the end of a lease. Not in `libc` for every system.
const F_SETSIG: i32 = 10;

/// What came of asking for a [`Lease`].
#[derive(Debug)]
pub enum Leased<'fd> {
    /// Nobody has the file open for writing, and whoever opens it so from now on waits.
    Ours(Lease<'fd>),
    /// Somebody has it open for writing, or mapped to write to it.
    HasWriter,
    /// There are none for this file: the file system knows none (NFS, some of FUSE), or the file
    /// is somebody else's.
    NoLeases,
}

/// The kernel's word that the bytes of a file stay as they are, until it is dropped.
///
/// Whoever opens the file to write, or cuts it off, waits until the lease is dropped, or for as
/// long as `/proc/sys/fs/lease-break-time` says (45 s); [`Lease::is_held`] tells that somebody
/// waits. It does not keep names: the file can be renamed and removed. It knows nothing of other
/// machines that use the same file system.
///
/// The kernel tells the process of it with a signal, for which `SIGURG` is taken: nobody has to
/// catch that one.
///
/// # Source
/// `fcntl(2)`, "Leases".
#[derive(Debug)]
pub struct Lease<'fd>(BorrowedFd<'fd>);

impl<'fd> Lease<'fd> {
    /// Takes a lease on the file of `fd`, which must be open for reading only.
    ///
    /// # Errors
    /// What the kernel says, other than what [`Leased`] tells apart.
    pub fn take(fd: BorrowedFd<'fd>) -> Result<Leased<'fd>> {
        let taken = fcntl(fd, F_SETSIG, libc::SIGURG)
            .and_then(|_| fcntl(fd, libc::F_SETLEASE, libc::F_RDLCK));
        match taken {
            Ok(_) => Ok(Leased::Ours(Self(fd))),
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::AGAIN | Errno::BUSY) => Ok(Leased::HasWriter),
                Some(
                    Errno::ACCESS | Errno::PERM | Errno::INVAL | Errno::NOLCK | Errno::OPNOTSUPP,
                ) => Ok(Leased::NoLeases),
                _ => Err(Error::new(Op::Lock, path_of(&fd), error)),
            },
        }
    }

    /// Whether nobody has asked to write since it was taken.
    #[must_use]
    pub fn is_held(&self) -> bool {
        fcntl(self.0, libc::F_GETLEASE, 0).is_ok_and(|kind| kind == libc::F_RDLCK)
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        // It ends with the descriptor at the latest.
        let ended: io::Result<i32> = fcntl(self.0, libc::F_SETLEASE, libc::F_UNLCK);
        drop(ended);
    }
}
