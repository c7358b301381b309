//! The n-th call of each kind fails, for every n.

use std::sync::Arc;

use haul_disk::Op;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_line_log::{Error, Event, Keep, LineLog, Options, SyncWhen};
use rustix::io::Errno;

use crate::{Told, all, closed, files, line, numbers, open_on, small, within_a_minute};

const LINES: u64 = 300;

/// What a workload with one fault came to.
struct Run {
    disk: MemoryDisk,
    told: Told,
    errors: Vec<Error>,
    met: bool,
}

/// Brings lines, and waits for something after each tenth; who is refused asks once more.
fn run(op: Op, n: u64, errno: Errno) -> Run {
    within_a_minute(&format!("{op:?} {n} failing with {errno}"), move || {
        let (disk, told) = (MemoryDisk::default(), Told::default());
        let log = LineLog::open_on(Arc::new(disk.clone()), small(), told.outside()).unwrap();
        // What a failed sync was for arrived, or the lines would have to be missing.
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
        Run { met: disk.calls(op) - before >= n, disk, told, errors }
    })
}

/// Fails each call of a kind in turn and gives how many there were.
fn sweep(op: Op, errno: Errno, check: impl Fn(&Run)) -> u64 {
    for n in 1.. {
        let run = run(op, n, errno);
        let mut found = numbers(&all(&run.disk));
        // A line that broke off may be there in part, and then once more.
        found.dedup();
        assert_eq!(found, (0..LINES).collect::<Vec<_>>(), "{op:?} {n}");
        if !run.met {
            assert!(run.errors.is_empty(), "{:?}", run.errors);
            return n - 1;
        }
        check(&run);
    }
    unreachable!("the workload ends")
}

#[test]
fn a_failed_write_is_tried_again_and_told_to_who_waits() {
    for errno in [Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::FBIG] {
        let writes = sweep(Op::Write, errno, |run| {
            assert_eq!(run.told.count(|event| matches!(event, Event::Stuck(_))), 1);
            assert_eq!(run.told.count(|event| matches!(event, Event::Unstuck)), 1);
            assert!(run.errors.iter().all(|error| matches!(error, Error::Stuck { .. })));
            assert!(run.errors.len() <= 1);
            let parts: usize = files(&run.disk).iter().map(Vec::len).sum();
            assert_eq!(parts as u64, LINES * 100, "nothing is written twice");
        });
        assert!(writes >= 20, "{writes}");
    }
}

#[test]
fn a_failure_of_names_is_tried_again() {
    for op in [Op::Create, Op::Rename] {
        let calls = sweep(op, Errno::NOSPC, |run| {
            assert_eq!(run.told.count(|event| matches!(event, Event::Stuck(_))), 1);
        });
        assert!(calls >= 10, "{op:?} {calls}");
    }
}

#[test]
fn a_failed_sync_is_told_once_and_final_for_its_file() {
    let syncs = sweep(Op::Sync, Errno::IO, |run| {
        assert_eq!(run.told.count(|event| matches!(event, Event::Unsynced(_))), 1);
        let told = matches!(&run.errors[..], [Error::Unsynced { .. }]);
        assert!(told, "{:?}", run.errors);
        let unsynced = closed(&run.disk).into_iter().filter(|name| name.ends_with(".unsynced"));
        // The last sync is that of closing, after which nothing is renamed.
        assert!(unsynced.count() <= 1);
    });
    assert!(syncs >= 15, "{syncs}");
}

#[test]
fn a_file_whose_sync_failed_is_set_aside() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, small());
    log.append(&line(0, 100)).unwrap();
    disk.after_a_failed_sync(Survival::Everything);
    disk.fail(Op::Sync, 1, 1, Errno::IO);
    assert!(matches!(log.sync(), Err(Error::Unsynced { .. })));
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
fn a_sync_that_failed_in_the_background_is_told_to_the_next_who_asks() {
    let disk = MemoryDisk::default();
    let sync = SyncWhen::Every(std::time::Duration::from_millis(1));
    let log = open_on(&disk, Options { sync, ..small() });
    disk.fail(Op::Sync, 1, 1, Errno::IO);
    log.append(&line(0, 100)).unwrap();
    log.write_out().unwrap();
    while log.stats().sync_failures == 0 {
        std::thread::yield_now();
    }
    assert!(matches!(log.last_error(), Some(Error::Unsynced { .. })));
    assert!(matches!(log.sync(), Err(Error::Unsynced { .. })));
    log.sync().unwrap();
    log.close().unwrap();
}

#[test]
fn a_disk_that_fails_for_long_makes_no_heap_of_files_and_loses_none() {
    let disk = MemoryDisk::default();
    let keep = Keep { files_max: Some(3), ..Keep::default() };
    let log = open_on(&disk, Options { keep, ..small() });
    (0..100).for_each(|number| log.append(&line(number, 100)).unwrap());
    log.write_out().unwrap();
    let before = closed(&disk);
    disk.fail(Op::Write, 1, u64::MAX, Errno::IO);
    log.append(&line(100, 100)).unwrap();
    for _ in 0..20 {
        assert!(matches!(log.write_out(), Err(Error::Stuck { bytes: 100, .. })));
    }
    let after = closed(&disk);
    assert_eq!(after[..before.len()], before, "nothing is removed for it");
    assert!(after.len() <= before.len() + 1, "{after:?}");
    disk.heal();
    log.close().unwrap();
    assert_eq!(numbers(&all(&disk)), (0..=100).collect::<Vec<_>>());
}

#[test]
fn a_log_that_is_not_to_be_synced_is_not() {
    let disk = MemoryDisk::default();
    let log = open_on(&disk, Options { sync: SyncWhen::Never, ..small() });
    (0..300).for_each(|number| log.append(&line(number, 100)).unwrap());
    assert!(matches!(log.sync(), Err(Error::Invalid(_))));
    log.rotate().unwrap();
    log.close().unwrap();
    assert_eq!((disk.calls(Op::Sync), disk.calls(Op::SyncDir)), (0, 0));
    assert_eq!(numbers(&all(&disk)), (0..300).collect::<Vec<_>>());
}
