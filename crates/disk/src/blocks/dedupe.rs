//! Deduplication: makes files with equal content share their blocks.

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::sys::{self, DedupeRange};

/// The maximum number of bytes per `FIDEDUPERANGE` call: btrfs processes at most 16 MiB per call.
const STEP_BYTES: u64 = 16 << 20;

/// The outcome of [`dedupe_range`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DedupeOutcome {
    /// The contents are equal, and both files now share the blocks of the range.
    Same,
    /// The contents differ. The files may now share blocks before the first difference.
    Differs,
}

/// Makes `to` share the blocks of `from` in the first `bytes` bytes of both files, if the contents
/// are equal; see [`dedupe_range_at`].
///
/// # Errors
/// Fails like [`dedupe_range_at`].
pub fn dedupe_range(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: u64) -> Result<DedupeOutcome> {
    dedupe_range_at(from, 0, to, 0, bytes)
}

/// Makes `bytes` bytes of `to` from `to_offset` on share the blocks of `from` from `from_offset`
/// on, if the contents are equal. The kernel locks both files while it compares them, so a
/// concurrent writer cannot cause different content to be shared. Neither content nor timestamps
/// change.
///
/// The offsets must be multiples of the file system's block size. So must be `bytes`, unless both
/// ranges end at the end of their file. Two ranges in one file must not overlap.
///
/// # Errors
/// [`Error::is_unsupported`] if the file system cannot share blocks,
/// [`Error::crosses_file_systems`] if the files are on different file systems. Otherwise returns the
/// system call's error. `to` need not be open for writing if the caller owns the file or may write
/// it.
///
/// # Source
/// `ioctl_fideduperange(2)`.
pub fn dedupe_range_at(
    from: BorrowedFd<'_>,
    from_offset: u64,
    to: BorrowedFd<'_>,
    to_offset: u64,
    bytes: u64,
) -> Result<DedupeOutcome> {
    let fail = |errno: Errno, at: u64, step: u64| {
        let error = match errno {
            Errno::OPNOTSUPP | Errno::NOTTY => std::io::ErrorKind::Unsupported.into(),
            _ => std::io::Error::from(errno),
        };
        let step = usize::try_from(step).unwrap_or(usize::MAX);
        Error::new(Op::Dedupe, path_of(&to), error).at(to_offset + at, step)
    };
    let mut at = 0;
    while at < bytes {
        let step = (bytes - at).min(STEP_BYTES);
        let mut range = DedupeRange {
            from_offset: from_offset + at,
            bytes: step,
            to: to.as_raw_fd().into(),
            to_offset: to_offset + at,
            ..DedupeRange::default()
        };
        sys::dedupe(from, &mut range)
            .map_err(|error| fail(Errno::from_io_error(&error).unwrap_or(Errno::IO), at, step))?;
        match range.status {
            0 if range.bytes_shared > 0 => at += range.bytes_shared,
            // Status 0 without shared bytes: another process has truncated one file.
            0 | 1 => return Ok(DedupeOutcome::Differs),
            status => return Err(fail(Errno::from_raw_os_error(-status), at, step)),
        }
    }
    Ok(DedupeOutcome::Same)
}
