//! Stores written by earlier versions of this crate, kept as archives in `tests/fixtures`.

use std::process::Command;

use crate::*;

/// Content `n` in every archive.
fn content(n: u32) -> Vec<u8> {
    let mut bytes = format!("record {n} ").into_bytes();
    let length = bytes.len() + (n * 97 % 5000) as usize;
    bytes.resize(length, n.to_le_bytes()[0]);
    bytes
}

/// Format version 1: 300 keys overwritten eight times, 50 of them deleted, a big object, an upload
/// in progress, an empty bucket; several volumes, one with an index; closed.
#[test]
fn a_store_of_version_1_is_read_and_continued() {
    let dir = disk_dir();
    let archive = format!("{}/tests/fixtures/store-v1-closed.tar.gz", env!("CARGO_MANIFEST_DIR"));
    let tar = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(dir.path()).status();
    assert!(tar.unwrap().success(), "cannot extract {archive}");
    let path = dir.path().join("store-v1-closed");

    let options = Options { big_object_bytes: 256 << 10, ..small() };
    for round in 0..2 {
        let (store, recovered) = Store::open(&path, options.clone()).unwrap();
        assert!(recovered.damage.is_empty() && !recovered.after_crash, "{recovered:?}");
        for key in 0..300 {
            let object = store.get("first", &format!("key-{key:03}"));
            if key < 50 {
                assert!(matches!(object, Err(haul_file_store::Error::NoSuchKey { .. })), "{key}");
                continue;
            }
            // Keys were overwritten in turn, 2,600 times in all.
            let newest = (0..2600).rev().find(|n| n % 300 == key).unwrap();
            let object = object.unwrap();
            assert_eq!(object.read(0, 1 << 20).unwrap(), content(newest), "{key}");
            assert_eq!(object.attributes.get("content-type"), Some("text/plain"));
        }
        let big: Vec<u8> = (0..300_000_u32).map(|n| (n >> 8).to_le_bytes()[0]).collect();
        assert_eq!(store.get("first", "big").unwrap().read(0, 1 << 20).unwrap(), big);
        let buckets: Vec<_> =
            store.buckets().unwrap().into_iter().map(|b| (b.name, b.objects)).collect();
        let added = u64::from(round == 1);
        assert_eq!(buckets, [("empty".to_owned(), added), ("first".to_owned(), 251)]);
        assert_eq!(store.uploads("first").unwrap().len(), 1);
        if round == 0 {
            let none = Attributes::new();
            store.put("empty", "added", b"later", &none, &Precondition::None).unwrap();
        }
        store.close().unwrap();
    }
}
