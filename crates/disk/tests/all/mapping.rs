//! Files written through memory.

use std::io::ErrorKind;

use haul_disk::{Disk, Map, Open, OsDisk, read_full};

use crate::disk_dir;

#[test]
fn what_is_written_through_memory_is_in_the_file() {
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
fn memory_beyond_the_end_of_the_file_is_not_touched() {
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
