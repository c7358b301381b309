//! What must be known of the storage below each file, asked once for each device.

use std::collections::HashMap;
use std::path::Path;

use haul_disk::{FileSystem, probe};

use crate::args::DiskKind;

/// What matters of a device here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kind {
    /// It has heads which seek: it says so, or whoever asks does.
    pub(super) rotates: bool,
    /// Its files are in the page cache and nowhere else.
    pub(super) in_memory: bool,
}

/// The devices met so far.
#[derive(Debug, Default)]
pub(super) struct Devices {
    known: HashMap<u64, Kind>,
    told: Option<DiskKind>,
}

impl Devices {
    /// All are of that kind, whatever they say.
    pub(super) fn of(told: Option<DiskKind>) -> Self {
        Self { known: HashMap::new(), told }
    }

    /// What `path` is on, which is a file with that device number.
    pub(super) fn kind(&mut self, device: u64, path: &Path) -> Kind {
        let found = *self.known.entry(device).or_insert_with(|| {
            // What cannot be found out is taken for a disk without heads.
            let Ok(storage) = probe(path) else { return Kind::default() };
            let other = |name: &str| storage.file_system == FileSystem::Other(name.to_owned());
            Kind {
                rotates: storage.queue.rotational == Some(true),
                in_memory: storage.file_system == FileSystem::Tmpfs || other("ramfs"),
            }
        });
        match self.told {
            Some(told) => Kind { rotates: told == DiskKind::Rotating, ..found },
            None => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_counts_more_than_what_the_disk_says() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (told, rotates) in [(DiskKind::Solid, false), (DiskKind::Rotating, true)] {
            assert_eq!(Devices::of(Some(told)).kind(0, here).rotates, rotates);
        }
        let says = probe(here).is_ok_and(|storage| storage.queue.rotational == Some(true));
        assert_eq!(Devices::default().kind(0, here).rotates, says);
    }
}
