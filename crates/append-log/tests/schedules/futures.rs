//! Tests futures that wait for records, and readers, with wakers that panic, block, or call the
//! log.

use std::sync::Arc;

use haul_append_log::{Error, Lsn, SpacePriority};
use haul_sync::shuttle::rand::{Rng, thread_rng};
use haul_sync::shuttle::thread;

use crate::tasks::{Executor, OnWake, poll_once_and_orphan};
use crate::{Fixture, explore, in_threads};

/// The payload length of a record that fills nearly half a buffer, in bytes.
const HALF_BUFFER: usize = 28_000;

/// Runs three futures beside a writing thread. The wakers of two futures behave like `on_wake`; the
/// waker of the third, which is polled last, queues its task.
fn beside_a_writer(on_wake: &OnWake) {
    let log = Fixture::new();
    let executor = Executor::default();
    for (on_wake, byte) in [(on_wake, 1_u8), (on_wake, 2), (&OnWake::Queue, 3)] {
        let log = log.clone();
        executor.spawn(on_wake.clone(), async move {
            assert!(log.put_async(&[byte; 50]).await);
            assert!(log.put_async(&[byte; 90]).await);
        });
    }
    let running = executor.start();
    assert!(log.put(b"one") && log.put(b"two"));
    running.join().unwrap();
    log.check(8);
}

#[test]
fn futures_of_an_executor_are_all_acknowledged() {
    explore("queued futures", || beside_a_writer(&OnWake::Queue));
}

#[test]
fn wakers_may_poll_inline() {
    explore("wakers that poll", || beside_a_writer(&OnWake::PollInline));
}

#[test]
fn panicking_wakers_affect_no_other_future() {
    explore("wakers that panic", || beside_a_writer(&OnWake::Panic));
}

#[test]
fn wakers_may_drop_the_last_reference_to_a_ticket() {
    explore("wakers that drop tickets", || {
        let log = Fixture::new();
        let other = log.clone();
        let polling = thread::spawn(move || {
            let ticket = other.log.append(&[b"owned"], SpacePriority::Ordinary).unwrap();
            poll_once_and_orphan(async move { assert!(ticket.await.is_ok()) });
            poll_once_and_orphan(async move {
                let ticket = other.log.append(&[b"also owned"], SpacePriority::Ordinary);
                assert!(ticket.unwrap().await.is_ok());
            });
        });
        assert!(log.put(b"one") && log.put(b"two"));
        polling.join().unwrap();
        assert!(log.put(b"three"));
        log.read(5);
        log.check(3);
    });
}

#[test]
fn wakers_may_drop_the_last_reference_to_the_log() {
    explore("wakers that drop the log", || {
        let log = Fixture::new();
        let mut reader = log.log.reader(Lsn::default());
        log.put_and_forget(&[1; HALF_BUFFER]);
        log.put_and_forget(&[2; HALF_BUFFER]);
        let Fixture { log, .. } = log;
        poll_once_and_orphan(async move {
            let ticket = log.append(&[&[3; HALF_BUFFER]], SpacePriority::Ordinary).unwrap();
            drop(ticket.await);
        });
        // Reading ends when the log is closed.
        let mut count = 0;
        while reader.wait_next(None).unwrap().is_some() {
            count += 1;
        }
        assert!((2..=3).contains(&count), "{count} records");
    });
}

#[test]
fn wakers_may_call_and_wait_for_the_log() {
    explore("wakers that wait", || {
        let log = Fixture::new();
        let executor = Executor::default();
        let other = log.clone();
        let call = move || {
            drop(other.log.append(&[&[9; HALF_BUFFER]], SpacePriority::Ordinary).unwrap().wait())
        };
        let on_wake = OnWake::Call(Arc::new(call));
        for byte in [1_u8, 2] {
            let log = log.clone();
            executor.spawn(on_wake.clone(), async move {
                assert!(log.put_async(&[byte; HALF_BUFFER]).await);
                assert!(log.put_async(&[byte; 90]).await);
            });
        }
        let running = executor.start();
        log.put_and_forget(&[3; HALF_BUFFER]);
        assert!(log.put(b"one"));
        running.join().unwrap();
        log.check(5);
    });
}

#[test]
fn waker_that_appends_to_a_full_buffer_does_not_hang() {
    explore("wakers and full buffers", || {
        let log = Fixture::new();
        let executor = Executor::default();
        let other = log.clone();
        let on_wake = OnWake::Call(Arc::new(move || other.put_and_forget(&[9; HALF_BUFFER])));
        let future = log.clone();
        executor.spawn(on_wake, async move { assert!(future.put_async(b"future").await) });
        let running = executor.start();
        let (a, b, c) = (log.clone(), log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || assert!(a.put(b"one"))),
            Box::new(move || assert!(b.put(b"two"))),
            Box::new(move || (0..2).for_each(|n| c.put_and_forget(&[n; HALF_BUFFER]))),
        ]);
        running.join().unwrap();
        log.check(3);
    });
}

#[test]
fn full_buffers_delay_futures_and_stop_none() {
    explore("futures and full buffers", || {
        let log = Fixture::new();
        let executor = Executor::default();
        for (on_wake, byte) in [(OnWake::Queue, 1_u8), (OnWake::PollInline, 2), (OnWake::Queue, 3)]
        {
            let log = log.clone();
            executor.spawn(on_wake, async move {
                assert!(log.put_async(&[byte; HALF_BUFFER]).await);
                assert!(log.put_async(&[byte; HALF_BUFFER]).await);
            });
        }
        // A refused append delays no other future.
        drop(log.log.try_append(&[&[4; HALF_BUFFER]], SpacePriority::Ordinary).unwrap());
        executor.start().join().unwrap();
        log.check(6);
    });
}

#[test]
fn every_future_gets_an_outcome_when_a_sync_fails() {
    explore("futures and failed syncs", || {
        let log = Fixture::new();
        log.disk.fail_sync(thread_rng().gen_range(1..5));
        let executor = Executor::default();
        for (on_wake, byte) in [(OnWake::Queue, 1_u8), (OnWake::PollInline, 2), (OnWake::Panic, 3)]
        {
            let log = log.clone();
            executor.spawn(on_wake, async move {
                log.put_async(&[byte; HALF_BUFFER]).await;
                log.put_async(&[byte; HALF_BUFFER]).await;
            });
        }
        let mut reader = log.log.reader(Lsn::default());
        let reading = thread::spawn(move || while reader.wait_next(None).unwrap().is_some() {});
        let running = executor.start();
        let outcome = log.log.append(&[b"one"], SpacePriority::Ordinary).map(drop);
        assert!(matches!(outcome, Ok(()) | Err(Error::Latched { .. })));
        drop(log);
        running.join().unwrap();
        reading.join().unwrap();
    });
}

#[test]
fn readers_get_every_record_and_the_end() {
    explore("readers at the end", || {
        let log = Fixture::new();
        let reading: Vec<_> = (0..3)
            .map(|_| {
                let mut reader = log.log.reader(Lsn::default());
                thread::spawn(move || {
                    let mut count = 0;
                    while reader.wait_next(None).unwrap().is_some() {
                        count += 1;
                    }
                    assert_eq!(count, 3);
                })
            })
            .collect();
        let other = log.clone();
        let writing = thread::spawn(move || assert!(other.put(b"one") && other.put(b"two")));
        log.put_and_forget(b"three");
        writing.join().unwrap();
        log.check(2);
        reading.into_iter().for_each(|reader| reader.join().unwrap());
    });
}
