//! Who waits, and who does not: futures under pressure, tickets let go, closing, slow preparation.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use haul_append_log::{Lsn, Room};
use haul_disk::Op;
use haul_disk_sim::Survival;

use crate::concurrent::on_memory;
use crate::payload::{ids, payload};
use crate::recovery::start;
use crate::{Unpark, begun, block_on, put_long, small, within_a_minute};

#[test]
fn futures_go_on_when_the_buffers_are_full_and_those_let_go_hold_nothing_up() {
    within_a_minute("futures under pressure", || {
        let (disk, log) = on_memory();
        let bytes = payload(0, 20_000);
        let parts: [&[u8]; 1] = [&bytes];
        let counted = Arc::new(Unpark(thread::current()));
        let waker = Waker::from(Arc::clone(&counted));
        let mut context = Context::from_waker(&waker);
        let first = || begun(log.append(&[&bytes], Room::Ordinary).unwrap());
        let ((), taken) = disk.during_a_sync(
            || drop(first()),
            || {
                let mut taken = 0;
                loop {
                    let mut future = Box::pin(log.append_async(&parts, Room::Ordinary));
                    match future.as_mut().poll(&mut context) {
                        Poll::Ready(ticket) => drop(ticket.unwrap()),
                        Poll::Pending => {
                            for _ in 0..1000 {
                                assert!(future.as_mut().poll(&mut context).is_pending());
                            }
                            break;
                        }
                    }
                    taken += 1;
                }
                // Let go while pending: nothing was appended, and nothing waits for it.
                for _ in 0..100 {
                    let mut future = Box::pin(log.append_async(&parts, Room::Ordinary));
                    assert!(future.as_mut().poll(&mut context).is_pending());
                }
                taken
            },
        );
        assert!((2..=3).contains(&taken), "a buffer of 64 KiB takes so many, not {taken}");
        assert!(Arc::strong_count(&counted) < 10, "a waker is kept once");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        let append =
                            async { log.append_async(&[&bytes], Room::Ordinary).await?.await };
                        block_on(append).unwrap();
                    }
                });
            }
        });
        log.close().unwrap();
        let again = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
        assert_eq!(again.records.len(), 1 + taken + 160);
    });
}

#[test]
fn a_ticket_let_go_reaches_the_medium_without_anybody_waiting() {
    within_a_minute("tickets let go", || {
        let (disk, log) = on_memory();
        for id in 0..300 {
            drop(log.append(&[&payload(id, 6000)], Room::Ordinary).unwrap());
        }
        let is_there = || {
            let left = start(&disk.medium().cut(Survival::Nothing), small()).unwrap();
            ids(&left.records).keys().copied().eq(0..300)
        };
        while !is_there() {
            thread::yield_now();
        }
    });
}

#[test]
fn closing_ends_the_wait_of_every_reader() {
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
                            _ => block_on(reader.next_async()).unwrap().is_some(),
                        } {
                            count += 1;
                        }
                        count
                    })
                })
                .collect();
            drop(log.append(&[b"the last one"], Room::Ordinary).unwrap());
            log.close().unwrap();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), 51);
            }
        });
    });
}

#[test]
fn a_slow_preparation_delays_appending_and_fails_nothing() {
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
