//! Many threads, with constant compaction.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use haul_file_store::{Attributes, Error, Precondition, Store};
use haul_testing::{PrintOnPanic, Random, replay_command, seed};

use crate::{BIG, BUCKET, big_files, dump, get, new_store, put, put_part, reopen, try_get};

type Owned = BTreeMap<String, Vec<u8>>;

/// Puts, overwrites, deletes, copies and uploads keys that only this thread uses.
fn work(store: &Store, thread: u64, seed: u64, acts: u32) -> Owned {
    let mut random = Random(seed ^ thread << 32);
    let mut mine = Owned::new();
    let own_bucket = format!("own-{thread}");
    for act in 0..acts {
        let key = format!("{thread}/{}", random.below(8));
        let length = match random.below(12) {
            0 => BIG + 1000,
            1 => 0,
            _ => usize::try_from(random.below(30_000)).unwrap(),
        };
        match random.below(12) {
            0..3 => {
                let deleted = store.delete(BUCKET, &key).unwrap();
                assert_eq!(deleted, mine.remove(&key).is_some(), "{key} in act {act}");
            }
            3 if mine.contains_key(&key) => {
                let to = format!("{thread}/copy");
                store.copy((BUCKET, &key), (BUCKET, &to), None, &Precondition::None).unwrap();
                mine.insert(to, mine[&key].clone());
            }
            4 if act % 8 == 0 => {
                let upload = store.start_upload(BUCKET, &key, &Attributes::new()).unwrap();
                let (one, two) = (random.bytes(length), random.bytes(100));
                let parts = [
                    put_part(store, &key, &upload, 1, &one),
                    put_part(store, &key, &upload, 2, &two),
                ];
                let none = Attributes::new();
                store
                    .complete_upload(BUCKET, &key, &upload, &parts, &none, &Precondition::None)
                    .unwrap();
                mine.insert(key, [one, two].concat());
            }
            5 if act % 4 == 0 => {
                store.create_bucket(&own_bucket).unwrap();
                store
                    .put(&own_bucket, "key", b"", &Attributes::new(), &Precondition::None)
                    .unwrap();
                let busy = store.delete_bucket(&own_bucket);
                assert!(matches!(busy, Err(Error::BucketNotEmpty { .. })));
                store.delete(&own_bucket, "key").unwrap();
                store.delete_bucket(&own_bucket).unwrap();
            }
            6..8 => {
                let expected = mine.get(&key);
                match try_get(store, &key) {
                    Ok(bytes) => assert!(Some(&bytes) == expected, "{key}"),
                    Err(Error::NoSuchKey { .. }) => assert_eq!(expected, None, "{key}"),
                    Err(other) => panic!("{other:?}"),
                }
            }
            _ => {
                let bytes = random.bytes(length);
                put(store, &key, &bytes);
                mine.insert(key, bytes);
            }
        }
    }
    mine
}

#[test]
fn threads_with_separate_keys_and_compaction_do_not_interfere() {
    let seed = seed();
    let _context = PrintOnPanic(format!("threads\n{}", replay_command(seed)));
    let (dir, mut store) = new_store();
    for round in 0..3 {
        let done = AtomicBool::new(false);
        let owned: Vec<Owned> = thread::scope(|scope| {
            let (store, done) = (&store, &done);
            let compacting = scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    store.compact().unwrap();
                }
            });
            let threads: Vec<_> = (0..8)
                .map(|thread| scope.spawn(move || work(store, thread, seed + round, 250)))
                .collect();
            let owned: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
            done.store(true, Ordering::Relaxed);
            compacting.join().unwrap();
            owned.into_iter().map(|owned| owned.unwrap()).collect()
        });
        let expected: Owned = owned.into_iter().flatten().collect();
        let same = |store: &Store| {
            let found = dump(store);
            assert_eq!(found.len(), 1, "{:?}", found.keys());
            let found = found[BUCKET].iter().map(|(key, (bytes, _))| (key, bytes));
            assert!(found.eq(expected.iter()));
            assert_eq!(big_files(dir.path()).len() as u64, store.stats().big_files);
        };
        same(&store);
        println!("{} volumes compacted", store.stats().volumes_compacted);
        store.close().unwrap();
        store = reopen(dir.path()).0;
        same(&store);
        let keys: Vec<&str> = expected.keys().map(String::as_str).collect();
        assert!(store.delete_many(BUCKET, &keys).into_iter().all(|gone| gone.unwrap()));
        assert!(dump(&store)[BUCKET].is_empty());
    }
}

#[test]
fn readers_see_exactly_one_version_during_overwrites() {
    let (_dir, store) = new_store();
    let version = |n: u8| vec![n; if n.is_multiple_of(2) { 1000 } else { 2 * BIG }];
    put(&store, "key", &version(0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let bytes = get(&store, "key");
                    assert!(bytes == version(bytes[0]), "bytes of two versions");
                }
            });
        }
        (0..200).for_each(|n| drop(put(&store, "key", &version(n))));
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn one_of_many_completions_and_abortions_of_an_upload_succeeds() {
    let (dir, store) = new_store();
    for round in 0..20 {
        let upload = store.start_upload(BUCKET, "key", &Attributes::new()).unwrap();
        let part = put_part(&store, "key", &upload, 1, b"part");
        let ended: u32 = thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|thread| {
                    let (store, upload) = (&store, &upload);
                    scope.spawn(move || {
                        let none = Attributes::new();
                        let outcome = match thread % 4 {
                            0 => store.abort_upload(BUCKET, "key", upload),
                            1 => {
                                let mut writer = store.part_writer(BUCKET, None).unwrap();
                                writer.write(b"another").unwrap();
                                let written = writer.finish().unwrap();
                                let put = store.put_part(BUCKET, "key", upload, 2, written, &none);
                                assert!(matches!(put, Ok(_) | Err(Error::NoSuchUpload { .. })));
                                return 0;
                            }
                            _ => store
                                .complete_upload(
                                    BUCKET,
                                    "key",
                                    upload,
                                    &[part],
                                    &none,
                                    &Precondition::None,
                                )
                                .map(drop),
                        };
                        match outcome {
                            Ok(()) => 1,
                            Err(Error::NoSuchUpload { .. }) => 0,
                            Err(other) => panic!("{other:?}"),
                        }
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(ended, 1, "round {round}");
        assert_eq!(store.stats().uploads, 0);
        store.delete(BUCKET, "key").unwrap();
        assert!(big_files(dir.path()).is_empty());
    }
}
