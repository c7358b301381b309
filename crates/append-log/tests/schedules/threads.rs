//! Tests threads that append, read, close and truncate a log, with failing syncs and new segments.

use haul_append_log::{Lsn, SpacePriority, Ticket};
use haul_sync::shuttle::rand::{Rng, thread_rng};
use haul_sync::shuttle::thread;

use crate::{Fixture, explore, explore_part, in_threads, is_durable};

/// The payload length of a record that fills nearly half a buffer, in bytes.
const HALF_BUFFER: usize = 28_000;

#[test]
fn writers_that_wait_are_all_acknowledged() {
    explore("writers", || {
        let log = Fixture::new();
        let writer = |byte: u8| {
            let log = log.clone();
            Box::new(move || {
                assert!(log.put(&[byte; 40]) && log.put(&[byte; 100]));
            }) as Box<dyn FnOnce() + Send>
        };
        in_threads((1..4).map(writer).collect());
        log.check(6);
    });
}

#[test]
fn records_of_dropped_tickets_become_durable() {
    explore("dropped tickets", || {
        let log = Fixture::new();
        let (a, b, c) = (log.clone(), log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || assert!(a.put(b"first") && a.put(b"second"))),
            Box::new(move || assert!(b.put(b"third"))),
            Box::new(move || {
                c.put_and_forget(b"fourth");
                c.put_and_forget(b"fifth");
            }),
        ]);
        // All writers have ended. Reading waits until the last record is durable.
        log.read(5);
        log.check(3);
    });
}

#[test]
fn record_of_a_dropped_ticket_does_not_depend_on_notified_threads() {
    explore("threads woken before", || {
        // An idle log must not write a watermark (a record that proves earlier syncs), because that
        // would also sync the record of the dropped ticket.
        let log = Fixture::with_idle_watermark(0);
        let (a, b, c, d) = (log.clone(), log.clone(), log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || assert!(a.put(b"first") && a.put(b"second"))),
            Box::new(move || assert!(b.put(b"third"))),
            Box::new(move || assert!(c.put(b"fourth"))),
            Box::new(move || d.put_and_forget(b"fifth")),
        ]);
        log.read(5);
        log.check(4);
    });
}

#[test]
fn watermark_follows_acknowledged_records() {
    explore("watermarks", || {
        let log = Fixture::with_idle_watermark(0);
        let (a, b) = (log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || assert!(a.put(b"first") && a.put(b"second"))),
            Box::new(move || {
                assert!(b.put(b"third"));
                b.put_and_forget(b"fourth");
            }),
        ]);
        log.read(4);
        // The commit thread may still notify other threads, or wait for more records.
        let batches = log.log.stats().batches;
        log.log.write_watermark().unwrap();
        assert_eq!(log.log.stats().batches, batches + 1);
        log.check(3);
    });
}

#[test]
fn readers_that_wait_get_every_record_and_the_end() {
    explore("readers", || {
        let log = Fixture::new();
        let mut reader = log.log.reader(Lsn::default());
        let reading = thread::spawn(move || {
            let mut count = 0;
            while reader.wait_next(None).unwrap().is_some() {
                count += 1;
            }
            count
        });
        let other = log.clone();
        let writing = thread::spawn(move || assert!(other.put(b"one") && other.put(b"two")));
        log.put_and_forget(b"three");
        writing.join().unwrap();
        log.check(2);
        assert_eq!(reading.join().unwrap(), 3);
    });
}

#[test]
fn full_buffers_delay_writers_and_stop_none() {
    explore("full buffers", || {
        let log = Fixture::new();
        let (a, b, c) = (log.clone(), log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || (0..3).for_each(|n| assert!(a.put(&[n; HALF_BUFFER])))),
            Box::new(move || (3..6).for_each(|n| b.put_and_forget(&[n; HALF_BUFFER]))),
            Box::new(move || (6..8).for_each(|n| assert!(c.put(&[n; HALF_BUFFER])))),
        ]);
        log.read(8);
        log.check(5);
    });
}

#[test]
fn every_writer_gets_an_outcome_when_a_sync_fails() {
    explore("failed syncs", || {
        let log = Fixture::new();
        log.disk.fail_sync(thread_rng().gen_range(1..5));
        let writer = |byte: u8| {
            let log = log.clone();
            Box::new(move || {
                log.put(&[byte; HALF_BUFFER]);
                log.put(&[byte; 100]);
            }) as Box<dyn FnOnce() + Send>
        };
        let mut reader = log.log.reader(Lsn::default());
        let reading = thread::spawn(move || while reader.wait_next(None).unwrap().is_some() {});
        let mut bodies: Vec<_> = (1..4).map(writer).collect();
        let other = log.clone();
        bodies.push(Box::new(move || {
            let ticket = other.log.append(&[b"begun"], SpacePriority::Ordinary);
            ticket.iter().for_each(Ticket::request_commit);
            other.note(other.log.sync().and_then(|()| ticket?.wait()), b"begun");
        }));
        in_threads(bodies);
        drop(log);
        reading.join().unwrap();
    });
}

#[test]
fn tickets_outlive_the_log_and_get_an_outcome() {
    explore("tickets that outlive the log", || {
        let log = Fixture::new();
        let append = |payload: &[u8]| log.log.append(&[payload], SpacePriority::Ordinary).unwrap();
        let (first, second) = (append(b"first"), append(b"second"));
        let (a, b) = (log.disk.clone(), log.disk.clone());
        let waiting = [
            thread::spawn(move || assert!(is_durable(&a, first.wait().unwrap(), b"first"))),
            thread::spawn(move || assert!(is_durable(&b, second.wait().unwrap(), b"second"))),
        ];
        let other = log.clone();
        let writing = thread::spawn(move || assert!(other.put(b"third")));
        drop(log);
        waiting.into_iter().for_each(|thread| thread.join().unwrap());
        writing.join().unwrap();
    });
}

#[test]
fn segments_change_under_writers() {
    explore_part("segments", 20, || {
        let log = Fixture::new();
        let (a, b) = (log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || (0..20).for_each(|n| assert!(a.put(&[n; HALF_BUFFER])))),
            Box::new(move || (20..45).for_each(|n| b.put_and_forget(&[n; HALF_BUFFER]))),
        ]);
        log.read(45);
        assert!(log.log.segments().len() > 1);
        log.check(20);
    });
}

#[test]
fn truncations_stop_no_writer() {
    explore_part("truncations", 4, || {
        let log = Fixture::new();
        assert!(log.put(b"kept"));
        let end = log.log.synced();
        let (a, b) = (log.clone(), log.clone());
        in_threads(vec![
            Box::new(move || {
                for payload in [b"one", b"two"] {
                    assert!(
                        a.log.append(&[payload], SpacePriority::Ordinary).unwrap().wait().is_ok()
                    );
                }
            }),
            Box::new(move || b.log.truncate_back(end).unwrap()),
        ]);
        log.check(1);
    });
}
