//! Tests records that are longer than the next segment: a longer segment is created for them, and
//! on a full disk only they are refused.

use std::sync::Arc;
use std::thread;

use haul_append_log::{Error, Log, Lsn, Options, SpacePriority};
use haul_disk::{Disk, Op};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_testing::eventually;
use rustix::io::Errno;

use crate::growth::{growing, lengths};
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{open_on, put, put_long, small, within_a_minute};

/// The length in bytes of a record that needs a long segment, and the length of the shortest such
/// segment in KiB.
const LONG: usize = 900_000;
const LONG_KIB: u32 = 888;

fn opened(disk: &MemoryDisk, options: Options) -> Log {
    open_on(Arc::new(disk.clone()), options).unwrap().log
}

/// Asserts that the log has the records with these ids after a power cut.
fn check(disk: &MemoryDisk, options: Options, expected: impl IntoIterator<Item = u64>) {
    let opened = start(&disk.medium().cut(Survival::Nothing), options).unwrap();
    assert!(ids(&opened.records).keys().copied().eq(expected));
}

#[test]
fn long_record_gets_a_longer_segment_than_the_next_one() {
    within_a_minute("segments of a growing log", || {
        let disk = MemoryDisk::default();
        let log = opened(&disk, growing());
        // A quarter of the first segment is written, so that the next one is prepared.
        put_long(&log, 0..2);
        eventually("the next segment is ready", || log.space().unwrap().next_bytes > 0);
        put(&log, &payload(2, LONG));
        assert_eq!(lengths(&log), [128, LONG_KIB], "the prepared segment was not used");
        put_long(&log, 3..20);
        assert_eq!(lengths(&log), [128, LONG_KIB, 1024]);
        let names = disk.list("").unwrap();
        let segments = names.iter().filter(|name| name.ends_with(".segment")).count();
        assert!((3..=4).contains(&segments), "{names:?}");
        check(&disk, growing(), 0..20);
    });
}

#[test]
fn first_record_of_a_log_may_be_longer_than_the_first_segment() {
    let disk = MemoryDisk::default();
    let log = opened(&disk, growing());
    put(&log, &payload(0, LONG));
    put(&log, &payload(1, 300_000));
    assert_eq!(lengths(&log), [128, LONG_KIB, 1024]);
    check(&disk, growing(), 0..2);
    log.close().unwrap();
    check(&disk, growing(), 0..2);
}

#[test]
fn try_append_of_a_long_record_succeeds_after_a_while() {
    within_a_minute("a long record without blocking", || {
        let disk = MemoryDisk::default();
        let log = opened(&disk, growing());
        let long = payload(0, LONG);
        assert!(log.try_append(&[&long], SpacePriority::Ordinary).unwrap().is_none());
        let mut ticket = None;
        eventually("the segment is long enough", || {
            ticket = log.try_append(&[&long], SpacePriority::Ordinary).unwrap();
            ticket.is_some()
        });
        ticket.unwrap().wait().unwrap();
        check(&disk, growing(), [0]);
    });
}

/// A log on a disk with space for segments of 512 KiB, but not for longer ones.
fn nearly_full() -> (MemoryDisk, Log) {
    let disk = MemoryDisk::default();
    let log = opened(&disk, small());
    disk.limit(Some(disk.used_bytes() + (700 << 10)));
    // The first segment is nearly full, and the next one is short.
    put_long(&log, 0..30);
    eventually("the next segment is ready", || log.space().unwrap().next_bytes > 0);
    (disk, log)
}

#[test]
fn full_disk_refuses_long_records_and_no_short_ones() {
    within_a_minute("long records on a full disk", || {
        let (disk, log) = nearly_full();
        let long = payload(99, LONG);
        let is_full = |outcome| matches!(outcome, Err(Error::Full { .. }));
        for _ in 0..3 {
            assert!(is_full(log.append(&[&long], SpacePriority::Ordinary).map(drop)));
        }
        assert_eq!(lengths(&log), [1024], "the segment was sealed for nothing");
        assert_eq!(log.space().unwrap().next_bytes, 512 << 10, "the next segment is kept");
        thread::scope(|scope| {
            let refused = scope.spawn(|| {
                (0..50).all(|_| is_full(log.append(&[&long], SpacePriority::Ordinary).map(drop)))
            });
            // These records also need the next segment.
            put_long(&log, 30..40);
            assert!(refused.join().unwrap());
        });
        assert_eq!(lengths(&log), [1024, 512]);
        check(&disk, small(), 0..40);
        disk.limit(None);
        put(&log, &long);
        check(&disk, small(), (0..40).chain([99]));
    });
}

#[test]
fn try_append_of_a_long_record_returns_none_on_a_full_disk() {
    within_a_minute("long records without blocking on a full disk", || {
        let (disk, log) = nearly_full();
        let long = payload(99, LONG);
        for id in 30..34 {
            assert!(log.try_append(&[&long], SpacePriority::Ordinary).unwrap().is_none());
            put(&log, &payload(id, 3000));
        }
        disk.limit(None);
        eventually("the segment is long enough", || {
            log.try_append(&[&long], SpacePriority::Ordinary).unwrap().is_some()
        });
        log.close().unwrap();
        check(&disk, small(), (0..34).chain([99]));
    });
}

#[test]
fn long_records_of_compaction_use_the_reserve_on_a_full_disk() {
    within_a_minute("long records and the reserve", || {
        let disk = MemoryDisk::default();
        let options = || Options { compaction_segments: 2, ..small() };
        let log = opened(&disk, options());
        for id in 0..8 {
            put(&log, &payload(id, LONG));
        }
        log.close().unwrap();
        let log = opened(&disk, options());
        eventually("the reserve is complete", || log.space().unwrap().reserved_segments == 2);
        disk.limit(Some(disk.used_bytes()));
        let mut id = 8;
        let refused = loop {
            match log.append(&[&payload(id, LONG)], SpacePriority::Ordinary) {
                Ok(ticket) => drop(ticket.wait().unwrap()),
                Err(error) => break error,
            }
            id += 1;
        };
        assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
        assert_eq!(log.space().unwrap().reserved_segments, 2);
        log.append(&[&payload(id, LONG)], SpacePriority::Compaction).unwrap().wait().unwrap();
        log.truncate_front(Lsn::new(2, 0)).unwrap();
        eventually("the reserve is complete", || log.space().unwrap().reserved_segments == 2);
        check(&disk, options(), 1..=id);
    });
}

#[test]
fn failed_removal_of_a_shorter_segment_stops_the_log_and_loses_nothing() {
    within_a_minute("a failed removal", || {
        let disk = MemoryDisk::default();
        let log = opened(&disk, growing());
        put_long(&log, 0..2);
        eventually("the next segment is ready", || log.space().unwrap().next_bytes > 0);
        disk.fail_once(Op::Remove, 1, Errno::IO);
        let refused = log.append(&[&payload(2, LONG)], SpacePriority::Ordinary).map(drop);
        assert!(matches!(refused, Err(Error::Latched { .. })), "{refused:?}");
        drop(log);
        disk.heal();
        let log = opened(&disk, growing());
        put(&log, &payload(2, LONG));
        put_long(&log, 3..40);
        check(&disk, growing(), 0..40);
    });
}
