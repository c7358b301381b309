//! Stores written by earlier versions of this crate, from the archives in `tests/fixtures`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use haul_disk::{Disk, Durability, Open, write_full};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{Expiry, Lifecycle, LifecycleRule};

use crate::*;

/// Extracts an archive and returns the store in it.
fn extract(dir: &TempDir, name: &str) -> PathBuf {
    let archive = format!("{}/tests/fixtures/{name}.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(tar.unwrap().success(), "cannot extract {archive}");
    dir.path().join(name)
}

/// Returns the content of the big or large objects in every archive.
fn pattern(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n >> 8).to_le_bytes()[0]).collect()
}

fn marker(store: &Path) -> String {
    std::fs::read_to_string(store.join("STORE")).unwrap()
}

/// Returns content `n` of every archive.
fn content(n: u32) -> Vec<u8> {
    let mut bytes = format!("record {n} ").into_bytes();
    let length = bytes.len() + (n * 97 % 5000) as usize;
    bytes.resize(length, n.to_le_bytes()[0]);
    bytes
}

/// Checks the keys that were overwritten in turn, 2,600 times in total.
fn check_records(store: &Store) {
    for key in 0..300 {
        let object = store.get("first", &format!("key-{key:03}"));
        if key < 50 {
            assert!(matches!(object, Err(haul_file_store::Error::NoSuchKey { .. })), "{key}");
            continue;
        }
        let newest = (0..2600).rev().find(|n| n % 300 == key).unwrap();
        let object = object.unwrap();
        assert_eq!(object.read(0, 1 << 20).unwrap(), content(newest), "{key}");
        assert_eq!(object.attributes.get("content-type"), Some("text/plain"));
    }
}

/// Format version 1: 300 keys, each overwritten eight times, 50 of them deleted; a big object, an
/// unfinished upload, an empty bucket; several volumes, one with an index; closed.
#[test]
fn store_of_version_1_is_read_and_continued() {
    let dir = disk_dir();
    let path = extract(&dir, "store-v1-closed");
    let options = Options { big_object_bytes: 256 << 10, ..small() };
    for round in 0..2 {
        let (store, recovered) = Store::open(&path, options.clone()).unwrap();
        assert!(recovered.damage.is_empty() && !recovered.after_crash, "{recovered:?}");
        check_records(&store);
        assert_eq!(store.get("first", "big").unwrap().read(0, 1 << 20).unwrap(), pattern(300_000));
        assert_eq!(marker(&path), "haul file store, version 3\n");
        let buckets: Vec<_> =
            store.buckets().unwrap().into_iter().map(|b| (b.name, b.objects)).collect();
        let added = u64::from(round == 1);
        assert_eq!(buckets, [("empty".to_owned(), added), ("first".to_owned(), 251)]);
        assert_eq!(uploads_of(&store, "first").unwrap().len(), 1);
        if round == 0 {
            let none = Attributes::new();
            store.put("empty", "added", b"later", &none, &Precondition::None).unwrap();
        }
        store.close().unwrap();
    }
}

#[test]
fn bucket_of_an_earlier_version_accepts_rules_and_keeps_its_date() {
    for (name, options) in [
        ("store-v1-closed", Options { big_object_bytes: 256 << 10, ..small() }),
        ("store-v2-closed", options_v2()),
    ] {
        let dir = disk_dir();
        let path = extract(&dir, name);
        let (store, _) = Store::open(&path, options.clone()).unwrap();
        assert_eq!(store.lifecycle("first").unwrap(), Lifecycle::default());
        let created = store.bucket("first").unwrap().created;
        let rule = LifecycleRule {
            enabled: true,
            prefix: "key-05".to_owned(),
            expire: Some(Expiry::At(UNIX_EPOCH)),
            ..LifecycleRule::default()
        };
        let lifecycle = Lifecycle { rules: vec![rule] };
        store.set_lifecycle("first", &lifecycle).unwrap();
        assert_eq!(store.expire_now("first").unwrap().expired_objects, 10);
        store.close().unwrap();
        let (store, _) = Store::open(&path, options).unwrap();
        assert_eq!(store.lifecycle("first").unwrap(), lifecycle);
        assert_eq!(store.bucket("first").unwrap().created, created);
        assert!(store.stat("first", "key-059").is_err() && store.stat("first", "key-060").is_ok());
    }
}

/// Returns the options with which the archive of version 2 was written.
fn options_v2() -> Options {
    Options { big_object_bytes: 1 << 20, ..small() }
}

/// Checks the content of the archive of version 2: that of version 1, and an object of 600,000
/// bytes in a volume, an unfinished upload with one part, an object uploaded in two parts, and a
/// deleted bucket; several volumes, one with a complete index; closed.
fn check_v2(store: &Store) {
    check_records(store);
    for (key, bytes) in [("large", 600_000), ("big", 1_300_000)] {
        assert!(content_of(store, key) == pattern(bytes), "{key}");
        for object in [store.get("first", key), store.open_object("first", key)] {
            let object = object.unwrap();
            assert!(
                object.read(500_000, 100).unwrap().starts_with(&pattern(600_000)[500_000..][..100])
            );
            assert_eq!(object.attributes.get("content-type"), Some("text/plain"));
        }
    }
    assert!(content_of(store, "uploaded") == [pattern(70_000), pattern(70_000)].concat());
    let uploads = uploads_of(store, "first").unwrap();
    assert_eq!(uploads.len(), 1);
    let parts = store.parts("first", "uploading", &uploads[0].id).unwrap();
    assert_eq!((parts.len(), parts[0].number, parts[0].bytes), (1, 1, 100_000));
    let buckets: Vec<_> = store.buckets().unwrap().into_iter().map(|bucket| bucket.name).collect();
    assert_eq!(buckets, ["empty", "first"]);
}

fn content_of(store: &Store, key: &str) -> Vec<u8> {
    crate::content(&store.get("first", key).unwrap()).unwrap()
}

#[test]
fn store_of_version_2_is_read_written_and_compacted() {
    let dir = disk_dir();
    let path = extract(&dir, "store-v2-closed");
    assert_eq!(marker(&path), "haul file store, version 2\n");
    let none = Attributes::new();
    for round in 0..3 {
        let (store, recovered) = Store::open(&path, options_v2()).unwrap();
        assert!(recovered.damage.is_empty() && !recovered.after_crash, "{recovered:?}");
        assert_eq!(marker(&path), "haul file store, version 3\n");
        check_v2(&store);
        // The volumes now contain needles of both layouts.
        for n in 0..50 {
            let bytes = random_bytes(n, 90_000);
            store.put("empty", &format!("{n}"), &bytes, &none, &Precondition::None).unwrap();
        }
        if round == 1 {
            assert!(store.compact().unwrap().volumes_removed > 0);
        }
        check_v2(&store);
        assert_eq!(store.verify(&mut |_, _| {}).unwrap().damage, []);
        store.close().unwrap();
    }
    // Without indexes, opening reads the volumes.
    for name in file_names(&path.join("volumes")) {
        if name.ends_with(".index") {
            std::fs::remove_file(path.join("volumes").join(name)).unwrap();
        }
    }
    let (store, recovered) = Store::open(&path, options_v2()).unwrap();
    assert!(recovered.damage.is_empty(), "{recovered:?}");
    check_v2(&store);
}

#[test]
fn crash_during_upgrade_from_version_2_leaves_a_store() {
    let dir = disk_dir();
    let path = extract(&dir, "store-v2-closed");
    let disk = MemoryDisk::default();
    for dir in ["volumes", "objects"] {
        disk.create_dir(dir).unwrap();
    }
    for name in ["", "volumes", "objects"].iter().flat_map(|dir| {
        file_names(&path.join(dir)).into_iter().map(move |name| format!("{dir}/{name}"))
    }) {
        let name = name.trim_start_matches('/');
        if !path.join(name).is_file() || name.ends_with("LOCK") {
            continue;
        }
        let file = disk.create(name, Open::default()).unwrap();
        write_full(&*file, &std::fs::read(path.join(name)).unwrap(), 0).unwrap();
        file.sync(Durability::Everything).unwrap();
    }
    ["", "volumes", "objects"].iter().for_each(|dir| disk.sync_dir(dir).unwrap());
    let (mut medium, steps) = (disk.medium(), disk.steps().len());
    let open = |disk: &MemoryDisk| Store::open_on(Arc::new(disk.clone()), options_v2()).unwrap();
    let (store, _) = open(&disk);
    let none = Attributes::new();
    store.put("empty", "added", b"bytes", &none, &Precondition::None).unwrap();
    store.close().unwrap();
    let mut texts = BTreeSet::new();
    for step in &disk.steps()[steps..] {
        medium.apply_step(step);
        for survival in [Survival::Nothing, Survival::Everything, Survival::Half { seed: 7 }] {
            let mut cut = medium.cut(survival);
            let text = String::from_utf8(cut.file("STORE").clone()).unwrap();
            texts.insert(text.clone());
            let disk = MemoryDisk::on(&cut);
            let (store, recovered) = open(&disk);
            assert!(recovered.damage.is_empty(), "{step:?}: {recovered:?}");
            let is_there = store.get("empty", "added").is_ok();
            assert!(!is_there || text.contains("version 3"), "a new needle in an old store");
            assert_eq!(store.get("first", "large").unwrap().info.bytes, 600_000);
        }
    }
    assert_eq!(texts.len(), 2, "{texts:?}");
}
