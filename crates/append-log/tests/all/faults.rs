//! The n-th call of each kind fails, for every n.

use std::sync::Arc;

use haul_append_log::Error;
use haul_disk::Op;
use haul_disk_sim::{Medium, MemoryDisk, Survival};
use rustix::io::Errno;

use crate::payload::{Outcome, RECORDS, ids, payload, run};
use crate::{open_on, put, small, within_a_minute};

/// What one run with one fault came to.
struct Run {
    disk: MemoryDisk,
    outcome: Outcome,
    /// What closing said.
    closed: haul_append_log::Result<()>,
    /// The thread the fault met, if it came to pass.
    met: Option<String>,
}

/// Runs the workload with the `n`-th call of a kind failing.
fn run_with(op: Op, n: u64, errno: Errno) -> Run {
    within_a_minute(&format!("{op:?} {n} failing with {errno}"), move || {
        let disk = MemoryDisk::default();
        let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
        // Of what a failed sync was for nothing may be on the medium, all or some.
        disk.after_a_failed_sync(match n % 3 {
            0 => Survival::Everything,
            1 => Survival::Half { seed: n },
            _ => Survival::Nothing,
        });
        disk.fail_once(op, n, errno);
        let outcome = run(&log, 0, &|_, _| {});
        let closed = log.close();
        let met = disk.met();
        Run { disk, outcome, closed, met }
    })
}

/// Opened again on the same machine and after a power cut, the log has all it acknowledged, and
/// nothing it was not given.
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
        assert_eq!(ids(&again.records), delivered, "what was delivered stays");
    }
}

/// Fails each call of a kind in turn and returns how many there were.
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

/// A failure of the log itself is final; one while a segment was made ready is told to whoever
/// needed it, or to nobody.
fn final_or_in_preparation(run: &Run) {
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
fn a_failed_sync_is_final_and_nobody_hangs() {
    let syncs = sweep(Op::Sync, Errno::IO, final_or_in_preparation);
    assert!(syncs > 20, "{syncs}");
}

#[test]
fn a_failed_write_is_final_and_nobody_hangs() {
    let writes = sweep(Op::Write, Errno::IO, final_or_in_preparation);
    assert!(writes > 20, "{writes}");
}

#[test]
fn a_failed_sync_of_the_directory_is_final() {
    let syncs = sweep(Op::SyncDir, Errno::IO, |run| {
        assert!(run.closed.as_ref().is_err_and(is_latched), "{:?}", run.closed);
    });
    assert_eq!(syncs, 1);
}

#[test]
fn a_full_disk_loses_nothing_wherever_it_is_met() {
    for op in [Op::Write, Op::Create, Op::Rename] {
        sweep(op, Errno::NOSPC, |run| {
            let errors = &run.outcome.errors;
            let told = |error: &Error| is_latched(error) || matches!(error, Error::Full { .. });
            assert!(errors.iter().all(told), "{errors:?}");
        });
    }
}

/// A log whose last segment has a torn tail, with a segment made ready behind it.
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
fn a_fault_while_opening_is_told_and_loses_nothing() {
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
            // The fault may also have met the mark of closing, whose failure dropping keeps.
            assert!(opened.as_ref().map_or_else(|e| matches!(e, Error::Disk(_)), |()| true));
            let left = disk.medium().cut(Survival::Half { seed: n });
            let again = open_on(Arc::new(MemoryDisk::on(&left)), small()).unwrap();
            let delivered = ids(&again.records);
            assert!(outcome.acknowledged.iter().all(|(id, lsn)| delivered.get(id) == Some(lsn)));
        }
    }
}
