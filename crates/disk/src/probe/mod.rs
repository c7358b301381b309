//! What storage is below a path: asked of the kernel, never guessed.

mod device;
mod file_system;
pub(crate) mod mounts;
pub(crate) mod queue;
mod summary;
pub(crate) mod sysfs;

use std::path::{Path, PathBuf};

use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, AtFlags, FileType, IFlags, Mode, OFlags, StatxFlags};

pub use device::Device;
pub use file_system::FileSystem;
pub use mounts::Mount;
pub use queue::Queue;

use crate::error::{Error, Op, Result};
use crate::units::PAGE_BYTES;

/// The storage below a path, as far as the kernel knows it. What it does not tell is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Storage {
    /// The path that was asked about.
    pub path: PathBuf,
    /// The file system, from `statfs`.
    pub file_system: FileSystem,
    /// Where and how it is mounted, from `/proc/self/mountinfo`.
    pub mount: Option<Mount>,
    /// The block device below. A file system without one (tmpfs, nfs), or one that hides it
    /// (overlay), has none; of a btrfs on several devices it is the one named at mount.
    pub device: Option<Device>,
    /// What the request queue of the device says of itself; all unknown without a device.
    pub queue: Queue,
    /// Whether changed metadata is written to a journal first, so that a sync which has metadata
    /// to save costs more requests. ext4 is asked, xfs always has one, tmpfs and btrfs never do.
    pub journal: Option<bool>,
    /// Whether overwriting a block puts it somewhere else (btrfs, unless switched off for this
    /// path or mount), so that filling a file beforehand gains nothing.
    pub copy_on_write: Option<bool>,
    /// What direct I/O asks for, from `statx` (Linux 6.1). For a directory, of a new file in it.
    pub direct_io: Option<DirectIo>,
}

/// What direct I/O on a file asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectIo {
    /// There is none: such files are read and written through the page cache.
    Unsupported,
    /// Memory and positions must be multiples of these.
    Aligned {
        /// What the address of the memory must be a multiple of, in bytes.
        memory_bytes: u64,
        /// What offset and length in the file must be multiples of, in bytes.
        offset_bytes: u64,
    },
}

impl Storage {
    /// The same, on `device`: for a mount that does not show up in `/proc`, whose file system may
    /// then hide what it lies on (btrfs).
    #[must_use]
    pub fn on(self, device: Device) -> Self {
        let queue = device.queue();
        let journal =
            self.journal.or_else(|| journal(Path::new("/"), &self.file_system, Some(&device)));
        Self { queue, journal, device: Some(device), ..self }
    }

    /// The smallest write this storage takes without reading a block back first: the largest of
    /// the direct I/O alignment, the physical block and [`PAGE_BYTES`].
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

/// Finds out what storage is below `path`, an existing file or directory.
///
/// It reads from `/sys` and `/proc`. In a directory it also makes, for a moment, a file without
/// a name, since only of a file can be asked what direct I/O wants; where that is refused, the
/// answer is unknown.
///
/// # Errors
/// When `path` cannot be opened for reading, or its status cannot be had.
pub fn probe(path: impl AsRef<Path>) -> Result<Storage> {
    let path = path.as_ref();
    let fail = |op| move |errno| Error::new(op, path, errno);
    // NONBLOCK: a pipe of that name must not keep us waiting for its other end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = fs::open(path, flags, Mode::empty()).map_err(fail(Op::Open))?;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let status = fs::statx(&fd, "", AtFlags::EMPTY_PATH, wanted).map_err(fail(Op::Status))?;
    let magic = fs::fstatfs(&fd).map_err(fail(Op::Status))?.f_type;

    let mount = has(status.stx_mask, StatxFlags::MNT_ID)
        .then(|| std::fs::read("/proc/self/mountinfo").ok())
        .flatten()
        .and_then(|text| mounts::with_id(&String::from_utf8_lossy(&text), status.stx_mnt_id));
    let name = mount.as_ref().map(|mount| mount.file_system.as_str());
    // Sign-extended on some machines; the magic number is its low half.
    let file_system = FileSystem::of(magic as u64 & 0xFFFF_FFFF, name);
    let device = Device::numbered(status.stx_dev_major, status.stx_dev_minor).or_else(|| {
        // Its files carry a device number of no device.
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

/// Whether there is a journal, asked of the `/sys` below `root`.
pub(crate) fn journal(
    root: &Path,
    file_system: &FileSystem,
    device: Option<&Device>,
) -> Option<bool> {
    match file_system {
        FileSystem::Xfs => Some(true),
        FileSystem::Btrfs | FileSystem::Tmpfs => Some(false),
        FileSystem::Ext4 => {
            // The thread that commits, wherever the journal itself lies.
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
        // xfs moves only what is shared between files by reflink.
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
