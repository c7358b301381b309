//! Makes the n-th disk call of each kind fail, for every n, and tests that failures are final and
//! that no record is lost.

use std::sync::Arc;

use haul_append_log::Error;
use haul_disk::Op;
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use rustix::io::Errno;

use crate::payload::{Outcome, RECORDS, ids, payload, run};
use crate::{open_on, put, small, within_a_minute};

/// The outcome of a run with one fault.
struct Run {
    disk: MemoryDisk,
    outcome: Outcome,
    /// The result of closing.
    closed: haul_append_log::Result<()>,
    /// The name of the thread whose call failed; `None` if no call failed.
    met: Option<String>,
}

/// Runs the workload with the `n`-th call of a kind failing.
fn run_with(op: Op, n: u64, errno: Errno) -> Run {
    within_a_minute(&format!("{op:?} {n} failing with {errno}"), move || {
        let disk = MemoryDisk::default();
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        // After a failed sync all, some or none of the written bytes may be on storage.
        disk.after_a_failed_sync(match n % 3 {
            0 => Survival::Everything,
            1 => Survival::Half { seed: n },
            _ => Survival::Nothing,
        });
        disk.fail_once(op, n, errno);
        let outcome = run(&log, 0, &|_, _| {});
        let closed = log.close();
        let met = disk.faulted_thread();
        Run { disk, outcome, closed, met }
    })
}

/// Asserts that the log, reopened on the same machine and after a power cut, has all acknowledged
/// records and no others.
fn check(run: &Run, n: u64) {
    let acknowledged = &run.outcome.acknowledged;
    for survival in [Survival::Nothing, Survival::Half { seed: n }] {
        let disk = MemoryDisk::on(&run.disk.medium());
        if n.is_multiple_of(2) {
            disk.drop_unsynced();
        }
        let opened = open_on(Arc::new(disk.clone()), small()).unwrap();
        let mut delivered = ids(&opened.records);
        assert!(acknowledged.iter().all(|(id, lsn)| delivered.get(id) == Some(lsn)));
        delivered.insert(RECORDS, put(&opened.log, &payload(RECORDS, 100)).lsn);
        let medium = disk.medium();
        drop(opened);
        let disk = MemoryDisk::on(&medium.cut(survival));
        let again = open_on(Arc::new(disk), small()).unwrap();
        assert_eq!(ids(&again.records), delivered, "a delivered record is lost");
    }
}

/// Makes each call of a kind fail in turn. Returns the number of these calls.
fn sweep(op: Op, errno: Errno, check_run: impl Fn(&Run)) -> u64 {
    for n in 1.. {
        let run = run_with(op, n, errno);
        if run.met.is_none() {
            assert!(run.outcome.errors.is_empty() && run.closed.is_ok());
            assert_eq!(run.outcome.acknowledged.len() as u64, RECORDS);
            return n - 1;
        }
        check_run(&run);
        check(&run, n);
    }
    unreachable!("the workload ends")
}

fn is_latched(error: &Error) -> bool {
    matches!(error, Error::Latched { .. })
}

/// Asserts that a failure is final unless it happened in the preparing thread. In that case only
/// the append that needs the new segment gets the error.
fn check_final_or_in_preparation(run: &Run) {
    let errors = &run.outcome.errors;
    if run.met.as_deref() != Some("log-prepare") {
        assert!(run.closed.as_ref().is_err_and(is_latched), "{:?}", run.closed);
        assert!(errors.iter().all(is_latched), "{errors:?}");
    } else {
        assert!(run.closed.is_ok(), "{:?}", run.closed);
        assert!(errors.iter().all(|error| matches!(error, Error::Disk(_))), "{errors:?}");
        assert!(errors.len() <= 1, "{errors:?}");
    }
    assert_eq!((run.outcome.acknowledged.len() + errors.len()) as u64, RECORDS);
}

#[test]
fn failed_sync_is_final_and_no_thread_hangs() {
    let syncs = sweep(Op::Sync, Errno::IO, check_final_or_in_preparation);
    assert!(syncs > 20, "{syncs}");
}

#[test]
fn failed_write_is_final_and_no_thread_hangs() {
    let writes = sweep(Op::Write, Errno::IO, check_final_or_in_preparation);
    assert!(writes > 20, "{writes}");
}

#[test]
fn failed_directory_sync_is_final() {
    let syncs = sweep(Op::SyncDir, Errno::IO, |run| {
        assert!(run.closed.as_ref().is_err_and(is_latched), "{:?}", run.closed);
    });
    // The directory is synced once for each new segment, and the workload creates one or two of
    // them.
    assert!((1..=2).contains(&syncs), "{syncs}");
}

#[test]
fn full_disk_at_any_call_loses_no_record() {
    for op in [Op::Write, Op::Create, Op::Rename] {
        sweep(op, Errno::NOSPC, |run| {
            let errors = &run.outcome.errors;
            let is_expected =
                |error: &Error| is_latched(error) || matches!(error, Error::Full { .. });
            assert!(errors.iter().all(is_expected), "{errors:?}");
        });
    }
}

/// Creates a log whose last segment has a torn tail (the remains of an interrupted write), with a
/// prepared segment after it.
fn torn() -> (Medium, Outcome) {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let outcome = run(&log, 0, &|_, _| {});
    let at = put(&log, &payload(RECORDS, 5000));
    let mut medium = disk.medium();
    let name = haul_append_log::segment_name(at.lsn.segment());
    medium.file(&name)[at.lsn.offset() as usize + 4000] ^= 1;
    drop(log);
    (medium, outcome)
}

#[test]
fn fault_during_opening_is_reported_and_loses_no_record() {
    let (medium, outcome) = torn();
    for op in [Op::Read, Op::Write, Op::Sync, Op::SyncDir] {
        for n in 1.. {
            let disk = MemoryDisk::on(&medium);
            disk.fail_once(op, n, Errno::IO);
            let what = format!("opening with {op:?} {n} failing");
            let opened = within_a_minute(&what, {
                let disk = disk.clone();
                move || open_on(Arc::new(disk), small()).map(drop)
            });
            if disk.calls(op) < n {
                opened.unwrap();
                break;
            }
            // The fault may have hit the close record, which dropping the log writes. Dropping
            // ignores errors.
            assert!(opened.as_ref().map_or_else(|e| matches!(e, Error::Disk(_)), |()| true));
            let left = disk.medium().cut(Survival::Half { seed: n });
            let again = open_on(Arc::new(MemoryDisk::on(&left)), small()).unwrap();
            let delivered = ids(&again.records);
            assert!(outcome.acknowledged.iter().all(|(id, lsn)| delivered.get(id) == Some(lsn)));
        }
    }
}
