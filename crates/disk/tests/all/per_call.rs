//! Tests the options for a single call, on real and on simulated files.

use std::path::Path;
use std::sync::atomic::Ordering;

use haul_disk::{Disk, Op, Open, OsDisk, read_uncached, write_durable};

use crate::disk_dir;
use crate::simulated::SimulatedFile;

#[test]
fn durable_write_is_read_back_uncached() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("file", Open::default()).unwrap();
    write_durable(&*file, b"0123456789", 100).unwrap();
    assert_eq!(file.bytes().unwrap(), 110);
    let mut buffer = [0; 20];
    assert_eq!(read_uncached(&*file, &mut buffer, 102).unwrap(), 8);
    assert_eq!(&buffer[..8], b"23456789");
}

#[test]
fn dsync_file_does_not_wait_for_timestamps() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let options = Open { dsync: true, ..Open::default() };
    let file = disk.create("file", options).unwrap();
    let flags = rustix::fs::fcntl_getfl(file.descriptor().unwrap()).unwrap();
    let sync_bits = flags.bits() & libc::O_SYNC.cast_unsigned();
    assert_eq!(sync_bits, libc::O_DSYNC.cast_unsigned(), "O_SYNC has one more bit");
}

#[test]
fn simulated_file_is_written_whole_and_synced_once() {
    let file = SimulatedFile::default();
    write_durable(&file, b"0123456789", 0).unwrap();
    assert_eq!(*file.bytes.lock().unwrap(), b"0123456789");
    assert_eq!(file.syncs.load(Ordering::Relaxed), 1);
    let mut buffer = [0; 20];
    assert_eq!(read_uncached(&file, &mut buffer, 4).unwrap(), 6);
    assert_eq!(&buffer[..6], b"456789");
}

#[test]
fn error_has_path_and_range() {
    let disk = OsDisk::open("/dev").unwrap();
    let full = disk.open("full", Open::default()).unwrap();
    let error = write_durable(&*full, b"hello", 4096).unwrap_err();
    assert!(error.is_full(), "{error:?}");
    assert_eq!((error.op, error.path.as_path()), (Op::Write, Path::new("/dev/full")));
    assert_eq!((error.offset, error.bytes), (Some(4096), Some(5)));
}

#[test]
fn offset_of_all_ones_is_refused() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("file", Open::default()).unwrap();
    write_durable(&*file, b"x", u64::MAX).unwrap_err();
    read_uncached(&*file, &mut [0], u64::MAX).unwrap_err();
    assert_eq!(file.bytes().unwrap(), 0);
}
