//! Where it is measured: a directory of our own, its device, and what is known of both.

use std::fs::File as StdFile;
use std::path::Path;
use std::time::{Duration, Instant};

use haul_disk::{Device, DeviceCounters, Disk, OsDisk, Storage, probe};
use haul_test_image::DetachedImage;

use super::plan::VirtualDisk;
use crate::error::{Error, Result};
use crate::guardian::Guardian;
use crate::host::StorageFacts;
use crate::trace::{Journalling, Tracing, Watched};

/// How long the device may take to come to rest before it is measured anyway: others may use it.
const SETTLE_MAX: Duration = Duration::from_millis(50);

/// One file system that is measured.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) disk: OsDisk,
    pub(crate) storage: Storage,
    pub(crate) facts: StorageFacts,
    pub(crate) journalling: Journalling,
    // Dropped from here on: what is in the directory goes before what it is on.
    _files: Option<Guardian>,
    root: Option<StdFile>,
    _image: Option<DetachedImage>,
}

impl Place {
    /// A directory of our own below `dir`, for files of these names alone; it is removed however
    /// this process ends.
    pub(crate) fn below(dir: &Path, names: &[&str]) -> Result<Self> {
        let storage = probe(dir)?;
        let own = format!("haul-bench-{}", std::process::id());
        let files = Guardian::of(dir, &own, names)?;
        let path = dir.join(&own);
        std::fs::create_dir(&path)
            .map_err(Error::other(format!("make the directory {}", path.display())))?;
        let name = storage.file_system.to_string();
        let facts = StorageFacts::of(&name, &storage);
        let disk = OsDisk::open(&path)?;
        let journalling = Journalling::of(&storage);
        let files = Some(files);
        Ok(Self {
            name,
            disk,
            storage,
            facts,
            journalling,
            _files: files,
            root: None,
            _image: None,
        })
    }

    /// A file system of our own, in a file in `dir`, for files of `file_bytes`.
    pub(crate) fn on_virtual_disk(kind: VirtualDisk, dir: &Path, file_bytes: u64) -> Result<Self> {
        let fail = |why: String| {
            let advice = "virtual disks need root, losetup and the file system's mkfs";
            Error::Missing(format!(
                "cannot make a virtual disk with {}: {why}; {advice}",
                kind.name()
            ))
        };
        let (fs, bytes) = (kind.file_system(), VirtualDisk::image_bytes(file_bytes));
        let image = DetachedImage::new(fs, kind.mkfs_options(), kind.mount_options(), bytes, dir)
            .map_err(fail)?;
        let path = image.path();
        let device = Device::at(&format!("/dev/{}", image.device()))
            .ok_or_else(|| fail(format!("{} is no device", image.device())))?;
        let storage = probe(&path)?.on(device);
        let below = probe(dir)?;
        let mut facts = StorageFacts::of(kind.name(), &storage);
        facts.mount_options = Some(image.options().to_owned());
        facts.remark = format!("which is a file on {}", below.file_system);
        let disk = OsDisk::open(&path)?;
        let root = StdFile::open(&path).map_err(Error::other("open the virtual disk"))?;
        let journalling = Journalling::of(&storage);
        let (root, image) = (Some(root), Some(image));
        let name = kind.name().to_owned();
        Ok(Self { name, disk, storage, facts, journalling, _files: None, root, _image: image })
    }

    /// Brings everything that is not part of the measurement onto the medium: of a file system of
    /// our own all there is, of a shared one the directory, with the journal before it.
    pub(crate) fn settle(&self) -> Result<()> {
        match &self.root {
            Some(root) => {
                rustix::fs::syncfs(root).map_err(Error::other("sync the virtual disk"))?
            }
            None => self.disk.sync_dir("")?,
        }
        self.wait_for_rest();
        Ok(())
    }

    /// The requests so far, once none is under way: the kernel wakes a waiter first and counts then.
    pub(crate) fn counters(&self) -> Option<DeviceCounters> {
        self.wait_for_rest();
        DeviceCounters::of(self.storage.device.as_ref()?).ok()
    }

    fn wait_for_rest(&self) {
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

    /// A trace of its device, or why there is none.
    pub(crate) fn tracing(&self) -> Result<Tracing> {
        let missing = || Error::Missing("the device below is not known".to_owned());
        let watched = Watched::of(self.storage.device.as_ref().ok_or_else(missing)?)?;
        let tracing = Tracing::new()?;
        tracing.watch(watched)?;
        Ok(tracing)
    }
}
