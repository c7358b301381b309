//! Reads the names, request queue attributes and counters of block devices from `/sys`, and
//! measures whether a device is rotational.

mod counters;
mod kind;
mod measure;
mod queue;
mod rotation;
mod sysfs;
mod timer;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

pub use counters::DeviceCounters;
pub use kind::{DeviceKind, KIND_SAMPLES, KindSource, sample_places};
pub use measure::{ReadSample, measure_kind};
pub use queue::Queue;
pub(crate) use queue::active_scheduler;
pub(crate) use sysfs::disk_and_name;

/// A block device and the whole disk that contains the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
    /// The kernel's name, such as `sda1`, as in `/sys/class/block`.
    pub name: String,
    /// The kernel's name for the whole disk, to which the request queue and the counters belong.
    /// Equal to `name` unless the device is a partition.
    pub disk: String,
}

impl Device {
    /// Finds a device by its numbers; `None` for anonymous device numbers, as used by btrfs, tmpfs
    /// and overlay.
    pub(crate) fn numbered(major: u32, minor: u32) -> Option<Self> {
        Self::below(Path::new("/"), major, minor)
    }

    /// Finds a device as [`Self::numbered`] does, in the directory `sys` below `root` (for tests).
    pub(crate) fn below(root: &Path, major: u32, minor: u32) -> Option<Self> {
        let dir = root.join(format!("sys/dev/block/{major}:{minor}"));
        let link = fs::read_link(&dir).ok()?;
        let (disk, name) = disk_and_name(link.to_str()?, dir.join("partition").exists())?;
        Some(Self { major, minor, name, disk })
    }

    /// Returns the device at a node such as `/dev/sda1`; `None` if `node` is not the absolute path
    /// to a block device node.
    #[must_use]
    pub fn at(node: &str) -> Option<Self> {
        // `node` may be a mount source, and thus a word such as `none`, which must not be resolved
        // as a file in the current directory.
        let status = fs::metadata(Path::new(node).has_root().then_some(node)?).ok()?;
        let number = status.file_type().is_block_device().then(|| status.rdev())?;
        Self::numbered(rustix::fs::major(number), rustix::fs::minor(number))
    }

    /// Returns the whole disk's directory in `/sys/block`.
    pub(crate) fn disk_dir(&self) -> PathBuf {
        Path::new("/sys/block").join(&self.disk)
    }

    /// Returns `true` if the drive itself reports that it rotates, according to the directory `sys`
    /// below `root`. Unlike the request queue's attribute, no driver sets this by default.
    pub(crate) fn reports_rotation(&self, root: &Path) -> bool {
        let page = root.join("sys/block").join(&self.disk).join("device/vpd_pgb1");
        fs::read(page).is_ok_and(|page| rotation::rotates(&page))
    }

    pub(crate) fn queue(&self) -> Queue {
        let dir = self.disk_dir().join("queue");
        Queue::of(|name| fs::read_to_string(dir.join(name)).ok())
    }
}
