//! Stores written by released versions, from the archives `tests/fixtures/store-VERSION.tar.gz`.
//! Every later version must read them, and write to them.

use std::time::UNIX_EPOCH;

use haul_file_store::{Error, Expiry, Lifecycle, LifecycleRule};
use haul_testing::fixtures;

use crate::*;

/// The directories of an archive: a store that was closed, and one as a killed process left it.
const STORES: [&str; 2] = ["closed", "killed"];

/// The number of keys, each of which was overwritten.
const KEYS: u32 = 120;

/// The number of keys that were then deleted: the first ones.
const DELETED: u32 = 20;

/// The number of puts.
const PUTS: u32 = 300;

/// The key of an unfinished upload.
const UPLOADING: &str = "uploading";

fn key(n: u32) -> String {
    format!("key-{n:03}")
}

/// Returns the content of put `n`.
fn object(n: u32) -> Vec<u8> {
    let mut bytes = format!("object {n} ").into_bytes();
    bytes.resize(bytes.len() + (n * 97 % 3000) as usize, n.to_le_bytes()[0]);
    bytes
}

/// Returns the content of a big object or a part.
fn long(bytes: u32) -> Vec<u8> {
    (0..bytes).map(|n| (n >> 10).to_le_bytes()[0]).collect()
}

fn lifecycle() -> Lifecycle {
    let rule = LifecycleRule {
        enabled: true,
        prefix: "old/".to_owned(),
        expire: Some(Expiry::At(UNIX_EPOCH)),
        ..LifecycleRule::default()
    };
    Lifecycle { rules: vec![rule] }
}

/// Writes the stores of an archive.
fn write(dir: &Path) {
    let text = Attributes::from_iter([("content-type", "text/plain")]);
    for name in STORES {
        let (path, killed) = (dir.join(name), disk_dir());
        let target = if name == "killed" { killed.path() } else { &path };
        let (store, _) = Store::open(target, small()).unwrap();
        for bucket in [BUCKET, "empty", "deleted"] {
            store.create_bucket(bucket).unwrap();
        }
        store.delete_bucket("deleted").unwrap();
        for n in 0..PUTS {
            store.put(BUCKET, &key(n % KEYS), &object(n), &text, &Precondition::None).unwrap();
        }
        let deleted: Vec<_> = (0..DELETED).map(key).collect();
        let deleted: Vec<_> = deleted.iter().map(String::as_str).collect();
        store.delete_many(BUCKET, &deleted).into_iter().for_each(|each| assert!(each.unwrap()));
        put(&store, "big", &long(300_000));
        let upload = store.start_upload(BUCKET, "uploaded", &text).unwrap();
        let parts = [1, 2].map(|n| put_part(&store, "uploaded", &upload, n, &long(70_000)));
        let always = Precondition::None;
        store
            .complete_upload(BUCKET, "uploaded", &upload, &parts, &Attributes::new(), &always)
            .unwrap();
        let upload = store.start_upload(BUCKET, UPLOADING, &text).unwrap();
        put_part(&store, UPLOADING, &upload, 1, b"a part");
        store.set_lifecycle(BUCKET, &lifecycle()).unwrap();
        if name == "killed" {
            fixtures::copy_files(target, &path);
        }
        store.close().unwrap();
    }
}

/// Checks the content that [`write`] has stored.
fn check_content(store: &Store, about: &str) {
    for n in 0..KEYS {
        let found = store.get(BUCKET, &key(n));
        if n < DELETED {
            assert!(matches!(found, Err(Error::NoSuchKey { .. })), "{about}: {n}");
            continue;
        }
        let newest = (0..PUTS).rev().find(|put| put % KEYS == n).unwrap();
        let found = found.unwrap();
        assert!(content(&found).unwrap() == object(newest), "{about}: {n}");
        assert_eq!(found.attributes.get("content-type"), Some("text/plain"), "{about}: {n}");
    }
    assert!(get(store, "big") == long(300_000), "{about}");
    assert!(get(store, "uploaded") == [long(70_000), long(70_000)].concat(), "{about}");
    assert_eq!(list(store, BUCKET).len(), (KEYS - DELETED + 2) as usize, "{about}");
    assert_eq!(store.lifecycle(BUCKET).unwrap(), lifecycle(), "{about}");
    let buckets: Vec<_> = store.buckets().unwrap().into_iter().map(|each| each.name).collect();
    assert_eq!(buckets, [BUCKET, "empty"], "{about}");
    let uploads = uploads_of(store, BUCKET).unwrap();
    assert_eq!(uploads.len(), 1, "{about}");
    assert_eq!(store.parts(BUCKET, UPLOADING, &uploads[0].id).unwrap()[0].bytes, 6, "{about}");
}

fn check(dir: &Path, version: &str) {
    let none = Attributes::new();
    for name in STORES {
        let (about, path) = (format!("{version} {name}"), dir.join(name));
        for round in 0..2 {
            let (store, recovered) = reopen(&path);
            assert!(recovered.damage.is_empty(), "{about}: {recovered:?}");
            let is_killed = name == "killed" && round == 0;
            assert_eq!(recovered.after_crash, is_killed, "{about}: {recovered:?}");
            check_content(&store, &about);
            for n in 0..70 {
                let bytes = random_bytes(n, 60_000);
                store.put("empty", &n.to_string(), &bytes, &none, &Precondition::None).unwrap();
            }
            if round == 1 {
                assert!(store.compact().unwrap().volumes_removed > 0, "{about}");
            }
            check_content(&store, &about);
            assert_eq!(store.verify(&mut |_, _| {}).unwrap().damage, [], "{about}");
            store.close().unwrap();
        }
    }
}

#[test]
fn stores_of_released_versions_are_read_written_and_compacted() {
    for (version, dir) in fixtures::release_fixtures(env!("CARGO_MANIFEST_DIR"), "store") {
        check(dir.path(), &version);
    }
}

#[test]
fn store_of_this_version_passes_the_test_of_releases() {
    let dir = disk_dir();
    write(dir.path());
    fixtures::save(dir.path(), "store", env!("CARGO_PKG_VERSION"));
    check(dir.path(), "this version");
}
