//! Tests threads and futures that append records longer than an append buffer, or than the next
//! segment, among short ones.

use haul_append_log::{Error, Position, SpacePriority, Ticket};
use haul_sync::shuttle::rand::{Rng, thread_rng};

use crate::tasks::{Executor, OnWake};
use crate::{Fixture, explore_part, in_threads};

/// The payload length of a record that fills nearly half a buffer, in bytes.
const HALF_BUFFER: usize = 28_000;

/// The payload length of a record that is longer than a buffer of 64 KiB.
const LONG: usize = 100_000;

#[test]
fn long_records_of_threads_delay_writers_and_stop_none() {
    explore_part("long records", 2, || {
        let log = Fixture::new();
        let (a, b, c) = (log.clone(), log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || (0..2).for_each(|n| assert!(a.put(&vec![n; LONG])))),
            Box::new(move || {
                b.put_and_forget(&[3; HALF_BUFFER]);
                b.put_and_forget(&vec![4; LONG]);
                b.put_and_forget(&[5; HALF_BUFFER]);
            }),
            Box::new(move || (6..9).for_each(|n| assert!(c.put(&[n; HALF_BUFFER])))),
        ]);
        log.read(8);
        log.check(5);
    });
}

#[test]
fn long_records_of_futures_delay_writers_and_stop_none() {
    explore_part("futures and long records", 2, || {
        let log = Fixture::new();
        let executor = Executor::default();
        for (on_wake, byte) in [(OnWake::Queue, 1_u8), (OnWake::PollInline, 2), (OnWake::Panic, 3)]
        {
            let log = log.clone();
            executor.spawn(on_wake, async move {
                assert!(log.put_async(&vec![byte; LONG]).await);
                assert!(log.put_async(&[byte; 90]).await);
            });
        }
        drop(log.log.try_append(&[&vec![4; LONG]], SpacePriority::Ordinary).unwrap());
        let running = executor.start();
        assert!(log.put(&[5; HALF_BUFFER]) && log.put(&vec![6; LONG]));
        running.join().unwrap();
        log.check(8);
    });
}

#[test]
fn long_records_get_longer_segments_under_writers() {
    explore_part("long records and segments", 10, || {
        let log = Fixture::growing();
        let executor = Executor::default();
        let future = log.clone();
        executor.spawn(OnWake::Queue, async move {
            assert!(future.put_async(&vec![1; 3 * LONG]).await);
            assert!(future.put_async(&vec![2; 7 * LONG]).await);
        });
        let running = executor.start();
        let (a, b) = (log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || (3..5).for_each(|n| assert!(a.put(&vec![n; 6 * LONG])))),
            Box::new(move || (6..16).for_each(|n| assert!(b.put(&[n; HALF_BUFFER])))),
        ]);
        running.join().unwrap();
        assert!(log.log.segments().len() > 2);
        log.check(14);
    });
}

#[test]
fn every_writer_of_a_long_record_gets_an_outcome_when_a_sync_fails() {
    explore_part("long records and failed syncs", 2, || {
        let log = Fixture::growing();
        log.disk.fail_sync(thread_rng().gen_range(1..9));
        let executor = Executor::default();
        let future = log.clone();
        executor.spawn(OnWake::Queue, async move {
            let payload = vec![1; 2 * LONG];
            let outcome = match future.log.append(&[&payload], SpacePriority::Ordinary) {
                Ok(ticket) => ticket.await,
                Err(error) => Err(error),
            };
            note(&future, outcome, &payload);
        });
        let running = executor.start();
        let writer = |byte: u8, bytes: usize| {
            let log = log.clone();
            Box::new(move || {
                for payload in [vec![byte; bytes], vec![byte; 100]] {
                    let ticket = log.log.append(&[&payload], SpacePriority::Ordinary);
                    note(&log, ticket.and_then(Ticket::wait), &payload);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        in_threads(vec![writer(2, LONG), writer(3, HALF_BUFFER), writer(4, 3 * LONG)]);
        drop(log);
        running.join().unwrap();
    });
}

/// Checks that an acknowledged record is durable. A failed sync may be that of a new segment, whose
/// creation is repeated for the next record.
fn note(log: &Fixture, outcome: Result<Position, Error>, payload: &[u8]) {
    if !matches!(outcome, Err(Error::Disk(_))) {
        log.note(outcome, payload);
    }
}
