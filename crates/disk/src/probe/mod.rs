//! Identifies the storage below a path from the kernel's reports, without measuring it.

mod file_system;
pub(crate) mod mounts;
mod summary;
mod superblock;

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags, FileType, IFlags, Mode, OFlags, StatxFlags};

pub use file_system::FileSystem;
pub use mounts::Mount;
pub use superblock::{Superblock, file_system_type};

use crate::device::{Device, Queue};
use crate::error::{Error, Op, Result};
use crate::units::PAGE_BYTES;

/// The storage below a path. Unknown properties are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The probed path.
    pub path: PathBuf,
    /// The file system, from `statfs`.
    pub file_system: FileSystem,
    /// The mount, from `/proc/self/mountinfo`.
    pub mount: Option<Mount>,
    /// The block device. `None` for a file system without a block device (tmpfs, nfs), or one that
    /// hides it (overlay). For a btrfs on several devices, the device that is the mount's source.
    pub device: Option<Device>,
    /// The attributes of the device's request queue; all `None` without a device.
    pub queue: Queue,
    /// `true` if the file system journals metadata, so that a sync after a metadata change also
    /// writes to the journal. Read from the kernel for ext4; always `true` for xfs, `false` for
    /// tmpfs and btrfs, and `None` for all other file systems.
    pub journal: Option<bool>,
    /// `true` if overwriting a block moves it to another location (btrfs, unless disabled for the
    /// path or mount), so that filling a file in advance has no benefit.
    pub copy_on_write: Option<bool>,
    /// Whether direct I/O is supported, and its alignment, from `statx` (Linux 6.1). For a
    /// directory, the values that apply to new files in it.
    pub direct_io: Option<DirectIo>,
}

/// Whether direct I/O is supported on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// Direct I/O is not supported: files are read and written through the page cache.
    Unsupported,
    /// Direct I/O is supported with the given alignments.
    Aligned {
        /// The alignment for memory addresses, in bytes.
        memory_bytes: u64,
        /// The alignment for offsets and lengths in the file, in bytes.
        offset_bytes: u64,
    },
}

impl Storage {
    /// Sets the device, for callers that know it although the probe cannot find it: a mount missing
    /// from `/proc`, or a btrfs, which hides its device.
    #[must_use]
    pub fn with_device(self, device: Device) -> Self {
        let queue = device.queue();
        let journal =
            self.journal.or_else(|| journal(Path::new("/"), &self.file_system, Some(&device)));
        Self { queue, journal, device: Some(device), ..self }
    }

    /// Returns the length in bytes of the smallest write that needs no read-modify-write: the
    /// maximum among the direct I/O alignment, the physical block size and [`PAGE_BYTES`].
    #[must_use]
    pub fn write_unit_bytes(&self) -> u64 {
        let aligned = match self.direct_io {
            Some(DirectIo::Aligned { offset_bytes, .. }) => offset_bytes,
            Some(DirectIo::Unsupported) | None => 0,
        };
        let physical = self.queue.physical_block_bytes.unwrap_or(0);
        aligned.max(physical).max(PAGE_BYTES as u64)
    }
}

/// Identifies the storage below `path`, an existing file or directory.
///
/// Reads `/sys` and `/proc`. If `path` is a directory, also creates an unnamed file in it for a
/// moment, since `statx` reports the direct I/O alignment only for files. If this file cannot be
/// created, the alignment is unknown.
///
/// # Errors
/// Fails if `path` cannot be opened for reading, or if its status cannot be read.
pub fn probe(path: impl AsRef<Path>) -> Result<Storage> {
    let path = path.as_ref();
    let fail = |op| move |errno| Error::new(op, path, errno);
    // NONBLOCK: opening a FIFO must not wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = fs::open(path, flags, Mode::empty()).map_err(fail(Op::Open))?;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let status = fs::statx(&fd, "", AtFlags::EMPTY_PATH, wanted).map_err(fail(Op::Status))?;
    let magic = fs::fstatfs(&fd).map_err(fail(Op::Status))?.f_type;

    let mount = has(status.stx_mask, StatxFlags::MNT_ID)
        .then(|| std::fs::read("/proc/self/mountinfo").ok())
        .flatten()
        .and_then(|text| mounts::with_id(&String::from_utf8_lossy(&text), status.stx_mnt_id))
        .map(|line| line.mount);
    let name = mount.as_ref().map(|mount| mount.file_system.as_str());
    // `f_type` is sign-extended on some architectures; the magic number is the low 32 bits.
    let file_system = FileSystem::of(magic as u64 & 0xFFFF_FFFF, name);
    let device = Device::numbered(status.stx_dev_major, status.stx_dev_minor).or_else(|| {
        // btrfs files have an anonymous device number.
        let btrfs = file_system == FileSystem::Btrfs;
        mount.as_ref().filter(|_| btrfs).and_then(|mount| Device::at(&mount.source))
    });
    let queue = device.as_ref().map(Device::queue).unwrap_or_default();
    let journal = journal(Path::new("/"), &file_system, device.as_ref());
    let copy_on_write = copy_on_write(&file_system, mount.as_ref(), fd.as_fd());
    let is_directory = FileType::from_raw_mode(status.stx_mode.into()) == FileType::Directory;
    let direct_io = if is_directory {
        let unnamed = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = fs::openat(&fd, ".", unnamed, Mode::RUSR | Mode::WUSR).ok();
        file.and_then(|file| direct_io(file.as_fd()))
    } else {
        direct_io(fd.as_fd())
    };
    let path = path.to_path_buf();
    Ok(Storage { path, file_system, mount, device, queue, journal, copy_on_write, direct_io })
}

fn has(mask: u32, flag: StatxFlags) -> bool {
    StatxFlags::from_bits_retain(mask).contains(flag)
}

/// Returns `true` if the file system has a journal, according to the directory `sys` below `root`;
/// `None` if unknown.
pub(crate) fn journal(
    root: &Path,
    file_system: &FileSystem,
    device: Option<&Device>,
) -> Option<bool> {
    match file_system {
        FileSystem::Xfs => Some(true),
        FileSystem::Btrfs | FileSystem::Tmpfs => Some(false),
        FileSystem::Ext4 => {
            // This file contains the id of the thread that commits the journal, even if the journal
            // is on another device; `<none>` if there is no journal.
            let path = root.join(format!("sys/fs/ext4/{}/journal_task", device?.name));
            std::fs::read_to_string(path).ok().map(|task| task.trim() != "<none>")
        }
        _ => None,
    }
}

fn copy_on_write(
    file_system: &FileSystem,
    mount: Option<&Mount>,
    fd: BorrowedFd<'_>,
) -> Option<bool> {
    match file_system {
        // When blocks are overwritten, xfs moves only those shared by reflink.
        FileSystem::Ext4 | FileSystem::Xfs | FileSystem::Tmpfs => Some(false),
        FileSystem::Btrfs => {
            let off_by_mount = mount?.has_option("nodatacow");
            let flags = fs::ioctl_getflags(fd).ok()?;
            Some(!off_by_mount && !flags.contains(IFlags::NOCOW))
        }
        _ => None,
    }
}

fn direct_io(fd: BorrowedFd<'_>) -> Option<DirectIo> {
    let status = fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    has(status.stx_mask, StatxFlags::DIOALIGN).then(|| match status.stx_dio_offset_align {
        0 => DirectIo::Unsupported,
        offset => DirectIo::Aligned {
            memory_bytes: status.stx_dio_mem_align.into(),
            offset_bytes: offset.into(),
        },
    })
}
