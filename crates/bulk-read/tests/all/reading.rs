//! What comes of reading.

use haul_bulk_read::{Error, FileId, Finished, ReadOptions, WalkOptions, Want, read};

use crate::{Collected, disk_dir, read_whole, walk_well, write_all};

/// Bytes that say where they are.
fn noise(bytes: usize) -> Vec<u8> {
    (0_u32..).flat_map(|n| n.wrapping_mul(0x9e37_79b9).to_le_bytes()).take(bytes).collect()
}

fn bytes_of(outcome: Result<Finished, Error>) -> u64 {
    outcome.unwrap().bytes
}

#[test]
fn every_file_is_read_whole_whatever_its_length() {
    let dir = disk_dir();
    let sizes = [0, 1, 4095, 4096, 4097, 100_000, 262_143, 262_144, 262_145, 3 << 20];
    for (index, bytes) in sizes.iter().enumerate() {
        std::fs::write(dir.path().join(format!("{index}")), noise(*bytes)).unwrap();
    }
    let tree = walk_well(&[dir.path().to_path_buf()], &WalkOptions::default());
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    for (want, bytes) in sizes.iter().enumerate() {
        assert!(collected.bytes(want) == noise(*bytes), "{bytes} bytes");
        assert_eq!(bytes_of(collected.outcome(want)), *bytes as u64);
    }
    let total = sizes.iter().sum::<usize>() as u64;
    assert_eq!((stats.wants, stats.failed, stats.bytes), (sizes.len() as u64, 0, total));
}

#[test]
fn pieces_are_cut_to_what_the_file_has() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("f"), noise(10_000)).unwrap();
    let tree = walk_well(&[dir.path().to_path_buf()], &WalkOptions::default());
    let ranges = [(0, 100), (9_000, 5_000), (9_000, u64::MAX), (20_000, 5), (5, 0), (4096, 4096)];
    let wants = ranges.map(|(offset, bytes)| Want { file: FileId(0), offset, bytes });
    let collected = Collected::default();
    let stats = read(&tree, &wants, &ReadOptions::default(), &collected);
    let all = noise(10_000);
    let expected = [&all[..100], &all[9_000..], &all[9_000..], &[], &[], &all[4096..8192]];
    for (want, expected) in expected.iter().enumerate() {
        assert!(collected.bytes(want) == *expected, "want {want}");
    }
    assert_eq!(stats.wants, 6);
}

#[test]
fn a_file_that_vanished_or_became_something_else_fails_alone() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let tree = walk_well(&[dir.path().to_path_buf()], &WalkOptions::default());
    for name in ["a", "b", "c"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("d", dir.path().join("b")).unwrap();
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("c"), fifo, mode, 0).unwrap();
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    assert!(collected.outcome(0).is_err_and(|error| error.is_not_found()));
    for want in [1, 2] {
        assert!(matches!(collected.outcome(want), Err(Error::NotAFile { .. })));
    }
    assert_eq!(collected.bytes(3), b"4");
    assert_eq!((stats.wants, stats.failed), (1, 3));
}
