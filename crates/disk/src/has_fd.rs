//! The trait [`HasFd`], by which a function accepts a [`crate::File`] or a bare file descriptor.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

/// An open file: a [`crate::File`] or a bare file descriptor.
pub trait HasFd {
    /// Returns the descriptor; `None` on a simulated disk.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

impl HasFd for BorrowedFd<'_> {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(*self)
    }
}

impl HasFd for OwnedFd {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.as_fd())
    }
}

/// Returns an open file's path, for messages.
pub(crate) fn path_of(file: &(impl HasFd + ?Sized)) -> PathBuf {
    file.fd()
        .and_then(|fd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok())
        .unwrap_or_else(|| "(open file)".into())
}
