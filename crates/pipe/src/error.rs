//! What can go wrong while bytes move.

use std::io;

use rustix::io::Errno;

/// The result of moving bytes.
pub type Result<T> = std::result::Result<T, Error>;

/// What was being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Taking bytes into the pipe.
    Fill,
    /// Letting bytes out of the pipe.
    Drain,
    /// Reading bytes out of the pipe into memory.
    Read,
}

impl Op {
    fn words(self) -> &'static str {
        match self {
            Self::Fill => "take bytes from the source into a pipe",
            Self::Drain => "move bytes from a pipe to the target",
            Self::Read => "read bytes out of a pipe",
        }
    }
}

/// The kernel refused to move bytes.
#[derive(Debug, thiserror::Error)]
#[error("cannot {}: {source}", .op.words())]
pub struct Error {
    /// What was tried.
    pub op: Op,
    /// Why it failed.
    pub source: io::Error,
}

impl Error {
    pub(crate) fn new(op: Op, source: Errno) -> Self {
        Self { op, source: source.into() }
    }

    /// The bytes cannot be spliced, but may be copied: these descriptors cannot do it (`EINVAL`),
    /// or a sandbox forbids it (`EPERM`, `ENOSYS`). What is in the pipe is still there, and can be
    /// had with [`Lease::read`](crate::Lease::read).
    pub fn is_refusal(&self) -> bool {
        let errno = self.source.raw_os_error().map(Errno::from_raw_os_error);
        matches!(errno, Some(Errno::INVAL | Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP))
    }
}
