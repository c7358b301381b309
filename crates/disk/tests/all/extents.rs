//! Tests extent maps of real file systems, and proofs of equal content by shared blocks.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use haul_disk::{
    DelayedAllocation, Extent, ExtentMap, Op, extents, first_extent, resident, same_blocks,
};
use haul_testing::LoopImage;
use rustix::fs::{FallocateFlags, fallocate, ioctl_ficlone};

use crate::disk_dir;
use crate::simulated::SimulatedFile;

const BLOCK: u64 = 4096;
/// File systems with reflinks, and their image sizes.
const REFLINKS: [(&str, u64); 2] = [("xfs", 320 << 20), ("btrfs", 128 << 20)];

fn map(path: &Path, delayed_allocation: DelayedAllocation) -> ExtentMap {
    let file = File::open(path).unwrap();
    extents(&file.as_fd(), 0, u64::MAX, delayed_allocation).unwrap()
}

fn same(a: &Path, b: &Path) -> bool {
    let bytes = fs::metadata(a).unwrap().len();
    assert_eq!(bytes, fs::metadata(b).unwrap().len());
    let same =
        same_blocks(&map(a, DelayedAllocation::Sync), &map(b, DelayedAllocation::Sync), bytes);
    if same {
        assert!(
            fs::read(a).unwrap() == fs::read(b).unwrap(),
            "{} is not {}",
            a.display(),
            b.display()
        );
    }
    same
}

/// Creates a file of `bytes` bytes that contains data at `pieces`, each an offset and a length in
/// blocks, and holes elsewhere.
fn pieces(path: PathBuf, pieces: &[(u64, usize)], bytes: u64) -> PathBuf {
    let file = File::create(&path).unwrap();
    for (number, (block, blocks)) in (0_u8..=u8::MAX).cycle().skip(1).zip(pieces) {
        let data = vec![number; blocks * usize::try_from(BLOCK).unwrap()];
        file.write_all_at(&data, block * BLOCK).unwrap();
    }
    file.set_len(bytes).unwrap();
    path
}

fn clone(from: &Path, name: &str) -> PathBuf {
    let path = from.with_file_name(name);
    let (to, from) = (File::create(&path).unwrap(), File::open(from).unwrap());
    ioctl_ficlone(&to, &from).unwrap();
    path
}

fn ranges(map: &ExtentMap) -> Vec<(u64, u64)> {
    let in_blocks = |extent: &Extent| (extent.logical / BLOCK, extent.bytes / BLOCK);
    map.extents.iter().map(in_blocks).collect()
}

#[test]
fn map_of_a_sparse_file_has_its_holes() {
    let dir = disk_dir();
    let path = pieces(dir.path().join("file"), &[(1, 2), (8, 1), (20, 3)], 30 * BLOCK);
    let map =
        match extents(&File::open(&path).unwrap().as_fd(), 0, u64::MAX, DelayedAllocation::Sync) {
            Err(error) if error.is_unsupported() => {
                return haul_testing::skip(&error.to_string());
            }
            map => map.unwrap(),
        };
    assert_eq!(ranges(&map), [(1, 2), (8, 1), (20, 3)]);
    assert!(map.extents[2].flags.last && !map.extents[0].flags.last);
    assert!(map.extents.iter().all(|extent| extent.device_offset().is_some_and(|place| place > 0)));

    let file = File::open(&path).unwrap();
    assert_eq!(first_extent(&file.as_fd()).unwrap(), Some(map.extents[0]));
    let part = |offset, bytes| {
        ranges(&extents(&file.as_fd(), offset * BLOCK, bytes, DelayedAllocation::Report).unwrap())
    };
    assert_eq!(part(8, 1), [(8, 1)]);
    assert_eq!(part(9, 11 * BLOCK), []);
    assert_eq!(part(3, u64::MAX), [(8, 1), (20, 3)]);
    assert_eq!(part(0, 0), []);
}

#[test]
fn map_of_many_extents_is_complete() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let every_other: Vec<_> = (0..300).map(|number| (2 * number, 1)).collect();
    let path = pieces(image.mount().join("file"), &every_other, 600 * BLOCK);
    let map = map(&path, DelayedAllocation::Sync);
    let starts: Vec<_> = map.extents.iter().map(|extent| extent.logical / BLOCK).collect();
    assert_eq!(starts, (0..300).map(|number| 2 * number).collect::<Vec<_>>());
    assert_eq!(map.extents.iter().filter(|extent| extent.flags.last).count(), 1);
}

#[test]
fn map_without_sync_writes_nothing() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let path = image.mount().join("file");
    let file = File::create_new(&path).unwrap();
    (&file).write_all(&[1; 8192]).unwrap();
    let dirty = || resident(&file.as_fd(), 0, u64::MAX).unwrap().dirty_bytes;
    let before = dirty();

    let reported = first_extent(&file.as_fd()).unwrap().unwrap();
    assert!(reported.flags.delayed && reported.device_offset().is_none(), "{reported:?}");
    assert_eq!(map(&path, DelayedAllocation::Report).extents, [reported]);
    assert_eq!(dirty(), before);

    let written = map(&path, DelayedAllocation::Sync).extents[0];
    assert!(written.device_offset().is_some(), "{written:?}");
    assert!(dirty().is_none_or(|bytes| bytes == 0));
}

#[test]
fn preallocated_blocks_stay_unwritten_until_sync() {
    let Some(image) = LoopImage::new("ext4", 32 << 20) else { return };
    let path = image.mount().join("file");
    let file = File::create_new(&path).unwrap();
    fallocate(&file, FallocateFlags::empty(), 0, 4 * BLOCK).unwrap();
    assert!(map(&path, DelayedAllocation::Report).extents[0].flags.unwritten);
    file.write_all_at(&[7; 4096], 0).unwrap();
    assert!(
        map(&path, DelayedAllocation::Report).extents[0].flags.unwritten,
        "although the content is not zeros"
    );
    assert!(!map(&path, DelayedAllocation::Sync).extents[0].flags.unwritten);
}

#[test]
fn reflinks_share_blocks_and_copies_do_not() {
    for (fs, bytes) in REFLINKS {
        let Some(image) = LoopImage::new(fs, bytes) else { return };
        let at = |name: &str| image.mount().join(name);
        for (number, (data, end)) in [
            (&[(0, 64)][..], 64 * BLOCK),
            (&[(0, 64)], 64 * BLOCK - 1),
            (&[(0, 64)], 80 * BLOCK),
            (&[(16, 16)], 32 * BLOCK),
            (&[(0, 16), (32, 16), (64, 1)], 70 * BLOCK + 9),
        ]
        .into_iter()
        .enumerate()
        {
            let one = pieces(at(&format!("{number}-one")), data, end);
            let copy = at(&format!("{number}-copy"));
            fs::write(&copy, fs::read(&one).unwrap()).unwrap();
            assert!(!same(&one, &copy), "{fs} {number}: a copy");
            let link = clone(&one, &format!("{number}-link"));
            assert!(same(&one, &link), "{fs} {number}: {:?}", map(&one, DelayedAllocation::Sync));
            let third = clone(&link, &format!("{number}-third"));
            assert!(same(&one, &third), "{fs} {number}");
        }
    }
}

#[test]
fn modified_reflinks_no_longer_share_all_blocks() {
    for (fs, bytes) in REFLINKS {
        let Some(image) = LoopImage::new(fs, bytes) else { return };
        let one = pieces(image.mount().join("one"), &[(0, 64)], 80 * BLOCK);
        for (number, (offset, why)) in [
            (0, "the first byte"),
            (33 * BLOCK + 5, "a byte in the middle"),
            (64 * BLOCK - 1, "the last byte before the hole"),
            (70 * BLOCK, "a byte in the hole at the end"),
            (80 * BLOCK - 1, "the last byte"),
        ]
        .into_iter()
        .enumerate()
        {
            let link = clone(&one, &format!("link-{number}"));
            assert!(same(&one, &link), "{fs}");
            let file = File::options().write(true).open(&link).unwrap();
            file.write_all_at(b"!", offset).unwrap();
            // The write is not synced: the file system still reports the old, shared location. Such
            // a map must not prove equal content.
            let reported = map(&link, DelayedAllocation::Report);
            assert!(
                !same_blocks(&map(&one, DelayedAllocation::Sync), &reported, 80 * BLOCK),
                "{fs}: {why}"
            );
            assert!(!same(&one, &link), "{fs}: {why}");
        }
    }
}

#[test]
fn inline_data_and_holes_prove_nothing() {
    let Some(image) = LoopImage::new("btrfs", 128 << 20) else { return };
    let one = image.mount().join("inline");
    fs::write(&one, "small enough to be kept among the metadata").unwrap();
    let link = clone(&one, "link");
    assert!(map(&one, DelayedAllocation::Sync).extents[0].flags.inline);
    assert!(!same(&one, &link));

    let (holes, more) = (image.mount().join("holes"), image.mount().join("more"));
    for path in [&holes, &more] {
        File::create(path).unwrap().set_len(1 << 20).unwrap();
    }
    assert_eq!(first_extent(&File::open(&holes).unwrap().as_fd()).unwrap(), None);
    assert!(!same(&holes, &more), "holes prove nothing");
}

#[test]
fn files_without_extents_are_unsupported() {
    let memory = rustix::fs::memfd_create("memory", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let error = first_extent(&memory).unwrap_err();
    assert!(error.is_unsupported(), "{error:?}");
    let error = extents(&SimulatedFile::default(), 0, 1, DelayedAllocation::Report).unwrap_err();
    assert!(error.is_unsupported(), "{error:?}");
    assert_eq!(error.op, Op::Blocks);
    assert!(error.to_string().starts_with("cannot map the extents of "), "{error}");
}
