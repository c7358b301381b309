//! Tests the truncation of a log and the removal of segments, with crashes, faults and readers.

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::{Error, Log, Lsn, Options, Position, SpacePriority};
use haul_disk::Op;
use haul_disk_sim::{Crash, Crashes, MemoryDisk, Survival, crash_everywhere};
use rustix::io::Errno;

use crate::history::History;
use crate::operations::PAGES;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{open_on, put, put_long, small, started};

fn on_memory() -> (MemoryDisk, Log) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    (disk, log)
}

#[test]
fn truncated_records_do_not_reappear_after_power_cuts() {
    let (disk, log) = on_memory();
    let positions: Vec<_> = (0..4).map(|id| put(&log, &payload(id, PAGES))).collect();
    log.truncate_back(positions[1].lsn).unwrap();
    let medium = disk.medium().cut(Survival::Nothing);
    let disk = MemoryDisk::on(&medium);
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let at = put(&log, &payload(9, PAGES));
    assert!(at.lsn > positions[3].lsn, "LSN {} is reused", at.lsn);
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&again.records).keys().copied().eq([0, 9]));
}

#[test]
fn interrupted_truncation_removes_all_records_or_none() {
    let crashes = Crashes { again_one_in: 2, again_steps: u64::MAX, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, small());
        (0..4).for_each(|_| history.put(&[PAGES], SpacePriority::Ordinary).unwrap());
        history.truncate_back(1).unwrap();
    };
    let recover = |(): &(), crash: &Crash| drop(History::recover(crash, small()));
    let states = crash_everywhere(&crashes, workload, recover);
    assert!(states > 300, "{states}");
}

#[test]
fn log_continues_after_a_prepared_unused_reserve() {
    let options = || Options { reserve_bytes: 16 << 10, ..small() };
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, options());
        disk.fail_always(Op::Create, Errno::NOSPC);
        while history.put(&[20_000], SpacePriority::Ordinary).is_ok() {}
        // The header of the reserve segment, which is used on a full disk, is durable before the
        // segment gets its first record.
        while history.log().segments().len() == 1 {
            history.put(&[3000], SpacePriority::Reserve).unwrap();
        }
    };
    let crashes = Crashes { all_up_to: 2, draws: 1, again_one_in: u64::MAX, ..Crashes::default() };
    crash_everywhere(&crashes, workload, |(), crash| {
        let mut history = History::recover(crash, options());
        (0..60).for_each(|_| history.put(&[20_000], SpacePriority::Ordinary).unwrap());
        assert!(history.log().segments().len() > 1);
    });
}

#[test]
fn failed_write_of_truncation_header_latches_the_log() {
    for op in [Op::Write, Op::Sync] {
        let (disk, log) = on_memory();
        let positions: Vec<_> = (0..20).map(|id| put(&log, &payload(id, 30_000))).collect();
        disk.wait_for_calls(Op::SyncDir, 3);
        disk.fail_once(op, 1, Errno::IO);
        let failed = log.truncate_back(positions[10].lsn);
        assert!(matches!(failed, Err(Error::Latched { .. })), "{op:?}: {failed:?}");
        // It is unknown whether the truncation is effective, so no append may be acknowledged.
        let refused = log.append(&[b"more"], SpacePriority::Ordinary).map(drop);
        assert!(matches!(refused, Err(Error::Latched { .. })), "{op:?}: {refused:?}");
        for survival in [Survival::Nothing, Survival::Everything] {
            let opened = start(&disk.medium().cut(survival), small()).unwrap();
            assert!([10, 20].contains(&opened.records.len()), "{}", opened.records.len());
        }
    }
}

#[test]
fn readers_skip_truncated_records_without_errors() {
    let (_, log) = on_memory();
    let last = put_long(&log, 0..80);
    assert!(last.lsn.segment() > 2);
    let positions: Vec<Position> = {
        let mut positions = Vec::new();
        let mut reader = log.reader(Lsn::default());
        while let Some((at, _)) = reader.read_next().unwrap() {
            positions.push(at);
        }
        positions
    };
    // One reader is in the part that remains, one in a segment that is removed, one at the end.
    let in_second = positions.iter().find(|at| at.lsn.segment() == 2).unwrap();
    let mut readers =
        [positions[5].lsn, in_second.lsn, last.lsn].map(|from| (from, log.reader(from)));
    for (from, reader) in &mut readers {
        assert_eq!(reader.read_next().unwrap().map(|(at, _)| at.lsn), Some(*from));
    }
    log.truncate_back(positions[10].lsn).unwrap();
    let new = put(&log, &payload(100, 100));
    for ((from, reader), expected) in readers.iter_mut().zip([4, 0, 0]) {
        for position in &positions[6..6 + expected] {
            assert_eq!(reader.read_next().unwrap().map(|(at, _)| at), Some(*position));
        }
        let next = reader.wait_next(Some(Duration::from_secs(20))).unwrap();
        assert_eq!(next.map(|(at, _)| at), Some(new), "the reader from {from}");
    }
}

#[test]
fn failed_open_of_a_new_segment_leaves_no_gap() {
    let mut met = 0;
    for recycled in [false, true] {
        for n in 1..4 {
            let (disk, log) = on_memory();
            put_long(&log, 0..10);
            if recycled {
                put_long(&log, 10..50);
                log.truncate_front(Lsn::new(2, 0)).unwrap();
            }
            disk.fail_once(Op::Open, n, Errno::MFILE);
            let mut acknowledged = 0;
            for id in 100..200 {
                // The append that needs the segment fails; the next append retries the creation.
                let ticket = log.append(&[&payload(id, 30_000)], SpacePriority::Ordinary);
                acknowledged += u64::from(ticket.is_ok_and(|ticket| ticket.wait().is_ok()));
            }
            met += u32::from(disk.faulted_thread().is_some());
            assert!(acknowledged >= 99, "{acknowledged}");
            let opened = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
            let found = ids(&opened.records);
            assert_eq!(found.keys().filter(|id| **id >= 100).count() as u64, acknowledged);
        }
    }
    assert!(met >= 2, "the fault was injected {met} times");
}

#[test]
fn concurrent_removals_remove_each_segment_once() {
    for _ in 0..10 {
        let (_, log) = on_memory();
        put_long(&log, 0..120);
        let removed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| log.truncate_front(Lsn::new(4, 0)).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(removed, 3, "not each segment was removed once");
    }
}

#[test]
fn segment_is_not_recycled_while_it_is_read() {
    let (disk, log) = on_memory();
    put_long(&log, 0..40);
    let mut reader = log.reader(Lsn::default());
    assert!(reader.read_next().unwrap().is_some());
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    assert_eq!(log.spare_segments(), 1);
    put_long(&log, 100..200);
    assert_eq!(log.spare_segments(), 1, "recycled while it is read");
    let mut read = 1;
    while let Some((at, bytes)) = reader.read_next().unwrap() {
        if at.lsn.segment() > 1 {
            break;
        }
        assert_eq!(bytes, payload(read, 30_000), "the record was overwritten");
        read += 1;
    }
    assert!(read > 30);
    let created = disk.calls(Op::Create);
    put_long(&log, 200..290);
    assert_eq!(log.spare_segments(), 0, "not recycled after the reads");
    assert!(disk.calls(Op::Create) <= created + 2);
}

#[test]
fn reader_during_a_sync_sees_no_unsynced_record() {
    let (disk, log) = on_memory();
    put(&log, &payload(0, 100));
    let mut reader = log.reader(Lsn::default());
    assert!(reader.read_next().unwrap().is_some());
    let append = || started(log.append(&[&payload(1, 100)], SpacePriority::Ordinary).unwrap());
    let (ticket, seen) = disk.during_a_sync(append, || reader.read_next().unwrap().is_some());
    assert!(!seen, "an unsynced record was delivered");
    ticket.wait().unwrap();
    assert!(reader.read_next().unwrap().is_some());
}
