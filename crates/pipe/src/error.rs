//! The error of a system call that moves bytes into or out of a pipe, and the call that failed.

use std::io;

use rustix::io::Errno;

/// The result of moving bytes through a pipe.
pub type Result<T> = std::result::Result<T, Error>;

/// An operation on a leased pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Moving bytes into the pipe.
    Fill,
    /// Moving bytes from the pipe to the target.
    Drain,
    /// Copying bytes from the pipe into memory.
    Read,
}

impl Op {
    fn words(self) -> &'static str {
        match self {
            Self::Fill => "move bytes from the source into a pipe",
            Self::Drain => "move bytes from a pipe to the target",
            Self::Read => "read bytes from a pipe",
        }
    }
}

/// The error of a system call that moves bytes.
#[derive(Debug, thiserror::Error)]
#[error("cannot {}: {source}", .op.words())]
pub struct Error {
    /// The operation that failed.
    pub op: Op,
    /// The error of the system call.
    pub source: io::Error,
}

impl Error {
    pub(crate) fn new(op: Op, source: Errno) -> Self {
        Self { op, source: source.into() }
    }

    /// Returns `true` if the bytes cannot be spliced but may be copied: the descriptors do not
    /// support splice (`EINVAL`, `EOPNOTSUPP`), or a sandbox forbids it (`EPERM`, `ENOSYS`). Bytes
    /// already in the pipe stay there; [`Lease::read`](crate::Lease::read) copies them out.
    pub fn is_refusal(&self) -> bool {
        let errno = self.source.raw_os_error().map(Errno::from_raw_os_error);
        matches!(errno, Some(Errno::INVAL | Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP))
    }
}
