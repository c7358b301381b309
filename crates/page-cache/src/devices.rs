//! Probes the devices that store files, once per device.

use std::collections::HashMap;
use std::path::Path;

use haul_disk::{FileSystem, probe};

/// The properties of a device that decide how its files are loaded and evicted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kind {
    /// `true` if the device is rotational, as the device reports or the caller specifies.
    pub(crate) rotates: bool,
    /// `true` if the files of the device exist only in the page cache (tmpfs, ramfs).
    pub(crate) in_memory: bool,
}

/// The devices probed so far.
#[derive(Debug, Default)]
pub(crate) struct Devices {
    known: HashMap<u64, Kind>,
    rotates: Option<bool>,
}

impl Devices {
    /// Creates an empty set. If `rotates` is given, it overrides what every device reports.
    pub(crate) fn of(rotates: Option<bool>) -> Self {
        Self { known: HashMap::new(), rotates }
    }

    /// Returns the properties of the device with the number `device`, which stores the file at
    /// `path`.
    pub(crate) fn kind(&mut self, device: u64, path: &Path) -> Kind {
        let found = *self.known.entry(device).or_insert_with(|| {
            // A device that cannot be probed counts as non-rotational.
            let Ok(storage) = probe(path) else { return Kind::default() };
            let other = |name: &str| storage.file_system == FileSystem::Other(name.to_owned());
            Kind {
                rotates: storage.queue.rotational == Some(true),
                in_memory: storage.file_system == FileSystem::Tmpfs || other("ramfs"),
            }
        });
        Kind { rotates: self.rotates.unwrap_or(found.rotates), ..found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_kind_overrides_the_reported_one() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for rotates in [false, true] {
            assert_eq!(Devices::of(Some(rotates)).kind(0, here).rotates, rotates);
        }
        let reported = probe(here).is_ok_and(|storage| storage.queue.rotational == Some(true));
        assert_eq!(Devices::default().kind(0, here).rotates, reported);
    }
}
