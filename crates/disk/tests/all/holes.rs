//! Tests that holes are found, and that written bytes are never part of one.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use haul_disk::next_hole;
use haul_testing::LoopImage;

use crate::disk_dir;

const M: u64 = 1 << 20;

/// Returns the start and end of all holes of at least 64 KiB within `range`.
fn holes(file: &File, range: Range<u64>) -> Vec<(u64, u64)> {
    let (mut found, mut at) = (Vec::new(), range.start);
    while let Some(hole) = next_hole(file.as_fd(), at..range.end, 64 << 10).unwrap() {
        at = hole.end;
        found.push((hole.start, hole.end));
    }
    found
}

#[test]
fn holes_are_found_between_data() {
    let dir = disk_dir();
    let file = File::create_new(dir.path().join("sparse")).unwrap();
    file.set_len(100 * M).unwrap();
    file.write_all_at(&[1; 5000], 10 * M).unwrap();
    // A hole of one page follows, which is too short to be reported.
    file.write_all_at(&[1; 4096], 10 * M + 12_288).unwrap();
    file.write_all_at(&[1; 1], 50 * M + 100).unwrap();
    let all = [(0, 10 * M), (10 * M + 16_384, 50 * M), (50 * M + 4096, 100 * M)];
    assert_eq!(holes(&file, 0..100 * M), all);
    assert_eq!(holes(&file, 5 * M + 1..10 * M), [(5 * M + 1, 10 * M)]);
    assert_eq!(holes(&file, 10 * M..10 * M + 16_384), []);
    assert_eq!(holes(&file, 60 * M..70 * M + 3), [(60 * M, 70 * M + 3)]);
    assert_eq!(holes(&file, 100 * M..200 * M), [], "past the end");
    file.sync_all().unwrap();
    assert_eq!(holes(&file, 0..100 * M), all, "after a sync");
}

#[test]
fn written_zeros_and_unwritten_pages_are_handled_on_each_file_system() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let open = File::options().read(true).write(true).create_new(true).clone();
        let file = open.open(image.mount().join("f")).unwrap();
        file.set_len(8 * M).unwrap();
        // Bytes that only the page cache has are data, even if their blocks are preallocated.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 4 * M).unwrap();
        file.write_all_at(&[1; 4096], 2 * M).unwrap();
        file.write_all_at(&[1; 4096], 6 * M).unwrap();
        for (start, end) in holes(&file, 0..8 * M) {
            let hole = start..end;
            assert!(!hole.contains(&(2 * M)) && !hole.contains(&(6 * M)), "{kind}: {hole:?}");
        }
        assert!(holes(&file, 0..8 * M).contains(&(6 * M + 4096, 8 * M)), "{kind}");
    }
}

#[test]
fn whole_file_may_be_a_hole() {
    let dir = disk_dir();
    let file = File::create_new(dir.path().join("hole")).unwrap();
    file.set_len(1 << 40).unwrap();
    assert_eq!(holes(&file, 0..1 << 40), [(0, 1 << 40)]);
}
