//! Tests that deduplication makes equal files share blocks, and only equal files.

use std::fs::{self, File};
use std::os::fd::AsFd;

use haul_disk::{DedupeOutcome, DelayedAllocation, dedupe_range, extents, same_blocks};
use haul_testing::LoopImage;

use crate::disk_dir;

#[test]
fn equal_files_share_blocks_and_different_ones_do_not() {
    for kind in ["btrfs", "xfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let (a, b) = (image.mount().join("a"), image.mount().join("b"));
        // Longer than one step of `dedupe_range` (16 MiB), and no multiple of a block.
        let mut bytes: Vec<u8> = (0..5_000_000_u32).flat_map(u32::to_le_bytes).collect();
        bytes.push(7);
        fs::write(&a, &bytes).unwrap();
        fs::write(&b, &bytes).unwrap();
        let (from, to) = (File::open(&a).unwrap(), File::open(&b).unwrap());
        let length = bytes.len() as u64;
        let same = || {
            let map =
                |file: &File| extents(&file.as_fd(), 0, u64::MAX, DelayedAllocation::Sync).unwrap();
            same_blocks(&map(&from), &map(&to), length)
        };
        assert!(!same());
        let before = to.metadata().unwrap().modified().unwrap();
        assert_eq!(dedupe_range(from.as_fd(), to.as_fd(), length).unwrap(), DedupeOutcome::Same);
        assert!(same(), "{kind}");
        assert_eq!(to.metadata().unwrap().modified().unwrap(), before);

        bytes[19_000_000] ^= 1;
        fs::write(&b, &bytes).unwrap();
        let to = File::open(&b).unwrap();
        assert_eq!(dedupe_range(from.as_fd(), to.as_fd(), length).unwrap(), DedupeOutcome::Differs);
        assert!(fs::read(&b).unwrap() == bytes, "{kind}");
    }
}

#[test]
fn dedupe_is_unsupported_without_shared_blocks() {
    let dir = disk_dir();
    let path = dir.path().join("a");
    fs::write(&path, [1; 8192]).unwrap();
    fs::write(dir.path().join("b"), [1; 8192]).unwrap();
    let (from, to) = (File::open(&path).unwrap(), File::open(dir.path().join("b")).unwrap());
    match dedupe_range(from.as_fd(), to.as_fd(), 8192) {
        Ok(outcome) => assert_eq!(outcome, DedupeOutcome::Same, "the file system may support it"),
        Err(error) => assert!(error.is_unsupported(), "{error}: {}", error.source),
    }
}
