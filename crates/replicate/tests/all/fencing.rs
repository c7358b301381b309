//! Tests that only the owner of a copy extends it.

use std::sync::Arc;
use std::thread;

use futures_util::FutureExt;
use haul_disk_sim::MemoryDisk;
use haul_replicate::{Error, Remote};
use object_store::ObjectStoreExt;

use crate::faulty::{Fault, FaultyStore};
use crate::log::{read, write};
use crate::{TestLog, records, restore};

/// A claim may be executed after its sender has got an error, and claims again.
#[test]
fn claim_that_is_executed_late_does_not_lock_its_directory_out() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"one");
    log.follow(&remote).unwrap().stop().unwrap();
    let before = read(&store, "copy/manifest");
    store.set_plan(|_| Fault::AnswerLost);
    assert!(matches!(log.follow(&remote), Err(Error::Remote { .. })));
    let late = read(&store, "copy/manifest");
    store.set_plan(|_| Fault::None);
    write(&store, "copy/manifest", before);
    store.set_plan(|_| Fault::Refused);
    assert!(matches!(log.follow(&remote), Err(Error::Remote { .. })));
    store.set_plan(|_| Fault::None);
    write(&store, "copy/manifest", late);
    log.put(b"two");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [b"one", b"two"]);
}

/// The last round of a process that was killed may be executed while the next process claims.
#[test]
fn claim_is_repeated_after_a_late_round_of_the_same_directory() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"one");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let before = read(&store, "copy/manifest");
    log.put(b"two");
    store.set_plan(|_| Fault::AnswerLost);
    assert!(replica.stop().is_err());
    store.set_plan(|_| Fault::None);
    let late = read(&store, "copy/manifest");
    write(&store, "copy/manifest", before);
    let (claim, other) = (store.changes() + 1, store.connect());
    store.set_plan(move |change| {
        if change == claim {
            let name = "copy/manifest".into();
            other.put(&name, late.clone().into()).now_or_never().unwrap().unwrap();
        }
        Fault::None
    });
    log.follow(&remote).unwrap().stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [b"one", b"two"]);
}

/// The copy of a complete segment also contains its seal, after which a log does not end.
#[test]
fn log_that_ends_before_a_complete_segment_of_the_copy_is_refused() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"one");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let older = TestLog::open(MemoryDisk::on(&log.disk.medium()));
    log.put(b"two");
    // Seals the segment.
    log.log.truncate_back(log.log.synced()).unwrap();
    replica.wait().unwrap();
    let refused = older.follow(&remote);
    assert!(matches!(refused, Err(Error::NotThisLog { .. })), "{refused:?}");
    replica.stop().unwrap();
    let reopened = TestLog::open(MemoryDisk::on(&log.disk.medium()));
    reopened.put(b"three");
    reopened.follow(&remote).unwrap().stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [&b"one"[..], b"two", b"three"]);
}

/// The log that was restored grows until it is as long as the copy: each opening adds a record.
#[test]
fn restored_log_is_refused_after_the_copy_was_extended() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"one");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let restored = restore(Arc::new(store.clone()));
    log.put(b"two");
    replica.wait().unwrap();
    while TestLog::open(restored.clone()).log.synced() <= log.log.synced() {}
    let refused = TestLog::open(restored).follow(&remote);
    assert!(matches!(refused, Err(Error::NotThisLog { .. })), "{refused:?}");
    replica.stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [b"one", b"two"]);
}

/// A disk that was restored from a backup has the session of the owner.
#[test]
fn log_that_was_refused_is_refused_when_it_is_as_long_as_the_copy() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    log.put(b"one");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let older = MemoryDisk::on(&log.disk.medium());
    log.put(&[2; 1000]);
    replica.wait().unwrap();
    let follow = || TestLog::open(older.clone()).follow(&remote);
    let refused = follow();
    assert!(matches!(refused, Err(Error::NotThisLog { .. })), "{refused:?}");
    while TestLog::open(older.clone()).log.synced() <= log.log.synced() {}
    let refused = follow();
    assert!(matches!(refused, Err(Error::NotThisLog { .. })), "{refused:?}");
    replica.stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [&b"one"[..], &[2; 1000]]);
}

#[test]
fn copy_of_another_log_is_not_overwritten() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let (log, other) = (TestLog::new(), TestLog::new());
    log.put(b"one");
    log.follow(&remote).unwrap().stop().unwrap();
    other.put(b"another");
    let refused = other.follow(&remote).unwrap_err();
    assert!(matches!(refused, Error::NotThisLog { .. }), "{refused:?}");
    // Under another prefix, it has a copy of its own.
    let elsewhere = Remote::new(Arc::new(store.clone()), "elsewhere").unwrap();
    other.follow(&elsewhere).unwrap().stop().unwrap();
    assert_eq!(records(&restore(Arc::new(store))), [b"one"]);
}

#[test]
fn log_older_than_its_copy_is_refused() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let disk = MemoryDisk::default();
    let log = TestLog::open(disk.clone());
    log.put(b"one");
    let replica = log.follow(&remote).unwrap();
    replica.wait().unwrap();
    let backup = MemoryDisk::on(&disk.medium());
    log.put(b"two");
    replica.stop().unwrap();
    let older = TestLog::open(backup);
    let refused = older.follow(&remote).unwrap_err();
    assert!(matches!(refused, Error::NotThisLog { .. }), "{refused:?}");
    log.follow(&remote).unwrap().stop().unwrap();
}

/// Of two processes that claim the same copy and commit at the same time, one at most continues.
#[test]
fn two_writers_never_both_commit() {
    for round in 0..200 {
        let store = FaultyStore::new();
        let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
        let first = TestLog::new();
        first.put(b"common");
        first.follow(&remote).unwrap().stop().unwrap();
        let second = TestLog::open(restore(Arc::new(store.clone())));
        let confirmed = thread::scope(|scope| {
            let run = |log: &TestLog, name: &'static str| -> Vec<Vec<u8>> {
                let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
                let Ok(replica) = log.follow(&remote) else { return Vec::new() };
                let mut confirmed = Vec::new();
                for number in 0..5 {
                    let payload = format!("{name} {number}").into_bytes();
                    log.put(&payload);
                    if replica.wait().is_err() {
                        break;
                    }
                    confirmed.push(payload);
                }
                confirmed
            };
            let (first, second) = (&first, &second);
            let one = scope.spawn(move || run(first, "first"));
            let two = run(second, "second");
            [one.join().unwrap(), two]
        });
        let copied = records(&restore(Arc::new(store)));
        // A record that was confirmed before the takeover, and is not in the log that took over,
        // would be lost.
        for payload in confirmed.iter().flatten() {
            assert!(copied.contains(payload), "round {round}: {confirmed:?} {copied:?}");
        }
    }
}
