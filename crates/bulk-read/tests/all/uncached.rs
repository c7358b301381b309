//! Tests reads of uncached files in every mode, and the state of the page cache afterwards.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_bulk_read::{
    CacheMode, Consumer, DeviceKind, Error, FileStatus, KindSource, Order, ReadOptions,
    ReadRequest, ReadStats, ReadSummary, Tree, WalkOptions, device_kind, read,
};
use haul_disk::{Device, DeviceCounters, first_extent, resident};
use haul_testing::LoopImage;

use crate::{Collected, disk_dir, noise, read_whole, walk_ok};

/// Evicts a file from the page cache.
pub(crate) fn evict(path: &Path) {
    let file = File::open(path).unwrap();
    file.sync_all().unwrap();
    haul_disk::evict(&OwnedFd::from(file), 0, u64::MAX).unwrap();
}

fn resident_bytes(path: &Path) -> u64 {
    let fd = OwnedFd::from(File::open(path).unwrap());
    resident(&fd, 0, u64::MAX).unwrap().resident_bytes
}

const SIZES: [usize; 9] = [0, 1, 4096, 5000, 70_000, 524_287, 524_288, 524_289, 5 << 20];

const FILES: usize = 22;

/// Writes several files of each of the `SIZES`.
fn make(dir: &Path) -> Tree {
    for (number, bytes) in (0..).zip(SIZES.iter().cycle().take(FILES)) {
        let path = dir.join(format!("{number:02}"));
        std::fs::write(&path, noise(number, *bytes)).unwrap();
    }
    walk_ok(&[dir.to_path_buf()], &WalkOptions::default())
}

fn evict_all(tree: &Tree) {
    tree.ids().for_each(|id| evict(&tree.path(id)));
}

#[test]
fn every_mode_reads_the_same_bytes() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let expected: Vec<_> = tree.ids().map(|id| std::fs::read(tree.path(id)).unwrap()).collect();
    let plain = ReadOptions::default();
    for kind in [None, Some(DeviceKind::SolidState), Some(DeviceKind::Rotational)] {
        for (ring, depth, memory_bytes_max, cache) in [
            (true, None, 64 << 20, CacheMode::Normal),
            (false, None, 64 << 20, CacheMode::Normal),
            (true, Some(1), 0, CacheMode::Normal),
            (true, Some(3), 3 << 20, CacheMode::Preserve),
            (false, Some(2), 0, CacheMode::Preserve),
        ] {
            evict_all(&tree);
            let options =
                ReadOptions { kind, ring, depth, memory_bytes_max, cache, ..plain.clone() };
            let (collected, stats) = read_whole(&tree, &options);
            let mode = format!("{kind:?} {ring} {depth:?} {memory_bytes_max} {cache:?}");
            for (request, expected) in expected.iter().enumerate() {
                assert!(
                    collected.outcome(request).is_ok(),
                    "{mode}: {:?}",
                    collected.outcome(request)
                );
                assert!(collected.bytes(request) == *expected, "{mode}: {request}");
            }
            assert_eq!(
                (stats.requests, stats.failed, stats.devices.len()),
                (FILES as u64, 0, 1),
                "{mode}"
            );
        }
    }
}

#[test]
fn preserve_mode_leaves_the_page_cache_unchanged() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let is_cached = |number: u32| number.is_multiple_of(3);
    evict_all(&tree);
    for id in tree.ids().filter(|id| is_cached(id.0)) {
        std::fs::read(tree.path(id)).unwrap();
    }
    let before: Vec<_> = tree.ids().map(|id| resident_bytes(&tree.path(id))).collect();
    for ring in [true, false] {
        let options = ReadOptions { cache: CacheMode::Preserve, ring, ..ReadOptions::default() };
        let (_, stats) = read_whole(&tree, &options);
        assert_eq!(stats.failed, 0);
        let after: Vec<_> = tree.ids().map(|id| resident_bytes(&tree.path(id))).collect();
        // The kernel may reclaim some of the pages at any time.
        assert!(after.iter().zip(&before).all(|(after, before)| after <= before), "ring: {ring}");
        let sum = |bytes: &[u64]| bytes.iter().sum::<u64>();
        assert!(sum(&after) >= sum(&before) / 4 * 3, "ring: {ring}: {after:?} of {before:?}");
    }
    read_whole(&tree, &ReadOptions::default());
    let total: u64 = tree.ids().map(|id| resident_bytes(&tree.path(id))).sum();
    assert!(total >= total_bytes() / 4 * 3, "files stay cached by default: {total}");
}

fn total_bytes() -> u64 {
    SIZES.iter().cycle().take(FILES).sum::<usize>() as u64
}

/// A consumer that records the order in which requests are started.
#[derive(Default)]
struct StartOrder(Mutex<Vec<usize>>);

impl Consumer for StartOrder {
    type State = ();
    fn begin(&self, request: usize, _file: &FileStatus) {
        self.0.lock().unwrap().push(request);
    }
    fn piece(&self, (): &mut (), _request: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn end(&self, _state: Option<()>, _request: usize, outcome: Result<ReadSummary, Error>) {
        outcome.unwrap();
    }
}

#[test]
fn rotational_disk_reads_cached_files_first_then_one_sweep() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    // Create the files in one order and write them in another, so that inode order and block order
    // differ.
    for number in 0..300 {
        File::create(image.mount().join(format!("{number:03}"))).unwrap();
    }
    for number in (0..300).map(|number| number * 7 % 300) {
        let path = image.mount().join(format!("{number:03}"));
        std::fs::write(&path, noise(number, 20_000)).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
    }
    let tree = walk_ok(&[image.mount().to_path_buf()], &WalkOptions::default());
    evict_all(&tree);
    let is_cached = |request: usize| request.is_multiple_of(10);
    tree.ids().filter(|id| is_cached(id.0 as usize)).for_each(|id| {
        std::fs::read(tree.path(id)).unwrap();
    });
    let position = |request: usize| {
        let id = tree.ids().nth(request).unwrap();
        let fd = OwnedFd::from(File::open(tree.path(id)).unwrap());
        first_extent(&fd).unwrap().unwrap().physical
    };
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    let started = StartOrder::default();
    let options = ReadOptions { kind: Some(DeviceKind::Rotational), ..ReadOptions::default() };
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let stats = read(&tree, &requests, &options, &started);
    image.settle();
    let device_reads = DeviceCounters::of(&device).unwrap().since(&before);
    let order = started.0.into_inner().unwrap();
    assert_eq!(order.len(), 300);
    assert!(order[..30].iter().all(|request| is_cached(*request)), "{:?}", &order[..30]);
    assert!(order[30..].iter().map(|request| position(*request)).is_sorted(), "one sweep");
    let read = &stats.devices[0];
    assert_eq!(
        (read.kind, read.kind_source, read.threads),
        (DeviceKind::Rotational, KindSource::Configured, 1)
    );
    assert_eq!((read.cold, read.name.as_str()), (270, image.device()));
    // No block is read twice, and no block outside the files is read.
    assert_eq!(device_reads.read_bytes, 270 * 20_480);
    assert!(device_reads.reads <= 270, "{}", device_reads.reads);
}

#[test]
fn device_flagged_rotational_is_measured_if_files_are_far_apart() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    let flag = format!("/sys/block/{}/queue/rotational", image.device());
    std::fs::write(flag, "1").unwrap();
    for number in 0..60_u32 {
        std::fs::write(image.mount().join(format!("{number:02}")), noise(number.into(), 500_000))
            .unwrap();
    }
    let tree = walk_ok(&[image.mount().to_path_buf()], &WalkOptions::default());
    let result = |stats: ReadStats| {
        assert_eq!(stats.failed, 0);
        let device = &stats.devices[0];
        (device.kind, device.kind_source, device.threads, device.cold)
    };
    let kind_of = |options: &ReadOptions<'_>| device_kind(&tree, tree.ids(), options);
    let (_, cached) = read_whole(&tree, &ReadOptions::default());
    assert_eq!(kind_of(&ReadOptions::default()), None, "all files are cached");
    assert_eq!((result(cached).1, cached_bytes(&tree)), (KindSource::Unmeasured, 60 * 503_808));

    evict_all(&tree);
    let collected = Collected::default();
    let one = [ReadRequest::whole(tree.ids().next().unwrap())];
    let stats = read(&tree, &one, &ReadOptions::default(), &collected);
    // One file is too small for a measurement: a drive might answer all reads from its cache.
    assert_eq!(result(stats), (DeviceKind::Rotational, KindSource::Unmeasured, 1, 1));

    evict_all(&tree);
    assert!(kind_of(&ReadOptions::default()).is_some());
    assert_eq!(cached_bytes(&tree), 0, "a measurement leaves nothing in the page cache");
    for kind in [DeviceKind::Rotational, DeviceKind::SolidState] {
        let options = ReadOptions { kind: Some(kind), ..ReadOptions::default() };
        assert_eq!(kind_of(&options), Some(kind));
    }
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    let (_, source, _, cold) = result(stats);
    assert!(matches!(source, KindSource::Measured { .. }), "{source:?}");
    assert_eq!(cold, 60);
    assert!(
        (0..60_u32)
            .all(|request| collected.bytes(request as usize) == noise(request.into(), 500_000))
    );
}

fn cached_bytes(tree: &Tree) -> u64 {
    tree.ids().map(|id| resident_bytes(&tree.path(id))).sum()
}

/// Asserts that `read` makes exactly the expected requests to the device in at least one of several
/// rounds, in which the files are evicted before. The kernel may reclaim metadata of the file system
/// in any round, and then reads this metadata again.
fn assert_device_reads(
    image: &LoopImage,
    tree: &Tree,
    is_exact: impl Fn(&DeviceCounters) -> bool,
    mut read: impl FnMut(),
) {
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let rounds = [(); 3].map(|()| {
        evict_all(tree);
        image.settle();
        let before = DeviceCounters::of(&device).unwrap();
        read();
        image.settle();
        DeviceCounters::of(&device).unwrap().since(&before)
    });
    assert!(rounds.iter().any(is_exact), "{rounds:?}");
}

#[test]
fn only_requested_ranges_are_read_from_the_device() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    for number in 0..20 {
        std::fs::write(image.mount().join(format!("{number:02}")), noise(number, 1 << 20)).unwrap();
    }
    let tree = walk_ok(&[image.mount().to_path_buf()], &WalkOptions::default());
    let tail = (1 << 20) - 4096;
    let requests: Vec<_> = tree
        .ids()
        .flat_map(|file| [0, tail].map(|offset| ReadRequest { file, offset, bytes: 4096 }))
        .collect();
    let mut collected = Collected::default();
    let options = ReadOptions { kind: Some(DeviceKind::SolidState), ..ReadOptions::default() };
    let is_exact = |made: &DeviceCounters| (made.reads, made.read_bytes) == (40, 40 * 4096);
    assert_device_reads(&image, &tree, is_exact, || {
        collected = Collected::default();
        read(&tree, &requests, &options, &collected);
    });
    for (request, number) in (0..40).zip((0..20).flat_map(|number| [number; 2])) {
        let all = noise(number, 1 << 20);
        let at = if request % 2 == 0 { 0 } else { usize::try_from(tail).unwrap() };
        assert!(collected.bytes(request) == all[at..at + 4096], "{request}");
    }
}

#[test]
fn preserve_mode_reads_nothing_twice() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    let tree = make(image.mount());
    let options = ReadOptions {
        kind: Some(DeviceKind::SolidState),
        cache: CacheMode::Preserve,
        ..ReadOptions::default()
    };
    let pages = |bytes: usize| bytes.next_multiple_of(4096) as u64;
    let expected: u64 = SIZES.iter().cycle().take(FILES).map(|bytes| pages(*bytes)).sum();
    let is_exact = |made: &DeviceCounters| made.read_bytes == expected;
    assert_device_reads(&image, &tree, is_exact, || {
        assert_eq!(read_whole(&tree, &options).1.failed, 0);
    });
}

#[test]
fn as_given_order_is_kept() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).rev().collect();
    let started = StartOrder::default();
    let options = ReadOptions { order: Order::AsGiven, threads: Some(1), ..ReadOptions::default() };
    read(&tree, &requests, &options, &started);
    assert!(started.0.into_inner().unwrap().is_sorted());
}

/// A consumer that stops each request after the first piece.
#[derive(Default)]
struct FirstPiece(Collected);

impl Consumer for FirstPiece {
    type State = Vec<u8>;
    fn begin(&self, request: usize, file: &FileStatus) -> Vec<u8> {
        self.0.begin(request, file)
    }
    fn piece(&self, state: &mut Vec<u8>, request: usize, bytes: &[u8]) -> ControlFlow<()> {
        assert!(state.is_empty(), "piece after `Break`");
        assert!(self.0.piece(state, request, bytes).is_continue());
        ControlFlow::Break(())
    }
    fn end(&self, state: Option<Vec<u8>>, request: usize, outcome: Result<ReadSummary, Error>) {
        self.0.end(state, request, outcome);
    }
}

#[test]
fn break_ends_a_request_successfully() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    for is_cold in [false, true] {
        if is_cold {
            evict_all(&tree);
        }
        let first_piece = FirstPiece::default();
        let stats = read(&tree, &requests, &ReadOptions::default(), &first_piece);
        assert_eq!((stats.requests, stats.failed), (FILES as u64, 0));
        assert!(stats.bytes < total_bytes() / 2, "{}", stats.bytes);
        assert!(first_piece.0.bytes(8).len() < 1 << 20);
    }
}

#[test]
fn cancelled_run_ends_every_request() {
    struct Canceller<'a>(&'a AtomicBool, Collected);
    impl Consumer for Canceller<'_> {
        type State = Vec<u8>;
        fn begin(&self, request: usize, file: &FileStatus) -> Vec<u8> {
            self.0.store(true, Ordering::Relaxed);
            self.1.begin(request, file)
        }
        fn piece(&self, state: &mut Vec<u8>, request: usize, bytes: &[u8]) -> ControlFlow<()> {
            self.1.piece(state, request, bytes)
        }
        fn end(&self, state: Option<Vec<u8>>, request: usize, outcome: Result<ReadSummary, Error>) {
            self.1.end(state, request, outcome);
        }
    }
    let dir = disk_dir();
    let tree = make(dir.path());
    let requests: Vec<_> = tree.ids().map(ReadRequest::whole).collect();
    for is_cold in [false, true] {
        if is_cold {
            evict_all(&tree);
        }
        let stop = AtomicBool::new(false);
        let canceller = Canceller(&stop, Collected::default());
        let options = ReadOptions { stop: Some(&stop), ..ReadOptions::default() };
        let stats = read(&tree, &requests, &options, &canceller);
        assert_eq!(stats.requests + stats.failed, FILES as u64);
        let stopped = |request| matches!(canceller.1.outcome(request), Err(Error::Stopped { .. }));
        assert!((0..FILES).filter(|request| stopped(*request)).count() > FILES / 2);
    }
}

#[test]
fn adjacent_files_on_a_rotational_disk_are_merged() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    for number in 0..400_u32 {
        let path = image.mount().join(format!("{number:03}"));
        std::fs::write(path, noise(number.into(), 4096)).unwrap();
    }
    let tree = walk_ok(&[image.mount().to_path_buf()], &WalkOptions::default());
    evict_all(&tree);
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let options = ReadOptions { kind: Some(DeviceKind::Rotational), ..ReadOptions::default() };
    let (_, stats) = read_whole(&tree, &options);
    image.settle();
    let device_reads = DeviceCounters::of(&device).unwrap().since(&before);
    assert_eq!((stats.requests, stats.devices[0].cold), (400, 400));
    // Without io_uring, the device receives one request per file.
    let has_ring = haul_disk::Ring::<OwnedFd>::new(1).is_ok();
    assert!(!has_ring || device_reads.reads < 100, "{} requests for 400 files", device_reads.reads);
}
