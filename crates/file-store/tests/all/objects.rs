//! Single objects: they are read as they were stored.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use haul_file_store::{Attributes, Error, Etag, Precondition};

use crate::{BIG, BUCKET, big_files, content, dump, get, new_store, put, random_bytes, reopen};

const NONE: Precondition = Precondition::None;

/// Returns lengths around each boundary (pages, blocks, megabytes, big objects), and odd lengths.
fn lengths() -> Vec<usize> {
    let borders = [4 << 10, BIG, 128 << 10, 256 << 10, 1 << 20, 2 << 20, (1 << 20) + (128 << 10)];
    let around = borders.iter().flat_map(|border| [border - 1, *border, border + 1]);
    [0, 1, 3 << 20, (5 << 20) + 4321].into_iter().chain(around).collect()
}

#[test]
fn objects_of_every_length_are_read_back_also_after_reopening() {
    let (dir, store) = new_store();
    let check = |store: &haul_file_store::Store| {
        for length in lengths() {
            assert!(get(store, &length.to_string()) == random_bytes(7, length), "{length} bytes");
        }
    };
    for length in lengths() {
        let info = put(&store, &length.to_string(), &random_bytes(7, length));
        assert_eq!((info.bytes, info.etag.parts), (length as u64, 0));
        let object = store.get(BUCKET, &length.to_string()).unwrap();
        assert_eq!(object.is_in_memory(), length < BIG);
        assert_eq!(object.part_bytes(), [length as u64]);
    }
    check(&store);
    let before = dump(&store);
    store.close().unwrap();
    let (store, recovered) = reopen(dir.path());
    assert_eq!((recovered.after_crash, recovered.orphans_removed), (false, 0));
    assert!(recovered.damage.is_empty());
    check(&store);
    assert!(dump(&store) == before);
}

#[test]
fn content_is_written_in_pieces_of_any_length() {
    let (_dir, store) = new_store();
    let bytes = random_bytes(1, 3_333_333);
    for (key, expected) in [("unknown", None), ("known", Some(3_333_333)), ("wrong", Some(9 << 20))]
    {
        let mut writer = store.object_writer(BUCKET, expected).unwrap();
        let (mut rest, mut piece) = (&bytes[..], 1);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            writer.write(now).unwrap();
            (rest, piece) = (later, piece * 3 % 200_003);
        }
        assert_eq!(writer.bytes(), 3_333_333);
        let written = writer.finish().unwrap();
        let md5 = written.md5();
        let info = store.put_written(BUCKET, key, written, &Attributes::new(), &NONE).unwrap();
        assert_eq!(info.etag, Etag { md5, parts: 0 });
        assert!(get(&store, key) == bytes);
    }
}

#[test]
fn discarded_content_leaves_no_file() {
    let (dir, store) = new_store();
    let mut writer = store.object_writer(BUCKET, None).unwrap();
    writer.write(&random_bytes(1, 3 << 20)).unwrap();
    drop(writer);
    assert!(big_files(dir.path()).is_empty());

    let mut writer = store.object_writer(BUCKET, None).unwrap();
    writer.write(&random_bytes(1, 3 << 20)).unwrap();
    let written = writer.finish().unwrap();
    assert_eq!(big_files(dir.path()).len(), 1);
    let refused =
        store.put_written(BUCKET, "key", written, &Attributes::new(), &Precondition::Present);
    assert!(matches!(refused, Err(Error::PreconditionFailed)));
    assert!(big_files(dir.path()).is_empty());
}

#[test]
fn etag_is_the_md5() {
    let (_dir, store) = new_store();
    let etag = put(&store, "empty", b"").etag;
    assert_eq!(etag.to_string(), "d41d8cd98f00b204e9800998ecf8427e");
    assert_eq!(put(&store, "abc", b"abc").etag.to_string(), "900150983cd24fb0d6963f7d28e17f72");
}

#[test]
fn any_text_is_a_key() {
    let (dir, store) = new_store();
    let keys = [
        "..",
        "../../../../etc/passwd",
        "/",
        "//",
        "a/",
        "/a",
        ".",
        "a\0b",
        "\0",
        " ",
        "\u{feff}",
        "\u{10ffff}",
        "日本語/ファイル",
        "a\nb",
        "LOCK",
        "STORE",
        "\\",
        "%2e%2e",
        "-rf *",
        &"k".repeat(1024),
        &"ä".repeat(512),
    ];
    for key in keys {
        put(&store, key, key.as_bytes());
        put(&store, &format!("{}!", &key[..key.len().min(2) * usize::from(key.is_ascii())]), b"");
    }
    for key in keys {
        assert_eq!(get(&store, key), key.as_bytes(), "{key:?}");
    }
    for bad in ["", &"k".repeat(1025), &"ä".repeat(513), &"k".repeat(5000)] {
        let refused = store.put(BUCKET, bad, b"", &Attributes::new(), &NONE);
        assert!(matches!(refused, Err(Error::InvalidKey { .. })));
        assert!(matches!(store.get(BUCKET, bad), Err(Error::NoSuchKey { .. })));
        assert!(!store.delete(BUCKET, bad).unwrap());
    }
    let before = dump(&store);
    store.close().unwrap();
    assert!(dump(&reopen(dir.path()).0) == before);
    assert_eq!(
        crate::file_names(dir.path()),
        ["LOCK", "MANIFEST", "MANIFEST.copy", "STORE", "index", "objects", "volumes"]
    );
}

#[test]
fn attributes_up_to_the_limit_are_read_back() {
    let (_dir, store) = new_store();
    let long = Attributes::from_iter([("x".repeat(1000), "y".repeat(15_000))]);
    let many = Attributes::from_iter((0..1000).map(|n| (n.to_string(), "ü\0\"")));
    let empty = Attributes::from_iter([("", "")]);
    for attributes in [Attributes::new(), long, many, empty] {
        for length in [0, 10_000, 100_000] {
            let bytes = random_bytes(9, length);
            store.put(BUCKET, "key", &bytes, &attributes, &NONE).unwrap();
            assert_eq!(store.head(BUCKET, "key").unwrap().attributes, attributes);
            let object = store.get(BUCKET, "key").unwrap();
            assert_eq!(object.attributes, attributes);
            assert!(content(&object).unwrap() == bytes);
        }
    }
    let too_long = Attributes::from_iter([("x", "y".repeat(16 * 1024))]);
    let refused = store.put(BUCKET, "key", b"", &too_long, &NONE);
    assert!(matches!(refused, Err(Error::Invalid { .. })));
    let head = store.head(BUCKET, "key").unwrap();
    assert!(matches!(head.read(0, 1), Err(Error::Invalid { .. })), "only the head was read");
}

#[test]
fn any_range_of_a_big_object_can_be_read() {
    let (_dir, store) = new_store();
    let bytes = random_bytes(3, (3 << 20) + 12_345);
    put(&store, "key", &bytes);
    let object = store.get(BUCKET, "key").unwrap();
    let borders = [0, 4095, 131_071, 131_072, (1 << 20) - 1, 1 << 20, 3 << 20, bytes.len() - 1];
    for offset in borders {
        for wanted in [0, 1, 2, 4096, 131_072, 131_073, 2 << 20, usize::MAX] {
            let read = object.read(offset as u64, wanted).unwrap();
            assert_eq!(read.is_empty(), wanted == 0, "{wanted} at {offset}");
            assert!(read.len() <= wanted && *read == bytes[offset..offset + read.len()]);
        }
    }
    for behind in [bytes.len() as u64, 1 << 40, u64::MAX] {
        assert!(object.read(behind, usize::MAX).unwrap().is_empty());
    }
}

#[test]
fn open_object_stays_readable_after_overwrite_and_deletion() {
    let (dir, store) = new_store();
    for length in [1000, 300_000] {
        let bytes = random_bytes(4, length);
        put(&store, "key", &bytes);
        let opened = store.get(BUCKET, "key").unwrap();
        opened.read(0, 10).unwrap();
        put(&store, "key", b"another");
        assert!(content(&opened).unwrap() == bytes, "after it was overwritten");
        store.delete(BUCKET, "key").unwrap();
        store.compact().unwrap();
        assert!(content(&opened).unwrap() == bytes, "after it was deleted");
        drop(opened);
        assert!(big_files(dir.path()).is_empty(), "the last reader removes the file");
        assert_eq!(store.stats().big_file_bytes, 0);
    }
}

#[test]
fn reader_may_outlive_its_store() {
    let (dir, store) = new_store();
    let bytes = random_bytes(4, 300_000);
    put(&store, "key", &bytes);
    let opened = store.get(BUCKET, "key").unwrap();
    store.delete(BUCKET, "key").unwrap();
    store.close().unwrap();
    assert!(content(&opened).unwrap() == bytes);
    drop(opened);
    assert!(big_files(dir.path()).is_empty());
    let (_store, recovered) = reopen(dir.path());
    assert_eq!((recovered.objects, recovered.after_crash), (0, false));
}

#[test]
fn overwriting_and_deleting_remove_big_files() {
    let (dir, store) = new_store();
    for length in [100_000, 200_000, 10, 300_000] {
        put(&store, "key", &random_bytes(5, length));
        assert_eq!(big_files(dir.path()).len(), usize::from(length >= BIG));
    }
    assert!(store.delete(BUCKET, "key").unwrap());
    assert!(!store.delete(BUCKET, "key").unwrap());
    assert!(big_files(dir.path()).is_empty());
    assert!(matches!(store.get(BUCKET, "key"), Err(Error::NoSuchKey { .. })));
    assert!(matches!(store.head(BUCKET, "key"), Err(Error::NoSuchKey { .. })));
    assert!(matches!(store.stat(BUCKET, "key"), Err(Error::NoSuchKey { .. })));
}

#[test]
fn copies_share_big_files_and_survive_their_source() {
    let (dir, store) = new_store();
    store.create_bucket("other").unwrap();
    let attributes = Attributes::from_iter([("a", "b")]);
    for length in [1000, 300_000] {
        let bytes = random_bytes(6, length);
        let source = store.put(BUCKET, "source", &bytes, &attributes, &NONE).unwrap();
        let copy = store.copy((BUCKET, "source"), ("other", "copy"), None, &NONE).unwrap();
        assert_eq!((copy.etag, copy.bytes), (source.etag, source.bytes));
        let again = Attributes::from_iter([("c", "d")]);
        store.copy((BUCKET, "source"), (BUCKET, "source"), Some(&again), &NONE).unwrap();
        assert_eq!(store.get(BUCKET, "source").unwrap().attributes, again, "copied to itself");
        assert_eq!(big_files(dir.path()).len(), usize::from(length >= BIG), "the file is shared");
        store.delete(BUCKET, "source").unwrap();
        let copy = store.get("other", "copy").unwrap();
        assert!(content(&copy).unwrap() == bytes);
        assert_eq!(copy.attributes, attributes);
    }
    let missing = store.copy((BUCKET, "source"), ("other", "copy"), None, &NONE);
    assert!(matches!(missing, Err(Error::NoSuchKey { .. })));
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert!(content(&store.get("other", "copy").unwrap()).unwrap() == random_bytes(6, 300_000));
    store.delete("other", "copy").unwrap();
    assert!(big_files(dir.path()).is_empty());
}

#[test]
fn precondition_is_tested_against_the_current_object() {
    let (_dir, store) = new_store();
    let none = Attributes::new();
    let attempt = |precondition: &Precondition| store.put(BUCKET, "key", b"1", &none, precondition);
    let failed = |outcome| matches!(outcome, Err(Error::PreconditionFailed));
    let etag = Etag { md5: [1; 16], parts: 0 };
    assert!(failed(attempt(&Precondition::Present)));
    assert!(failed(attempt(&Precondition::Matches(etag))));
    let info = attempt(&Precondition::Absent).unwrap();
    assert!(failed(attempt(&Precondition::Absent)));
    assert!(failed(attempt(&Precondition::Matches(etag))));
    attempt(&Precondition::Matches(info.etag)).unwrap();
    attempt(&Precondition::Present).unwrap();
    assert!(failed(attempt(&Precondition::Differs(info.etag))));
    attempt(&Precondition::Differs(etag)).unwrap();
    store.delete(BUCKET, "key").unwrap();
    attempt(&Precondition::Differs(info.etag)).unwrap();
    store.delete(BUCKET, "key").unwrap();
    attempt(&Precondition::Absent).unwrap();
}

#[test]
fn one_of_many_concurrent_creators_of_a_key_succeeds() {
    let (_dir, store) = new_store();
    let (barrier, winner, wins) = (Barrier::new(16), AtomicU32::new(0), AtomicU32::new(0));
    for round in 0..10 {
        let key = round.to_string();
        thread::scope(|scope| {
            for thread in 0..16_u32 {
                let (store, key, barrier, winner, wins) = (&store, &key, &barrier, &winner, &wins);
                scope.spawn(move || {
                    let bytes = random_bytes(thread.into(), 50_000 + 2000 * thread as usize);
                    barrier.wait();
                    let absent = Precondition::Absent;
                    match store.put(BUCKET, key, &bytes, &Attributes::new(), &absent) {
                        Ok(_) => {
                            winner.store(thread, Ordering::SeqCst);
                            wins.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(Error::PreconditionFailed) => {}
                        Err(other) => panic!("{other:?}"),
                    }
                });
            }
        });
        assert_eq!(wins.load(Ordering::SeqCst), round + 1);
        let thread = winner.load(Ordering::SeqCst);
        assert!(get(&store, &key) == random_bytes(thread.into(), 50_000 + 2000 * thread as usize));
    }
}

#[test]
fn many_deletions_share_few_syncs() {
    let (_dir, store) = new_store();
    let keys: Vec<String> = (0..500).map(|n| format!("key {n}")).collect();
    thread::scope(|scope| {
        for keys in keys.chunks(50) {
            let store = &store;
            scope.spawn(move || keys.iter().for_each(|key| drop(put(store, key, b"bytes"))));
        }
    });
    let mut asked: Vec<&str> = keys.iter().map(String::as_str).collect();
    asked.extend(["no such key", "key 1", ""]);
    let before = store.stats();
    let outcomes = store.delete_many(BUCKET, &asked);
    let after = store.stats();
    assert!(outcomes[..500].iter().all(|outcome| matches!(outcome, Ok(true))));
    assert!(outcomes[500..].iter().all(|outcome| matches!(outcome, Ok(false))));
    // One sync, if no sync ends before the last tombstone is appended.
    assert!(after.log_syncs - before.log_syncs <= 20, "{before:?} {after:?}");
    assert_eq!((after.objects, after.deletes), (0, 500));
    let missing = store.delete_many("no-bucket", &["a", "b"]);
    assert!(missing.iter().all(|outcome| matches!(outcome, Err(Error::NoSuchBucket { .. }))));
}

#[test]
fn buckets_are_created_counted_and_deleted() {
    let (dir, store) = new_store();
    assert!(matches!(store.create_bucket(BUCKET), Err(Error::BucketExists { .. })));
    assert!(matches!(store.create_bucket("Bad"), Err(Error::InvalidBucketName { .. })));
    assert!(matches!(store.delete_bucket("missing"), Err(Error::NoSuchBucket { .. })));
    put(&store, "key", b"12345");
    put(&store, "big", &random_bytes(1, 100_000));
    let info = store.bucket(BUCKET).unwrap();
    assert_eq!((info.objects, info.bytes), (2, 100_005));
    assert!(matches!(store.delete_bucket(BUCKET), Err(Error::BucketNotEmpty { .. })));
    store.delete_many(BUCKET, &["key", "big"]);
    let upload = store.start_upload(BUCKET, "key", &Attributes::new()).unwrap();
    assert!(matches!(store.delete_bucket(BUCKET), Err(Error::BucketNotEmpty { .. })));
    store.abort_upload(BUCKET, "key", &upload).unwrap();
    store.delete_bucket(BUCKET).unwrap();
    let put = store.put(BUCKET, "key", b"", &Attributes::new(), &NONE);
    assert!(matches!(put, Err(Error::NoSuchBucket { .. })));
    assert!(matches!(store.get(BUCKET, "key"), Err(Error::NoSuchBucket { .. })));
    store.create_bucket("another").unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    let names: Vec<String> =
        store.buckets().unwrap().into_iter().map(|bucket| bucket.name).collect();
    assert_eq!(names, ["another"]);
}

#[test]
fn object_stays_readable_after_a_change_of_options() {
    let dir = crate::disk_dir();
    let wide = haul_file_store::Options {
        big_object_bytes: 2 << 20,
        volume_bytes: 8 << 20,
        ..haul_file_store::Options::default()
    };
    let (store, _) = haul_file_store::Store::open(dir.path(), wide).unwrap();
    store.create_bucket(BUCKET).unwrap();
    let bytes: Vec<Vec<u8>> = (0..6).map(|n| random_bytes(n, (2 << 20) - 1)).collect();
    for (n, bytes) in bytes.iter().enumerate() {
        put(&store, &n.to_string(), bytes);
    }
    store.delete(BUCKET, "1").unwrap();
    store.close().unwrap();

    let (store, _) = reopen(dir.path());
    store.compact().unwrap();
    store.copy((BUCKET, "0"), (BUCKET, "copy"), None, &NONE).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    for (key, n) in [("0", 0), ("2", 2), ("5", 5), ("copy", 0)] {
        assert!(get(&store, key) == bytes[n], "{key}");
    }
}
