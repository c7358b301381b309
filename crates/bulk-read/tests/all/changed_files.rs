//! Tests the results for files that are modified while they are read.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;

use haul_bulk_read::{
    Consumer, Error, FileStatus, ReadOptions, ReadRequest, ReadSummary, WalkOptions, read,
};

use crate::{Collected, disk_dir, noise, walk_ok};

/// A consumer that changes the length of the file after it was opened.
struct Resizer {
    path: PathBuf,
    bytes: u64,
    collected: Collected,
}

impl Consumer for Resizer {
    type State = Vec<u8>;

    fn begin(&self, request: usize, file: &FileStatus) -> Vec<u8> {
        File::options().write(true).open(&self.path).unwrap().set_len(self.bytes).unwrap();
        self.collected.begin(request, file)
    }

    fn piece(&self, state: &mut Vec<u8>, request: usize, bytes: &[u8]) -> ControlFlow<()> {
        self.collected.piece(state, request, bytes)
    }

    fn end(&self, state: Option<Vec<u8>>, request: usize, outcome: Result<ReadSummary, Error>) {
        self.collected.end(state, request, outcome);
    }
}

/// Reads a file of `before` bytes that is resized to `after` bytes after it was opened.
fn read_resized(before: usize, after: u64, is_cold: bool) -> Collected {
    let dir = disk_dir();
    let path = dir.path().join("file");
    std::fs::write(&path, noise(1, before)).unwrap();
    if is_cold {
        crate::uncached::evict(&path);
    }
    let tree = walk_ok(&[dir.path().to_path_buf()], &WalkOptions::default());
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    let resizer = Resizer { path, bytes: after, collected: Collected::default() };
    read(&tree, &requests, &ReadOptions::default(), &resizer);
    resizer.collected
}

#[test]
fn truncated_file_fails_with_both_lengths() {
    for (before, after) in [(10_000, 100), (10_000, 0), (3 << 20, 1 << 20), (9 << 20, 4097)] {
        for is_cold in [false, true] {
            let collected = read_resized(before, after, is_cold);
            let Err(Error::Shrunk { opened_bytes, end_bytes, .. }) = collected.outcome(0) else {
                panic!("{:?}", collected.outcome(0))
            };
            assert_eq!((opened_bytes, end_bytes), (before as u64, after));
        }
    }
}

#[test]
fn growing_file_is_read_to_its_old_end_and_flagged() {
    for (before, after) in [(10_000, 10_001), (4096, 1 << 20), (3 << 20, 5 << 20)] {
        for is_cold in [false, true] {
            let collected = read_resized(before, after, is_cold);
            let finished = collected.outcome(0).unwrap();
            assert!(finished.grew, "{before} to {after}, {is_cold}");
            assert_eq!(finished.bytes, before as u64);
            assert!(collected.bytes(0) == noise(1, before));
        }
    }
    assert!(!read_resized(10_000, 10_000, true).outcome(0).unwrap().grew);
}
