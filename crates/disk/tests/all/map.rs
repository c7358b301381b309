//! Tests files written and read through `mmap`.

use std::io::ErrorKind;

use haul_disk::{Disk, Map, Open, OsDisk, read_full, write_full};

use crate::disk_dir;

#[test]
fn mapped_write_reaches_the_file() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("mapped", Open::default()).unwrap();
    file.resize(8192).unwrap();
    let mut map = Map::of(file.clone(), 64 << 10).unwrap();
    map.write(b"hello", 4094).unwrap();
    map.sync(4094, 5).unwrap();
    let mut bytes = [0; 5];
    assert_eq!(read_full(&*file, &mut bytes, 4094).unwrap(), 5);
    assert_eq!(&bytes, b"hello");
}

#[test]
fn access_beyond_end_of_file_is_refused() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("mapped", Open::default()).unwrap();
    let mut map = Map::of(file.clone(), 8192).unwrap();
    let refused = |map: &mut Map, offset| {
        let error = map.write(b"hello", offset).unwrap_err();
        assert_eq!(error.source.kind(), ErrorKind::InvalidInput, "{offset}");
    };
    refused(&mut map, 0);
    map.grow(4096).unwrap();
    map.write(b"hello", 4091).unwrap();
    for offset in [4092, 8188, 8192, usize::MAX] {
        refused(&mut map, offset);
    }
    map.grow(16384).unwrap();
    map.write(b"hello", 8187).unwrap();
    refused(&mut map, 8188);
    map.sync(0, usize::MAX).unwrap();
    assert_eq!(file.bytes().unwrap(), 16384);
}

#[test]
fn read_only_mapping_reads_and_refuses_writes() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("mapped", Open::default()).unwrap();
    write_full(&*file, b"hello, disk", 4090).unwrap();
    let read_only = disk.open("mapped", Open { read_only: true, ..Open::default() }).unwrap();
    let mut map = Map::for_reading(read_only, 8192).unwrap();
    map.advise_sequential().unwrap();
    map.prefetch(4090, 11).unwrap();
    let mut bytes = [0; 11];
    map.read(&mut bytes, 4090).unwrap();
    assert_eq!(&bytes, b"hello, disk");
    for offset in [4091, 8190, 8192, usize::MAX] {
        let beyond = map.read(&mut bytes, offset).unwrap_err();
        assert_eq!(beyond.source.kind(), ErrorKind::InvalidInput, "{offset}");
        let beyond = map.prefetch(offset, 11).unwrap_err();
        assert_eq!(beyond.source.kind(), ErrorKind::InvalidInput, "{offset}");
    }
    let refused = map.write(b"hello", 0).unwrap_err();
    assert_eq!(refused.source.kind(), ErrorKind::PermissionDenied);
}
