//! Changes of attributes in place.

use std::sync::Arc;
use std::thread;

use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere, crash_until};
use haul_file_store::{
    ATTRIBUTE_BYTES_MAX, Attributes, Error, ObjectInfo, Result, Store, VersionId, Versioning,
};

use super::contents::list_all;
use crate::{BIG, BUCKET, get, new_store, put, random_bytes, reopen, small};

/// Sets the attribute `tag`.
fn set(store: &Store, key: &str, version: Option<VersionId>, name: &str) -> Result<ObjectInfo> {
    let change = |attributes: &mut Attributes| {
        attributes.set("tag", name);
        Ok(())
    };
    store.update_attributes(BUCKET, key, version, &change)
}

fn tag(store: &Store, key: &str) -> Option<String> {
    store.head(BUCKET, key).unwrap().attributes.get("tag").map(str::to_owned)
}

#[test]
fn attributes_change_without_a_change_of_the_object() {
    let (dir, mut store) = new_store();
    for length in [0, 1000, BIG, 3 << 20] {
        let (key, bytes) = (length.to_string(), random_bytes(5, length));
        let stored = put(&store, &key, &bytes);
        for name in ["a", "b"] {
            assert_eq!(set(&store, &key, None, name).unwrap(), stored);
            assert_eq!(store.stat(BUCKET, &key).unwrap(), stored);
            assert_eq!(tag(&store, &key).as_deref(), Some(name));
            assert!(get(&store, &key) == bytes);
        }
        let bucket = store.bucket(BUCKET).unwrap();
        store.compact().unwrap();
        store.close().unwrap();
        store = reopen(dir.path()).0;
        assert_eq!(store.bucket(BUCKET).unwrap(), bucket);
        assert_eq!(store.stat(BUCKET, &key).unwrap(), stored);
        assert_eq!(tag(&store, &key).as_deref(), Some("b"));
        assert!(get(&store, &key) == bytes);
    }
    assert!(matches!(set(&store, "none", None, "a"), Err(Error::NoSuchKey { .. })));
}

#[test]
fn concurrent_changes_of_attributes_are_all_made() {
    const CHANGES: usize = 20;
    let (_dir, store) = new_store();
    put(&store, "key", b"bytes");
    thread::scope(|scope| {
        for name in ["a", "b", "c"] {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..CHANGES {
                    let change = |attributes: &mut Attributes| {
                        let before = attributes.get(name).unwrap_or_default().to_owned();
                        attributes.set(name, before + "x");
                        Ok(())
                    };
                    store.update_attributes(BUCKET, "key", None, &change).unwrap();
                }
            });
        }
    });
    let attributes = store.head(BUCKET, "key").unwrap().attributes;
    let lengths: Vec<_> = attributes.iter().map(|(_, value)| value.len()).collect();
    assert_eq!(lengths, [CHANGES; 3]);
}

/// A change was acknowledged: of the object with this index, to this number.
struct Acknowledged(usize, usize);

#[test]
fn crash_leaves_the_previous_or_the_new_attributes() {
    let objects = [("small", 100), ("big", BIG)];
    let open = |disk: &MemoryDisk| Store::open_on(Arc::new(disk.clone()), small()).unwrap().0;
    let workload = |disk: &MemoryDisk| {
        let store = open(disk);
        store.create_bucket(BUCKET).unwrap();
        for (index, (key, length)) in objects.into_iter().enumerate() {
            put(&store, key, &random_bytes(1, length));
            disk.note(Acknowledged(index, 0));
            for number in 1..4 {
                set(&store, key, None, &number.to_string()).unwrap();
                disk.note(Acknowledged(index, number));
            }
        }
    };
    let recover = |(): &(), crash: &Crash| {
        let Some(Acknowledged(last, number)) = crash.notes().last() else { return };
        let store = open(&crash.disk);
        for (index, (key, length)) in objects.into_iter().enumerate().take(last + 1) {
            assert!(get(&store, key) == random_bytes(1, length), "{key}");
            let found = tag(&store, key).map_or(0, |name| name.parse::<usize>().unwrap());
            let acknowledged = if index == *last { *number } else { 3 };
            let expected = [acknowledged, (acknowledged + 1).min(3)];
            assert!(expected.contains(&found), "{key}: {found} after {acknowledged}");
        }
    };
    crash_until(20, &Crashes::default(), |crashes| crash_everywhere(crashes, workload, recover));
}

#[test]
fn attributes_of_a_version_change_without_another_version() {
    let (dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let first = put(&store, "key", b"first");
    let second = put(&store, "key", b"second");
    let tags = |name: &str| Attributes::from_iter([("tag", name)]);
    let set = |version, name: &str| set(&store, "key", version, name);
    let refuse = |_: &mut Attributes| Err(Error::PreconditionFailed);
    let refused = store.update_attributes(BUCKET, "key", None, &refuse);
    assert!(matches!(refused, Err(Error::PreconditionFailed)));
    let large = |attributes: &mut Attributes| {
        attributes.set("tag", "x".repeat(ATTRIBUTE_BYTES_MAX));
        Ok(())
    };
    assert!(store.update_attributes(BUCKET, "key", None, &large).is_err());
    assert_eq!(set(Some(first.version_id), "a").unwrap(), first);
    assert_eq!(set(None, "b").unwrap(), second);
    let marker = store.delete_object(BUCKET, "key", None).unwrap().version_id;
    let is_marker = set(marker, "c");
    assert!(matches!(is_marker, Err(Error::IsDeleteMarker { .. })), "{is_marker:?}");
    assert!(matches!(set(None, "c"), Err(Error::NoSuchKey { .. })));
    store.close().unwrap();
    let store = reopen(dir.path()).0;
    let ids: Vec<_> =
        list_all(&store, 1000).into_iter().map(|version| version.info.version_id).collect();
    assert_eq!(ids, [marker.unwrap(), second.version_id, first.version_id]);
    for (info, name) in [(first, "a"), (second, "b")] {
        let found = store.get_version(BUCKET, "key", info.version_id).unwrap();
        assert_eq!((&found.info, &found.attributes), (&info, &tags(name)));
    }
}
