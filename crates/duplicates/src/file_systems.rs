//! The file systems of a tree, by the device numbers of its files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use haul_bulk_read::{FileId, Tree, open_directory};
use haul_disk::Superblock;
use rustix::fs::{Mode, OFlags, openat};

/// The file systems of a tree.
#[derive(Debug, Default)]
pub(crate) struct FileSystems(BTreeMap<u64, Superblock>);

impl FileSystems {
    /// Finds the file systems of all files. Opens one file of each device number.
    pub(crate) fn of(tree: &Tree) -> Self {
        let mut found = BTreeMap::new();
        for file in tree.ids() {
            let device = tree.meta(file).device;
            if !found.contains_key(&device)
                && let Some(fd) = open(&tree.path(file), OFlags::PATH)
                && let Ok(superblock) = Superblock::of(fd.as_fd())
            {
                found.insert(device, superblock);
            }
        }
        Self(found)
    }

    /// Returns a number that is equal for all devices of one file system, such as the subvolumes of
    /// a btrfs.
    pub(crate) fn number(&self, device: u64) -> u64 {
        self.0.get(&device).map_or(device, |superblock| superblock.device)
    }

    /// `true` if the content of a file has the length that its status has. Files of interfaces to
    /// the kernel never have, and a file system that stores no files itself may show one of length
    /// 0 that has content: that is found by reading it.
    pub(crate) fn has_known_length(&self, tree: &Tree, file: FileId) -> bool {
        let meta = tree.meta(file);
        let Some(superblock) = self.0.get(&meta.device) else { return true };
        if superblock.file_system.is_kernel_interface() {
            return false;
        }
        meta.bytes > 0 || superblock.file_system.stores_files() || is_empty(&tree.path(file))
    }
}

fn is_empty(path: &Path) -> bool {
    let Some(file) = open(path, OFlags::RDONLY) else { return true };
    !matches!(File::from(file).read(&mut [0]), Ok(1))
}

/// Opens the file at a path of any length, without waiting.
fn open(path: &Path, flags: OFlags) -> Option<OwnedFd> {
    let dir = open_directory(path.parent()?).ok()?;
    let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(&dir, path.file_name()?, flags, Mode::empty()).ok()
}
