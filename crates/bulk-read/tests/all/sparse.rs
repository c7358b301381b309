//! Tests that the zeros of holes are delivered in order, without reading the holes.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_bulk_read::{
    CacheMode, Consumer, Error, FileStatus, Order, ReadOptions, ReadRequest, ReadSummary, Tree,
    WalkOptions, read,
};
use haul_disk::resident;

use crate::{disk_dir, read_whole, walk_ok};

const M: u64 = 1 << 20;

/// The bytes of a request, as runs of one byte value.
type Runs = Vec<(u8, u64)>;

/// The index of a request, its bytes and its result.
type Ended = (usize, Runs, Result<ReadSummary, Error>);

/// A consumer that records runs of equal bytes, and accepts the zeros of holes.
#[derive(Default)]
struct RunsOf {
    requests: Mutex<Vec<Ended>>,
    zeros: AtomicU64,
    /// Called at the start of each request.
    at_begin: Option<Box<dyn Fn() + Send + Sync>>,
}

fn add(runs: &mut Runs, byte: u8, bytes: u64) {
    match runs.last_mut() {
        Some((last, length)) if *last == byte => *length += bytes,
        _ => runs.push((byte, bytes)),
    }
}

impl Consumer for RunsOf {
    type State = Runs;

    fn begin(&self, _request: usize, _file: &FileStatus) -> Runs {
        self.at_begin.iter().for_each(|hook| hook());
        Runs::new()
    }

    fn piece(&self, runs: &mut Runs, _request: usize, bytes: &[u8]) -> ControlFlow<()> {
        bytes.chunk_by(|a, b| a == b).for_each(|run| add(runs, run[0], run.len() as u64));
        ControlFlow::Continue(())
    }

    fn zeros(&self, runs: &mut Runs, _request: usize, bytes: u64) -> Option<ControlFlow<()>> {
        add(runs, 0, bytes);
        self.zeros.fetch_add(bytes, Ordering::Relaxed);
        Some(ControlFlow::Continue(()))
    }

    fn end(&self, state: Option<Runs>, request: usize, outcome: Result<ReadSummary, Error>) {
        self.requests.lock().unwrap().push((request, state.unwrap_or_default(), outcome));
    }
}

fn one_file(dir: &Path) -> Tree {
    walk_ok(&[dir.to_path_buf()], &WalkOptions::default())
}

/// Returns options that lead to each code path: synchronous, asynchronous, direct, deferred.
fn modes() -> Vec<ReadOptions<'static>> {
    let plain = ReadOptions::default();
    vec![
        plain.clone(),
        ReadOptions { ring: false, ..plain.clone() },
        ReadOptions { cache: CacheMode::Preserve, ..plain.clone() },
        ReadOptions { cache: CacheMode::Preserve, ring: false, ..plain.clone() },
        ReadOptions { order: Order::Physical, ..plain.clone() },
        ReadOptions { memory_bytes_max: 0, ..plain },
    ]
}

#[test]
fn terabytes_of_holes_are_not_read() {
    let dir = disk_dir();
    let bytes = (1 << 40) + 12_345;
    let file = File::create(dir.path().join("a")).unwrap();
    file.set_len(bytes).unwrap();
    file.write_all_at(&[7; 5000], 3 * M).unwrap();
    file.write_all_at(&[8; 3 << 20], 40 * M).unwrap();
    file.write_all_at(&[9; 1], bytes - 1).unwrap();
    file.sync_all().unwrap();
    let expected =
        [(0, 3 * M), (7, 5000), (0, 37 * M - 5000), (8, 3 * M), (0, bytes - 1 - 43 * M), (9, 1)];
    let tree = one_file(dir.path());
    for (options, evict) in modes().iter().flat_map(|options| [(options, false), (options, true)]) {
        if evict {
            haul_disk::evict(&std::os::fd::OwnedFd::from(file.try_clone().unwrap()), 0, u64::MAX)
                .unwrap();
        }
        let runs = RunsOf::default();
        let requests = [
            ReadRequest::whole(haul_bulk_read::FileId(0)),
            ReadRequest { file: haul_bulk_read::FileId(0), offset: 2 * M + 1, bytes: 41 * M },
            ReadRequest { file: haul_bulk_read::FileId(0), offset: 1 << 39, bytes: 1 << 38 },
        ];
        let stats = read(&tree, &requests, options, &runs);
        let mut found = runs.requests.into_inner().unwrap();
        found.sort_by_key(|(request, ..)| *request);
        assert_eq!(found[0].1, expected);
        assert_eq!(found[1].1, [(0, M - 1), (7, 5000), (0, 37 * M - 5000), (8, 3 * M), (0, 1)][..]);
        assert_eq!(found[2].1, [(0, 1 << 38)]);
        for (_, runs, outcome) in &found {
            let outcome = outcome.as_ref().unwrap();
            assert_eq!(outcome.bytes, runs.iter().map(|run| run.1).sum::<u64>());
            assert!(!outcome.grew);
        }
        assert_eq!(
            stats.bytes,
            found.iter().map(|(_, _, o)| o.as_ref().unwrap().bytes).sum::<u64>()
        );
        let read = stats.bytes - runs.zeros.into_inner();
        assert!(read < 10 * M, "{read} bytes were read");
    }
}

#[test]
fn zeros_arrive_as_pieces_unless_the_consumer_accepts_them() {
    let dir = disk_dir();
    let file = File::create(dir.path().join("a")).unwrap();
    file.set_len(20 * M).unwrap();
    file.write_all_at(&[7; 5000], 3 * M).unwrap();
    file.write_all_at(&[8; 5000], 20 * M - 5000).unwrap();
    let expected = std::fs::read(dir.path().join("a")).unwrap();
    let tree = one_file(dir.path());
    for options in modes() {
        let (collected, stats) = read_whole(&tree, &options);
        assert!(collected.bytes(0) == expected);
        assert_eq!((collected.outcome(0).unwrap().bytes, stats.bytes), (20 * M, 20 * M));
    }
}

#[test]
fn holes_leave_no_pages_in_the_page_cache() {
    let dir = disk_dir();
    let file = File::create(dir.path().join("a")).unwrap();
    file.set_len(64 * M).unwrap();
    read_whole(&one_file(dir.path()), &ReadOptions::default());
    let file = std::os::fd::OwnedFd::from(file);
    assert_eq!(resident(&file, 0, u64::MAX).unwrap().resident_bytes, 0);
}

#[test]
fn changed_length_is_detected_in_a_trailing_hole() {
    for options in modes() {
        for (bytes, grew) in [(30 * M, Some(true)), (20 * M, Some(false)), (10 * M, None)] {
            let dir = disk_dir();
            let path = dir.path().join("a");
            let file = File::create(&path).unwrap();
            file.set_len(20 * M).unwrap();
            file.write_all_at(&[7; 5000], 3 * M).unwrap();
            let tree = one_file(dir.path());
            let resize = move || file.set_len(bytes).unwrap();
            let runs = RunsOf { at_begin: Some(Box::new(resize)), ..RunsOf::default() };
            read(&tree, &[ReadRequest::whole(haul_bulk_read::FileId(0))], &options, &runs);
            let (_, _, outcome) = runs.requests.into_inner().unwrap().remove(0);
            match grew {
                Some(grew) => assert_eq!(outcome.unwrap().grew, grew, "{bytes}"),
                None => assert!(
                    matches!(outcome, Err(Error::Shrunk { end_bytes, .. }) if end_bytes == bytes),
                    "{outcome:?}"
                ),
            }
        }
    }
}
