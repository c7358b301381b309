//! Snapshots: their content, and their independence of the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_disk::{Disk, OsDisk};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{Error, Store};
use haul_testing::disk_dir;

use crate::{BIG, BUCKET, content, get, new_store, put, random_bytes, reopen, small};

/// The objects of a bucket by key.
type Objects = BTreeMap<String, Vec<u8>>;

fn key(number: u64) -> String {
    format!("key-{number:04}")
}

/// Stores `count` objects, every tenth of them big, and returns them.
fn fill(store: &Store, count: u64, seed: u64) -> Objects {
    let object = |number| {
        let length = if number % 10 == 0 { BIG + 1000 } else { 30_000 };
        let bytes = random_bytes(seed + number, length);
        put(store, &key(number), &bytes);
        (key(number), bytes)
    };
    (0..count).map(object).collect()
}

/// Reads all objects of a store and compares them with `expected`.
fn assert_content(store: &Store, expected: &Objects) {
    assert_eq!(store.bucket(BUCKET).unwrap().objects, expected.len() as u64);
    for (key, bytes) in expected {
        assert_eq!(get(store, key), *bytes, "{key}");
    }
}

fn open_snapshot(dir: &Path) -> Store {
    let (store, recovered) = reopen(dir);
    assert_eq!(recovered.damage, []);
    store
}

fn volume_numbers(dir: &Path) -> Vec<String> {
    let names = OsDisk::open(dir.join("volumes")).unwrap().list("").unwrap();
    names.into_iter().filter(|name| name.ends_with(".segment")).collect()
}

#[test]
fn snapshot_survives_recycling_of_the_volumes_of_the_store() {
    let (dir, store) = new_store();
    let expected = fill(&store, 400, 1);
    let to = dir.path().join("snapshot");
    let info = store.snapshot(&to).unwrap();
    assert_eq!((info.objects, info.big_files), (400, 40));
    assert!(info.volumes > 2 && info.linked_bytes > info.copied_bytes, "{info:?}");
    let linked = volume_numbers(&to);
    for round in 1..4 {
        fill(&store, 400, round * 1000);
        store.compact().unwrap();
    }
    (0..400).for_each(|number| assert!(store.delete(BUCKET, &key(number)).unwrap()));
    store.compact().unwrap();
    let left = volume_numbers(dir.path());
    assert!(linked.iter().all(|name| !left.contains(name)), "{linked:?} {left:?}");
    fill(&store, 100, 9000);
    let snapshot = open_snapshot(&to);
    assert_content(&snapshot, &expected);
    assert_eq!(snapshot.verify(&mut |_, _| ()).unwrap().damage.len(), 0);
}

#[test]
fn store_survives_recycling_of_the_volumes_of_its_snapshot() {
    let (dir, store) = new_store();
    let expected = fill(&store, 300, 1);
    let to = dir.path().join("snapshot");
    store.snapshot(&to).unwrap();
    let snapshot = open_snapshot(&to);
    let mut changed = Objects::new();
    for round in 1..4 {
        changed = fill(&snapshot, 300, round * 1000);
        snapshot.compact().unwrap();
    }
    assert_content(&snapshot, &changed);
    assert_content(&store, &expected);
    store.close().unwrap();
    assert_content(&open_snapshot(dir.path()), &expected);
    snapshot.close().unwrap();
    assert_content(&open_snapshot(&to), &changed);
}

#[test]
fn reopened_store_recycles_no_file_of_its_snapshot() {
    let (dir, store) = new_store();
    let expected = fill(&store, 300, 1);
    let to = dir.path().join("snapshot");
    store.snapshot(&to).unwrap();
    store.close().unwrap();
    for round in 1..4 {
        let (store, _) = reopen(dir.path());
        fill(&store, 300, round * 1000);
        store.compact().unwrap();
        store.close().unwrap();
    }
    assert_content(&open_snapshot(&to), &expected);
}

#[test]
fn snapshot_of_a_busy_store_has_a_prefix_of_its_acknowledged_objects() {
    let (dir, store) = new_store();
    let (store, stop) = (&store, &AtomicBool::new(false));
    let snapshots: Vec<(PathBuf, u64, u64)> = thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                put(store, &key(number), &random_bytes(number, 20_000));
                number += 1;
            }
        });
        let snapshots = (0..5).map(|n| {
            let to = dir.path().join(format!("snapshot-{n}"));
            let before = store.stats().puts;
            let info = store.snapshot(&to).unwrap();
            assert!(info.objects >= before, "{info:?} after {before}");
            // The snapshot may contain one object that the writer has not counted yet.
            (to, info.objects, store.stats().puts + 1)
        });
        let snapshots = snapshots.collect();
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        snapshots
    });
    for (to, objects, after) in snapshots {
        assert!(objects <= after, "{objects} {after}");
        let expected = (0..objects).map(|n| (key(n), random_bytes(n, 20_000))).collect();
        assert_content(&open_snapshot(&to), &expected);
    }
}

#[test]
fn snapshot_of_an_empty_store_is_an_empty_store() {
    let dir = disk_dir();
    let (store, _) = reopen(dir.path());
    let to = dir.path().join("snapshot");
    store.snapshot(&to).unwrap();
    assert_eq!(open_snapshot(&to).buckets().unwrap().len(), 0);
}

#[test]
fn snapshot_into_a_directory_that_is_not_empty_is_refused() {
    let (dir, store) = new_store();
    let to = dir.path().join("snapshot");
    store.snapshot(&to).unwrap();
    let refused = store.snapshot(&to).unwrap_err();
    assert!(matches!(refused, Error::Invalid { .. }), "{refused}");
    assert_eq!(open_snapshot(&to).buckets().unwrap().len(), 1);
}

#[test]
fn power_cut_during_a_snapshot_leaves_a_complete_one_or_none() {
    let source: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    let (store, _) = Store::open_on(source, small()).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let expected = fill(&store, 11, 1);
    let to = MemoryDisk::default();
    store.snapshot_on(Arc::new(to.clone())).unwrap();
    let (mut medium, mut complete) = (MemoryDisk::default().medium(), 0);
    for step in to.steps() {
        medium.apply_step(&step);
        for survival in [Survival::Nothing, Survival::Everything, Survival::Half { seed: 1 }] {
            let left = MemoryDisk::on(&medium.cut(survival));
            let is_store = left.list("").unwrap().iter().any(|name| name == "STORE");
            let is_untouched = !left.list("").unwrap().iter().any(|name| name != "LOCK");
            match Store::open_on(Arc::new(left), small()) {
                Ok((opened, _)) if is_store => {
                    for (key, bytes) in &expected {
                        assert_eq!(content(&opened.get(BUCKET, key).unwrap()).unwrap(), *bytes);
                    }
                    complete += 1;
                }
                Ok(_) => assert!(is_untouched, "{step:?}: a torn snapshot was opened"),
                Err(error) => assert!(matches!(error, Error::NotAStore { .. }), "{error}"),
            }
        }
    }
    assert!(complete >= 3, "{complete}");
}
