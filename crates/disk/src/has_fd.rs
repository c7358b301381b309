//! What the kernel can be asked about, whoever opened it.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use crate::file::File;

/// An open file, as a [`File`] or as a bare descriptor.
pub trait HasFd {
    /// The descriptor; `None` on a simulated disk.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

impl<F: File + ?Sized> HasFd for F {
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor()
    }
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

/// The path of an open file, for messages.
pub(crate) fn path_of(file: &(impl HasFd + ?Sized)) -> PathBuf {
    file.fd()
        .and_then(|fd| std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok())
        .unwrap_or_else(|| "(open file)".into())
}
