//! Provides the directory of a measurement, on an existing file system or on a virtual disk: a new
//! file system in an image file.

use std::fs::File as StdFile;
use std::path::Path;
use std::time::{Duration, Instant};

use haul_disk::{Device, DeviceCounters, Disk, OsDisk, Storage, probe};
use haul_testing::DetachedImage;

use super::virtual_disk::VirtualDisk;
use crate::guardian::Guardian;
use crate::host::StorageFacts;
use crate::setting::Setting;
use crate::trace::{Journalling, Tracing};
use haul_measure::{Error, Result};

/// The longest wait for the device to become idle; other programs may keep it busy.
const SETTLE_MAX: Duration = Duration::from_millis(50);

/// A file system to measure.
pub(crate) struct TargetFs {
    pub(crate) name: String,
    pub(crate) disk: OsDisk,
    pub(crate) storage: Storage,
    pub(crate) facts: StorageFacts,
    pub(crate) journalling: Journalling,
    // Fields are dropped in this order: first the files, then the file system, then its image.
    _files: Option<Guardian>,
    root: Option<StdFile>,
    _image: Option<DetachedImage>,
}

impl TargetFs {
    /// Creates a directory below `dir`, which is removed when this process ends.
    pub(crate) fn below(dir: &Path) -> Result<Self> {
        let storage = probe(dir)?;
        let (path, files) = Guardian::for_tree(dir, "haul-bench")?;
        let name = storage.file_system.to_string();
        let facts = StorageFacts::of(&name, &storage);
        let disk = OsDisk::open(&path)?;
        let journalling = Journalling::of(&storage);
        let _files = Some(files);
        Ok(Self { name, disk, storage, facts, journalling, _files, root: None, _image: None })
    }

    /// Creates the virtual disks of `kinds`, for files of `file_bytes` bytes in all; without any, a
    /// directory below `dir`.
    pub(crate) fn all(kinds: &[VirtualDisk], dir: &Path, file_bytes: u64) -> Result<Vec<Self>> {
        if kinds.is_empty() {
            return Ok(vec![Self::below(dir)?]);
        }
        kinds.iter().map(|kind| Self::on_virtual_disk(*kind, dir, file_bytes)).collect()
    }

    /// Creates a file system in an image file in `dir`, large enough for files of `file_bytes`
    /// bytes.
    fn on_virtual_disk(kind: VirtualDisk, dir: &Path, file_bytes: u64) -> Result<Self> {
        let fail = |why: String| {
            let advice = "virtual disks need root, losetup and the file system's mkfs";
            Error::Missing(format!(
                "cannot create a virtual disk with {}: {why}; {advice}",
                kind.name()
            ))
        };
        let (fs, bytes) = (kind.file_system(), VirtualDisk::image_bytes(file_bytes));
        let image = DetachedImage::new(fs, kind.mkfs_options(), kind.mount_options(), bytes, dir)
            .map_err(fail)?;
        let path = image.path();
        let device = Device::at(&format!("/dev/{}", image.device()))
            .ok_or_else(|| fail(format!("{} is no device", image.device())))?;
        let storage = probe(&path)?.with_device(device);
        let below = probe(dir)?;
        let mut facts = StorageFacts::of(kind.name(), &storage);
        facts.mount_options = Some(image.options().to_owned());
        facts.remark = format!("an image file on {}", below.file_system);
        let disk = OsDisk::open(&path)?;
        let root = StdFile::open(&path).map_err(Error::other("open the virtual disk"))?;
        let journalling = Journalling::of(&storage);
        let (root, image) = (Some(root), Some(image));
        let name = kind.name().to_owned();
        Ok(Self { name, disk, storage, facts, journalling, _files: None, root, _image: image })
    }

    /// Syncs writes that are not part of the measurement. On a virtual disk this is a sync of the
    /// whole file system. On a file system that other programs use, it is a sync of the directory,
    /// which also commits earlier changes in the journal.
    pub(crate) fn settle(&self) -> Result<()> {
        match &self.root {
            Some(root) => {
                rustix::fs::syncfs(root).map_err(Error::other("sync the virtual disk"))?
            }
            None => self.disk.sync_dir("")?,
        }
        self.wait_until_idle();
        Ok(())
    }

    /// Removes those of the files `names` that exist.
    pub(crate) fn remove(&self, names: &[&str]) -> Result<()> {
        for name in names {
            match self.disk.remove(name) {
                Err(error) if error.is_not_found() => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// Returns the requests so far. Waits until the device is idle, because the kernel counts a
    /// request only after it wakes the task that waits for it.
    pub(crate) fn counters(&self) -> Option<DeviceCounters> {
        self.wait_until_idle();
        DeviceCounters::of(self.storage.device.as_ref()?).ok()
    }

    fn wait_until_idle(&self) {
        let Some(device) = &self.storage.device else { return };
        let inflight = format!("/sys/block/{}/inflight", device.disk);
        let started = Instant::now();
        while started.elapsed() < SETTLE_MAX
            && std::fs::read_to_string(&inflight)
                .is_ok_and(|counts| counts.split_whitespace().any(|count| count != "0"))
        {
            std::thread::yield_now();
        }
    }

    /// Creates a trace of these events of the requests to the device.
    pub(crate) fn tracing(&self, events: &[&str]) -> Result<Tracing> {
        Tracing::new(self.device()?, events)
    }

    fn device(&self) -> Result<&Device> {
        let missing = || Error::Missing("the device of the file system is unknown".to_owned());
        self.storage.device.as_ref().ok_or_else(missing)
    }

    /// Changes a setting of the device in `/sys/block/<disk>/queue`; returns `None` if it has this
    /// value already.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<Option<Setting>> {
        Setting::on_device(self.device()?, name, value)
    }
}
