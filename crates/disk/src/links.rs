//! Counts a file's names.

use rustix::fs::fstat;

use crate::error::{Error, Op, Result};
use crate::has_fd::{HasFd, path_of};

/// Returns how many names (hard links) an open file has; 1 on a simulated disk, which has no links.
/// A file with more than one name must not be written in place by the owner of one name only.
///
/// # Errors
/// Returns the system call's error.
pub fn link_count(file: &(impl HasFd + ?Sized)) -> Result<u64> {
    let Some(fd) = file.fd() else { return Ok(1) };
    let status = fstat(fd).map_err(|errno| Error::new(Op::Status, path_of(file), errno))?;
    #[allow(clippy::useless_conversion, reason = "the width of the field depends on the target")]
    Ok(u64::from(status.st_nlink))
}
