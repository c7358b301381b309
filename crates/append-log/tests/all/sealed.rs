//! Tests the hook that a log calls for each sealed segment.

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, OnceLock};

use haul_append_log::{Log, Lsn, Options, Room, SealHook, SealedSegment, segment_name};
use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, Survival};

use crate::payload::payload;
use crate::recovery::start;
use crate::recycled::spare;
use crate::{disk_dir, open_on, put, put_long, small, try_open};

fn with_hook(function: impl Fn(&SealedSegment) + Send + Sync + 'static) -> Options {
    Options { on_seal: Some(SealHook::new(function)), ..small() }
}

/// Returns options whose hook sends each segment to the receiver.
fn sending() -> (Options, Receiver<SealedSegment>) {
    let (sender, reported) = channel();
    let sender = Mutex::new(sender);
    (with_hook(move |sealed| sender.lock().unwrap().send(sealed.clone()).unwrap()), reported)
}

fn numbers(reported: &Receiver<SealedSegment>) -> Vec<u32> {
    reported.try_iter().map(|sealed| sealed.number).collect()
}

#[test]
fn sealed_segments_are_reported_in_order_and_again_after_opening() {
    let disk = MemoryDisk::default();
    let mut ends = Vec::new();
    for session in 0..2 {
        let (options, reported) = sending();
        let log = open_on(Arc::new(disk.clone()), options).unwrap().log;
        put_long(&log, session * 80..(session + 1) * 80);
        let current = log.segments().last().unwrap().number;
        log.close().unwrap();
        let all: Vec<_> = reported.try_iter().collect();
        assert!(all.iter().map(|sealed| sealed.number).eq(1..current), "{all:?}");
        assert!(current >= 3, "{current}");
        for (sealed, number) in all.iter().zip(1..) {
            assert_eq!(sealed.first, Lsn::new(number, 4096));
            assert!(sealed.end.offset() > 1_000_000 && sealed.end.offset() < sealed.bytes - 4096);
            assert!(sealed.file.ends_with(segment_name(number)));
        }
        let now: Vec<Lsn> = all.iter().map(|sealed| sealed.end).collect();
        assert!(now.starts_with(&ends), "the ends differ from those before opening");
        ends = now;
    }
}

#[test]
fn reported_segment_is_complete_after_a_power_cut() {
    let disk = MemoryDisk::default();
    let (cut, media) = (disk.clone(), Arc::new(Mutex::new(Vec::new())));
    let taken = Arc::clone(&media);
    let hook = move |sealed: &SealedSegment| {
        taken.lock().unwrap().push((sealed.end, cut.medium().cut(Survival::Nothing)));
    };
    let log = open_on(Arc::new(disk), with_hook(hook)).unwrap().log;
    put_long(&log, 0..120);
    log.close().unwrap();
    let media = media.lock().unwrap();
    assert!(media.len() >= 3, "{}", media.len());
    for (end, medium) in &*media {
        let opened = start(medium, small()).unwrap();
        assert!(opened.log.synced() >= Lsn::new(end.segment() + 1, 0), "{end} is not the end");
    }
}

#[test]
fn appends_do_not_wait_for_the_hook_and_it_may_append() {
    let disk = MemoryDisk::default();
    let shared = Arc::new(OnceLock::<Log>::new());
    let (begin, begun) = channel();
    let (of_hook, begun) = (Arc::downgrade(&shared), Mutex::new(begun));
    let hook = move |sealed: &SealedSegment| {
        begun.lock().unwrap().recv().unwrap();
        let shared = of_hook.upgrade().unwrap();
        let log = shared.get().unwrap();
        let record = payload(1 << 32 | u64::from(sealed.number), 100);
        log.append(&[&record], Room::Ordinary).unwrap().wait().unwrap();
    };
    let log = open_on(Arc::new(disk.clone()), with_hook(hook)).unwrap().log;
    let log = shared.get_or_init(|| log);
    put_long(log, 0..120);
    let sealed = log.segments().len() as u64 - 1;
    assert!(sealed >= 3, "{sealed}");
    (0..sealed).for_each(|_| begin.send(()).unwrap());
    while log.stats().records < 120 + sealed {
        std::thread::yield_now();
    }
    assert_eq!(log.stats().records, 120 + sealed);
}

#[test]
fn panic_of_the_hook_is_caught() {
    let disk = MemoryDisk::default();
    let (sender, reported) = channel();
    let sender = Mutex::new(sender);
    let hook = move |sealed: &SealedSegment| {
        sender.lock().unwrap().send(sealed.number).unwrap();
        std::panic::resume_unwind(Box::new("a hook panics"));
    };
    let log = open_on(Arc::new(disk), with_hook(hook)).unwrap().log;
    put_long(&log, 0..80);
    log.close().unwrap();
    // The lock of the sender is not poisoned: it is released before the panic.
    assert_eq!(reported.try_iter().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn truncated_segment_is_reported_with_its_new_end() {
    let (options, reported) = sending();
    let log = open_on(Arc::new(MemoryDisk::default()), options).unwrap().log;
    put_long(&log, 0..10);
    let cut = put_long(&log, 10..11).lsn;
    put_long(&log, 11..80);
    log.truncate_back(cut).unwrap();
    log.close().unwrap();
    let last = reported.try_iter().last().unwrap();
    assert_eq!((last.number, last.end), (1, cut));
}

#[test]
fn removed_segment_is_not_reported_when_opening_again() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    put_long(&log, 0..120);
    log.truncate_front(Lsn::new(3, 0)).unwrap();
    let current = log.segments().last().unwrap().number;
    log.close().unwrap();
    let (options, reported) = sending();
    let log = open_on(Arc::new(disk), options).unwrap().log;
    log.close().unwrap();
    assert!(numbers(&reported).into_iter().eq(3..current));
}

#[test]
fn linked_spare_file_is_not_recycled() {
    let dir = disk_dir();
    let log = try_open(dir.path(), small()).unwrap().log;
    put_long(&log, 0..40);
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    // A hook may link a segment after its removal has begun.
    let copy = dir.path().join("copy");
    fs::hard_link(dir.path().join(spare(1)), &copy).unwrap();
    let before = fs::read(&copy).unwrap();
    put_long(&log, 40..120);
    assert!(fs::read(&copy).unwrap() == before, "the log has written to the copy");
    assert!(!log_has(dir.path(), &spare(1)));
    put(&log, &payload(120, 100));
    log.close().unwrap();
    assert_eq!(try_open(dir.path(), small()).unwrap().records.len(), 121 - 34);
}

fn log_has(dir: &std::path::Path, name: &str) -> bool {
    let disk = haul_disk::OsDisk::open(dir).unwrap();
    disk.list("").unwrap().iter().any(|other| other == name)
}
