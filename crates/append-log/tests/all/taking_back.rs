//! Records taken back, segments removed: what a crash, a fault or a reader makes of it.

use std::sync::Arc;
use std::time::Duration;

use haul_append_log::{Error, Log, Lsn, Options, Position, Room};
use haul_disk::Op;
use haul_disk_sim::{Crash, Crashes, MemoryDisk, Survival, crash_everywhere};
use rustix::io::Errno;

use crate::acts::PAGES;
use crate::history::History;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{begun, open_on, put, put_long, small};

fn on_memory() -> (MemoryDisk, Log) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    (disk, log)
}

#[test]
fn what_was_taken_back_stays_away_however_the_log_goes_on_after_a_power_cut() {
    let (disk, log) = on_memory();
    let positions: Vec<_> = (0..4).map(|id| put(&log, &payload(id, PAGES))).collect();
    log.truncate_back(positions[1].lsn).unwrap();
    let medium = disk.medium().cut(Survival::Nothing);
    let disk = MemoryDisk::on(&medium);
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let at = put(&log, &payload(9, PAGES));
    assert!(at.lsn > positions[3].lsn, "{} was given before", at.lsn);
    let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
    assert!(ids(&again.records).keys().copied().eq([0, 9]));
}

#[test]
fn a_truncation_and_its_recovery_cut_short_take_all_or_nothing() {
    let crashes = Crashes { again_one_in: 2, again_steps: u64::MAX, ..Crashes::default() };
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, small());
        (0..4).for_each(|_| history.put(&[PAGES], Room::Ordinary).unwrap());
        history.truncate_back(1).unwrap();
    };
    let recover = |(): &(), crash: &Crash| drop(History::recover(crash, small()));
    let states = crash_everywhere(&crashes, workload, recover);
    assert!(states > 1000, "{states}");
}

#[test]
fn records_go_on_behind_a_reserve_made_ready_and_never_used() {
    let options = || Options { reserve_bytes: 16 << 10, ..small() };
    let workload = |disk: &MemoryDisk| {
        let mut history = History::begin(disk, options());
        disk.fail_always(Op::Create, Errno::NOSPC);
        while history.put(&[20_000], Room::Ordinary).is_ok() {}
        // Before the first record of the reserve is on the medium, its header is.
        while history.log().segments().len() == 1 {
            history.put(&[3000], Room::Reserve).unwrap();
        }
    };
    let crashes = Crashes { all_up_to: 2, draws: 1, again_one_in: u64::MAX, ..Crashes::default() };
    crash_everywhere(&crashes, workload, |(), crash| {
        let mut history = History::recover(crash, options());
        (0..60).for_each(|_| history.put(&[20_000], Room::Ordinary).unwrap());
        assert!(history.log().segments().len() > 1);
    });
}

#[test]
fn a_truncation_whose_header_did_not_come_to_the_medium_for_certain_stops_the_log() {
    for op in [Op::Write, Op::Sync] {
        let (disk, log) = on_memory();
        let positions: Vec<_> = (0..20).map(|id| put(&log, &payload(id, 30_000))).collect();
        disk.wait_for_calls(Op::SyncDir, 3);
        disk.fail_once(op, 1, Errno::IO);
        let failed = log.truncate_back(positions[10].lsn);
        assert!(matches!(failed, Err(Error::Latched { .. })), "{op:?}: {failed:?}");
        // Whether it stands is not known; so nothing may be acknowledged that would go with it.
        let refused = log.append(&[b"more"], Room::Ordinary).map(drop);
        assert!(matches!(refused, Err(Error::Latched { .. })), "{op:?}: {refused:?}");
        for survival in [Survival::Nothing, Survival::Everything] {
            let opened = start(&disk.medium().cut(survival), small()).unwrap();
            assert!([10, 20].contains(&opened.records.len()), "{}", opened.records.len());
        }
    }
}

#[test]
fn a_reader_delivers_nothing_that_was_taken_back_and_no_damage() {
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
    // One reader in a segment that goes wholly, one at the very end, one in the part that stays.
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
fn a_segment_that_could_not_be_opened_for_writing_leaves_no_hole_in_the_log() {
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
                // Whoever needed the segment is told, and tries again.
                let ticket = log.append(&[&payload(id, 30_000)], Room::Ordinary);
                acknowledged += u64::from(ticket.is_ok_and(|ticket| ticket.wait().is_ok()));
            }
            met += u32::from(disk.met().is_some());
            assert!(acknowledged >= 99, "{acknowledged}");
            let opened = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
            let found = ids(&opened.records);
            assert_eq!(found.keys().filter(|id| **id >= 100).count() as u64, acknowledged);
        }
    }
    assert!(met >= 2, "the fault came to pass {met} times");
}

#[test]
fn many_threads_may_remove_the_same_segments() {
    for _ in 0..10 {
        let (_, log) = on_memory();
        put_long(&log, 0..120);
        let removed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| log.truncate_front(Lsn::new(4, 0)).unwrap()))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(removed, 3, "each segment is removed once");
    }
}

#[test]
fn a_segment_is_not_used_again_while_somebody_reads_in_it() {
    let (disk, log) = on_memory();
    put_long(&log, 0..40);
    let mut reader = log.reader(Lsn::default());
    assert!(reader.read_next().unwrap().is_some());
    log.truncate_front(Lsn::new(2, 0)).unwrap();
    assert_eq!(log.spare_segments(), 1);
    put_long(&log, 100..200);
    assert_eq!(log.spare_segments(), 1, "it is still read");
    let mut read = 1;
    while let Some((at, bytes)) = reader.read_next().unwrap() {
        if at.lsn.segment() > 1 {
            break;
        }
        assert_eq!(bytes, payload(read, 30_000), "byte for byte what it was");
        read += 1;
    }
    assert!(read > 30);
    let created = disk.calls(Op::Create);
    put_long(&log, 200..290);
    assert_eq!(log.spare_segments(), 0, "now it may be");
    assert!(disk.calls(Op::Create) <= created + 2);
}

#[test]
fn a_read_during_a_sync_sees_nothing_of_what_is_not_on_the_medium() {
    let (disk, log) = on_memory();
    put(&log, &payload(0, 100));
    let mut reader = log.reader(Lsn::default());
    assert!(reader.read_next().unwrap().is_some());
    let append = || begun(log.append(&[&payload(1, 100)], Room::Ordinary).unwrap());
    let (ticket, seen) = disk.during_a_sync(append, || reader.read_next().unwrap().is_some());
    assert!(!seen, "it may still be lost");
    ticket.wait().unwrap();
    assert!(reader.read_next().unwrap().is_some());
}
