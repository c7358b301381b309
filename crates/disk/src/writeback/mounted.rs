//! Collects mounted file systems' mount options, journal and disks.

use std::fs;
use std::path::Path;

use super::disks::{DeviceShare, DiskFacts};
use super::files::KernelFiles;
use super::journal::{self, JournalInfo};
use crate::device::{Device, Queue};
use crate::probe::{self, FileSystem, Mount, Storage, mounts};

/// A mounted file system and the disks below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountFacts {
    /// The file system.
    pub file_system: FileSystem,
    /// The mount; `None` if it is missing from `/proc/self/mountinfo`.
    pub mount: Option<Mount>,
    /// The effective mount options. For ext4, which lists its defaults in `/proc/fs/ext4`, they
    /// include the defaults.
    pub options: Vec<String>,
    /// `true` if the file system has a journal.
    pub journal: Option<bool>,
    /// The journal's statistics; `None` unless the file system is an ext4 with an internal journal.
    pub journal_info: Option<JournalInfo>,
    /// The block device; `None` for file systems that are in memory or on another machine, or that
    /// hide their device (overlay).
    pub device: Option<Device>,
    /// The request queue attributes for `device`'s whole disk, readahead among them.
    pub queue: Queue,
    /// How much of the dirty memory limit `device` may use; unknown for btrfs.
    pub share: DeviceShare,
    /// The disks that store the data of `device`: its whole disk or, if that is a volume on other
    /// disks (device mapper, md), those disks.
    pub disks: Vec<DiskFacts>,
}

impl MountFacts {
    /// `true` if `option` is among the effective mount options.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|other| other == option)
    }

    /// Returns the value from the mount option `name=value`.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

impl KernelFiles {
    /// Returns the mount, the journal and the disks for `storage`.
    #[must_use]
    pub fn mounted(&self, storage: &Storage) -> MountFacts {
        let (file_system, mount) = (storage.file_system.clone(), storage.mount.clone());
        self.facts(file_system, mount, storage.device.clone())
    }

    /// Returns the mounts on block devices, in the order of `mountinfo`. If a device has several
    /// mounts, only the first is returned.
    #[must_use]
    pub fn all_mounted(&self) -> Vec<MountFacts> {
        let mountinfo = self.required("/proc/self/mountinfo").unwrap_or_default();
        let mut all: Vec<MountFacts> = Vec::new();
        for line in mounts::all(&mountinfo) {
            let file_system = FileSystem::named(&line.mount.file_system);
            let (major, minor) = line.numbers;
            let device = Device::below(self.root(), major, minor)
                .or_else(|| self.named_at_mount(&file_system, &line.mount));
            let Some(device) = device else { continue };
            if !all.iter().any(|known| known.device.as_ref() == Some(&device)) {
                all.push(self.facts(file_system, Some(line.mount), Some(device)));
            }
        }
        all
    }

    /// Returns a btrfs's device by its mount source, because its files' device number is anonymous.
    fn named_at_mount(&self, file_system: &FileSystem, mount: &Mount) -> Option<Device> {
        if *file_system != FileSystem::Btrfs {
            return None;
        }
        let source = Path::new(&mount.source);
        let name = source.strip_prefix("/dev").ok()?;
        // The names in /dev/mapper are links to device nodes.
        let node = fs::canonicalize(source).ok().filter(|_| self.root() == Path::new("/"));
        let name = node.as_deref().and_then(Path::file_name).or(name.file_name())?.to_str()?;
        let numbers = self.text(&format!("/sys/class/block/{name}/dev"))?;
        let (major, minor) = numbers.trim().split_once(':')?;
        Device::below(self.root(), major.parse().ok()?, minor.parse().ok()?)
    }

    fn facts(
        &self,
        file_system: FileSystem,
        mount: Option<Mount>,
        device: Option<Device>,
    ) -> MountFacts {
        let journal = probe::journal(self.root(), &file_system, device.as_ref());
        let mut options = mount.as_ref().map(|mount| mount.options.clone()).unwrap_or_default();
        let mut journal_info = None;
        if let Some(device) = device.as_ref().filter(|_| file_system == FileSystem::Ext4) {
            for option in self.ext4_options(device) {
                if !options.contains(&option) {
                    options.push(option);
                }
            }
            journal_info = self.journal_info(device);
        }
        let disk = device.as_ref().map(|device| device.disk.as_str());
        // A btrfs has a separate backing device info (bdi), which cannot be found by device name.
        let has_own_bdi = file_system == FileSystem::Btrfs;
        MountFacts {
            queue: disk.map(|disk| self.queue(disk)).unwrap_or_default(),
            share: disk.filter(|_| !has_own_bdi).map(|disk| self.share(disk)).unwrap_or_default(),
            disks: device.as_ref().map(|device| self.disks(device)).unwrap_or_default(),
            file_system,
            mount,
            options,
            journal,
            journal_info,
            device,
        }
    }

    fn ext4_options(&self, device: &Device) -> Vec<String> {
        let text = self.text(&format!("/proc/fs/ext4/{}/options", device.name));
        text.as_deref().map(journal::options).unwrap_or_default()
    }

    /// Reads the statistics for the journal inside a file system. Their directory is named after
    /// the device and the journal's inode number, which is 8.
    fn journal_info(&self, device: &Device) -> Option<JournalInfo> {
        let path = format!("/proc/fs/jbd2/{}-8/info", device.name);
        let text = self.text(&path)?;
        let info = JournalInfo::of(&text);
        if info.is_none() {
            self.report_malformed(&path, &text);
        }
        info
    }
}
