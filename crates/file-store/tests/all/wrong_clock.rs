//! A clock that was ahead once: objects that are stored later have the present time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Options, Precondition, Store, TimeSource, VersionId, VersionInfo, Versioning,
};

use crate::start_put::block_on;
use crate::versions::contents::list_all;
use crate::{BUCKET, content, disk_dir, get, put, small};

/// A bucket without versions.
const PLAIN: &str = "plain";

const PRESENT_MS: u64 = 1_790_000_000_000;
const TEN_YEARS_MS: u64 = 10 * 365 * 86_400_000;

fn open(dir: &Path, now_ms: u64) -> Store {
    let time = TimeSource::Manual(Arc::new(AtomicU64::new(now_ms)));
    Store::open(dir, Options { time, ..small() }).unwrap().0
}

fn put_plain(store: &Store, key: &str) -> SystemTime {
    let none = Attributes::new();
    store.put(PLAIN, key, b"bytes", &none, &Precondition::None).unwrap().modified
}

fn put_in_parts(store: &Store, key: &str) -> SystemTime {
    let none = Attributes::new();
    let upload = store.start_upload(PLAIN, key, &none).unwrap();
    let mut writer = store.part_writer(PLAIN, None).unwrap();
    writer.write(b"part").unwrap();
    let part = store.put_part(PLAIN, key, &upload, 1, writer.finish().unwrap(), &none).unwrap();
    let parts = [(1, part.etag)];
    let precondition = &Precondition::None;
    store.complete_upload(PLAIN, key, &upload, &parts, &none, precondition).unwrap().modified
}

fn put_at_once(store: &Store, key: &str) -> SystemTime {
    let (none, precondition) = (Attributes::new(), &Precondition::None);
    let started = store.start_put(PLAIN, key, b"bytes", &none, precondition).unwrap();
    block_on(started.unwrap()).unwrap().info.modified
}

/// Returns the versions and delete markers of a key, from newest to oldest.
fn versions(store: &Store, key: &str) -> Vec<VersionInfo> {
    list_all(store, 1000).into_iter().filter(|version| version.info.key == key).collect()
}

#[test]
fn later_objects_have_the_present_time_and_versions_stay_in_order() {
    let dir = disk_dir();
    let store = open(dir.path(), PRESENT_MS + TEN_YEARS_MS);
    store.create_bucket(PLAIN).unwrap();
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    put_plain(&store, "replaced");
    put(&store, "kept", b"first");
    put(&store, "deleted", b"first");
    store.delete_object(BUCKET, "deleted", None).unwrap();
    drop(store);

    let store = open(dir.path(), PRESENT_MS);
    let present = UNIX_EPOCH + Duration::from_millis(PRESENT_MS);
    assert_eq!(put_plain(&store, "replaced"), present);
    assert_eq!(put_plain(&store, "new"), present);
    assert_eq!(put_at_once(&store, "at-once"), present);
    assert_eq!(put_in_parts(&store, "parts"), present);
    assert_eq!(put(&store, "new", b"second").modified, present);
    // The versions of a key are ordered by their IDs, which contain the time.
    let kept = put(&store, "kept", b"second").version_id;
    let stored = put(&store, "deleted", b"second").version_id;
    let marker = store.delete_object(BUCKET, "kept", None).unwrap().version_id.unwrap();
    let check = |store: &Store| {
        let ids = |key: &str| -> Vec<VersionId> {
            versions(store, key).iter().map(|version| version.info.version_id).collect()
        };
        assert_eq!(ids("kept")[..2], [marker, kept]);
        assert_eq!((ids("deleted").len(), ids("deleted")[0]), (3, stored));
        for key in ["kept", "deleted", "new"] {
            let latest: Vec<bool> = versions(store, key).iter().map(|it| it.is_latest).collect();
            assert!(latest[0] && !latest[1..].contains(&true), "{key}");
        }
        assert_eq!(
            (get(store, "deleted"), get(store, "new")),
            (b"second".into(), b"second".into())
        );
        for key in ["replaced", "new", "at-once", "parts"] {
            assert_eq!(store.stat(PLAIN, key).unwrap().modified, present, "{key}");
        }
        let old = store.get_version(BUCKET, "kept", kept).unwrap();
        assert_eq!(content(&old).unwrap(), b"second");
    };
    check(&store);
    drop(store);
    // Recovery and compaction order needles by their places in the log.
    let store = open(dir.path(), PRESENT_MS + 1000);
    check(&store);
    store.compact().unwrap();
    check(&store);
    drop(store);
    check(&open(dir.path(), PRESENT_MS + 2000));
}
