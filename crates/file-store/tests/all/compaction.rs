//! Compaction frees space and restores nothing that was deleted.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_disk::Op;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, CompactionReport, Options, Precondition, Store};
use haul_testing::eventually;

use crate::crash::open_on;
use crate::{BUCKET, dump, file_names, get, new_store, put, random_bytes, reopen, small, try_get};

/// Overwrites one key until the next volume is started.
fn go_to_next_volume(store: &Store) {
    let volumes = store.stats().volumes + store.stats().volumes_compacted;
    for n in 0.. {
        put(store, "filler", &random_bytes(n, 60_000));
        if store.stats().volumes + store.stats().volumes_compacted > volumes {
            return;
        }
    }
}

/// Writes a volume that is mostly live and ends with `work`, and a mostly dead one that starts with
/// `undo`.
fn two_volumes(store: &Store, work: impl FnOnce(), undo: impl FnOnce()) {
    for n in 0..66 {
        put(store, &format!("live {n}"), &random_bytes(n, 60_000));
    }
    work();
    go_to_next_volume(store);
    undo();
    go_to_next_volume(store);
}

/// Compacts the second volume, and not the first.
fn compact_second(store: &Store, dir: &Path) {
    store.compact().unwrap();
    let volumes = file_names(&dir.join("volumes"));
    assert!(volumes.contains(&"0000000001.segment".to_owned()), "{volumes:?}");
    assert!(!volumes.contains(&"0000000002.segment".to_owned()), "{volumes:?}");
}

#[test]
fn requested_compaction_ends_the_volume_being_written() {
    let (dir, store) = new_store();
    let content = |n| random_bytes(n, 60_000);
    (0..40).for_each(|n| drop(put(&store, &n.to_string(), &content(n))));
    assert_eq!(store.compact().unwrap().volumes_removed, 0, "nothing is dead");
    for n in 0..35 {
        assert!(store.delete(BUCKET, &n.to_string()).unwrap());
    }
    let report = store.compact().unwrap();
    assert_eq!((report.volumes_removed, report.bytes_left), (1, 0), "{report:?}");
    assert!(report.bytes_moved >= 5 * 60_000, "{report:?}");
    let names = file_names(&dir.path().join("volumes"));
    assert!(!names.contains(&"0000000001.segment".to_owned()), "{names:?}");
    let again = store.compact().unwrap();
    assert_eq!((again.volumes_removed, again.bytes_left), (0, 0), "{again:?}");
    drop(store);
    let (store, _) = reopen(dir.path());
    assert!((35..40).all(|n| get(&store, &n.to_string()) == content(n)));
    assert!(try_get(&store, "0").is_err());
}

#[test]
fn volume_without_live_objects_is_removed_unread() {
    let disk = MemoryDisk::default();
    // No checkpoint is due: the first put after a checkpoint reads the head of the replaced object.
    let options = Options { index_memory_bytes: 64 << 20, ..small() };
    let (store, _recovered) = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    // Moves the needle of the bucket out of the volumes that are removed.
    go_to_next_volume(&store);
    store.compact().unwrap();
    put(&store, "filler", b"");
    let (before, reads) = (store.stats(), disk.calls(Op::Read));
    let mut last = Vec::new();
    for n in 0..400 {
        last = random_bytes(n, 60_000);
        put(&store, "filler", &last);
    }
    let removed = |store: &Store| store.stats().volumes_compacted - before.volumes_compacted;
    eventually("three volumes are removed", || removed(&store) >= 3);
    assert_eq!(disk.calls(Op::Read), reads);
    assert!(get(&store, "filler") == last);
    drop(store);
    assert!(get(&open_on(&disk).0, "filler") == last);
}

#[test]
fn deletion_stays_when_its_tombstone_is_compacted_first() {
    let (dir, store) = new_store();
    store.create_bucket("deleted").unwrap();
    let none = Attributes::new();
    let upload = store.start_upload(BUCKET, "upload", &none).unwrap();
    let work = || {
        put(&store, "small", b"small");
        put(&store, "big", &random_bytes(1, 100_000));
        store.put("deleted", "key", b"", &none, &Precondition::None).unwrap();
    };
    let undo = || {
        assert!(store.delete(BUCKET, "small").unwrap() && store.delete(BUCKET, "big").unwrap());
        store.delete("deleted", "key").unwrap();
        store.delete_bucket("deleted").unwrap();
        store.abort_upload(BUCKET, "upload", &upload).unwrap();
    };
    two_volumes(&store, work, undo);
    compact_second(&store, dir.path());
    let before = dump(&store);
    assert_eq!(before.len(), 1);
    for remove_indexes in [false, true] {
        let copy = crate::sample::copy_of(dir.path());
        if remove_indexes {
            let derived = ["volumes/0000000001.index", "index/CATALOG"];
            let removed = derived.map(|name| fs::remove_file(copy.path().join(name)).is_ok());
            assert!(removed.contains(&true), "neither the volume's index nor a checkpoint exists");
        }
        let (store, recovered) = reopen(copy.path());
        assert!(dump(&store) == before);
        assert_eq!((store.stats().uploads, recovered.orphans_removed), (0, 0));
    }
}

#[test]
fn deletion_stays_when_the_volume_of_the_object_is_repaired() {
    let (dir, store) = new_store();
    let work = || drop(put(&store, "key", b"bytes"));
    two_volumes(&store, work, || assert!(store.delete(BUCKET, "key").unwrap()));
    let before = dump(&store);
    store.close().unwrap();
    // Both copies of the header are lost: the volume cannot be opened.
    let path = dir.path().join("volumes/0000000001.segment");
    let whole = fs::read(&path).unwrap();
    let records = &whole[4096..whole.len() - 4096];
    fs::write(&path, [&[0; 4096], records, &[0; 4096]].concat()).unwrap();
    let (store, recovered) = reopen(dir.path());
    assert!(!recovered.damage.is_empty() && recovered.hidden.is_empty());
    compact_second(&store, dir.path());
    store.close().unwrap();
    fs::write(&path, whole).unwrap();
    let (store, recovered) = reopen(dir.path());
    assert!(recovered.damage.is_empty());
    assert!(try_get(&store, "key").is_err(), "the deleted object is back");
    assert!(dump(&store) == before);
}

#[test]
fn live_volume_is_not_compacted_on_repeated_requests() {
    let (dir, store) = new_store();
    for n in 0..200 {
        put(&store, &format!("{n}"), &random_bytes(n, 60_000));
    }
    // Minimal needles, which consist mostly of their heads.
    thread::scope(|scope| {
        for thread in 0..32 {
            let store = &store;
            scope.spawn(move || {
                (0..600).for_each(|n| drop(put(store, &format!("small {thread} {n}"), b"")));
            });
        }
    });
    assert_eq!(store.compact().unwrap(), CompactionReport::default());
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.compact().unwrap(), CompactionReport::default());
    assert_eq!(store.stats().volumes_compacted, 0);
}

#[test]
fn deleting_all_objects_frees_all_space() {
    let (_dir, store) = new_store();
    for n in 0..300 {
        put(&store, &format!("{n}"), &random_bytes(n, 60_000));
    }
    for n in 0..300 {
        store.delete(BUCKET, &format!("{n}")).unwrap();
    }
    // The needle of the bucket is in the first volume, and is moved.
    store.compact().unwrap();
    assert_eq!(store.stats().volumes, 1, "{:?}", store.stats());
    go_to_next_volume(&store);
    assert_eq!(store.bucket(BUCKET).unwrap().objects, 1);
}

#[test]
fn damaged_volume_stays_and_its_live_needles_are_moved_or_kept() {
    let (dir, store) = new_store();
    for n in 0..60 {
        put(&store, &format!("{n}"), &random_bytes(n, 60_000));
    }
    go_to_next_volume(&store);
    // Damages the volume while the store is open, so that it is not known.
    let path = dir.path().join("volumes/0000000001.segment");
    let volume = fs::read(&path).unwrap();
    let damaged = random_bytes(50, 60_000);
    let at = volume.windows(32).position(|window| window == &damaged[..32]).unwrap() as u64;
    crate::flip(&path, at);
    for n in 0..40 {
        store.delete(BUCKET, &format!("{n}")).unwrap();
    }
    for _ in 0..3 {
        store.compact().unwrap();
        assert!(path.exists());
        for n in (40..60).filter(|n| *n != 50) {
            assert!(get(&store, &format!("{n}")) == random_bytes(n, 60_000));
        }
        assert!(try_get(&store, "50").is_err());
    }
    store.close().unwrap();
    crate::flip(&path, at);
    let (store, _) = reopen(dir.path());
    assert!(get(&store, "50") == damaged, "the volume is repaired");
}

#[test]
fn objects_stored_during_the_compaction_of_their_volume_stay() {
    const THREADS: u64 = 16;
    let disk = MemoryDisk::default();
    let (store, _) = open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, done) = (&store, &done);
        let compacting = scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                store.compact().unwrap();
            }
        });
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    let key = thread.to_string();
                    for n in 0..60 {
                        let bytes = random_bytes(thread << 32 | n, 60_000);
                        put(store, &key, &bytes);
                        assert!(try_get(store, &key).unwrap() == bytes, "{key} {n}");
                    }
                })
            })
            .collect();
        let outcomes: Vec<_> = writers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        compacting.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert!(store.stats().volumes_compacted > 5);
    let before = dump(&store);
    drop(store);
    assert!(dump(&open_on(&disk).0) == before);
}
