//! Reads of many objects in one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_disk::{Disk, Op};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Error, GetMany, Options, Store};
use haul_testing::{PrintOnPanic, Random, disk_dir, replay_command, seed};
use rustix::io::Errno;

use crate::{BUCKET, content, put, random_bytes, small, without_checkpoints};

/// Returns options with which objects up to 1 MiB are stored in volumes.
fn options() -> Options {
    Options { big_object_bytes: 1 << 20, ..without_checkpoints() }
}

fn store_on(disk: &MemoryDisk) -> Store {
    let (store, _) = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store
}

/// Stores an object of `bytes` bytes under each number.
fn fill(store: &Store, count: u64, bytes: usize) -> Vec<String> {
    let name = |n| format!("{n:03}");
    (0..count).for_each(|n| drop(put(store, &name(n), &random_bytes(n, bytes))));
    (0..count).map(name).collect()
}

fn texts(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

/// Asserts that `get_many` returns the result of `get` for each key.
pub(crate) fn agrees_with_get(store: &Store, bucket: &str, keys: &[&str]) {
    let mut seen = vec![false; keys.len()];
    let mut results: GetMany<'_> = store.get_many(bucket, keys);
    assert_eq!(results.len(), keys.len());
    for (index, many) in results.by_ref() {
        let key = keys[index];
        assert!(!std::mem::replace(&mut seen[index], true), "{key} is returned twice");
        match (many, store.get(bucket, key)) {
            (Ok(many), Ok(one)) => {
                assert_eq!((&many.info, &many.attributes), (&one.info, &one.attributes));
                assert!(content(&many).ok() == content(&one).ok(), "{key} has other bytes");
            }
            (Err(many), Err(one)) => assert_eq!(many.to_string(), one.to_string()),
            (many, one) => panic!("{key}: {:?}, but get returns {:?}", many.err(), one.err()),
        }
    }
    assert!(seen.iter().all(|seen| *seen), "a key has no result");
    assert!(results.next().is_none() && results.len() == 0);
}

fn check_all_kinds(store: &Store) {
    let lengths = [0, 1, 100, 4096, 50_000, 70_000, 131_072, 140_000, 400_000, 900_000, 1 << 20];
    let mut keys: Vec<String> = Vec::new();
    for (n, length) in (0..40).zip(lengths.into_iter().cycle()) {
        keys.push(format!("{n} of {length} bytes"));
        put(store, &keys[keys.len() - 1], &random_bytes(n, length));
    }
    for n in 0..10 {
        keys.push(format!("absent {n}"));
    }
    let mut keys = texts(&keys);
    let mut random = Random(seed());
    (0..20).for_each(|_| keys.push(keys[random.index(40)]));
    (0..keys.len()).for_each(|at| keys.swap(at, random.index(50)));
    agrees_with_get(store, BUCKET, &keys);
    agrees_with_get(store, "no-bucket", &keys[..3]);
    agrees_with_get(store, BUCKET, &[]);
    agrees_with_get(store, BUCKET, &keys[..1]);
}

#[test]
fn objects_of_all_lengths_equal_those_of_get() {
    check_all_kinds(&store_on(&MemoryDisk::default()));
    // On a real disk, the objects are read through io_uring.
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    check_all_kinds(&store);
}

#[test]
fn adjacent_needles_are_one_read() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let short = fill(&store, 100, 1000);
    let mut keys = texts(&short);
    keys.reverse();
    for (keys, reads) in [(&keys[..], 1), (&keys[..1], 1), (&[keys[0], keys[0], "absent"][..], 1)] {
        let (before, counted) = (disk.calls(Op::Read), store.stats());
        let found: Vec<usize> = store
            .get_many(BUCKET, keys)
            .filter_map(|(index, object)| object.is_ok().then_some(index))
            .collect();
        assert_eq!(disk.calls(Op::Read) - before, reads);
        let stats = store.stats();
        assert_eq!(stats.needle_reads - counted.needle_reads, reads);
        assert_eq!(stats.gets - counted.gets, keys.len() as u64);
        if keys.len() == 100 {
            assert!(found.iter().rev().copied().eq(0..100), "not in the order of the disk");
        }
    }
}

#[test]
fn distant_needles_are_one_read_each() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let long = fill(&store, 60, 30_000);
    let keys = texts(&long);
    let every_other: Vec<&str> = keys.iter().copied().step_by(2).collect();
    for (keys, reads) in [(every_other, 30), (keys, 60_u64.div_ceil(8))] {
        let before = disk.calls(Op::Read);
        assert!(store.get_many(BUCKET, &keys).all(|(_, object)| object.is_ok()));
        assert_eq!(disk.calls(Op::Read) - before, reads);
    }
}

#[test]
fn only_the_head_of_a_long_object_is_read() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let long = fill(&store, 10, 300_000);
    let before = store.stats().needle_read_bytes;
    for (index, object) in store.get_many(BUCKET, &texts(&long)) {
        let object = object.unwrap();
        assert!(!object.is_in_memory());
        assert!(content(&object).unwrap() == random_bytes(index as u64, 300_000));
    }
    let bytes = store.stats().needle_read_bytes - before;
    assert_eq!(bytes, 10 * (32 + 4096 + 300_000));
}

#[test]
fn damaged_needle_fails_only_its_key() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let keys = fill(&store, 50, 3000);
    let name = "volumes/0000000001.segment";
    let start = {
        let (mut medium, bytes) = (disk.medium(), random_bytes(20, 3000));
        let volume = medium.file(name);
        volume.windows(64).position(|window| *window == bytes[..64]).unwrap() as u64
    };
    // The data, and the header of the record.
    for offset in [start + 100, start - 70] {
        disk.rot(name, offset, 2);
        for (index, object) in store.get_many(BUCKET, &texts(&keys)) {
            match object {
                Ok(object) => {
                    assert_ne!(index, 20);
                    assert!(content(&object).unwrap() == random_bytes(index as u64, 3000));
                }
                Err(error) => {
                    assert_eq!(index, 20);
                    assert!(matches!(error, Error::Damaged { .. }), "{error:?}");
                }
            }
        }
        agrees_with_get(&store, BUCKET, &texts(&keys));
    }
    assert_eq!(store.damage()[0].key.as_deref(), Some("020"));
}

#[test]
fn failed_read_of_a_run_is_repeated_for_each_needle() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let keys = fill(&store, 50, 3000);
    disk.fail_once(Op::Read, 1, Errno::IO);
    let before = disk.calls(Op::Read);
    assert!(store.get_many(BUCKET, &texts(&keys)).all(|(_, object)| object.is_ok()));
    assert_eq!(disk.calls(Op::Read) - before, 51);
    disk.fail_always(Op::Read, Errno::IO);
    let failed = |(_, object): (usize, _)| matches!(object, Err(Error::Disk(_)));
    assert!(store.get_many(BUCKET, &texts(&keys)).all(failed));
    disk.heal();
    disk.transfer_at_most(1000);
    agrees_with_get(&store, BUCKET, &texts(&keys));
}

#[test]
fn needles_moved_during_the_iteration_are_found() {
    let disk = MemoryDisk::default();
    let store = store_on(&disk);
    let keys = fill(&store, 200, 60_000);
    let keys = texts(&keys);
    let mut objects = store.get_many(BUCKET, &keys);
    let mut found = vec![objects.next().unwrap()];
    let removed = |number: u32| {
        let name = format!("volumes/{number:010}.segment");
        !disk.list("volumes").unwrap().iter().any(|volume| name.ends_with(volume.as_str()))
    };
    // One object in five is overwritten, so that compaction moves the others.
    (0..200).step_by(5).for_each(|n| drop(put(&store, &format!("{n:03}"), b"overwritten")));
    for round in 0..200 {
        put(&store, "filler", &random_bytes(round, 60_000));
    }
    store.compact().unwrap();
    assert!(removed(1) && removed(2), "{:?}", disk.list("volumes"));
    found.extend(objects.by_ref());
    assert_eq!(found.len(), keys.len());
    for (index, object) in found {
        let (bytes, n) = (content(&object.unwrap()).unwrap(), index as u64);
        let is_old = bytes == random_bytes(n, 60_000);
        assert!(is_old || n.is_multiple_of(5) && bytes == b"overwritten", "{n}");
    }
}

#[test]
fn unfinished_iterator_can_be_dropped() {
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), options()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let keys = fill(&store, 40, 30_000);
    let keys: Vec<&str> = texts(&keys).into_iter().step_by(2).collect();
    for taken in 0..20 {
        let mut objects = store.get_many(BUCKET, &keys);
        assert_eq!(
            objects.by_ref().take(taken).filter(|(_, object)| object.is_ok()).count(),
            taken
        );
        assert_eq!(objects.len(), keys.len() - taken);
    }
    store.close().unwrap();
}

#[test]
fn objects_changed_and_compacted_during_the_iteration_are_consistent() {
    let seed = seed();
    let _context = PrintOnPanic(format!("get_many\n{}", replay_command(seed)));
    let dir = disk_dir();
    let (store, _) = Store::open(dir.path(), small()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    // In volumes and in files of their own.
    let version = |n: u8| vec![n; if n.is_multiple_of(16) { 70_000 } else { 20_000 }];
    let keys: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    let keys = texts(&keys);
    keys.iter().for_each(|key| drop(put(&store, key, &version(1))));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..2 {
            let (store, keys, done) = (&store, &keys, &done);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    for (index, object) in store.get_many(BUCKET, keys) {
                        match object {
                            Ok(object) => {
                                assert_eq!(object.info.key, keys[index], "reader {reader}");
                                let bytes = content(&object).unwrap();
                                assert!(bytes == version(bytes[0]), "bytes of two states");
                            }
                            // Only the last keys are deleted.
                            Err(Error::NoSuchKey { key, .. }) => {
                                assert!(index >= 50 && key == keys[index]);
                            }
                            Err(other) => panic!("{}: {other:?}", keys[index]),
                        }
                    }
                }
            });
        }
        let mut random = Random(seed);
        for round in 0..2000_u64 {
            let key = random.index(keys.len());
            if key >= 50 && random.below(2) == 0 {
                store.delete(BUCKET, keys[key]).unwrap();
            } else {
                put(&store, keys[key], &version(random.number().to_le_bytes()[0]));
            }
            if round % 50 == 0 {
                store.compact().unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(store.stats().volumes_compacted > 3, "{:?}", store.stats());
    agrees_with_get(&store, BUCKET, &keys);
}
