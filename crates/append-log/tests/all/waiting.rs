//! Tests waiting threads, futures and readers: full buffers, dropped tickets, wakers, closing and
//! segments that are prepared late.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use haul_append_log::{Error, Lsn, SpacePriority};
use haul_disk::Op;
use haul_disk_sim::Survival;
use haul_testing::eventually;

use crate::concurrent::on_memory;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{Unpark, block_on, put_long, small, started, within_a_minute};

#[test]
fn ticket_polled_many_times_registers_its_waker_once() {
    within_a_minute("futures of tickets", || {
        let (disk, log) = on_memory();
        let counted = Arc::new(Unpark(thread::current()));
        let waker = Waker::from(Arc::clone(&counted));
        let mut context = Context::from_waker(&waker);
        let append = |id| log.append(&[&payload(id, 100)], SpacePriority::Ordinary).unwrap();
        let (first, mut pending) = disk.during_a_sync(
            || started(append(0)),
            || {
                let mut pending = Box::pin(append(1));
                for _ in 0..1000 {
                    assert!(pending.as_mut().poll(&mut context).is_pending());
                }
                pending
            },
        );
        assert!(Arc::strong_count(&counted) < 10, "each waker is registered once");
        first.wait().unwrap();
        block_on(&mut pending).unwrap();
        thread::scope(|scope| {
            for writer in 1..9 {
                let append = &append;
                scope.spawn(move || {
                    for id in writer * 20..(writer + 1) * 20 {
                        block_on(append(id)).unwrap();
                    }
                });
            }
        });
        log.close().unwrap();
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.records.len(), 2 + 160);
    });
}

#[test]
fn try_append_returns_none_while_the_buffer_is_full() {
    within_a_minute("appends without blocking", || {
        let (disk, log) = on_memory();
        let bytes = payload(0, 20_000);
        let try_append = || log.try_append(&[&bytes], SpacePriority::Ordinary).unwrap();
        let ((), tickets) = disk.during_a_sync(
            || drop(started(log.append(&[&bytes], SpacePriority::Ordinary).unwrap())),
            || {
                let tickets: Vec<_> = std::iter::from_fn(try_append).collect();
                assert!(try_append().is_none());
                tickets
            },
        );
        assert!((2..=3).contains(&tickets.len()), "{} records", tickets.len());
        let taken = tickets.len() + 1;
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        try_append().unwrap().wait().unwrap();
        log.close().unwrap();
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.records.len(), taken + 1);
    });
}

#[test]
fn try_append_returns_none_on_a_full_disk() {
    let (disk, log) = on_memory();
    disk.limit(Some(3 << 20));
    let bytes = payload(0, 30_000);
    let refused = (0..500).find_map(|_| match log.append(&[&bytes], SpacePriority::Ordinary) {
        Ok(ticket) => {
            ticket.wait().unwrap();
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
    eventually("the attempt to create a segment fails again", || {
        assert!(log.try_append(&[&bytes], SpacePriority::Ordinary).unwrap().is_none());
        matches!(log.append(&[&bytes], SpacePriority::Ordinary), Err(Error::Full { .. }))
    });
}

#[test]
fn record_of_a_dropped_ticket_becomes_durable() {
    within_a_minute("dropped tickets", || {
        let (disk, log) = on_memory();
        for id in 0..300 {
            drop(log.append(&[&payload(id, 6000)], SpacePriority::Ordinary).unwrap());
        }
        let is_durable = || {
            let left = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
            ids(&left.records).keys().copied().eq(0..300)
        };
        eventually("the records are durable", is_durable);
    });
}

/// A task that is owned by its waker, as in async runtimes.
struct Task(Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future once with a waker that owns it, and drops all other references to it.
fn poll_once_and_orphan(future: impl Future<Output = ()> + Send + 'static) {
    let task = Arc::new(Task(Mutex::new(Some(Box::pin(future)))));
    let waker = Waker::from(Arc::clone(&task));
    let mut slot = task.0.lock().unwrap();
    let polled = slot.as_mut().map(|future| future.as_mut().poll(&mut Context::from_waker(&waker)));
    assert_eq!(polled, Some(Poll::Pending));
}

#[test]
fn waker_may_drop_its_ticket() {
    within_a_minute("a waker that owns its task", || {
        let (disk, log) = on_memory();
        let append = |id| log.append(&[&payload(id, 100)], SpacePriority::Ordinary).unwrap();
        // Both futures are polled during a sync, so both are pending.
        let (first, ()) = disk.during_a_sync(
            || started(append(0)),
            || {
                for id in 1..3 {
                    let ticket = append(id);
                    poll_once_and_orphan(async move { assert!(ticket.await.is_ok()) });
                }
            },
        );
        first.wait().unwrap();
        crate::put(&log, &payload(3, 100));
        log.close().unwrap();
        assert_eq!(start(&disk.medium(), small()).unwrap().records.len(), 4);
    });
}

#[test]
fn close_wakes_all_waiting_readers() {
    within_a_minute("readers of a log that closes", || {
        let (_, log) = on_memory();
        put_long(&log, 0..50);
        thread::scope(|scope| {
            let readers: Vec<_> = (0..6)
                .map(|number| {
                    let mut reader = log.reader(Lsn::default());
                    scope.spawn(move || {
                        let mut count = 0;
                        while match number % 2 {
                            0 => reader.wait_next(None).unwrap().is_some(),
                            _ => reader.wait_next(Some(Duration::from_secs(50))).unwrap().is_some(),
                        } {
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            drop(log.append(&[b"the last one"], SpacePriority::Ordinary).unwrap());
            log.close().unwrap();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), 51);
            }
        });
    });
}

#[test]
fn slow_preparation_delays_appends_without_errors() {
    within_a_minute("a slow preparation", || {
        let (disk, log) = on_memory();
        disk.slow_down(Op::Create, Duration::from_millis(50));
        disk.slow_down(Op::Rename, Duration::from_millis(50));
        thread::scope(|scope| {
            for writer in 0..4_u64 {
                let log = &log;
                scope.spawn(move || put_long(log, writer << 32..(writer << 32) + 40));
            }
        });
        assert!(log.segments().len() > 4);
    });
}
