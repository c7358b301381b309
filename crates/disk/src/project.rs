//! Reads the project of a file, which quotas count it for.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys::inode_settings;

/// Returns the number of a file's project (`lsattr -p`), which counts for project quotas; `None` on
/// a file system without projects.
///
/// # Errors
/// The errors of the system call, other than that the file system does not have it.
///
/// # Source
/// `FS_IOC_FSGETXATTR`, `ioctl_xfs_fsgetxattr(2)`.
pub fn project(fd: BorrowedFd<'_>) -> Result<Option<u32>> {
    match inode_settings(fd) {
        Ok(settings) => Ok(Some(settings.project)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOTTY | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(None),
            _ => Err(Error::new(Op::Status, path_of(&fd), error)),
        },
    }
}
