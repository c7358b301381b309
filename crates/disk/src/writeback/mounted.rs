//! A file system as writers meet it: its options, its journal and the disks below.

use std::fs;
use std::path::Path;

use super::disks::{DeviceShare, DiskFacts};
use super::files::KernelFiles;
use super::journal::{self, JournalInfo};
use crate::probe::{self, Device, FileSystem, Mount, Queue, Storage, mounts};

/// A file system, and all below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountFacts {
    /// Which file system it is.
    pub file_system: FileSystem,
    /// Where and how it is mounted.
    pub mount: Option<Mount>,
    /// All options that hold, those too that nobody named, as far as the file system tells.
    pub options: Vec<String>,
    /// Whether there is a journal.
    pub journal: Option<bool>,
    /// What the journal of an ext4 tells.
    pub journal_info: Option<JournalInfo>,
    /// The device it is on; `None` of what is in memory, hidden or on another machine.
    pub device: Option<Device>,
    /// What the request queue of that device says; reading ahead is decided there.
    pub queue: Queue,
    /// How much of what may be dirty that device may have.
    pub share: DeviceShare,
    /// The disks that device is made of; itself, unless it is a volume on others.
    pub disks: Vec<DiskFacts>,
}

impl MountFacts {
    /// Whether it is mounted with `option`.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|given| given == option)
    }

    /// What stands behind `name=` in the options.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }
}

impl KernelFiles {
    /// The file system of `storage`.
    #[must_use]
    pub fn mounted(&self, storage: &Storage) -> MountFacts {
        let (file_system, mount) = (storage.file_system.clone(), storage.mount.clone());
        self.facts(file_system, mount, storage.device.clone())
    }

    /// All file systems on block devices, each device once, in the order they were mounted.
    #[must_use]
    pub fn all_mounted(&self) -> Vec<MountFacts> {
        let mountinfo = self.needed("/proc/self/mountinfo").unwrap_or_default();
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

    /// The device of a file system whose files carry a number of none.
    fn named_at_mount(&self, file_system: &FileSystem, mount: &Mount) -> Option<Device> {
        if *file_system != FileSystem::Btrfs {
            return None;
        }
        let source = Path::new(&mount.source);
        let name = source.strip_prefix("/dev").ok()?;
        // A name below /dev/mapper is a link to the node.
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
        // A btrfs has limits and a readahead of its own, which do not name it.
        let is_own = file_system == FileSystem::Btrfs;
        MountFacts {
            queue: disk.map(|disk| self.queue(disk)).unwrap_or_default(),
            share: disk.filter(|_| !is_own).map(|disk| self.share(disk)).unwrap_or_default(),
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

    /// Of a journal within the file system; its name ends in the number of its inode.
    fn journal_info(&self, device: &Device) -> Option<JournalInfo> {
        let path = format!("/proc/fs/jbd2/{}-8/info", device.name);
        let text = self.text(&path)?;
        let info = JournalInfo::of(&text);
        if info.is_none() {
            self.not_understood(&path, &text);
        }
        info
    }
}
