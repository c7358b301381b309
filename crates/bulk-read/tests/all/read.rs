//! Tests which bytes and results a consumer receives.

use haul_bulk_read::{Error, FileId, ReadOptions, ReadRequest, ReadSummary, WalkOptions, read};

use crate::{Collected, disk_dir, noise, read_whole, walk_ok, write_all};

fn bytes_of(outcome: Result<ReadSummary, Error>) -> u64 {
    outcome.unwrap().bytes
}

#[test]
fn files_of_any_length_are_read_completely() {
    let dir = disk_dir();
    let sizes = [0, 1, 4095, 4096, 4097, 100_000, 262_143, 262_144, 262_145, 3 << 20];
    for (index, bytes) in sizes.iter().enumerate() {
        std::fs::write(dir.path().join(format!("{index}")), noise(1, *bytes)).unwrap();
    }
    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    for (request, bytes) in sizes.iter().enumerate() {
        assert!(collected.bytes(request) == noise(1, *bytes), "{bytes} bytes");
        assert_eq!(bytes_of(collected.outcome(request)), *bytes as u64);
    }
    let total = sizes.iter().sum::<usize>() as u64;
    assert_eq!((stats.requests, stats.failed, stats.bytes), (sizes.len() as u64, 0, total));
}

#[test]
fn ranges_are_cut_at_eof() {
    let dir = disk_dir();
    std::fs::write(dir.path().join("f"), noise(1, 10_000)).unwrap();
    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    let ranges = [(0, 100), (9_000, 5_000), (9_000, u64::MAX), (20_000, 5), (5, 0), (4096, 4096)];
    let requests = ranges.map(|(offset, bytes)| ReadRequest { file: FileId(0), offset, bytes });
    let collected = Collected::default();
    let stats = read(&tree, &requests, &ReadOptions::default(), &collected);
    let all = noise(1, 10_000);
    let expected = [&all[..100], &all[9_000..], &all[9_000..], &[], &[], &all[4096..8192]];
    for (request, expected) in expected.iter().enumerate() {
        assert!(collected.bytes(request) == *expected, "request {request}");
    }
    assert_eq!(stats.requests, 6);
}

#[test]
fn removed_or_replaced_file_fails_without_affecting_others() {
    let dir = disk_dir();
    write_all(dir.path(), &[("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")]);
    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    for name in ["a", "b", "c"] {
        std::fs::remove_file(dir.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink("d", dir.path().join("b")).unwrap();
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, dir.path().join("c"), fifo, mode, 0).unwrap();
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    assert!(collected.outcome(0).is_err_and(|error| error.is_not_found()));
    for request in [1, 2] {
        assert!(matches!(collected.outcome(request), Err(Error::NotRegularFile { .. })));
    }
    assert_eq!(collected.bytes(3), b"4");
    assert_eq!((stats.requests, stats.failed), (1, 3));
}
