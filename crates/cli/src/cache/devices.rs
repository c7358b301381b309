//! What must be known of the storage below each file, asked once for each device.

use std::collections::HashMap;
use std::path::Path;

use haul_disk::{FileSystem, probe};

/// What matters of a device here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// It says that it has heads which seek.
    pub(super) rotates: bool,
    /// Its files are in the page cache and nowhere else.
    pub(super) in_memory: bool,
}

/// The devices met so far.
#[derive(Debug, Default)]
pub(super) struct Devices(HashMap<u64, Kind>);

impl Devices {
    /// What `path` is on, which is a file with that device number.
    pub(super) fn kind(&mut self, device: u64, path: &Path) -> Kind {
        *self.0.entry(device).or_insert_with(|| {
            // What cannot be found out is taken for a disk without heads.
            let Ok(storage) = probe(path) else { return Kind::default() };
            let other = |name: &str| storage.file_system == FileSystem::Other(name.to_owned());
            Kind {
                rotates: storage.queue.rotational == Some(true),
                in_memory: storage.file_system == FileSystem::Tmpfs || other("ramfs"),
            }
        })
    }
}
