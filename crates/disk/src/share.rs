//! Letting two files share the blocks of what both hold.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys::{DedupeRange, dedupe};

/// The most bytes of one call: some file systems do no more at a time.
const STEP_BYTES: u64 = 16 << 20;

/// What came of comparing and sharing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// Both hold the same bytes, which are now in the same blocks.
    Same,
    /// They differ; blocks before the difference may be shared now.
    Differs,
}

/// Lets `to` share the blocks of `from` where both hold the same bytes, from the beginning for
/// `bytes` bytes. The kernel compares with both files locked, so that nothing is ever shared that
/// differs, whoever writes; neither the bytes nor the times of either file change.
///
/// # Errors
/// [`Error::is_unsupported`] where the file system shares no blocks, or the files are on two; else
/// as the kernel says. `to` needs no descriptor for writing when the file is the caller's own.
///
/// # Source
/// `ioctl_fideduperange(2)`.
pub fn share_blocks(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: u64) -> Result<Shared> {
    let fail = |errno: Errno, at: u64, step: u64| {
        let error = match errno {
            Errno::OPNOTSUPP | Errno::NOTTY | Errno::XDEV => std::io::ErrorKind::Unsupported.into(),
            _ => std::io::Error::from(errno),
        };
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        Error::new(Op::Share, path_of(&to), error).at(at, step)
    };
    let mut at = 0;
    while at < bytes {
        let step = (bytes - at).min(STEP_BYTES);
        let mut range = DedupeRange {
            from_offset: at,
            bytes: step,
            to: to.as_raw_fd().into(),
            to_offset: at,
            ..DedupeRange::default()
        };
        dedupe(from, &mut range)
            .map_err(|error| fail(Errno::from_io_error(&error).unwrap_or(Errno::IO), at, step))?;
        match range.status {
            0 if range.bytes_shared > 0 => at += range.bytes_shared,
            // The end of the files, which somebody cut off.
            0 | 1 => return Ok(Shared::Differs),
            status => return Err(fail(Errno::from_raw_os_error(-status), at, step)),
        }
    }
    Ok(Shared::Same)
}
