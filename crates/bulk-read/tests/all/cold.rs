//! Reading what is not in memory: in every way, and what stays in memory afterwards.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_bulk_read::{
    Cache, Consumer, Decided, Error, Finished, Kind, Opened, Order, ReadOptions, ReadStats, Tree,
    WalkOptions, Want, read,
};
use haul_disk::{Device, DeviceCounters, first_extent, resident};
use haul_test_image::LoopImage;

use crate::{Collected, disk_dir, noise, read_whole, walk_well};

/// Takes a file out of memory.
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

/// Files of all sizes, several of each.
fn make(dir: &Path) -> Tree {
    for (number, bytes) in (0..).zip(SIZES.iter().cycle().take(FILES)) {
        let path = dir.join(format!("{number:02}"));
        std::fs::write(&path, noise(number, *bytes)).unwrap();
    }
    walk_well(&[dir.to_path_buf()], &WalkOptions::default())
}

fn evict_all(tree: &Tree) {
    tree.ids().for_each(|id| evict(&tree.path(id)));
}

#[test]
fn every_way_of_reading_brings_the_same_bytes() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let expected: Vec<_> = tree.ids().map(|id| std::fs::read(tree.path(id)).unwrap()).collect();
    let plain = ReadOptions::default();
    for kind in [None, Some(Kind::Solid), Some(Kind::Rotating)] {
        for (ring, depth, memory_bytes_max, cache) in [
            (true, None, 64 << 20, Cache::Keep),
            (false, None, 64 << 20, Cache::Keep),
            (true, Some(1), 0, Cache::Keep),
            (true, Some(3), 3 << 20, Cache::Spare),
            (false, Some(2), 0, Cache::Spare),
        ] {
            evict_all(&tree);
            let options =
                ReadOptions { kind, ring, depth, memory_bytes_max, cache, ..plain.clone() };
            let (collected, stats) = read_whole(&tree, &options);
            let how = format!("{kind:?} {ring} {depth:?} {memory_bytes_max} {cache:?}");
            for (want, expected) in expected.iter().enumerate() {
                assert!(collected.outcome(want).is_ok(), "{how}: {:?}", collected.outcome(want));
                assert!(collected.bytes(want) == *expected, "{how}: {want}");
            }
            assert_eq!(
                (stats.wants, stats.failed, stats.devices.len()),
                (FILES as u64, 0, 1),
                "{how}"
            );
        }
    }
}

#[test]
fn what_was_not_in_memory_before_does_not_stay_there_when_it_is_to_be_spared() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let warm = |number: u32| number.is_multiple_of(3);
    evict_all(&tree);
    for id in tree.ids().filter(|id| warm(id.0)) {
        std::fs::read(tree.path(id)).unwrap();
    }
    let before: Vec<_> = tree.ids().map(|id| resident_bytes(&tree.path(id))).collect();
    for ring in [true, false] {
        let options = ReadOptions { cache: Cache::Spare, ring, ..ReadOptions::default() };
        let (_, stats) = read_whole(&tree, &options);
        assert_eq!(stats.failed, 0);
        let after: Vec<_> = tree.ids().map(|id| resident_bytes(&tree.path(id))).collect();
        assert_eq!(before, after, "ring: {ring}");
    }
    read_whole(&tree, &ReadOptions::default());
    let total: u64 = tree.ids().map(|id| resident_bytes(&tree.path(id))).sum();
    assert!(total >= stats_bytes(), "everything stays by default: {total}");
}

fn stats_bytes() -> u64 {
    SIZES.iter().cycle().take(FILES).sum::<usize>() as u64
}

/// Notes in which order files are begun.
#[derive(Default)]
struct Begun(Mutex<Vec<usize>>);

impl Consumer for Begun {
    type State = ();
    fn begin(&self, want: usize, _opened: &Opened) {
        self.0.lock().unwrap().push(want);
    }
    fn piece(&self, (): &mut (), _want: usize, _bytes: &[u8]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
    fn end(&self, _state: Option<()>, _want: usize, outcome: Result<Finished, Error>) {
        outcome.unwrap();
    }
}

#[test]
fn a_rotating_disk_is_read_in_one_sweep_by_one_thread_and_what_is_warm_before() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    // Inodes in one order, blocks in another.
    for number in 0..300 {
        File::create(image.mount().join(format!("{number:03}"))).unwrap();
    }
    for number in (0..300).map(|number| number * 7 % 300) {
        let path = image.mount().join(format!("{number:03}"));
        std::fs::write(&path, noise(number, 20_000)).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
    }
    let tree = walk_well(&[image.mount().to_path_buf()], &WalkOptions::default());
    evict_all(&tree);
    let is_warm = |want: usize| want.is_multiple_of(10);
    tree.ids().filter(|id| is_warm(id.0 as usize)).for_each(|id| {
        std::fs::read(tree.path(id)).unwrap();
    });
    let place = |want: usize| {
        let id = tree.ids().nth(want).unwrap();
        let fd = OwnedFd::from(File::open(tree.path(id)).unwrap());
        first_extent(&fd).unwrap().unwrap().physical
    };
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    let begun = Begun::default();
    let options = ReadOptions { kind: Some(Kind::Rotating), ..ReadOptions::default() };
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let stats = read(&tree, &wants, &options, &begun);
    image.settle();
    let asked = DeviceCounters::of(&device).unwrap().since(&before);
    let order = begun.0.into_inner().unwrap();
    assert_eq!(order.len(), 300);
    assert!(order[..30].iter().all(|want| is_warm(*want)), "{:?}", &order[..30]);
    assert!(order[30..].iter().map(|want| place(*want)).is_sorted(), "one sweep");
    let read = &stats.devices[0];
    assert_eq!((read.kind, read.decided, read.threads), (Kind::Rotating, Decided::Given, 1));
    assert_eq!((read.cold, read.name.as_str()), (270, image.device()));
    // Nothing is read twice, and nothing beyond the files.
    assert_eq!(asked.read_bytes, 270 * 20_480);
    assert!(asked.reads <= 270, "{}", asked.reads);
}

#[test]
fn a_device_that_says_it_rotates_is_measured_where_its_files_can_tell() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    let flag = format!("/sys/block/{}/queue/rotational", image.device());
    std::fs::write(flag, "1").unwrap();
    for number in 0..60_u32 {
        std::fs::write(image.mount().join(format!("{number:02}")), noise(number, 500_000)).unwrap();
    }
    let tree = walk_well(&[image.mount().to_path_buf()], &WalkOptions::default());
    let decided = |stats: ReadStats| {
        assert_eq!(stats.failed, 0);
        let device = &stats.devices[0];
        (device.kind, device.decided, device.threads, device.cold)
    };
    let (_, warm) = read_whole(&tree, &ReadOptions::default());
    assert_eq!((decided(warm).1, warm_bytes(&tree)), (Decided::Unmeasured, 60 * 503_808));

    evict_all(&tree);
    let collected = Collected::default();
    let one = [Want::whole(tree.ids().next().unwrap())];
    let stats = read(&tree, &one, &ReadOptions::default(), &collected);
    // It lies within what a drive may have in its own memory.
    assert_eq!(decided(stats), (Kind::Rotating, Decided::Unmeasured, 1, 1));

    evict_all(&tree);
    let (collected, stats) = read_whole(&tree, &ReadOptions::default());
    let (_, decided, _, cold) = decided(stats);
    assert!(matches!(decided, Decided::Measured { .. }), "{decided:?}");
    assert_eq!(cold, 60);
    assert!((0..60).all(|want| collected.bytes(want as usize) == noise(want, 500_000)));
}

fn warm_bytes(tree: &Tree) -> u64 {
    tree.ids().map(|id| resident_bytes(&tree.path(id))).sum()
}

#[test]
fn only_what_is_wanted_is_read_from_the_device() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    for number in 0..20 {
        std::fs::write(image.mount().join(format!("{number:02}")), noise(number, 1 << 20)).unwrap();
    }
    let tree = walk_well(&[image.mount().to_path_buf()], &WalkOptions::default());
    evict_all(&tree);
    let tail = (1 << 20) - 4096;
    let wants: Vec<_> = tree
        .ids()
        .flat_map(|file| [0, tail].map(|offset| Want { file, offset, bytes: 4096 }))
        .collect();
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let collected = Collected::default();
    read(
        &tree,
        &wants,
        &ReadOptions { kind: Some(Kind::Solid), ..ReadOptions::default() },
        &collected,
    );
    image.settle();
    let asked = DeviceCounters::of(&device).unwrap().since(&before);
    assert_eq!((asked.reads, asked.read_bytes), (40, 40 * 4096));
    for (want, number) in (0..40).zip((0..20).flat_map(|number| [number; 2])) {
        let all = noise(number, 1 << 20);
        let at = if want % 2 == 0 { 0 } else { usize::try_from(tail).unwrap() };
        assert!(collected.bytes(want) == all[at..at + 4096], "{want}");
    }
}

#[test]
fn sparing_the_cache_reads_nothing_twice() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    let tree = make(image.mount());
    evict_all(&tree);
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let options =
        ReadOptions { kind: Some(Kind::Solid), cache: Cache::Spare, ..ReadOptions::default() };
    let (_, stats) = read_whole(&tree, &options);
    image.settle();
    let asked = DeviceCounters::of(&device).unwrap().since(&before);
    let pages = |bytes: usize| bytes.next_multiple_of(4096) as u64;
    let expected: u64 = SIZES.iter().cycle().take(FILES).map(|bytes| pages(*bytes)).sum();
    assert_eq!((stats.failed, asked.read_bytes), (0, expected));
}

#[test]
fn the_order_given_is_kept_where_it_is_asked_for() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let wants: Vec<_> = tree.ids().map(Want::whole).rev().collect();
    let begun = Begun::default();
    let options = ReadOptions { order: Order::AsGiven, threads: Some(1), ..ReadOptions::default() };
    read(&tree, &wants, &options, &begun);
    assert!(begun.0.into_inner().unwrap().is_sorted());
}

/// Has enough of each file after its first piece.
#[derive(Default)]
struct Enough(Collected);

impl Consumer for Enough {
    type State = Vec<u8>;
    fn begin(&self, want: usize, opened: &Opened) -> Vec<u8> {
        self.0.begin(want, opened)
    }
    fn piece(&self, state: &mut Vec<u8>, want: usize, bytes: &[u8]) -> ControlFlow<()> {
        assert!(state.is_empty(), "more after enough");
        assert!(self.0.piece(state, want, bytes).is_continue());
        ControlFlow::Break(())
    }
    fn end(&self, state: Option<Vec<u8>>, want: usize, outcome: Result<Finished, Error>) {
        self.0.end(state, want, outcome);
    }
}

#[test]
fn who_has_enough_gets_no_more_and_the_want_ends_well() {
    let dir = disk_dir();
    let tree = make(dir.path());
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    for is_cold in [false, true] {
        if is_cold {
            evict_all(&tree);
        }
        let enough = Enough::default();
        let stats = read(&tree, &wants, &ReadOptions::default(), &enough);
        assert_eq!((stats.wants, stats.failed), (FILES as u64, 0));
        assert!(stats.bytes < stats_bytes() / 2, "{}", stats.bytes);
        assert!(enough.0.bytes(8).len() < 1 << 20);
    }
}

#[test]
fn a_run_that_is_stopped_ends_every_want() {
    struct Stops<'a>(&'a AtomicBool, Collected);
    impl Consumer for Stops<'_> {
        type State = Vec<u8>;
        fn begin(&self, want: usize, opened: &Opened) -> Vec<u8> {
            self.0.store(true, Ordering::Relaxed);
            self.1.begin(want, opened)
        }
        fn piece(&self, state: &mut Vec<u8>, want: usize, bytes: &[u8]) -> ControlFlow<()> {
            self.1.piece(state, want, bytes)
        }
        fn end(&self, state: Option<Vec<u8>>, want: usize, outcome: Result<Finished, Error>) {
            self.1.end(state, want, outcome);
        }
    }
    let dir = disk_dir();
    let tree = make(dir.path());
    let wants: Vec<_> = tree.ids().map(Want::whole).collect();
    for is_cold in [false, true] {
        if is_cold {
            evict_all(&tree);
        }
        let stop = AtomicBool::new(false);
        let stops = Stops(&stop, Collected::default());
        let options = ReadOptions { stop: Some(&stop), ..ReadOptions::default() };
        let stats = read(&tree, &wants, &options, &stops);
        assert_eq!(stats.wants + stats.failed, FILES as u64);
        let stopped = |want| matches!(stops.1.outcome(want), Err(Error::Stopped { .. }));
        assert!((0..FILES).filter(|want| stopped(*want)).count() > FILES / 2);
    }
}

#[test]
fn neighbours_on_a_rotating_disk_are_asked_for_together() {
    let Some(image) = LoopImage::new("ext4", 256 << 20) else { return };
    for number in 0..400_u32 {
        let path = image.mount().join(format!("{number:03}"));
        std::fs::write(path, noise(number, 4096)).unwrap();
    }
    let tree = walk_well(&[image.mount().to_path_buf()], &WalkOptions::default());
    evict_all(&tree);
    image.settle();
    let device = Device::at(&format!("/dev/{}", image.device())).unwrap();
    let before = DeviceCounters::of(&device).unwrap();
    let options = ReadOptions { kind: Some(Kind::Rotating), ..ReadOptions::default() };
    let (_, stats) = read_whole(&tree, &options);
    image.settle();
    let asked = DeviceCounters::of(&device).unwrap().since(&before);
    assert_eq!((stats.wants, stats.devices[0].cold), (400, 400));
    // Without a ring each file is asked for alone.
    let has_ring = haul_disk::ReadRing::<OwnedFd>::new(1).is_ok();
    assert!(!has_ring || asked.reads < 100, "{} requests for 400 files", asked.reads);
}
