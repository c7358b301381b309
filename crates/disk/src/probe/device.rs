//! The block device below a file system.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::queue::Queue;
use super::sysfs::disk_and_name;

/// A block device, and the whole disk it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// The kernel's name of it, such as `sda1`, as below `/sys/class/block`.
    pub name: String,
    /// The kernel's name of the whole disk; the same as `name` unless that is a partition.
    /// The disk has the request queue and its counters.
    pub disk: String,
}

impl Device {
    /// The device with these numbers; `None` for the number of no device, as btrfs, tmpfs and
    /// overlay make up.
    pub(super) fn numbered(major: u32, minor: u32) -> Option<Self> {
        Self::below(Path::new("/"), major, minor)
    }

    /// The same, asked of the `/sys` below `root`.
    pub(crate) fn below(root: &Path, major: u32, minor: u32) -> Option<Self> {
        let dir = root.join(format!("sys/dev/block/{major}:{minor}"));
        let link = fs::read_link(&dir).ok()?;
        let (disk, name) = disk_and_name(link.to_str()?, dir.join("partition").exists())?;
        Some(Self { major, minor, name, disk })
    }

    /// The device a node such as `/dev/sda1` stands for; `None` when it stands for none.
    #[must_use]
    pub fn at(node: &str) -> Option<Self> {
        // A name such as `none` must not be taken for a file in the current directory.
        let status = fs::metadata(Path::new(node).has_root().then_some(node)?).ok()?;
        let number = status.file_type().is_block_device().then(|| status.rdev())?;
        Self::numbered(rustix::fs::major(number), rustix::fs::minor(number))
    }

    /// The directory of the whole disk, with its queue and counters.
    pub(crate) fn disk_dir(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.disk)
    }

    /// What the request queue says of itself.
    pub(super) fn queue(&self) -> Queue {
        let dir = self.disk_dir().join("queue");
        Queue::of(|name| fs::read_to_string(dir.join(name)).ok())
    }
}
