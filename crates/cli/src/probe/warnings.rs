//! What one should know of a storage before relying on it. Pure.

use haul_bench::storage::{Measured, Rotation};
use haul_disk::{FileSystem, Storage};

/// Mount options with which a file system does not wait for the device.
const NO_WAITING: [&str; 3] = ["nobarrier", "barrier=0", "nobarriers"];

/// Everything there is to warn of.
pub(super) fn warnings(storage: &Storage, measured: Option<&Measured>) -> Vec<String> {
    let mut warnings: Vec<String> = file_system(storage).into_iter().map(str::to_owned).collect();
    if let Some(mount) = &storage.mount {
        let unsafe_options = NO_WAITING.iter().filter(|option| mount.has_option(option));
        warnings.extend(
            unsafe_options.map(|option| {
                format!("mounted with {option}: a power cut may take what was synced")
            }),
        );
    }
    warnings.extend(device(storage));
    warnings.extend(rotation(storage, measured));
    warnings
}

fn file_system(storage: &Storage) -> Option<&'static str> {
    const MEMORY: &str = "the file system is in memory: nothing on it survives a restart";
    const REMOTE: &str = "another machine or program keeps the files: what a sync means, and \
                          whether locks keep others out, is theirs to say";
    const COPIES: &str = "each write goes to a new place (copy on write): files that are \
                          overwritten fall into pieces, and filling them beforehand gains nothing";
    match &storage.file_system {
        FileSystem::Tmpfs => Some(MEMORY),
        FileSystem::Nfs | FileSystem::Fuse => Some(REMOTE),
        FileSystem::Overlay => {
            Some("an overlay: what it lies on is not known; name a path of the disk itself")
        }
        FileSystem::Ext4 if storage.journal == Some(false) => {
            Some("ext4 without a journal: after a power cut it must be checked before use")
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
        "the write cache is volatile and nothing can be written past it (no FUA): every durable \
         write empties all of it"
            .to_owned()
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
            "the device says that it rotates, and does not: single random reads take less than a \
             millisecond, and many at a time are more than four times as fast"
                .to_owned(),
        ),
        Some(Rotation::Believable) => None,
        Some(Rotation::Unknown) | None if claims && is_virtual => Some(
            "the device says that it rotates; a virtual one may say so without knowing: \
             --measure finds out"
                .to_owned(),
        ),
        Some(Rotation::Unknown) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use haul_disk::{Device, Mount, Queue};

    use super::*;
    use crate::probe::choices::tests::{measured, storage};

    #[track_caller]
    fn warns(storage: &Storage, measured: Option<&Measured>, words: &[&str]) {
        let warnings = warnings(storage, measured);
        assert_eq!(warnings.len(), words.len(), "{warnings:?}");
        for (warning, words) in warnings.iter().zip(words) {
            assert!(warning.contains(words), "{warning} does not say {words}");
        }
    }

    #[test]
    fn file_systems_are_warned_of_by_what_they_do() {
        let other = |name: &str| FileSystem::Other(name.to_owned());
        for (file_system, words) in [
            (FileSystem::Xfs, &[][..]),
            (FileSystem::Ext4, &[]),
            (FileSystem::Tmpfs, &["survives a restart"]),
            (other("ramfs"), &["survives a restart"]),
            (FileSystem::Nfs, &["what a sync means"]),
            (FileSystem::Fuse, &["what a sync means"]),
            (other("cifs"), &["what a sync means"]),
            (FileSystem::Overlay, &["an overlay"]),
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
    fn mounts_that_do_not_wait_are_warned_of() {
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
    fn devices_are_warned_of_by_cache_and_claims() {
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
        let said = |rotation| Measured { rotation, ..measured(&[], &[]) };
        warns(&on("sda", rotates.clone()), None, &[]);
        warns(&on("vda", rotates.clone()), None, &["may say so without knowing"]);
        warns(&on("vda", rotates.clone()), Some(&said(Rotation::Believable)), &[]);
        for disk in ["sda", "vda"] {
            let denied = said(Rotation::Denied);
            warns(&on(disk, rotates.clone()), Some(&denied), &["rotates, and does not"]);
        }
        warns(&on("vda", Queue { rotational: Some(false), ..rotates }), None, &[]);
    }
}
