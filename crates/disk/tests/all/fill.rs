//! Tests files filled with zeros ahead of use.

use std::fs;
use std::os::unix::fs::MetadataExt;

use haul_disk::{Allocation, Disk, Durability, Open, OsDisk, fill};

use crate::disk_dir;

#[test]
fn filled_file_has_all_blocks() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let bytes = (2 << 20) + 4096;
    for options in [Open::default(), Open { direct: true, ..Open::default() }] {
        let file = disk.create("filled", options).unwrap();
        fill(&*file, bytes).unwrap();
        let status = fs::metadata(dir.path().join("filled")).unwrap();
        assert_eq!(status.len(), bytes);
        assert!(status.blocks() * 512 >= bytes, "{} blocks", status.blocks());
        assert!(fs::read(dir.path().join("filled")).unwrap().iter().all(|byte| *byte == 0));
        disk.remove("filled").unwrap();
    }
}

#[test]
fn resized_file_has_a_hole() {
    let dir = disk_dir();
    let disk = OsDisk::open(dir.path()).unwrap();
    let file = disk.create("hole", Open::default()).unwrap();
    file.resize(1 << 20).unwrap();
    file.sync(Durability::Everything).unwrap();
    let status = fs::metadata(dir.path().join("hole")).unwrap();
    assert_eq!((status.len(), status.blocks()), (1 << 20, 0));

    file.allocate(Allocation::Reserve, 0, 2 << 20).unwrap();
    let status = fs::metadata(dir.path().join("hole")).unwrap();
    assert_eq!(status.len(), 2 << 20);
    assert!(status.blocks() * 512 >= 2 << 20);
}
