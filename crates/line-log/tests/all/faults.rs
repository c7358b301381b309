//! Tests that no line is lost if one call of the disk fails: the n-th call of each kind, for every
//! n.

use std::sync::Arc;

use haul_disk::Op;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_line_log::{Error, Event, LineLog, Options, Retention, SyncMode};
use haul_testing::eventually;
use rustix::io::Errno;

use crate::{EventLog, all, closed, files, line, numbers, open_on, small, within_a_minute};

const LINES: u64 = 300;

/// The outcome of a workload with one fault.
struct Run {
    disk: MemoryDisk,
    events: EventLog,
    errors: Vec<Error>,
    was_injected: bool,
}

/// Appends lines and waits after every tenth line. A failed wait is repeated once.
fn run(op: Op, n: u64, errno: Errno) -> Run {
    within_a_minute(&format!("{op:?} {n} failing with {errno}"), move || {
        let (disk, events) = (MemoryDisk::default(), EventLog::default());
        let log = LineLog::open_on(Arc::new(disk.clone()), small(), events.environment()).unwrap();
        // The simulated disk keeps the bytes of a failed sync. If it lost them, missing lines would
        // not prove an error of the log.
        disk.after_a_failed_sync(Survival::Everything);
        disk.fail(op, n, 1, errno);
        let before = disk.calls(op);
        let mut errors = Vec::new();
        for number in 0..LINES {
            log.append(&line(number, 100)).unwrap();
            let wait = |log: &LineLog| match number % 30 {
                9 => log.write_out(),
                19 => log.sync(),
                29 => log.rotate(),
                _ => Ok(()),
            };
            if let Err(error) = wait(&log) {
                errors.push(error);
                wait(&log).unwrap();
            }
        }
        errors.extend(log.close().err());
        assert_eq!(log.stats().memory_bytes, 0);
        Run { was_injected: disk.calls(op) - before >= n, disk, events, errors }
    })
}

/// Fails each call of a kind in turn. Returns the number of calls.
fn sweep(op: Op, errno: Errno, check: impl Fn(&Run)) -> u64 {
    for n in 1.. {
        let run = run(op, n, errno);
        let mut found = numbers(&all(&run.disk));
        // A partially written line is written again, so it may be found twice.
        found.dedup();
        assert_eq!(found, (0..LINES).collect::<Vec<_>>(), "{op:?} {n}");
        if !run.was_injected {
            assert!(run.errors.is_empty(), "{:?}", run.errors);
            return n - 1;
        }
        check(&run);
    }
    unreachable!("the workload ends")
}

#[test]
fn failed_write_is_retried_and_reported_to_waiting_caller() {
    for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
        let writes = sweep(Op::Write, errno, |run| {
            assert_eq!(run.events.count(|event| matches!(event, Event::WriteFailed(_))), 1);
            assert_eq!(run.events.count(|event| matches!(event, Event::WriteRecovered)), 1);
            assert!(run.errors.iter().all(|error| matches!(error, Error::WriteFailed { .. })));
            assert!(run.errors.len() <= 1);
            let parts: usize = files(&run.disk).iter().map(Vec::len).sum();
            assert_eq!(parts as u64, LINES * 100, "bytes were written twice");
        });
        assert!(writes >= 20, "{writes}");
    }
}

#[test]
fn failed_create_or_rename_is_retried() {
    for op in [Op::Create, Op::Rename] {
        let calls = sweep(op, Errno::NOSPC, |run| {
            assert_eq!(run.events.count(|event| matches!(event, Event::WriteFailed(_))), 1);
        });
        assert!(calls >= 10, "{op:?} {calls}");
    }
}

#[test]
fn failed_sync_is_reported_once_and_final_for_its_file() {
    let syncs = sweep(Op::Sync, Errno::IO, |run| {
        assert_eq!(run.events.count(|event| matches!(event, Event::SyncFailed(_))), 1);
        assert!(matches!(&run.errors[..], [Error::SyncFailed { .. }]), "{:?}", run.errors);
        let unsynced = closed(&run.disk).into_iter().filter(|name| name.ends_with(".unsynced"));
        // The file is not renamed if the last sync fails, which `close` requests.
        assert!(unsynced.count() <= 1);
    });
    assert!(syncs >= 15, "{syncs}");
}

#[test]
fn file_whose_sync_failed_is_renamed_unsynced() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, small());
    log.append(&line(0, 100)).unwrap();
    disk.after_a_failed_sync(Survival::Everything);
    disk.fail(Op::Sync, 1, 1, Errno::IO);
    assert!(matches!(log.sync(), Err(Error::SyncFailed { .. })));
    assert_eq!(disk.calls(Op::Sync), 1);
    log.append(&line(1, 100)).unwrap();
    log.sync().unwrap();
    assert_eq!(disk.calls(Op::Sync), 2, "the file that failed is not synced again");
    let names = closed(&disk);
    assert!(matches!(&names[..], [name] if name.ends_with("Z.unsynced")), "{names:?}");
    assert_eq!(numbers(&all(&disk)), [0, 1]);
    log.close().unwrap();
}

#[test]
fn background_sync_failure_is_reported_to_next_caller() {
    let disk = MemoryDisk::default();
    let sync = SyncMode::Every(std::time::Duration::from_millis(1));
    let log = open_on(&disk, Options { sync, ..small() });
    disk.fail(Op::Sync, 1, 1, Errno::IO);
    log.append(&line(0, 100)).unwrap();
    log.write_out().unwrap();
    eventually("a sync fails", || log.stats().sync_failures > 0);
    assert!(matches!(log.last_error(), Some(Error::SyncFailed { .. })));
    assert!(matches!(log.sync(), Err(Error::SyncFailed { .. })));
    log.sync().unwrap();
    log.close().unwrap();
}

#[test]
fn permanent_write_failure_creates_no_files_and_removes_none() {
    let disk = MemoryDisk::default();
    let keep = Retention { files_max: Some(3), ..Retention::default() };
    let log = open_on(&disk, Options { keep, ..small() });
    (0..100).for_each(|number| log.append(&line(number, 100)).unwrap());
    log.write_out().unwrap();
    let before = closed(&disk);
    disk.fail(Op::Write, 1, u64::MAX, Errno::IO);
    log.append(&line(100, 100)).unwrap();
    for _ in 0..20 {
        assert!(matches!(log.write_out(), Err(Error::WriteFailed { bytes: 100, .. })));
    }
    let after = closed(&disk);
    assert_eq!(after[..before.len()], before, "a file was removed");
    assert!(after.len() <= before.len() + 1, "{after:?}");
    disk.heal();
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..=100).collect::<Vec<_>>());
}

#[test]
fn sync_mode_never_makes_no_syncs() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { sync: SyncMode::Never, ..small() });
    (0..300).for_each(|number| log.append(&line(number, 100)).unwrap());
    assert!(matches!(log.sync(), Err(Error::Invalid(_))));
    log.rotate().unwrap();
    log.close().unwrap();
    assert_eq!((disk.calls(Op::Sync), disk.calls(Op::SyncDir)), (0, 0));
    assert_eq!(numbers(&all(&disk)), (0..300).collect::<Vec<_>>());
}
