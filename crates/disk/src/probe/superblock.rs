//! Identifies the mounted file system that a file belongs to.

use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, StatxFlags, fstatfs, makedev, statx};

use super::file_system::FileSystem;
use super::{has, mounts};
use crate::error::{Error, Op, Result};
use crate::has_fd::path_of;

/// A mounted file system: one instance, however many mounts and subvolumes show it.
///
/// `st_dev` does not identify it: a btrfs has one device number per subvolume, an overlay one per
/// layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// The device number in `/proc/self/mountinfo`, equal for all mounts and subvolumes. Without
    /// `/proc`, the file's own `st_dev`.
    pub device: u64,
    /// The type.
    pub file_system: FileSystem,
}

impl Superblock {
    /// Returns the file system of an open file. Reads `/proc/self/mountinfo`: call it once per
    /// device number, not once per file.
    ///
    /// # Errors
    /// The errors of `statx(2)` and `fstatfs(2)`.
    ///
    /// # Source
    /// `proc_pid_mountinfo(5)`; `statx(2)`, `STATX_MNT_ID` (Linux 5.8).
    pub fn of(fd: BorrowedFd<'_>) -> Result<Self> {
        let fail = |errno| Error::new(Op::Status, path_of(&fd), errno);
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
        let status = statx(fd, c"", AtFlags::EMPTY_PATH, wanted).map_err(fail)?;
        let magic = magic_number(fd)?;
        let line = has(status.stx_mask, StatxFlags::MNT_ID)
            .then(|| std::fs::read("/proc/self/mountinfo").ok())
            .flatten()
            .and_then(|text| mounts::with_id(&String::from_utf8_lossy(&text), status.stx_mnt_id));
        let (major, minor) = match &line {
            Some(line) => line.numbers,
            None => (status.stx_dev_major, status.stx_dev_minor),
        };
        let name = line.as_ref().map(|line| line.mount.file_system.as_str());
        let file_system = FileSystem::of(magic, name);
        Ok(Self { device: makedev(major, minor), file_system })
    }
}

/// Returns the type of the file system of an open file by its magic number alone, which costs one
/// system call. ext2 and ext3 have that of ext4; types without a variant have a name only if they
/// are interfaces to the kernel.
///
/// # Errors
/// The errors of `fstatfs(2)`.
pub fn file_system_type(fd: BorrowedFd<'_>) -> Result<FileSystem> {
    magic_number(fd).map(|magic| FileSystem::of(magic, None))
}

fn magic_number(fd: BorrowedFd<'_>) -> Result<u64> {
    let found = fstatfs(fd).map_err(|errno| Error::new(Op::Status, path_of(&fd), errno))?;
    #[expect(clippy::cast_sign_loss, reason = "a bit pattern, signed on some machines")]
    let magic = found.f_type as u64 & 0xFFFF_FFFF;
    Ok(magic)
}
