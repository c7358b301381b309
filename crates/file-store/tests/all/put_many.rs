//! Storing many objects in one call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{
    ATTRIBUTE_BYTES_MAX, Attributes, Error, NewObject, ObjectInfo, Precondition, Result, Store,
};
use haul_testing::disk_dir;
use rustix::io::Errno;

use crate::crash::open_on;
use crate::{BIG, BUCKET, get, new_store, put, random_bytes, reopen, small, try_get};

/// Stores objects without attributes and preconditions.
fn put_many(store: &Store, objects: &[(String, Vec<u8>)]) -> Vec<Result<ObjectInfo>> {
    let (attributes, precondition) = (&Attributes::new(), &Precondition::None);
    let objects: Vec<_> = objects
        .iter()
        .map(|(key, bytes)| NewObject { key, bytes, attributes, precondition })
        .collect();
    store.put_many(BUCKET, &objects)
}

/// Returns objects with the keys of `numbers`, each of `length` bytes of its own.
fn numbered(numbers: std::ops::Range<u64>, length: usize) -> Vec<(String, Vec<u8>)> {
    numbers.map(|n| (format!("{n:05}"), random_bytes(n, length))).collect()
}

#[test]
fn objects_of_a_call_are_stored_as_by_single_puts() {
    let (dir, store) = new_store();
    // More than a batch, including empty, big and nearly big objects.
    let mut objects = numbered(0..5000, 100);
    for (number, length) in [(0, 0), (7, BIG), (8, BIG - 1), (9, BIG + 1), (4999, 3 * BIG)] {
        objects[number].1 = random_bytes(number as u64, length);
    }
    let infos: Vec<ObjectInfo> =
        put_many(&store, &objects).into_iter().map(Result::unwrap).collect();
    let one_by_one = |store: &Store| {
        for ((key, bytes), info) in objects.iter().zip(&infos) {
            assert!(get(store, key) == *bytes, "{key}");
            assert_eq!(store.stat(BUCKET, key).unwrap(), *info);
        }
        assert_eq!(store.stats().objects, 5000);
    };
    one_by_one(&store);
    let again = put(&store, "again", &objects[8].1);
    assert_eq!((again.etag, again.bytes), (infos[8].etag, infos[8].bytes));
    store.delete(BUCKET, "again").unwrap();
    assert_eq!(store.stats().puts, 5001);
    store.close().unwrap();
    one_by_one(&reopen(dir.path()).0);
}

#[test]
fn call_of_no_objects_does_nothing() {
    let (_dir, store) = new_store();
    let before = store.stats().log_batches;
    assert!(put_many(&store, &[]).is_empty());
    assert_eq!(store.stats().log_batches, before);
}

#[test]
fn last_of_several_objects_with_the_same_key_wins() {
    let (_dir, store) = new_store();
    let mut objects = numbered(0..10, 50);
    objects[3].0 = objects[1].0.clone();
    objects[9].0 = objects[1].0.clone();
    let infos: Vec<ObjectInfo> =
        put_many(&store, &objects).into_iter().map(Result::unwrap).collect();
    assert!(infos[1].etag != infos[3].etag && infos[3].etag != infos[9].etag);
    assert!(get(&store, &objects[1].0) == objects[9].1);
    assert_eq!(store.stats().objects, 8);
    assert!(store.stats().dead_volume_bytes > 0);
}

#[test]
fn each_object_is_refused_on_its_own() {
    let (_dir, store) = new_store();
    let etag = put(&store, "present", b"old").etag;
    let long = Attributes::from_iter([("name", "x".repeat(ATTRIBUTE_BYTES_MAX))]);
    let attributes = Attributes::from_iter([("name", "value")]);
    let (none, absent, present) = (Precondition::None, Precondition::Absent, Precondition::Present);
    let matches = Precondition::Matches(etag);
    let long_key = "k".repeat(1025);
    let rows: [(&str, &Attributes, &Precondition, bool); 11] = [
        ("good", &attributes, &none, true),
        ("", &attributes, &none, false),
        (&long_key, &attributes, &none, false),
        ("long", &long, &none, false),
        ("present", &attributes, &absent, false),
        ("missing", &attributes, &present, false),
        ("missing", &attributes, &matches, false),
        ("missing", &attributes, &absent, true),
        // The object exists now.
        ("missing", &attributes, &absent, false),
        ("present", &attributes, &matches, true),
        // The object has another ETag now.
        ("present", &attributes, &matches, false),
    ];
    let objects = rows.map(|(key, attributes, precondition, _)| NewObject {
        key,
        bytes: b"new",
        attributes,
        precondition,
    });
    let stored = store.put_many(BUCKET, &objects);
    for ((key, _, precondition, is_stored), outcome) in rows.iter().zip(&stored) {
        assert_eq!(outcome.is_ok(), *is_stored, "{key}, {precondition:?}: {outcome:?}");
    }
    assert!(matches!(stored[1], Err(Error::InvalidKey { .. })));
    assert!(matches!(stored[3], Err(Error::Invalid { .. })));
    assert!(matches!(stored[4], Err(Error::PreconditionFailed)));
    assert_eq!(store.stats().objects, 3);
    assert_eq!(store.get(BUCKET, "present").unwrap().attributes, attributes);
    let missing = store.put_many("missing", &objects);
    let valid = [0, 4, 5, 6, 7, 8, 9, 10];
    assert!(valid.iter().all(|n| matches!(missing[*n], Err(Error::NoSuchBucket { .. }))));
}

#[test]
fn batch_longer_than_the_buffer_of_the_log_is_stored() {
    // The buffer of the log has at least 1 MiB, which 16 objects fill.
    let options = haul_file_store::Options { volume_bytes: 16 << 20, ..small() };
    let options = haul_file_store::Options { big_object_bytes: 4 << 20, ..options };
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let objects = numbered(0..200, 300_000);
    thread::scope(|scope| {
        for part in objects.chunks(50) {
            let store = &store;
            scope.spawn(move || assert!(put_many(store, part).iter().all(Result::is_ok)));
        }
    });
    objects.iter().for_each(|(key, bytes)| assert!(get(&store, key) == *bytes, "{key}"));
}

#[test]
fn full_disk_stores_the_objects_before_the_refused_one() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    disk.limit(Some((20 << 20) + (100 << 10)));
    let objects = numbered(0..1000, 50_000);
    let outcomes = put_many(&store, &objects);
    let stored = outcomes.iter().take_while(|outcome| outcome.is_ok()).count();
    assert!((200..1000).contains(&stored), "{stored}");
    let is_full = |outcome: &Result<ObjectInfo>| matches!(outcome, Err(Error::Full { .. }));
    assert!(outcomes[stored..].iter().all(is_full), "{:?}", outcomes[stored]);
    let text = outcomes[999].as_ref().unwrap_err().to_string();
    assert_eq!(text, outcomes[stored].as_ref().unwrap_err().to_string());
    assert!(!store.stats().latched);
    let check = |store: &Store, stored: usize| {
        assert_eq!(store.stats().objects, stored as u64);
        objects[..stored].iter().for_each(|(key, bytes)| assert!(get(store, key) == *bytes));
    };
    check(&store, stored);
    // Replaced objects free their space while the call waits for it.
    let keys: Vec<&str> = objects[..stored].iter().map(|(key, _)| key.as_str()).collect();
    assert!(store.delete_many(BUCKET, &keys).into_iter().all(|gone| gone.unwrap()));
    let again = put_many(&store, &objects[..stored / 2]);
    assert!(again.iter().all(Result::is_ok), "{:?}", again.iter().find(|o| o.is_err()));
    drop(store);
    check(&open_on(&disk).0, stored / 2);
}

#[test]
fn failed_sync_is_returned_for_all_objects_and_hides_them() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    put(&store, "00000", b"before");
    disk.fail(Op::Sync, 1, u64::MAX, Errno::IO);
    let outcomes = put_many(&store, &numbered(0..5000, 100));
    assert_eq!(outcomes.len(), 5000);
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(Error::Log(_)))));
    disk.heal();
    assert!(store.stats().latched);
    assert_eq!(get(&store, "00000"), b"before");
    assert!(matches!(try_get(&store, "00001"), Err(Error::NoSuchKey { .. })));
    drop(store);
    let (store, _) = open_on(&MemoryDisk::on(&disk.medium()));
    assert_eq!(get(&store, "00000"), b"before");
}

#[test]
fn concurrent_calls_for_the_same_keys_neither_deadlock_nor_mix() {
    const ROUNDS: usize = 30;
    let (_dir, store) = new_store();
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (store, done) = (&store, &done);
            scope.spawn(move || {
                for round in 0..ROUNDS as u64 {
                    let mut objects = numbered(0..300, 0);
                    let bytes = random_bytes(thread * 1000 + round, 200);
                    objects.iter_mut().for_each(|(_, content)| content.clone_from(&bytes));
                    // Each thread lists the keys in another order.
                    match thread {
                        0 => {}
                        1 => objects.reverse(),
                        _ => objects.rotate_left(77 * usize::try_from(thread).unwrap()),
                    }
                    assert!(put_many(store, &objects).iter().all(Result::is_ok));
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
        let (store, done) = (&store, &done);
        scope.spawn(move || {
            while done.load(Ordering::Relaxed) < 4 {
                store.compact().unwrap();
                drop(store.delete(BUCKET, "00007"));
                thread::yield_now();
            }
        });
    });
    put(&store, "00007", b"bytes");
    let last: std::collections::HashSet<Vec<u8>> =
        (0..300).filter(|n| *n != 7).map(|n| get(&store, &format!("{n:05}"))).collect();
    // Each call is applied completely, because all its keys are locked together.
    assert_eq!(last.len(), 1);
    assert_eq!(store.stats().objects, 300);
    assert!(store.verify(&mut |_, _| {}).unwrap().damage.is_empty());
}
