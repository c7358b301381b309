//! Queries the type and the metadata of a file with `statx`.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fd::AsFd;
use rustix::fs::{self, AtFlags, CWD, FileType, OFlags, Statx, StatxFlags};
use rustix::io::Errno;

use crate::open::open_dir;
use crate::tree::Meta;

/// The requested fields. Unused fields are left out, because some file systems need extra work for
/// them.
const STATX_MASK: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::CTIME);

/// The type and the metadata of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: FileType,
    pub(crate) meta: Meta,
    /// The bytes of the file that have blocks; `None` if the file system did not report it.
    pub(crate) allocated_bytes: Option<u64>,
}

impl Status {
    fn of(status: &Statx) -> Self {
        Self {
            kind: FileType::from_raw_mode(status.stx_mode.into()),
            meta: Meta {
                device: fs::makedev(status.stx_dev_major, status.stx_dev_minor),
                inode: status.stx_ino,
                bytes: status.stx_size,
                modified_ns: nanoseconds(status.stx_mtime.tv_sec, status.stx_mtime.tv_nsec),
                changed_ns: nanoseconds(status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec),
                links: status.stx_nlink,
            },
            // Local file systems report it without a request.
            allocated_bytes: StatxFlags::from_bits_retain(status.stx_mask)
                .contains(StatxFlags::BLOCKS)
                .then(|| status.stx_blocks.saturating_mul(512)),
        }
    }
}

/// Converts a timestamp to nanoseconds since 1970, saturating (an `i64` covers 1678 to 2262).
fn nanoseconds(seconds: i64, nanoseconds: u32) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.into())
}

/// Returns the status of `name` in `dir`. If `name` is a symbolic link, returns the status of its
/// target if `follow` is `true`, else the status of the link. Does not trigger an automount.
pub(crate) fn status_at(dir: impl AsFd, name: &CStr, follow: bool) -> Result<Status, Errno> {
    let link = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    fs::statx(dir, name, link | AtFlags::NO_AUTOMOUNT, STATX_MASK).map(|status| Status::of(&status))
}

/// Returns the status of the file at a path of any length, like [`status_at`]. The empty path has no
/// file.
pub(crate) fn status_of_path(path: &Path, follow: bool) -> Result<Status, Errno> {
    // A path cannot contain a NUL byte, so the file does not exist.
    let c_string =
        |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(|_zero| Errno::NOENT);
    match (status_at(CWD, &c_string(path)?, follow), path.parent(), path.file_name()) {
        (Err(Errno::NAMETOOLONG), Some(parent), Some(name)) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = open_dir(parent.as_os_str().as_bytes(), flags)?;
            status_at(dir, &c_string(Path::new(name))?, follow)
        }
        (status, ..) => status,
    }
}

/// Returns the status of the directory at a path of any length.
pub(crate) fn status_of_directory(path: &Path) -> Result<Status, Errno> {
    status(open_dir(
        path.as_os_str().as_bytes(),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
    )?)
}

/// `true` if there is a file at a path of any length. A file whose status cannot be read counts.
#[must_use]
pub fn exists(path: &Path) -> bool {
    !matches!(status_of_path(path, true), Err(Errno::NOENT | Errno::NOTDIR))
}

/// Returns the status of an open file.
pub(crate) fn status(fd: impl AsFd) -> Result<Status, Errno> {
    fs::statx(fd, c"", AtFlags::EMPTY_PATH, STATX_MASK).map(|status| Status::of(&status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_range_times_saturate() {
        assert_eq!(nanoseconds(1, 5), 1_000_000_005);
        assert_eq!(nanoseconds(-1, 999_999_999), -1);
        assert_eq!(nanoseconds(i64::MAX, 1), i64::MAX);
        assert_eq!(nanoseconds(i64::MIN, 0), i64::MIN);
    }
}
