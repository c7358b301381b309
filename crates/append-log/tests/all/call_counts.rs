//! Tests that each operation makes exactly the expected number of disk calls.

use std::sync::Arc;

use haul_append_log::{Log, Lsn, Options, SpacePriority};
use haul_disk::Op;
use haul_disk_sim::{CALLS, FaultyDisk, MemoryDisk};

use crate::payload::payload;
use crate::{open_on, put, put_long, small};

/// Runs `work`. Returns its result and the number of its disk calls of each kind that occurred.
fn calls<T>(disk: &MemoryDisk, work: impl FnOnce() -> T) -> (T, Vec<(Op, u64)>) {
    let before = CALLS.map(|op| disk.calls(op));
    let result = work();
    let counted = CALLS.into_iter().zip(before).map(|(op, before)| (op, disk.calls(op) - before));
    (result, counted.filter(|(_, count)| *count > 0).collect())
}

fn open(disk: &MemoryDisk) -> Log {
    open_on(Arc::new(disk.clone()), small()).unwrap().log
}

#[test]
fn each_operation_makes_exactly_these_calls() {
    let disk = MemoryDisk::default();
    let (log, calls_made) = calls(&disk, || open(&disk));
    // The directory is synced twice: when it is listed, and after the first segment was renamed
    // from a temporary name.
    let first = [
        (Op::Write, 3),
        (Op::Sync, 2),
        (Op::SyncDir, 2),
        (Op::Open, 2),
        (Op::Create, 1),
        (Op::Allocate, 2),
        (Op::Rename, 1),
        (Op::List, 1),
    ];
    assert_eq!(calls_made, first, "opening an empty directory");

    let (at, calls_made) = calls(&disk, || put(&log, &payload(0, 3000)));
    assert_eq!(calls_made, [(Op::Write, 1), (Op::Sync, 1)], "a record");
    let (_, calls_made) = calls(&disk, || put(&log, &payload(1, 30_000)));
    assert_eq!(calls_made, [(Op::Write, 1), (Op::Sync, 1)], "a long one");
    let (_, calls_made) = calls(&disk, || {
        let tickets: Vec<_> = (2..12)
            .map(|id| log.append(&[&payload(id, 3000)], SpacePriority::Ordinary).unwrap())
            .collect();
        tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
    });
    assert_eq!(calls_made, [(Op::Write, 1), (Op::Sync, 1)], "ten together");
    let (_, calls_made) = calls(&disk, || drop(log.read(at).unwrap()));
    assert_eq!(calls_made, [(Op::Read, 1)], "reading one");

    let (_, calls_made) = calls(&disk, || log.close().unwrap());
    assert_eq!(calls_made, [(Op::Write, 1), (Op::Sync, 1)], "closing");
    let (log, calls_made) = calls(&disk, || open(&disk));
    let again = [(Op::Read, 5), (Op::Sync, 1), (Op::SyncDir, 1), (Op::Open, 3), (Op::List, 1)];
    assert_eq!(calls_made, again, "opening again");
    drop(log);
}

#[test]
fn rotation_creates_one_file_and_recycling_none() {
    let disk = MemoryDisk::default();
    let log = open(&disk);
    // Appends up to the middle of a segment, where the next segment is prepared.
    let mut id = 0;
    let mut go_to = |segment: u32, directory_syncs: u64| {
        let before = log.stats().batches;
        let ((), calls_made) = calls(&disk, || {
            while log.synced() < Lsn::new(segment, 1 << 19) {
                put_long(&log, id..id + 1);
                id += 1;
            }
            disk.wait_for_calls(Op::SyncDir, directory_syncs);
            // The last step of preparing the next segment is to open it.
            disk.wait_for_calls(Op::Open, 2 + 2 * u64::from(segment));
        });
        (log.stats().batches - before, calls_made)
    };
    go_to(1, 3);
    let (appended, calls_made) = go_to(2, 4);
    let made = [
        (Op::Write, appended + 3),
        (Op::Sync, appended + 2),
        (Op::SyncDir, 1),
        (Op::Open, 2),
        (Op::Create, 1),
        (Op::Allocate, 2),
        (Op::Rename, 1),
    ];
    assert_eq!(calls_made, made, "a new segment");

    let (_, calls_made) = calls(&disk, || log.truncate_front(Lsn::new(2, 0)).unwrap());
    assert_eq!(calls_made, [(Op::SyncDir, 1), (Op::Rename, 1)], "removing a segment");
    let (appended, calls_made) = go_to(3, 6);
    let recycled = [
        (Op::Write, appended + 2),
        (Op::Sync, appended + 1),
        (Op::SyncDir, 1),
        (Op::Open, 2),
        (Op::Rename, 1),
    ];
    assert_eq!(calls_made, recycled, "a recycled segment");
}

#[test]
fn segment_after_large_batches_is_reserved_and_not_zeroed() {
    let options = Options { segment_bytes: 4 << 20, buffer_bytes: 1 << 20, ..small() };
    let writes_of_preparation = |record_bytes: usize| {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::default()));
        let log = open_on(Arc::new(disk.clone()), options.clone()).unwrap().log;
        disk.record_calls();
        for id in 0.. {
            put(&log, &payload(id, record_bytes));
            if log.segments().len() == 2 {
                break;
            }
        }
        let calls = disk.recorded_calls();
        let prepares = |call: &&(Op, String)| *call == &(Op::Write, "log-prepare".to_owned());
        calls.iter().filter(prepares).count()
    };
    let header_pages = 2;
    assert_eq!(writes_of_preparation(60_000), 4 + header_pages, "zeros in steps of 1 MiB");
    assert_eq!(writes_of_preparation(600_000), header_pages);
}
