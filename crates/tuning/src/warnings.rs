//! Warns of data that the storage below a path may lose, and of properties that it may report
//! wrongly.

use haul_disk::{FileSystem, Storage};
use haul_measure::{Measured, Rotation};

/// The mount options that disable write barriers.
const NO_BARRIERS: [&str; 3] = ["nobarrier", "barrier=0", "nobarriers"];

/// Returns one warning for each risk of data loss, for each avoidable cost, and for each property
/// that the storage may report wrongly. `measured` contains the results of a measurement, if there
/// is one.
#[must_use]
pub fn warnings(storage: &Storage, measured: Option<&Measured>) -> Vec<String> {
    let mut warnings: Vec<String> = file_system(storage).into_iter().map(str::to_owned).collect();
    if let Some(mount) = &storage.mount {
        let unsafe_options = NO_BARRIERS.iter().filter(|option| mount.has_option(option));
        warnings.extend(
            unsafe_options.map(|option| {
                format!("mounted with {option}: a power failure may lose synced data")
            }),
        );
    }
    warnings.extend(device(storage));
    warnings.extend(rotation(storage, measured));
    warnings
}

/// Returns the warning about the type of the file system, if there is one.
pub(crate) fn file_system(storage: &Storage) -> Option<&'static str> {
    const MEMORY: &str = "the file system is in memory: its content is lost at reboot";
    const REMOTE: &str = "remote or user-space file system: the effect of syncs and locks \
                          depends on its server";
    const COPIES: &str = "copy on write: overwritten files become fragmented, and filling them \
                          beforehand has no benefit";
    match &storage.file_system {
        FileSystem::Tmpfs => Some(MEMORY),
        FileSystem::Nfs | FileSystem::Fuse => Some(REMOTE),
        FileSystem::Overlay => {
            Some("overlay file system: the disk below is unknown; use a path on the disk itself")
        }
        FileSystem::Ext4 if storage.journal == Some(false) => {
            Some("ext4 without a journal: must be checked (fsck) after a power failure")
        }
        FileSystem::Other(name) => match name.as_str() {
            "ramfs" => Some(MEMORY),
            "cifs" | "smb3" | "9p" | "ceph" | "virtiofs" => Some(REMOTE),
            "zfs" | "bcachefs" | "nilfs2" => Some(COPIES),
            _ => None,
        },
        _ if storage.copy_on_write == Some(true) => Some(COPIES),
        _ => None,
    }
}

fn device(storage: &Storage) -> Option<String> {
    let queue = &storage.queue;
    (queue.volatile_write_cache == Some(true) && queue.fua == Some(false)).then(|| {
        "the volatile write cache has no FUA: each durable write flushes the whole cache".to_owned()
    })
}

fn rotation(storage: &Storage, measured: Option<&Measured>) -> Option<String> {
    let claims = storage.queue.rotational == Some(true);
    let disk = storage.device.as_ref().map(|device| device.disk.as_str());
    let is_virtual = disk.is_some_and(|disk| {
        ["vd", "xvd", "loop", "nbd", "zram", "ublk"].iter().any(|kind| disk.starts_with(kind))
    });
    match measured.map(|measured| measured.rotation) {
        Some(Rotation::Denied) => Some(
            "the device reports itself as rotational, but is not: single random reads take less \
             than 1 ms, parallel ones are more than 4 times as fast"
                .to_owned(),
        ),
        Some(Rotation::Believable) => None,
        Some(Rotation::Unknown) | None if claims && is_virtual => Some(
            "the device reports itself as rotational; virtual disks often do so wrongly (check \
             with --measure)"
                .to_owned(),
        ),
        Some(Rotation::Unknown) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Device, Mount, Queue};

    use super::*;
    use crate::choices::tests::{measured, storage};

    #[track_caller]
    fn warns(storage: &Storage, measured: Option<&Measured>, words: &[&str]) {
        let warnings = warnings(storage, measured);
        assert_eq!(warnings.len(), words.len(), "{warnings:?}");
        for (warning, words) in warnings.iter().zip(words) {
            assert!(warning.contains(words), "{warning} does not contain {words}");
        }
    }

    #[test]
    fn file_systems_have_warnings() {
        let other = |name: &str| FileSystem::Other(name.to_owned());
        for (file_system, words) in [
            (FileSystem::Xfs, &[][..]),
            (FileSystem::Ext4, &[]),
            (FileSystem::Tmpfs, &["lost at reboot"]),
            (other("ramfs"), &["lost at reboot"]),
            (FileSystem::Nfs, &["syncs and locks"]),
            (FileSystem::Fuse, &["syncs and locks"]),
            (other("cifs"), &["syncs and locks"]),
            (FileSystem::Overlay, &["overlay"]),
            (other("zfs"), &["copy on write"]),
            (other("ext2"), &[]),
        ] {
            warns(&storage(file_system), None, words);
        }
        let btrfs = Storage { copy_on_write: Some(true), ..storage(FileSystem::Btrfs) };
        warns(&btrfs, None, &["copy on write"]);
        let bare = Storage { journal: Some(false), ..storage(FileSystem::Ext4) };
        warns(&bare, None, &["without a journal"]);
    }

    #[test]
    fn mounts_without_barriers_have_a_warning() {
        let mount = |options: &[&str]| Mount {
            point: "/".to_owned(),
            file_system: "ext4".to_owned(),
            source: "/dev/sda".to_owned(),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        let on = |options| Storage { mount: Some(mount(options)), ..storage(FileSystem::Ext4) };
        warns(&on(&["rw", "barrier=1"]), None, &[]);
        warns(&on(&["rw", "nobarrier"]), None, &["mounted with nobarrier"]);
        warns(&on(&["rw", "barrier=0"]), None, &["mounted with barrier=0"]);
    }

    #[test]
    fn devices_have_warnings_about_cache_and_rotation() {
        let on = |disk: &str, queue: Queue| {
            let (name, disk) = (disk.to_owned(), disk.to_owned());
            let device = Device { major: 8, minor: 0, name, disk };
            Storage { device: Some(device), queue, ..storage(FileSystem::Xfs) }
        };
        let cache =
            |volatile_write_cache, fua| Queue { volatile_write_cache, fua, ..Queue::default() };
        warns(&on("sda", cache(Some(true), Some(false))), None, &["no FUA"]);
        warns(&on("sda", cache(Some(true), Some(true))), None, &[]);
        warns(&on("sda", cache(Some(false), Some(false))), None, &[]);
        warns(&on("sda", cache(None, None)), None, &[]);

        let rotates = Queue { rotational: Some(true), ..Queue::default() };
        let with = |rotation| Measured { rotation, ..measured(&[], &[]) };
        warns(&on("sda", rotates.clone()), None, &[]);
        warns(&on("vda", rotates.clone()), None, &["virtual disks"]);
        warns(&on("vda", rotates.clone()), Some(&with(Rotation::Believable)), &[]);
        for disk in ["sda", "vda"] {
            let denied = with(Rotation::Denied);
            warns(&on(disk, rotates.clone()), Some(&denied), &["rotational, but is not"]);
        }
        warns(&on("vda", Queue { rotational: Some(false), ..rotates }), None, &[]);
    }
}
