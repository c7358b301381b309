//! Tests with sparse files, and with copies that share some of their blocks.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_bulk_read::digest::HashKind;
use haul_duplicates::Options;
use haul_duplicates::act::Action;
use haul_testing::{LoopImage, Random};
use rustix::fs::{FallocateFlags, copy_file_range, fallocate, ioctl_ficlone};

use crate::actions::{group, options, process};
use crate::{RecordedEvents, disk_dir, found, paths, run_search};

const BLOCK: usize = 4096;
/// A length in blocks at which a file is sampled only at its head and tail, then compared by
/// extents.
const BLOCKS: usize = 128;
const BYTES: u64 = (BLOCKS * BLOCK) as u64;
/// The number of bytes read from each file before its extents are compared.
const SAMPLES: u64 = 2 * BLOCK as u64;

/// A range of blocks to share: the first block in the source, the number of blocks, and the first
/// block in the new file.
type Part = (usize, usize, usize);

/// Writes a file as separate extents.
fn in_extents(path: &Path, bytes: &[u8], extents: usize) -> File {
    let file = File::create_new(path).unwrap();
    let piece = bytes.len() / extents;
    for (number, bytes) in bytes.chunks(piece).enumerate() {
        file.write_all_at(bytes, (number * piece) as u64).unwrap();
        file.sync_all().unwrap();
    }
    file
}

fn clone(from: &Path, to: &Path) -> File {
    let file = File::create_new(to).unwrap();
    ioctl_ficlone(&file, File::open(from).unwrap()).unwrap();
    file
}

/// Creates a sparse file at `to`, of the length of `from`, that shares `parts` of the blocks of
/// `from`.
fn share_parts(from: &Path, to: &Path, parts: &[Part]) {
    let (from, file) = (File::open(from).unwrap(), File::create_new(to).unwrap());
    file.set_len(BYTES).unwrap();
    for (first, blocks, at) in parts {
        let (mut from_at, mut to_at) = ((first * BLOCK) as u64, (at * BLOCK) as u64);
        let (fd_in, fd_out) = (from.as_fd(), file.as_fd());
        let mut remaining = blocks * BLOCK;
        while remaining > 0 {
            let copied =
                copy_file_range(fd_in, Some(&mut from_at), fd_out, Some(&mut to_at), remaining)
                    .unwrap();
            assert_ne!(copied, 0, "unexpected end of file");
            remaining -= copied;
        }
    }
    file.sync_all().unwrap();
}

/// Creates a file that shares `parts` of a source file, a clone of it, and a third file by
/// `change`. Asserts that a search finds only the first two equal, on each file system with
/// reflinks.
fn assert_distinguished(extents: usize, parts: &[Part], change: impl Fn(&Path, &Path, &Path)) {
    let bytes = Random::from_environment().bytes(BLOCKS * BLOCK);
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let (source, dir) = (image.mount().join("source"), image.mount().join("files"));
        fs::create_dir(&dir).unwrap();
        let [a, same, other] = ["a", "clone", "other"].map(|name| dir.join(name));
        in_extents(&source, &bytes, extents);
        share_parts(&source, &a, parts);
        clone(&a, &same).sync_all().unwrap();
        change(&source, &a, &other);
        let ends = |bytes: &[u8]| [bytes[..BLOCK].to_vec(), bytes[bytes.len() - BLOCK..].to_vec()];
        let [one, another] = [&a, &other].map(|path| fs::read(path).unwrap());
        assert!(ends(&one) == ends(&another) && one != another, "the samples must be equal");
        let events = RecordedEvents::default();
        let groups = paths(&run_search(&[&dir], &Options::default(), &events));
        assert_eq!(events.failed(), [""; 0]);
        assert_eq!(groups, [[a, same].into()].into(), "{kind}");
        // The clone is not read.
        assert!(events.bytes() <= 3 * SAMPLES + 2 * BYTES, "{kind}: {} bytes", events.bytes());
    }
}

const ALL: &[Part] = &[(0, BLOCKS, 0)];

/// Returns a function that creates a file which shares all blocks of `a` but one.
fn change_block(block: usize) -> impl Fn(&Path, &Path, &Path) {
    move |_, a, other| {
        let file = clone(a, other);
        file.write_all_at(&[0x55; BLOCK], (block * BLOCK) as u64).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn differing_second_extent_is_detected() {
    assert_distinguished(4, ALL, change_block(40));
}

#[test]
fn differing_last_extent_is_detected() {
    assert_distinguished(2, ALL, change_block(BLOCKS - 2));
}

#[test]
fn same_blocks_at_other_offsets_are_another_file() {
    // One block, 62 blocks that are not contiguous with it, then a hole.
    let parts = [(63, 1, 0), (0, 62, 1), (64, 64, 64)];
    assert_distinguished(2, &parts, |source, _, other| {
        share_parts(source, other, &[(63, 1, 0), (0, 62, 2), (64, 64, 64)]);
    });
    // Both files have the same first physical block and the same end.
    assert_distinguished(2, &parts, |source, _, other| {
        share_parts(source, other, &[(63, 1, 0), (0, 61, 2), (64, 64, 64)]);
    });
}

#[test]
fn hole_between_physically_adjacent_blocks_is_detected() {
    assert_distinguished(1, &[(0, 126, 0)], |source, _, other| {
        share_parts(source, other, &[(0, 64, 0), (64, 62, 65)]);
    });
}

#[test]
fn hole_instead_of_shared_blocks_is_detected() {
    assert_distinguished(4, ALL, |source, _, other| {
        share_parts(source, other, &[(0, 32, 0), (96, 32, 96)])
    });
}

#[test]
fn clones_with_holes_are_read_once() {
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let bytes = Random::from_environment().bytes(BLOCKS * BLOCK);
        let source = image.mount().join("source");
        in_extents(&source, &bytes, 1);
        for (name, parts) in [
            ("at the end", &[(0, 64, 0)][..]),
            ("before", &[(64, 64, 64)]),
            ("between", &[(0, 32, 0), (96, 32, 96)]),
            ("everywhere", &[(1, 1, 1), (60, 3, 60), (100, 1, 100)]),
        ] {
            let dir = image.mount().join(name);
            fs::create_dir(&dir).unwrap();
            share_parts(&source, &dir.join("a"), parts);
            clone(&dir.join("a"), &dir.join("b")).sync_all().unwrap();
            let events = RecordedEvents::default();
            let groups = paths(&run_search(&[&dir], &Options::default(), &events));
            assert_eq!(groups, [["a", "b"].map(|name| dir.join(name)).into()].into());
            let read = events.bytes();
            assert!(read <= 2 * SAMPLES + BYTES, "{kind}, a hole {name}: {read} bytes");
        }
    }
}

#[test]
fn holes_equal_zeros() {
    let dir = disk_dir();
    let data = Random::from_environment().bytes(20 * BLOCK);
    // Files of the first length are read in one round, files of the second length in parts.
    for blocks in [16, 256] {
        for (number, at) in [0, blocks / 2, blocks - 3].into_iter().enumerate() {
            let path = |name: &str| dir.path().join(format!("{blocks}-{number}-{name}"));
            let mut bytes = vec![0; blocks * BLOCK];
            let piece = &data[number * 2 * BLOCK..][..2 * BLOCK];
            bytes[at * BLOCK..][..2 * BLOCK].copy_from_slice(piece);
            fs::write(path("zeros"), &bytes).unwrap();
            let sparse = File::create(path("holes")).unwrap();
            sparse.set_len(bytes.len() as u64).unwrap();
            sparse.write_all_at(piece, (at * BLOCK) as u64).unwrap();
        }
        // Create a file of zeros and a file that is a single hole.
        fs::write(dir.path().join(format!("{blocks}-zeros")), vec![0; blocks * BLOCK]).unwrap();
        let sparse = File::create(dir.path().join(format!("{blocks}-holes"))).unwrap();
        sparse.set_len((blocks * BLOCK) as u64).unwrap();
    }
    let groups = found(dir.path(), &Options::default());
    assert_eq!(groups.len(), 2 * 4, "{groups:?}");
    for group in &groups {
        let names = group.members.iter().map(|member| member.path.display().to_string());
        let renamed: Vec<_> = names.map(|name| name.replace("zeros", "holes")).collect();
        assert!(renamed.len() == 2 && renamed[0] == renamed[1], "{renamed:?}");
    }
}

/// Creates a file of `bytes` bytes that is a hole except for `data`.
fn sparse(path: &Path, bytes: u64, data: &[(u64, &[u8])]) {
    let file = File::create_new(path).unwrap();
    file.set_len(bytes).unwrap();
    data.iter().for_each(|(at, data)| file.write_all_at(data, *at).unwrap());
}

#[test]
fn terabytes_of_holes_are_compared_without_reading_them() {
    // Without a method for holes, this test takes hours.
    let dir = disk_dir();
    let bytes = 1 << 40;
    let path = |name: &str| dir.path().join(name);
    for name in ["hole-1", "hole-2", "hole-3"] {
        sparse(&path(name), bytes, &[]);
    }
    for (name, at) in [("data-1", 3 << 20), ("data-2", 3 << 20), ("other", (3 << 20) + 1)] {
        sparse(&path(name), bytes, &[(at, b"data"), (bytes - (1 << 30), b"end")]);
    }
    for hash in HashKind::ALL {
        let options = Options { hash, ..Options::default() };
        let expected = [&["hole-1", "hole-2", "hole-3"][..], &["data-1", "data-2"]];
        let expected = expected.map(|names| names.iter().map(|name| path(name)).collect());
        assert_eq!(paths(&found(dir.path(), &options)), expected.into(), "{hash:?}");
    }
}

#[test]
fn allocated_zeros_equal_holes_in_a_large_file() {
    let dir = disk_dir();
    let bytes = 1 << 30;
    // Preallocated blocks are zeros that the search reads, since the file has all its blocks.
    let zeros = File::create_new(dir.path().join("zeros")).unwrap();
    fallocate(&zeros, FallocateFlags::empty(), 0, bytes).unwrap();
    zeros.write_all_at(b"data", 500 << 20).unwrap();
    sparse(&dir.path().join("holes"), bytes, &[(500 << 20, b"data")]);
    sparse(&dir.path().join("other"), bytes, &[((500 << 20) + 1, b"data")]);
    let expected = ["holes", "zeros"].map(|name| dir.path().join(name)).into();
    assert_eq!(paths(&found(dir.path(), &Options::default())), [expected].into());
}

#[test]
fn actions_compare_terabytes_of_holes_without_reading_them() {
    let dir = disk_dir();
    let [a, same, other] = ["a", "same", "other"].map(|name| dir.path().join(name));
    let bytes = 1 << 40;
    // The second file has a longer hole in one place and a shorter one in another.
    sparse(&a, bytes, &[(1 << 30, b"data"), (3 << 30, &[0; 4096]), (bytes - 1, b"x")]);
    sparse(&same, bytes, &[(1 << 30, b"data"), (5 << 30, &[0; 4096]), (bytes - 1, b"x")]);
    sparse(&other, bytes, &[(1 << 30, b"data"), (5 << 30, b"!"), (bytes - 1, b"x")]);
    let group = group(&[a.clone(), same.clone(), other.clone()]);
    let actions = process(options(Action::HardLink), &group);
    assert_eq!(actions.done, [same]);
    assert_eq!(actions.skipped, [(other, format!("content differs from {}", a.display()))]);
}

#[test]
fn files_over_4_gib_are_distinguished_by_their_last_byte() {
    let dir = disk_dir();
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
    for path in [&a, &b, &c] {
        File::create(path).unwrap().set_len(5 << 30).unwrap();
    }
    File::options().write(true).open(&a).unwrap().write_all_at(b"x", (5 << 30) - 1).unwrap();
    // Comparing samples only avoids reading gigabytes.
    let options = Options { skip_content: true, ..Options::default() };
    let groups = found(dir.path(), &options);
    assert_eq!(paths(&groups), [[b, c].into()].into());
    assert_eq!(groups[0].bytes, 5 << 30);
}
