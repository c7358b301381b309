//! Tests appends and reads: their number of disk calls, record lengths, full disks and options.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul_append_log::{Error, Log, Lsn, Options, Position, SpacePriority, Ticket, segment_name};
use haul_disk::{Disk, LOCK_NAME, Op, OsDisk};
use haul_disk_sim::{FaultyDisk, MemoryDisk};
use haul_testing::Random;
use rustix::io::Errno;
use tempfile::TempDir;

use crate::concurrent::on_memory;
use crate::payload::{id_of, ids, payload};
use crate::{
    OpenedLog, disk_dir, open, open_on, put, put_long, small, started, try_open, within_a_minute,
};

fn counted() -> (TempDir, FaultyDisk, OpenedLog) {
    counted_with(small())
}

fn counted_with(options: Options) -> (TempDir, FaultyDisk, OpenedLog) {
    let dir = disk_dir();
    let disk = FaultyDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
    let opened = open_on(Arc::new(disk.clone()), options).unwrap();
    (dir, disk, opened)
}

#[test]
fn records_are_read_completely_or_in_part() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let at =
        log.append(&[b"one ", b"", b"record"], SpacePriority::Ordinary).unwrap().wait().unwrap();
    assert_eq!(at, Position { lsn: Lsn::new(1, 4096), payload_bytes: 10 });
    assert_eq!(log.read(at).unwrap().payload(), b"one record");
    let (bytes, payload_at) = log.read(at).unwrap().into_bytes();
    assert_eq!(&bytes[payload_at..], b"one record");
    let mut front = [0; 3];
    log.read_front(at, &mut front).unwrap();
    assert_eq!(&front, b"one");
    let mut longer = [7; 12];
    log.read_front(at, &mut longer).unwrap();
    assert_eq!(&longer, b"one record\x07\x07", "bytes beyond the record were read");

    let empty = put(&log, b"");
    assert_eq!(log.read(empty).unwrap().payload(), b"");
    for wrong in [
        Position { lsn: Lsn::new(1, 4104), ..at },
        Position { payload_bytes: 9, ..at },
        Position { payload_bytes: 11, ..at },
        Position { lsn: Lsn::new(1, (1 << 20) - 4096 - 8), ..at },
    ] {
        assert!(matches!(log.read(wrong), Err(Error::Damaged { .. })), "{wrong:?}");
    }
    let elsewhere = Position { lsn: Lsn::new(9, 4096), ..at };
    assert!(matches!(log.read(elsewhere), Err(Error::Invalid(_))));
}

#[test]
fn lone_writer_costs_one_page_write_and_one_sync_per_record() {
    let (_dir, disk, OpenedLog { log, .. }) = counted();
    let count = || {
        [Op::Read, Op::Write, Op::Sync]
            .map(|op| disk.calls(op))
            .into_iter()
            .chain([disk.written_bytes()])
    };
    let before = count();
    // With its header each record takes 64 bytes, so no record crosses a page boundary.
    for id in 0..200 {
        put(&log, &payload(id, 32));
    }
    let used: Vec<u64> = count().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(used, [0, 200, 200, 200 * 4096], "reads, writes, syncs, bytes");
    let stats = log.stats();
    assert_eq!((stats.records, stats.batches, stats.syncs), (200, 200, 200));
    assert_eq!(stats.written_bytes, 200 * 4096);
    assert_eq!(stats.sync_us.iter().sum::<u64>(), 200);
}

#[test]
fn records_appended_during_a_sync_share_the_next_sync() {
    let (_dir, disk, OpenedLog { log, .. }) = counted();
    let before = (disk.calls(Op::Write), disk.calls(Op::Sync));
    let append = |id| log.append(&[&payload(id, 100)], SpacePriority::Ordinary).unwrap();
    let together = || (1..400).map(append).collect::<Vec<_>>();
    let (first, others) = disk.during_a_sync(|| started(append(0)), together);
    for (id, ticket) in (0..).zip([first].into_iter().chain(others)) {
        let at = ticket.wait().unwrap();
        assert_eq!(id_of(log.read(at).unwrap().payload()), Some(id));
    }
    let after = (disk.calls(Op::Write), disk.calls(Op::Sync));
    assert_eq!(after, (before.0 + 2, before.1 + 2));
}

#[test]
fn concurrent_writers_share_syncs() {
    const THREADS: u64 = 16;
    const EACH: u64 = 100;
    let (dir, disk, OpenedLog { log, .. }) = counted();
    let before = disk.calls(Op::Sync);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            scope.spawn(move || {
                for n in 0..EACH {
                    let id = thread * EACH + n;
                    let at = put(log, &payload(id, 200));
                    assert_eq!(id_of(log.read(at).unwrap().payload()), Some(id));
                }
            });
        }
    });
    let syncs = disk.calls(Op::Sync) - before;
    let stats = log.stats();
    assert_eq!(stats.records, THREADS * EACH);
    assert!(syncs < THREADS * EACH / 2, "{syncs} syncs");
    assert_eq!(stats.syncs, stats.batches);
    log.close().unwrap();
    let found = ids(&open(dir.path()).records);
    assert!(found.keys().copied().eq(0..THREADS * EACH));
}

#[test]
fn records_of_lengths_around_page_boundaries_round_trip() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    // The longest record that always fits into an append buffer. A longer one gets a longer buffer.
    let longest = (64 << 10) - 4096 - 72;
    let around = |bytes: usize| bytes.saturating_sub(40)..bytes + 8;
    let lengths =
        (8..=80).chain(around(4096)).chain(around(8192)).chain(longest - 40..=longest + 40);
    let mut written = Vec::new();
    for (id, bytes) in (0..).zip(lengths) {
        let ticket = log.append(&[&payload(id, bytes)], SpacePriority::Ordinary).unwrap();
        written.push((id, bytes, ticket));
    }
    let positions: Vec<_> = written
        .into_iter()
        .map(|(id, bytes, ticket)| (id, bytes, ticket.wait().unwrap()))
        .collect();
    for (id, bytes, at) in &positions {
        assert_eq!(log.read(*at).unwrap().payload(), payload(*id, *bytes), "{bytes} bytes");
    }
    let bytes_max = usize::try_from(log.payload_bytes_max()).unwrap();
    assert_eq!(bytes_max, (1 << 20) - 2 * 4096 - 72);
    let too_long = vec![1; bytes_max + 1];
    let refused = log.append(&[&too_long], SpacePriority::Ordinary).map(drop);
    let (bytes, bytes_max) = (bytes_max as u64 + 1, bytes_max as u64);
    assert!(
        matches!(refused, Err(Error::TooLong { bytes: b, bytes_max: m }) if (b, m) == (bytes, bytes_max))
    );
    log.close().unwrap();
    assert_eq!(ids(&open(dir.path()).records).len(), positions.len());
}

#[test]
fn concurrent_writers_rotate_segments_in_order() {
    const THREADS: u64 = 8;
    const EACH: u64 = 100;
    let dir = disk_dir();
    let log = open(dir.path()).log;
    let bytes = AtomicU64::new(0);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, bytes) = (&log, &bytes);
            scope.spawn(move || {
                let mut random = Random(thread);
                for n in 0..EACH {
                    let length = 8 + random.below(16_000);
                    bytes.fetch_add(length, Ordering::Relaxed);
                    let id = thread * EACH + n;
                    let at = put(log, &payload(id, usize::try_from(length).unwrap()));
                    assert_eq!(id_of(log.read(at).unwrap().payload()), Some(id));
                }
            });
        }
    });
    let segments = log.segments();
    assert!(segments.len() as u64 > bytes.load(Ordering::Relaxed) >> 20, "{}", segments.len());
    assert!(segments.iter().zip(1..).all(|(segment, number)| segment.number == number));
    let mut scanned = 0;
    for segment in &segments {
        let damage = log.scan(segment.number, &mut |_, payload| {
            assert!(id_of(payload).is_some());
            scanned += 1;
        });
        assert_eq!(damage.unwrap(), []);
    }
    assert_eq!(scanned, THREADS * EACH);
    log.close().unwrap();
    let again = open(dir.path());
    assert!(again.recovered.closed);
    assert_eq!(ids(&again.records).len() as u64, THREADS * EACH);
}

#[test]
fn scan_of_the_growing_segment_reports_no_damage() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    put(&log, &payload(0, 100));
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for id in 1..600 {
                put(&log, &payload(id, 1000));
            }
        });
        while !writer.is_finished() {
            let mut records = 0;
            let damage = log.scan(1, &mut |_, payload| {
                assert_eq!(id_of(payload), Some(records));
                records += 1;
            });
            assert_eq!(damage.unwrap(), [], "after {records} records");
        }
    });
}

/// Appends records until an append fails. Returns the number of appended records and the error.
fn fill(log: &Log, room: SpacePriority, first: u64) -> (u64, Error) {
    for id in first.. {
        match log.append(&[&payload(id, 3000)], room).and_then(Ticket::wait) {
            Ok(_) => {}
            Err(error) => return (id - first, error),
        }
    }
    unreachable!("the disk is never full")
}

#[test]
fn full_disk_accepts_only_reserve_records_until_space_is_freed() {
    for (op, errno) in
        [(Op::Allocate, Errno::NOSPC), (Op::Create, Errno::DQUOT), (Op::Allocate, Errno::FBIG)]
    {
        within_a_minute("a full disk", move || {
            let options = Options { reserve_bytes: 16 << 10, ..small() };
            let (dir, disk, OpenedLog { log, .. }) = counted_with(options);
            assert_eq!(names(dir.path()), ["0000000000.spare", &segment_name(1)]);
            put(&log, &payload(0, 1000));
            disk.fail_always(op, errno);
            let (appended, refused) = fill(&log, SpacePriority::Ordinary, 1);
            assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
            assert!(appended > 300, "{appended} records in a megabyte");
            assert!(!log.is_latched());

            let (in_reserve, refused) = fill(&log, SpacePriority::Reserve, appended + 1);
            assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
            assert!((5..=6).contains(&in_reserve), "{in_reserve} records in 16 KiB");
            assert!(
                log.append(&[b"x"], SpacePriority::Ordinary).is_err(),
                "an ordinary record in the reserve"
            );
            // A file that the preparing thread is creating has a temporary name.
            let ready = |name: &String| !name.ends_with(".new");
            let left: Vec<_> = names(dir.path()).into_iter().filter(ready).collect();
            assert_eq!(left, [segment_name(1), segment_name(2)], "the reserve is not used up");

            disk.heal();
            let at = put(&log, &payload(appended + 1 + in_reserve, 3000));
            assert_eq!(at.lsn.segment(), 3);
            log.close().unwrap();
            let left = names(dir.path());
            assert!(left.contains(&"0000000000.spare".to_owned()), "the reserve was not replaced");
            assert!(left.iter().all(ready), "unfinished files: {left:?}");
            let found = ids(&open(dir.path()).records);
            assert!(found.keys().copied().eq(0..appended + in_reserve + 2));
        });
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names = OsDisk::open(dir).unwrap().list("").unwrap();
    names.retain(|name| name != LOCK_NAME);
    names
}

#[test]
fn full_disk_refuses_all_waiting_threads() {
    within_a_minute("a full disk with many writers", || {
        let (_dir, disk, OpenedLog { log, .. }) = counted();
        disk.fail_always(Op::Create, Errno::NOSPC);
        thread::scope(|scope| {
            for thread in 0..8 {
                let log = &log;
                scope.spawn(move || {
                    let (_, refused) = fill(log, SpacePriority::Ordinary, thread << 32);
                    assert!(matches!(refused, Error::Full { .. }), "{refused:?}");
                });
            }
        });
        // Each attempt to create a segment tries five lengths: the full length, a half, a quarter,
        // an eighth and the minimum.
        let attempts = disk.calls(Op::Create) / 5;
        assert!(attempts < 40, "{attempts} attempts on a full disk");
    });
}

/// Fails if a record that may use more of the disk than others, or one for which no thread waits,
/// makes the log try again at once, for ever.
#[test]
fn refused_segment_is_asked_for_once_a_second() {
    within_a_minute("a segment that cannot be created", || {
        let (disk, log) = on_memory();
        disk.fail_always(Op::Create, Errno::PERM);
        let record = payload(0, 30_000);
        while log.append(&[&record], SpacePriority::Ordinary).is_ok() {}
        let (begun, before) = (Instant::now(), disk.calls(Op::Create));
        thread::scope(|scope| {
            for room in [SpacePriority::Ordinary, SpacePriority::Reserve, SpacePriority::Compaction]
            {
                let (log, record) = (&log, &record);
                scope.spawn(move || {
                    while begun.elapsed() < Duration::from_secs(2) {
                        let refused = log.append(&[record], room).map(drop);
                        assert!(matches!(refused, Err(Error::NoSegment { .. })), "{refused:?}");
                        log.try_append(&[record], room).unwrap_err();
                        thread::sleep(Duration::from_millis(1));
                    }
                });
            }
        });
        // After 0, 10, 30, 70, ..., 1270 ms.
        let attempts = disk.calls(Op::Create) - before;
        assert!((2..=10).contains(&attempts), "{attempts} attempts in two seconds");
        assert!(log.segment_failure().is_some());
        disk.heal();
        thread::sleep(Duration::from_secs(1));
        put(&log, &record);
        assert!(log.segment_failure().is_none());
        log.close().unwrap();
    });
}

#[test]
fn ended_segment_is_followed_by_the_next_one() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    assert!(!log.end_segment().unwrap(), "a segment without records");
    put(&log, &payload(0, 100));
    assert!(log.end_segment().unwrap());
    assert_eq!(log.segments().len(), 2);
    assert!(!log.end_segment().unwrap(), "a segment without records");
    assert_eq!(put(&log, &payload(1, 100)).lsn, Lsn::new(2, 4096));
    log.remove_segment(1).unwrap();
    drop(log);
    let again = open(dir.path());
    assert!(ids(&again.records).keys().copied().eq([1]));
    assert_eq!(again.recovered.damage, []);
}

#[test]
fn segment_is_ended_beside_writers() {
    within_a_minute("ends of segments beside writers", || {
        let (disk, log) = on_memory();
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let (log, stop) = (&log, &stop);
            let ends = scope.spawn(move || {
                let mut ended = 0;
                while ended < 20 {
                    ended += u32::from(log.end_segment().unwrap());
                }
                stop.store(true, Ordering::Relaxed);
            });
            for thread in 0..4_u64 {
                scope.spawn(move || {
                    for id in 0.. {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        put(log, &payload(thread << 32 | id, 3000));
                    }
                });
            }
            ends.join().unwrap();
        });
        let before = log.stats().records;
        drop(log);
        let again = open_on(Arc::new(MemoryDisk::on(&disk.medium())), small()).unwrap();
        assert_eq!(again.recovered.damage, []);
        assert_eq!(ids(&again.records).len() as u64, before);
    });
}

/// A log whose segment is full, and which cannot create another one, can be closed.
#[test]
fn log_without_another_segment_is_closed() {
    within_a_minute("closing without another segment", || {
        let (disk, log) = on_memory();
        disk.fail_always(Op::Create, Errno::NOENT);
        fill(&log, SpacePriority::Compaction, 0);
        while log.append(&[b""], SpacePriority::Compaction).is_ok() {}
        let closed = log.close();
        assert!(matches!(closed, Err(Error::NoSegment { .. })), "{closed:?}");
    });
}

#[test]
fn segment_removed_during_a_failing_creation_is_used() {
    within_a_minute("a removal during the creation of a segment", || {
        let (disk, log) = on_memory();
        put_long(&log, 0..40);
        assert_eq!(log.segments().len(), 2);
        disk.fail_always(Op::Create, Errno::NOSPC);
        disk.block(Op::Create);
        let record = payload(40, 30_000);
        while let Some(ticket) = log.try_append(&[&record], SpacePriority::Ordinary).unwrap() {
            ticket.wait().unwrap();
        }
        disk.wait_until_blocked();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| put(&log, &record));
            thread::sleep(Duration::from_millis(50));
            log.remove_segment(1).unwrap();
            assert_eq!(log.spare_segments(), 1);
            disk.unblock();
            assert_eq!(waiting.join().unwrap().lsn.segment(), 3);
        });
    });
}

#[test]
fn full_disk_at_the_first_segment_is_reported() {
    let dir = disk_dir();
    let disk = FaultyDisk::new(Arc::new(OsDisk::open(dir.path()).unwrap()));
    disk.fail_always(Op::Allocate, Errno::NOSPC);
    let refused = open_on(Arc::new(disk), small()).map(drop);
    assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[test]
fn log_closed_on_a_full_disk_keeps_all_records() {
    within_a_minute("closing on a full disk", || {
        let (dir, disk, OpenedLog { log, .. }) = counted();
        disk.fail_always(Op::Create, Errno::NOSPC);
        // Fills the segment to the last byte, so that there is no space for the close record.
        let (count, _) = fill(&log, SpacePriority::Reserve, 0);
        let mut more = 0;
        while log.append(&[&payload(count + more, 8)], SpacePriority::Reserve).is_ok() {
            more += 1;
        }
        log.close().unwrap();
        let again = open(dir.path());
        assert!(!again.recovered.closed);
        assert!(ids(&again.records).keys().copied().eq(0..count + more));
    });
}

#[test]
fn invalid_options_are_refused() {
    let dir = disk_dir();
    let refused = |options| matches!(try_open(dir.path(), options), Err(Error::Invalid(_)));
    for segment_bytes in [0, (1 << 20) - 4096, (1 << 20) + 1, (2 << 30) + 4096] {
        assert!(refused(Options { segment_bytes, ..small() }), "{segment_bytes}");
    }
    for buffer_bytes in [0, 4096, (64 << 10) + 512, (256 << 20) + 4096] {
        assert!(refused(Options { buffer_bytes, ..small() }), "{buffer_bytes}");
    }
    assert!(refused(Options { reserve_bytes: (256 << 10) + 1, ..small() }));
    assert_eq!(names(dir.path()), [""; 0], "a file was created");
}

#[test]
fn options_may_change_between_openings() {
    let dir = disk_dir();
    let log = open(dir.path()).log;
    put_long(&log, 0..40);
    log.close().unwrap();
    // With these options a record can be longer than an existing segment, and the segment reserved
    // for deletions on a full disk is as long as an existing one.
    let large = Options {
        segment_bytes: 8 << 20,
        buffer_bytes: 4 << 20,
        reserve_bytes: 1 << 20,
        ..small()
    };
    let log = try_open(dir.path(), large).unwrap().log;
    let at = put(&log, &payload(40, 3_000_000));
    assert_eq!(id_of(log.read(at).unwrap().payload()), Some(40));
    log.close().unwrap();
    let log = open(dir.path()).log;
    put(&log, &payload(41, 100));
    log.close().unwrap();
    assert!(ids(&open(dir.path()).records).keys().copied().eq(0..42));
}
