//! Files that somebody writes to while they are read.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::PathBuf;

use haul_bulk_read::{Consumer, Error, Finished, Opened, ReadOptions, WalkOptions, Want, read};

use crate::{Collected, disk_dir, noise, walk_well};

/// Changes the length of the file when it is open.
struct Changes {
    path: PathBuf,
    bytes: u64,
    collected: Collected,
}

impl Consumer for Changes {
    type State = Vec<u8>;

    fn begin(&self, want: usize, opened: &Opened) -> Vec<u8> {
        File::options().write(true).open(&self.path).unwrap().set_len(self.bytes).unwrap();
        self.collected.begin(want, opened)
    }

    fn piece(&self, state: &mut Vec<u8>, want: usize, bytes: &[u8]) -> ControlFlow<()> {
        self.collected.piece(state, want, bytes)
    }

    fn end(&self, state: Option<Vec<u8>>, want: usize, outcome: Result<Finished, Error>) {
        self.collected.end(state, want, outcome);
    }
}

/// Reads a file of `before` bytes that has `after` once it is open.
fn read_changed(before: usize, after: u64, is_cold: bool) -> Collected {
    let dir = disk_dir();
    let path = dir.path().join("file");
    std::fs::write(&path, noise(1, before)).unwrap();
    if is_cold {
        crate::cold::evict(&path);
    }
    let tree = walk_well(&[dir.path().to_path_buf()], &WalkOptions::default());
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    let changes = Changes { path, bytes: after, collected: Collected::default() };
    read(&tree, &wants, &ReadOptions::default(), &changes);
    changes.collected
}

#[test]
fn a_file_that_became_shorter_fails_and_says_where_it_ends() {
    for (before, after) in [(10_000, 100), (10_000, 0), (3 << 20, 1 << 20), (9 << 20, 4097)] {
        for is_cold in [false, true] {
            let collected = read_changed(before, after, is_cold);
            let Err(Error::Shrunk { opened_bytes, end_bytes, .. }) = collected.outcome(0) else {
                panic!("{:?}", collected.outcome(0))
            };
            assert_eq!((opened_bytes, end_bytes), (before as u64, after));
        }
    }
}

#[test]
fn of_a_file_that_grows_what_it_had_is_read_and_that_is_told() {
    for (before, after) in [(10_000, 10_001), (4096, 1 << 20), (3 << 20, 5 << 20)] {
        for is_cold in [false, true] {
            let collected = read_changed(before, after, is_cold);
            let finished = collected.outcome(0).unwrap();
            assert!(finished.grew, "{before} to {after}, {is_cold}");
            assert_eq!(finished.bytes, before as u64);
            assert!(collected.bytes(0) == noise(1, before));
        }
    }
    assert!(!read_changed(10_000, 10_000, true).outcome(0).unwrap().grew);
}
