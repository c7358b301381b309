//! Files with holes, and copies that share some of their blocks but not all.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use haul_duplicates::Options;
use haul_test_image::LoopImage;
use rustix::fs::{copy_file_range, ioctl_ficlone};

use crate::random::Random;
use crate::{Told, disk_dir, found, paths, search};

const BLOCK: usize = 4096;
/// Long enough to be sampled at its ends alone, and then compared by its blocks.
const BLOCKS: usize = 128;
const BYTES: u64 = (BLOCKS * BLOCK) as u64;
/// What is read of a file before its blocks are looked at.
const SAMPLES: u64 = 2 * BLOCK as u64;

/// Part of a file: the first block, how many, and where in the other file.
type Part = (usize, usize, usize);

/// Writes a file in pieces that are extents of their own.
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

/// A file as long, holes but for parts of another that share its blocks.
fn of_parts(from: &Path, to: &Path, parts: &[Part]) {
    let (from, file) = (File::open(from).unwrap(), File::create_new(to).unwrap());
    file.set_len(BYTES).unwrap();
    for (first, blocks, at) in parts {
        let (mut from_at, mut to_at) = ((first * BLOCK) as u64, (at * BLOCK) as u64);
        let (fd_in, fd_out) = (from.as_fd(), file.as_fd());
        let mut left = blocks * BLOCK;
        while left > 0 {
            let copied =
                copy_file_range(fd_in, Some(&mut from_at), fd_out, Some(&mut to_at), left).unwrap();
            assert_ne!(copied, 0, "the file ends too early");
            left -= copied;
        }
    }
    file.sync_all().unwrap();
}

/// A file of `parts` of one in `extents`, its clone, and what `change` makes beside them: only the
/// first two are the same, on each file system that shares blocks.
fn told_apart(extents: usize, parts: &[Part], change: impl Fn(&Path, &Path, &Path)) {
    let bytes = Random::from_environment().bytes(BLOCKS * BLOCK);
    for kind in ["xfs", "btrfs"] {
        let Some(image) = LoopImage::new(kind, 512 << 20) else { continue };
        let (source, dir) = (image.mount().join("source"), image.mount().join("files"));
        fs::create_dir(&dir).unwrap();
        let [a, same, other] = ["a", "clone", "other"].map(|name| dir.join(name));
        in_extents(&source, &bytes, extents);
        of_parts(&source, &a, parts);
        clone(&a, &same).sync_all().unwrap();
        change(&source, &a, &other);
        let ends = |bytes: &[u8]| [bytes[..BLOCK].to_vec(), bytes[bytes.len() - BLOCK..].to_vec()];
        let [one, another] = [&a, &other].map(|path| fs::read(path).unwrap());
        assert!(ends(&one) == ends(&another) && one != another, "samples alone tell them apart");
        let told = Told::default();
        let groups = paths(&search(&[&dir], &Options::default(), &told));
        assert_eq!(told.failed(), [""; 0]);
        assert_eq!(groups, [[a, same].into()].into(), "{kind}");
        // The clone is not read.
        assert!(told.bytes() <= 3 * SAMPLES + 2 * BYTES, "{kind}: {} bytes", told.bytes());
    }
}

const ALL: &[Part] = &[(0, BLOCKS, 0)];

/// Another file that shares all blocks but one.
fn but_one_block(block: usize) -> impl Fn(&Path, &Path, &Path) {
    move |_, a, other| {
        let file = clone(a, other);
        file.write_all_at(&[0x55; BLOCK], (block * BLOCK) as u64).unwrap();
        file.sync_all().unwrap();
    }
}

#[test]
fn a_second_extent_that_differs_is_noticed() {
    told_apart(4, ALL, but_one_block(40));
}

#[test]
fn a_last_extent_that_differs_is_noticed() {
    told_apart(2, ALL, but_one_block(BLOCKS - 2));
}

#[test]
fn the_same_blocks_behind_another_hole_are_another_file() {
    // A block, and 62 that do not follow on it, with a hole behind them.
    let parts = [(63, 1, 0), (0, 62, 1), (64, 64, 64)];
    told_apart(2, &parts, |source, _, other| {
        of_parts(source, other, &[(63, 1, 0), (0, 62, 2), (64, 64, 64)]);
    });
    // They begin at the same place of the disk and end at the same place of the file.
    told_apart(2, &parts, |source, _, other| {
        of_parts(source, other, &[(63, 1, 0), (0, 61, 2), (64, 64, 64)]);
    });
}

#[test]
fn a_hole_between_blocks_that_lie_side_by_side_is_noticed() {
    told_apart(1, &[(0, 126, 0)], |source, _, other| {
        of_parts(source, other, &[(0, 64, 0), (64, 62, 65)]);
    });
}

#[test]
fn a_hole_in_the_place_of_shared_blocks_is_noticed() {
    told_apart(4, ALL, |source, _, other| of_parts(source, other, &[(0, 32, 0), (96, 32, 96)]));
}

#[test]
fn clones_with_holes_anywhere_are_read_once() {
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
            of_parts(&source, &dir.join("a"), parts);
            clone(&dir.join("a"), &dir.join("b")).sync_all().unwrap();
            let told = Told::default();
            let groups = paths(&search(&[&dir], &Options::default(), &told));
            assert_eq!(groups, [["a", "b"].map(|name| dir.join(name)).into()].into());
            let read = told.bytes();
            assert!(read <= 2 * SAMPLES + BYTES, "{kind}, a hole {name}: {read} bytes");
        }
    }
}

#[test]
fn holes_are_zeros_wherever_they_are() {
    let dir = disk_dir();
    let data = Random::from_environment().bytes(20 * BLOCK);
    // Lengths that are read whole, and in parts.
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
        // All of it.
        fs::write(dir.path().join(format!("{blocks}-zeros")), vec![0; blocks * BLOCK]).unwrap();
        let sparse = File::create(dir.path().join(format!("{blocks}-holes"))).unwrap();
        sparse.set_len((blocks * BLOCK) as u64).unwrap();
    }
    let groups = found(dir.path(), &Options::default());
    assert_eq!(groups.len(), 2 * 4, "{groups:?}");
    for group in &groups {
        let names = group.members.iter().map(|member| member.path.display().to_string());
        let alike: Vec<_> = names.map(|name| name.replace("zeros", "holes")).collect();
        assert!(alike.len() == 2 && alike[0] == alike[1], "{alike:?}");
    }
}

#[test]
fn files_of_more_than_4_gib_are_told_apart_by_their_last_byte() {
    let dir = disk_dir();
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join(name));
    for path in [&a, &b, &c] {
        File::create(path).unwrap().set_len(5 << 30).unwrap();
    }
    File::options().write(true).open(&a).unwrap().write_all_at(b"x", (5 << 30) - 1).unwrap();
    // Whole, gigabytes would be read.
    let options = Options { skip_content: true, ..Options::default() };
    let groups = found(dir.path(), &options);
    assert_eq!(paths(&groups), [[b, c].into()].into());
    assert_eq!(groups[0].bytes, 5 << 30);
}
