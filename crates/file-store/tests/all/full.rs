//! A full disk: refused calls, successful calls, and recovery of space.

use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use haul_disk::{Disk, Op};
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Error, Expiry, Lifecycle, LifecycleRule, Store};
use haul_testing::{PrintOnPanic, Random, eventually, replay_command, seed};
use rustix::io::Errno;

use crate::contents::Contents;
use crate::crash::open_on;
use crate::script::Model;
use crate::script_inputs::Lengths;
use crate::{BIG, BUCKET, get, put, random_bytes, try_put};

const VOLUME: u64 = 4 << 20;

/// Stores small objects until the disk is full. Returns their number.
fn fill(store: &Store) -> u64 {
    for n in 0.. {
        match try_put(store, &format!("{n:04}"), &random_bytes(n, 50_000)) {
            Ok(_) => {}
            Err(Error::Full { .. }) => return n,
            Err(other) => panic!("{other:?}"),
        }
    }
    unreachable!("the disk has a limit")
}

/// Like [`fill`], but compacts whenever the disk is full, until that frees no space.
fn fill_and_compact(store: &Store) -> u64 {
    let (mut n, mut attempts) = (0, 0);
    loop {
        match try_put(store, &format!("{n:04}"), &random_bytes(n, 50_000)) {
            Ok(_) => (n, attempts) = (n + 1, 0),
            // The background thread compacts as well, and may be in the middle of a volume.
            Err(Error::Full { .. }) if attempts < 10 => {
                attempts += 1;
                // The disk may be full for compaction, too.
                drop(store.compact());
                thread::sleep(Duration::from_millis(20));
            }
            Err(Error::Full { .. }) => return n,
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn full_store() -> (MemoryDisk, Store, u64) {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    // One volume is reserved for compaction.
    disk.limit(Some(5 * VOLUME + (100 << 10)));
    let objects = fill(&store);
    (disk, store, objects)
}

fn check(store: &Store, objects: std::ops::Range<u64>) {
    assert_eq!(store.stats().objects, objects.end - objects.start);
    for n in objects {
        assert!(get(store, &format!("{n:04}")) == random_bytes(n, 50_000), "{n}");
    }
}

#[test]
fn objects_expire_on_a_full_disk_and_free_space() {
    let (_disk, store, objects) = full_store();
    // Setting rules needs space that a full disk does not have.
    assert!(store.delete(BUCKET, "0000").unwrap());
    store.compact().unwrap();
    let expire = Some(Expiry::At(UNIX_EPOCH));
    let rule = LifecycleRule { enabled: true, expire, ..LifecycleRule::default() };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
    let is_stored =
        |n: &u64| try_put(&store, &format!("{n:04}"), &random_bytes(*n, 50_000)).is_ok();
    let more = (objects..).take_while(is_stored).count() as u64;
    let report = store.expire_now(BUCKET).unwrap();
    assert_eq!(report.expired_objects, objects - 1 + more);
    store.compact().unwrap();
    put(&store, "more", &random_bytes(1, 50_000));
}

#[test]
fn dead_bytes_of_a_volume_that_cannot_be_ended_are_reported_as_such() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    // The volume being written, and the one that is reserved for compaction.
    disk.limit(Some(VOLUME + (300 << 10)));
    let objects = fill(&store);
    for n in 0..objects {
        assert!(store.delete(BUCKET, &format!("{n:04}")).unwrap());
    }
    let report = store.compact().unwrap();
    assert_eq!(report.volumes_removed, 0, "{report:?}");
    assert!(report.bytes_not_ended > VOLUME / 2, "{report:?}");
    assert_eq!(report.bytes_left, report.bytes_not_ended);
    disk.limit(None);
    let report = store.compact().unwrap();
    assert_eq!((report.volumes_removed, report.bytes_not_ended), (1, 0), "{report:?}");
}

#[test]
fn full_disk_refuses_writes_loses_no_data_and_deletes_free_space() {
    let (disk, store, objects) = full_store();
    assert!(objects > 200, "{objects}");
    check(&store, 0..objects);
    for _ in 0..3 {
        let refused = try_put(&store, "more", &random_bytes(1, 50_000));
        assert!(matches!(refused, Err(Error::Full { .. })));
        let refused = try_put(&store, "big", &random_bytes(1, 64 * BIG));
        assert!(matches!(refused, Err(Error::Full { .. })), "{refused:?}");
    }
    assert!(!store.stats().latched);
    assert!(disk.list("objects").unwrap().is_empty(), "a refused object leaves no file");
    // Deletions one by one and in one call.
    let keys: Vec<String> = (0..objects).map(|n| format!("{n:04}")).collect();
    let (one_by_one, together) = keys.split_at(keys.len() / 3);
    assert!(one_by_one.iter().all(|key| store.delete(BUCKET, key).unwrap()));
    let together: Vec<&str> = together.iter().map(String::as_str).collect();
    assert!(store.delete_many(BUCKET, &together).into_iter().all(|gone| gone.unwrap()));
    store.compact().unwrap();
    let again = fill_and_compact(&store);
    assert!(again * 10 > objects * 8, "{again} after {objects}");
    check(&store, 0..again);
    store.close().unwrap();
    check(&open_on(&disk).0, 0..again);
}

#[test]
fn deletion_wakes_the_compaction_of_a_full_disk() {
    let (disk, store, objects) = full_store();
    for n in 0..objects * 2 / 3 {
        store.delete(BUCKET, &format!("{n:04}")).unwrap();
    }
    eventually("two volumes are compacted", || store.stats().volumes_compacted >= 2);
    check(&store, objects * 2 / 3..objects);
    put(&store, "0000", &random_bytes(0, 50_000));
    drop(disk);
}

#[test]
fn store_on_a_full_disk_opens_and_deletes() {
    let (disk, store, objects) = full_store();
    store.close().unwrap();
    for _ in 0..3 {
        let (store, _) = open_on(&disk);
        check(&store, 0..objects);
        assert!(matches!(try_put(&store, "x", &random_bytes(1, 60_000)), Err(Error::Full { .. })));
        drop(store);
    }
    let (store, _) = open_on(&disk);
    (0..objects).for_each(|n| assert!(store.delete(BUCKET, &format!("{n:04}")).unwrap()));
    store.compact().unwrap();
    let again = fill_and_compact(&store);
    assert!(again * 10 > objects * 8, "{again} after {objects}: {:?}", store.stats());
}

#[test]
fn last_space_of_a_disk_is_used_for_a_shorter_volume() {
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    disk.limit(Some(VOLUME + VOLUME / 2 + (100 << 10)));
    let objects = fill(&store);
    assert!(objects * 50_000 > VOLUME, "{objects}");
    let stats = store.stats();
    assert_eq!(stats.volumes, 2);
    assert!(stats.volume_bytes < 2 * VOLUME, "{}", stats.volume_bytes);
    check(&store, 0..objects);
    (0..objects).for_each(|n| assert!(store.delete(BUCKET, &format!("{n:04}")).unwrap()));
    let again = fill_and_compact(&store);
    assert!(again * 3 > objects, "{again} after {objects}");
    drop(store);
    check(&open_on(&disk).0, 0..again);
}

/// Runs a workload on a disk that is full from the `n`-th call of a kind on. Returns `true` if the
/// call occurred.
fn full_at(seed: u64, op: Op, n: u64) -> bool {
    let _context = PrintOnPanic(format!("full at {op:?} number {n}\n{}", replay_command(seed)));
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    let before = disk.calls(op);
    let (mut random, mut model) = (Random(seed), Model::default());
    disk.fail(op, n, u64::MAX, Errno::NOSPC);
    let (mut refused, mut in_part) = (0, None);
    for _ in 0..150 {
        let act = model.plan(&mut random, Lengths::Long);
        match model.execute(&act, &store) {
            Ok(started) => model.apply(&act, started),
            // Some of several objects may have been stored or deleted.
            Err(Error::Full { .. } | Error::Log(_) | Error::Stopped { .. })
                if act.is_divisible() =>
            {
                in_part = Some(act);
                break;
            }
            Err(Error::Full { .. }) => refused += 1,
            // A full disk accepts bytes where it already has some; this one is broken.
            Err(Error::Log(_) | Error::Stopped { .. }) if op == Op::Write => break,
            Err(other) => panic!("{act:?}: {other:?}"),
        }
        if refused > 5 {
            break;
        }
    }
    let occurred = disk.calls(op) >= before + n;
    let mut model =
        model.after(in_part.as_ref(), &Contents::of(&store)).expect("only this act is visible");
    disk.heal();
    if !store.stats().latched {
        for _ in 0..20 {
            let act = model.plan(&mut random, Lengths::Long);
            let mut outcome = model.execute(&act, &store);
            // A call may report the failed allocation of an earlier one.
            eventually("the disk has space", || {
                let is_full = matches!(outcome, Err(Error::Full { .. }));
                if is_full {
                    outcome = model.execute(&act, &store);
                }
                !is_full
            });
            model.apply(&act, outcome.unwrap());
        }
    }
    drop(store);
    let (store, recovered) = open_on(&disk);
    assert_eq!(recovered.damage, []);
    // Only the last act of a latched log may be in effect or not.
    assert!(in_part.is_some() || op == Op::Write || Contents::of(&store) == model.seen());
    assert_eq!(disk.list("objects").unwrap().len() as u64, store.stats().big_files);
    occurred
}

#[test]
fn disk_full_at_any_call_loses_no_data() {
    let seed = seed();
    for op in [Op::Create, Op::Allocate, Op::Write] {
        let (mut n, mut occurred) = (1, 0);
        while full_at(seed, op, n) {
            occurred += 1;
            n += 1 + n / 4;
        }
        println!("SEED={seed}: full at {occurred} of {n} calls to {op:?}");
        assert!(occurred >= 3);
    }
}
