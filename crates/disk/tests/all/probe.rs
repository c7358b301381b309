//! Tests the probe on known file systems.

use std::fs::{self, File};
use std::path::Path;

use haul_disk::{DirectIo, FileSystem, Op, PAGE_BYTES, Queue, probe};
use haul_testing::LoopImage;
use rustix::fs::IFlags;

#[test]
fn file_system_on_a_loop_device_is_identified() {
    for (name, file_system, bytes) in
        [("ext4", FileSystem::Ext4, 32 << 20), ("xfs", FileSystem::Xfs, 320 << 20)]
    {
        let Some(image) = LoopImage::new(name, bytes) else { return };
        let storage = probe(image.mount()).unwrap();
        assert_eq!(storage.file_system, file_system);
        assert_eq!((storage.journal, storage.copy_on_write), (Some(true), Some(false)));
        let mount = storage.mount.as_ref().unwrap();
        assert_eq!((mount.file_system.as_str(), mount.has_option("noatime")), (name, true));
        assert_eq!(Path::new(&mount.point), image.mount().canonicalize().unwrap());
        assert_eq!(mount.source, format!("/dev/{}", image.device()));
        let device = storage.device.as_ref().unwrap();
        assert_eq!((device.name.as_str(), device.disk.as_str()), (image.device(), image.device()));
        assert_eq!(device.major, 7);
        assert!(storage.queue.rotational.is_some() && storage.queue.depth.is_some());
        assert_eq!(storage.queue.volatile_write_cache, Some(true));
        let Some(DirectIo::Aligned { memory_bytes, offset_bytes }) = storage.direct_io else {
            panic!("no direct I/O: {storage}");
        };
        assert!(memory_bytes.is_power_of_two() && offset_bytes.is_power_of_two());
        assert_eq!(Some(offset_bytes), storage.queue.logical_block_bytes);
        assert_eq!(storage.write_unit_bytes(), PAGE_BYTES as u64);

        // The probe of a file in the directory returns the same properties.
        let file = image.mount().join("file");
        fs::write(&file, "content").unwrap();
        let file_storage = probe(&file).unwrap();
        assert_eq!(file_storage.path, file);
        assert_eq!(haul_disk::Storage { path: storage.path.clone(), ..file_storage }, storage);
        assert_eq!(
            fs::read_dir(image.mount()).unwrap().count(),
            if name == "ext4" { 2 } else { 1 }
        );
    }
}

#[test]
fn btrfs_has_its_device_and_copy_on_write_per_directory() {
    let Some(image) = LoopImage::new("btrfs", 128 << 20) else { return };
    let storage = probe(image.mount()).unwrap();
    assert_eq!(storage.file_system, FileSystem::Btrfs);
    assert_eq!((storage.journal, storage.copy_on_write), (Some(false), Some(true)));
    assert_eq!(storage.device.unwrap().name, image.device());

    let dir = image.mount().join("in-place");
    fs::create_dir(&dir).unwrap();
    rustix::fs::ioctl_setflags(File::open(&dir).unwrap(), IFlags::NOCOW).unwrap();
    assert_eq!(probe(&dir).unwrap().copy_on_write, Some(false));
}

#[test]
fn file_systems_without_device_have_no_queue() {
    let storage = probe("/proc/self").unwrap();
    assert_eq!(storage.file_system, FileSystem::Other("proc".to_owned()));
    assert_eq!((storage.device, storage.queue), (None, Queue::default()));
    assert_eq!((storage.journal, storage.copy_on_write, storage.direct_io), (None, None, None));

    let storage = probe("/dev").unwrap();
    assert_eq!(storage.file_system, FileSystem::Tmpfs);
    assert_eq!((storage.device, storage.queue), (None, Queue::default()));
    assert_eq!((storage.journal, storage.copy_on_write), (Some(false), Some(false)));
}

#[test]
fn missing_path_is_an_error() {
    let error = probe("/no/such/path").unwrap_err();
    assert!(error.is_not_found(), "{error:?}");
    assert_eq!((error.op, error.path.to_str()), (Op::Open, Some("/no/such/path")));
}
