//! Tests that a copy can be restored as it was at an earlier time.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_append_log::Lsn;
use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Precondition, Store};
use haul_replicate::{
    Error, Fetch, Options, Progress, Remote, Replica, Restored, StoreSource, restore_log,
    restore_log_at, restore_store, restore_store_at,
};
use haul_testing::eventually;

use crate::faulty::{Fault, FaultyStore};
use crate::log::names;
use crate::{TestLog, options, records};

/// The shortest time between two kept states.
const EVERY: Duration = Duration::from_millis(40);

/// Options that keep states longer than the test runs.
fn kept() -> Options {
    Options { keep_every: EVERY, keep: EVERY * 10_000, ..options() }
}

fn at(written_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(written_ms)
}

/// Waits until the next state is kept, too, and has a later time.
fn pass(written_ms: u64) {
    eventually("the time passes", || SystemTime::now() > at(written_ms) + EVERY * 2);
}

fn empty() -> (MemoryDisk, Arc<dyn Disk>) {
    let disk = MemoryDisk::default();
    (disk.clone(), Arc::new(disk))
}

fn follow(log: &TestLog, remote: &Remote, options: Options) -> Replica {
    let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
    Replica::follow_with(log.source(), remote, options, progress).unwrap()
}

/// Returns the newest state of a copy.
fn newest(remote: &Remote) -> (Restored, Vec<Vec<u8>>) {
    let (disk, on) = empty();
    let restored = restore_log(remote, &on).unwrap();
    (restored, records(&disk))
}

/// Writes batches, of which segments are merged and removed, and the process restarts in between.
/// Each state can be restored afterwards.
fn restores_each_state(fault: Fault) {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let mut states = Vec::new();
    for restart in 0..3_u32 {
        let replica = follow(&log, &remote, kept());
        store.set_plan(move |change| if change % 7 == 3 { fault } else { Fault::None });
        for batch in 0..12_u64 {
            log.put_numbers(100 * batch..100 * batch + 10, 30_000);
            if batch % 5 == 4 {
                let first = log.log.segments()[0].number;
                log.log.truncate_front(Lsn::new(first + 1, 0)).unwrap();
                log.put(b"truncated");
            }
            replica.wait().unwrap();
            let (restored, found) = newest(&remote);
            pass(restored.written_ms);
            states.push((restored.written_ms, found));
        }
        store.set_plan(|_| Fault::None);
        log.put(format!("restart {restart}").as_bytes());
        replica.stop().unwrap();
        // Of two states of the same millisecond, one is kept.
        pass(newest(&remote).0.written_ms);
    }
    for (number, (written_ms, expected)) in states.iter().enumerate() {
        let (disk, on) = empty();
        let restored = restore_log_at(&remote, &on, at(*written_ms)).unwrap();
        assert_eq!(restored.written_ms, *written_ms, "state {number}");
        assert!(records(&disk) == *expected, "state {number}");
        // It is older than the copy, which it may not continue.
        let old = TestLog::open(disk);
        let refused = old.follow(&remote);
        assert!(matches!(refused, Err(Error::NotThisLog { .. })), "{refused:?}");
    }
    let (_, on) = empty();
    let refused = restore_log_at(&remote, &on, at(states[0].0 - 10_000)).unwrap_err();
    assert!(matches!(refused, Error::NotKept { .. }), "{refused:?}");
}

#[test]
fn each_kept_state_can_be_restored() {
    restores_each_state(Fault::None);
}

#[test]
fn each_kept_state_can_be_restored_after_faults() {
    restores_each_state(Fault::Refused);
    restores_each_state(Fault::AnswerLost);
}

#[test]
fn objects_of_states_that_are_too_old_are_deleted() {
    let store = FaultyStore::new();
    let remote = Remote::new(Arc::new(store.clone()), "copy").unwrap();
    let log = TestLog::new();
    let replica = follow(&log, &remote, kept());
    for batch in 0..8 {
        log.put_numbers(batch * 10..batch * 10 + 10, 30_000);
        replica.wait().unwrap();
    }
    pass(newest(&remote).0.written_ms);
    log.log.truncate_front(Lsn::new(3, 0)).unwrap();
    log.put(b"after");
    replica.wait().unwrap();
    let first_names = |name: &String| name.contains("/0000000001-");
    assert!(names(&store).iter().any(first_names));
    replica.stop().unwrap();
    // A process that keeps nothing deletes them, and the list of states with them.
    let replica = follow(&log, &remote, options());
    log.put(b"last");
    replica.wait().unwrap();
    replica.stop().unwrap();
    let left = names(&store);
    assert!(!left.iter().any(first_names), "{left:?}");
    assert!(!left.iter().any(|name| name.contains("/history/")), "{left:?}");
    let distinct: HashSet<_> = left.iter().collect();
    assert_eq!(distinct.len(), left.len());
    let (restored, _) = newest(&remote);
    let (_, on) = empty();
    let refused = restore_log_at(&remote, &on, at(restored.written_ms - 1)).unwrap_err();
    let oldest = restored.written_ms;
    assert!(matches!(refused, Error::NotKept { oldest_ms } if oldest_ms == oldest), "{refused}");
}

#[test]
fn deleted_big_object_is_in_the_state_before_its_deletion() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let disk = MemoryDisk::default();
    let store_options = || haul_file_store::Options {
        volume_bytes: 4 << 20,
        big_object_bytes: 64 << 10,
        idle_watermark_ms: 0,
        lifecycle_check_every: Duration::ZERO,
        ..haul_file_store::Options::default()
    };
    let content = vec![7; 200_000];
    let mut before = 0;
    for round in 0..2 {
        let (store, _) = Store::open_on(Arc::new(disk.clone()), store_options()).unwrap();
        let store = Arc::new(store);
        let source = StoreSource::new(Arc::clone(&store), Arc::new(disk.clone()));
        let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
        let replica = Replica::follow_with(source, &remote, kept(), progress).unwrap();
        if round == 0 {
            store.create_bucket("bucket").unwrap();
            let none = Attributes::new();
            store.put("bucket", "big", &content, &none, &Precondition::None).unwrap();
            replica.wait().unwrap();
            let (_, on) = empty();
            before = restore_store(&remote, &on, Fetch::Everything).unwrap().written_ms;
            pass(before);
            assert!(store.delete("bucket", "big").unwrap());
        }
        // In the second round, the file is found to be unused.
        store.put("bucket", "other", b"x", &Attributes::new(), &Precondition::None).unwrap();
        replica.wait().unwrap();
        replica.stop().unwrap();
        Arc::into_inner(store).unwrap().close().unwrap();
    }
    let (_, on) = empty();
    assert_eq!(restore_store_at(&remote, &on, at(before)).unwrap().written_ms, before);
    let (store, report) = Store::open_on(on, store_options()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    let object = store.get("bucket", "big").unwrap();
    assert!(object.read(0, content.len()).unwrap().to_vec() == content);
    assert!(store.get("bucket", "other").is_err());
}
