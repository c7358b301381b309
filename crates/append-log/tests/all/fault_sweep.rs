//! Makes the n-th disk call of each kind fail while a log changes segments, recycles files and
//! truncates records, with each sync method. Tests that no thread hangs, that every waiting caller
//! gets the error, and that no record is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use haul_append_log::{Error, Lsn, Options, SpacePriority, SyncMethod};
use haul_disk::{Disk, Op};
use haul_disk_sim::{MemoryDisk, Survival};
use rustix::io::Errno;

use crate::history::History;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{open_on, put, put_long, small, started, within_a_minute};

fn with(method: SyncMethod) -> Options {
    Options { sync_method: Some(method), ..small() }
}

/// Appends across several segments, removes and truncates records while the `n`-th call fails, and
/// opens the log again. Returns `None` if there were fewer than `n` calls.
fn run(method: SyncMethod, op: Op, n: u64) -> Option<()> {
    let what = format!("{method}, {op:?} {n}");
    within_a_minute(&what.clone(), move || {
        let disk = MemoryDisk::default();
        // After a failed sync all, some or none of the written bytes may be on storage.
        disk.after_a_failed_sync(match n % 3 {
            0 => Survival::Everything,
            1 => Survival::Half { seed: n },
            _ => Survival::Nothing,
        });
        let mut history = History::begin(&disk, with(method));
        for _ in 0..3 {
            history.put(&[60_000; 9], SpacePriority::Ordinary).unwrap();
        }
        history.disk.fail_once(op, n, Errno::IO);
        let check = |outcome: haul_append_log::Result<()>| match outcome {
            Ok(()) | Err(Error::Latched { .. } | Error::Disk(_)) => {}
            Err(other) => panic!("{what}: {other}"),
        };
        check(history.truncate_front(1));
        for _ in 0..4 {
            check(history.put(&[30_000; 12], SpacePriority::Ordinary));
        }
        check(history.truncate_back(5));
        check(history.put(&[3000; 3], SpacePriority::Ordinary));
        check(history.truncate_front(1));
        check(history.put(&[60_000; 12], SpacePriority::Ordinary));
        let met = history.disk.faulted_thread();
        history.disk.heal();
        let was_latched = history.log().is_latched();
        let segment = history.log().synced().segment();
        history.close_ignoring_errors();
        history.open();
        history.put(&[8192 - 32; 2], SpacePriority::Ordinary).unwrap();
        if was_latched && met.as_deref() != Some("log-prepare") {
            let now = history.log().synced().segment();
            assert!(now >= segment, "{what}: {segment}, then {now}");
        }
        let medium = history.disk.medium();
        for survival in [Survival::Nothing, Survival::Half { seed: n }] {
            let opened = start(&medium.cut(survival), with(method)).unwrap();
            history.now.check(&opened.records);
        }
        met.map(drop)
    })
}

fn sweep(op: Op, step: u64) {
    for (first, method) in (1_u64..).zip(SyncMethod::ALL) {
        let mut met = 0;
        for n in (1 + first % step..).step_by(usize::try_from(step).unwrap()) {
            if run(method, op, n).is_none() {
                break;
            }
            met += 1;
        }
        assert!(met > 2, "{method}: {op:?} failed in {met} places");
    }
}

#[test]
fn failed_sync_neither_loses_nor_resurrects_records() {
    sweep(Op::Sync, 2);
}

#[test]
fn failed_write_neither_loses_nor_resurrects_records() {
    sweep(Op::Write, 2);
}

#[test]
fn failed_rename_or_open_neither_loses_nor_resurrects_records() {
    for op in [Op::SyncDir, Op::Rename, Op::Open] {
        sweep(op, 1);
    }
}

#[test]
fn log_marked_as_latched_continues_in_another_segment() {
    for method in SyncMethod::ALL {
        for (can_mark, kept) in [(true, true), (true, false), (false, true), (false, false)] {
            let disk = MemoryDisk::default();
            let log = open_on(Arc::new(disk.clone()), with(method)).unwrap().log;
            let last = put_long(&log, 0..3);
            disk.after_a_failed_sync(if kept { Survival::Everything } else { Survival::Nothing });
            disk.fail_once(Op::Sync, 1, Errno::IO);
            if !can_mark {
                disk.deny_create("LATCHED");
            }
            let failed = log.append(&[&payload(3, 5000)], SpacePriority::Ordinary).unwrap().wait();
            assert!(matches!(failed, Err(Error::Latched { .. })));
            assert!(matches!(log.close(), Err(Error::Latched { .. })));
            assert_eq!(disk.list("").unwrap().contains(&"LATCHED".to_owned()), can_mark);

            let opened = open_on(Arc::new(disk.clone()), with(method)).unwrap();
            let found = ids(&opened.records);
            let expected = if kept { 0..4 } else { 0..3 };
            assert!(found.keys().copied().eq(expected), "{method}, {kept}: {found:?}");
            let at = put(&opened.log, &payload(9, 5000));
            assert!(at.lsn > last.lsn);
            let uses_new_segment = at.lsn.segment() > last.lsn.segment();
            assert_eq!(uses_new_segment, can_mark, "{method}, {kept}");
            let again = start(&disk.medium().cut(Survival::Nothing), with(method)).unwrap();
            assert_eq!(again.records.len(), found.len() + 1);
            assert!(!disk.list("").unwrap().contains(&"LATCHED".to_owned()));
        }
    }
}

#[test]
fn every_waiter_gets_the_error_of_a_failed_sync() {
    for method in SyncMethod::ALL {
        within_a_minute("waiting for a sync that fails", move || {
            let disk = MemoryDisk::default();
            let log = open_on(Arc::new(disk.clone()), with(method)).unwrap().log;
            put(&log, &payload(0, 100));
            let notified = AtomicU64::new(0);
            thread::scope(|scope| {
                let (log, notified) = (&log, &notified);
                let check = move |outcome: haul_append_log::Result<()>| {
                    assert!(matches!(outcome, Err(Error::Latched { .. })), "{outcome:?}");
                    notified.fetch_add(1, Ordering::SeqCst);
                };
                disk.fail_once(Op::Sync, 1, Errno::IO);
                let first = || {
                    started(log.append(&[&payload(1, 20_000)], SpacePriority::Ordinary).unwrap())
                };
                let (first, ()) = disk.during_a_sync(first, || {
                    let mut context = Context::from_waker(Waker::noop());
                    // The waiting callers are a future and threads in the next batch, threads that
                    // wait for space in a buffer, and readers at the end of the log.
                    let mut future =
                        Box::pin(log.append(&[&payload(2, 100)], SpacePriority::Ordinary).unwrap());
                    assert!(matches!(future.as_mut().poll(&mut context), Poll::Pending));
                    scope.spawn(move || check(crate::block_on(future).map(drop)));
                    for id in 10..22 {
                        scope.spawn(move || {
                            let ticket =
                                log.append(&[&payload(id, 20_000)], SpacePriority::Ordinary);
                            check(ticket.and_then(haul_append_log::Ticket::wait).map(drop));
                        });
                    }
                    for timeout in [None, Some(Duration::from_secs(50))] {
                        scope.spawn(move || {
                            let mut reader = log.reader(Lsn::default());
                            assert!(reader.read_next().unwrap().is_some());
                            assert!(reader.wait_next(timeout).unwrap().is_none());
                            notified.fetch_add(1, Ordering::SeqCst);
                        });
                    }
                });
                check(first.wait().map(drop));
            });
            assert_eq!(notified.into_inner(), 1 + 1 + 12 + 2, "{method}");
            assert!(matches!(log.truncate_back(Lsn::new(1, 4096)), Err(Error::Latched { .. })));
        });
    }
}

#[test]
fn short_transfers_are_continued_with_every_sync_method() {
    for method in SyncMethod::ALL {
        let disk = MemoryDisk::default();
        disk.transfer_at_most(4096);
        let log = open_on(Arc::new(disk.clone()), with(method)).unwrap().log;
        put_long(&log, 0..50);
        log.truncate_front(Lsn::new(2, 0)).unwrap();
        put_long(&log, 50..90);
        log.close().unwrap();
        let opened = open_on(Arc::new(disk), with(method)).unwrap();
        let found = ids(&opened.records);
        assert!(found.keys().copied().eq(*found.first_key_value().unwrap().0..90), "{found:?}");
        assert!(found.len() >= 50);
    }
}

#[test]
fn interrupted_write_is_repeated_and_interrupted_sync_is_final() {
    for method in SyncMethod::ALL {
        let disk = MemoryDisk::default();
        let log = open_on(Arc::new(disk.clone()), with(method)).unwrap().log;
        disk.fail_once(Op::Write, 1, Errno::INTR);
        let at = put(&log, &payload(0, 5000));
        assert!(disk.faulted_thread().is_some(), "the fault was not injected");
        disk.fail_once(Op::Read, 1, Errno::INTR);
        assert_eq!(log.read(at).unwrap().payload(), payload(0, 5000));
        disk.fail_once(Op::Sync, 1, Errno::INTR);
        let failed = log.append(&[&payload(1, 5000)], SpacePriority::Ordinary).unwrap().wait();
        assert!(matches!(failed, Err(Error::Latched { .. })), "{method}: {failed:?}");
        assert!(matches!(log.close(), Err(Error::Latched { .. })));
        let opened = start(&disk.medium().cut(Survival::Nothing), with(method)).unwrap();
        assert!(ids(&opened.records).keys().copied().eq([0]));
    }
}

#[test]
fn every_flipped_bit_of_a_record_is_detected_on_read() {
    let disk = MemoryDisk::default();
    let log = open_on(Arc::new(disk.clone()), small()).unwrap().log;
    let (at, whole) = (put(&log, &payload(0, 700)), put(&log, &payload(1, 700)));
    let name = haul_append_log::segment_name(1);
    for byte in 0..732 {
        let (place, bit) = (u64::from(at.lsn.offset()) + byte, (byte % 8) as u8);
        disk.rot(&name, place, bit);
        let read = log.read(at).map(drop);
        assert!(matches!(read, Err(Error::Damaged { .. })), "byte {byte}: {read:?}");
        disk.rot(&name, place, bit);
    }
    assert_eq!(log.read(at).unwrap().payload(), payload(0, 700));
    assert_eq!(log.read(whole).unwrap().payload(), payload(1, 700));
}
