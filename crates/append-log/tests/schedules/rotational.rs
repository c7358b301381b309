//! Tests a log on a rotational disk, on which reads and syncs take turns: nothing waits forever, and
//! a failed sync ends its turn and stays final.

use haul_append_log::{Error, SpacePriority};
use haul_sync::shuttle::rand::{Rng, thread_rng};

use crate::explore::Body;
use crate::{Fixture, explore, in_threads};

/// The number of times that a thread reads a record. Two threads start more reads than a waiting
/// sync lets start before it.
const READS: usize = 12;

#[test]
fn reads_and_syncs_take_turns_and_all_end() {
    explore("turns", || {
        let log = Fixture::rotational();
        assert!(log.put(b"first"));
        let at = log.acknowledged.lock().unwrap()[0].0;
        let thread = |body: fn(&Fixture, haul_append_log::Position)| -> Body {
            let log = log.clone();
            Box::new(move || body(&log, at))
        };
        let read = |log: &Fixture, at| {
            (0..READS).for_each(|_| assert_eq!(log.log.read(at).unwrap().payload(), b"first"));
        };
        in_threads(vec![
            thread(read),
            thread(read),
            thread(|log, _| assert!(log.put(b"second") && log.put(b"third"))),
            thread(|log, at| {
                assert!(log.put(b"fourth"));
                assert_eq!(log.log.read(at).unwrap().payload(), b"first");
                log.put_and_forget(b"fifth");
            }),
        ]);
        log.read(5);
        log.check(4);
    });
}

#[test]
fn failed_sync_is_final_and_ends_its_turn() {
    explore("failed syncs in turns", || {
        let log = Fixture::rotational();
        assert!(log.put(b"first"));
        let at = log.acknowledged.lock().unwrap()[0].0;
        log.disk.fail_sync(thread_rng().gen_range(1..3));
        let writer = |byte: u8| -> Body {
            let log = log.clone();
            Box::new(move || while log.put(&[byte; 100]) {})
        };
        let other = log.clone();
        let mut bodies: Vec<_> = (1..3).map(writer).collect();
        bodies.push(Box::new(move || {
            (0..READS).for_each(|_| drop(other.log.read(at).unwrap()));
        }));
        in_threads(bodies);
        let later = log.log.append(&[b"later"], SpacePriority::Ordinary);
        assert!(matches!(later.map(drop), Err(Error::Latched { .. })));
        assert_eq!(log.log.read(at).unwrap().payload(), b"first");
    });
}
