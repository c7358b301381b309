//! Locates holes in sparse files (`SEEK_HOLE`, `SEEK_DATA`).

use std::ops::Range;
use std::os::fd::BorrowedFd;

use rustix::fs::{SeekFrom, fstatfs, seek};
use rustix::io::Errno;

use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;
use crate::units::{PAGE_BYTES, align_down, align_up};

/// The file systems whose `SEEK_HOLE` is known to report as a hole only bytes that read as zeros,
/// dirty pages included: ext2 to ext4, xfs, btrfs, f2fs and tmpfs. Others have had defects: ZFS
/// reported holes in dirty files, and a FUSE server may report anything.
const TRUSTED_MAGICS: [u64; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];

/// Returns the first hole of at least `bytes_min` bytes within `range`, in whole pages unless the
/// hole ends with the range; `None` if there is none. All bytes in a hole read as zeros. A hole at
/// the end of `range` may also mean that the file has become shorter than `range.end`.
///
/// The call sets `fd`'s file offset. On a file system whose reports are not known to be reliable,
/// the result is always `None`.
///
/// # Errors
/// Fails if `lseek(2)` or `fstatfs(2)` fails.
///
/// # Source
/// `lseek(2)`, "Seeking file data and holes".
pub fn next_hole(
    fd: BorrowedFd<'_>,
    range: Range<u64>,
    bytes_min: u64,
) -> Result<Option<Range<u64>>> {
    if range.end.saturating_sub(range.start) < bytes_min.max(1) {
        return Ok(None);
    }
    let fail = |errno: Errno| Error::new(Op::Blocks, path_of(&fd), errno);
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern, which is signed on some machines")]
    let magic = fstatfs(fd).map_err(fail)?.f_type as u64;
    if !TRUSTED_MAGICS.contains(&(magic & 0xFFFF_FFFF)) {
        return Ok(None);
    }
    // `ENXIO`: no such byte up to the end of the file, or the offset is past the end.
    let find = |from| match seek(fd, from) {
        Ok(found) => Ok(Some(found.min(range.end))),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(fail(errno)),
    };
    let page = PAGE_BYTES as u64;
    let mut from = range.start;
    while from < range.end {
        let Some(hole) = find(SeekFrom::Hole(from))?.filter(|hole| *hole < range.end) else {
            break;
        };
        let data = find(SeekFrom::Data(hole))?.unwrap_or(range.end);
        let start = if hole == range.start { hole } else { align_up(hole, page) };
        let end = if data == range.end { data } else { align_down(data, page) };
        if end.saturating_sub(start) >= bytes_min.max(1) {
            return Ok(Some(start..end));
        }
        from = data;
    }
    Ok(None)
}
