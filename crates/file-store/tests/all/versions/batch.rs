//! Requests that delete several objects and versions.

use std::time::UNIX_EPOCH;

use haul_disk::Op;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{
    Deleted, Deletion, Error, Expiry, Lifecycle, LifecycleRule, Store, VersionId, VersionInfo,
    Versioning,
};
use rustix::io::Errno;

use super::contents::list_all;
use crate::crash::open_on;
use crate::{BUCKET, get, new_store, put};

const KEYS: u64 = 100;

fn delete(store: &Store, versions: &[Option<VersionId>]) -> Vec<Deleted> {
    let deletion =
        |version: &Option<VersionId>| Deletion { version: *version, ..Deletion::of("key") };
    let deletions: Vec<_> = versions.iter().map(deletion).collect();
    store.delete_objects(BUCKET, &deletions).into_iter().map(Result::unwrap).collect()
}

#[test]
fn version_that_a_request_names_several_times_is_searched_once() {
    let disk = MemoryDisk::default();
    let store = open_on(&disk).0;
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    (0..300).for_each(|_| drop(put(&store, "key", b"bytes")));
    store.close().unwrap();
    let store = open_on(&disk).0;
    let null = Some(VersionId::Null);
    let reads = |versions: &[Option<VersionId>]| {
        let before = disk.calls(Op::Read);
        assert!(delete(&store, versions).iter().all(|deleted| *deleted == Deleted::default()));
        disk.calls(Op::Read) - before
    };
    let once = reads(&[null]);
    assert!(once > 0, "the versions are in memory");
    // Fewer if the first search kept a block that the second one needs.
    assert!(reads(&[null; 100]) <= once);
}

#[test]
fn repeated_deletion_of_a_version_finds_nothing_unless_a_marker_took_its_id() {
    let (_dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Suspended).unwrap();
    put(&store, "key", b"bytes");
    let null = Some(VersionId::Null);
    let outcomes = delete(&store, &[null, null, None, null, null]);
    let shown = outcomes.iter().map(|deleted| (deleted.existed, deleted.is_delete_marker));
    assert_eq!(
        shown.collect::<Vec<_>>(),
        [(true, false), (false, false), (false, true), (true, true), (false, false)]
    );
    assert_eq!((store.stats().objects, store.stats().versions), (0, 0));
}

/// Returns a store on a simulated disk, whose bucket has two versions of each key.
fn with_versions() -> (MemoryDisk, Store, Vec<String>) {
    let disk = MemoryDisk::default();
    disk.record_calls();
    let store = open_on(&disk).0;
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let keys: Vec<String> = (0..KEYS).map(|number| number.to_string()).collect();
    for key in keys.iter().chain(&keys) {
        put(&store, key, b"bytes");
    }
    (disk, store, keys)
}

fn deletion_of(version: &VersionInfo) -> Deletion<'_> {
    Deletion { version: Some(version.info.version_id), ..Deletion::of(&version.info.key) }
}

/// Returns the syncs of `work`, without those of background threads.
fn syncs(disk: &MemoryDisk, work: impl FnOnce()) -> u64 {
    let before = disk.recorded_calls().len();
    work();
    let calls = disk.recorded_calls();
    let is_counted = |thread: &str| !thread.starts_with("store-");
    let syncs = calls[before..].iter().filter(|(op, thread)| *op == Op::Sync && is_counted(thread));
    syncs.count() as u64
}

#[test]
fn deletions_of_one_request_share_a_sync() {
    let (disk, store, keys) = with_versions();
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let markers = || {
        let deleted = store.delete_many(BUCKET, &keys);
        assert!(deleted.into_iter().all(|existed| existed.unwrap()));
    };
    assert_eq!(syncs(&disk, markers), 1, "delete markers of {KEYS} keys");
    assert_eq!((store.stats().objects, store.stats().versions), (0, 3 * KEYS));
    // First the markers, so that a version of each key becomes current.
    let (markers, rest): (Vec<_>, Vec<_>) =
        list_all(&store, 1000).into_iter().partition(|version| version.is_latest);
    for (versions, left) in [(markers, 2 * KEYS), (rest, 0)] {
        let deletions: Vec<_> = versions.iter().map(deletion_of).collect();
        let delete = || {
            let deleted = store.delete_objects(BUCKET, &deletions);
            assert!(deleted.into_iter().all(|deleted| deleted.unwrap().existed));
        };
        assert_eq!(syncs(&disk, delete), 1, "{} versions", deletions.len());
        assert_eq!(list_all(&store, 1000).len() as u64, left);
    }
}

#[test]
fn delete_markers_of_a_sweep_share_a_sync() {
    let (disk, store, _) = with_versions();
    let expire = Some(Expiry::At(UNIX_EPOCH));
    let rule = LifecycleRule { enabled: true, expire, ..LifecycleRule::default() };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
    let sweep = || assert_eq!(store.expire_now(BUCKET).unwrap().expired_objects, KEYS);
    assert_eq!(syncs(&disk, sweep), 1);
    assert_eq!((store.stats().objects, store.stats().versions), (0, 3 * KEYS));
}

#[test]
fn failed_sync_fails_all_deletions_of_a_request() {
    let (disk, store, keys) = with_versions();
    let versions = list_all(&store, 1000);
    let older = versions.iter().filter(|version| !version.is_latest).take(10).map(deletion_of);
    let deletions: Vec<_> = keys.iter().map(|key| Deletion::of(key)).chain(older).collect();
    disk.fail_always(Op::Sync, Errno::IO);
    let outcomes = store.delete_objects(BUCKET, &deletions);
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
    disk.heal();
    assert!(store.stats().latched);
    assert_eq!(list_all(&store, 1000), versions, "a deletion that failed is visible");
    drop(store);
    // The kernel may have dropped the bytes.
    let store = open_on(&MemoryDisk::on(&disk.medium().cut(Survival::Nothing))).0;
    assert_eq!(list_all(&store, 1000), versions);
}

#[test]
fn newest_version_that_stays_becomes_current_in_one_record() {
    let (_dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let ids: Vec<_> =
        (0..5_u8).map(|number| Some(put(&store, "key", &[number]).version_id)).collect();
    let records = store.stats().log_records;
    let outcomes = delete(&store, &[ids[4], ids[3], ids[0], ids[2], Some(VersionId::Id(7))]);
    let existed: Vec<_> = outcomes.iter().map(|deleted| deleted.existed).collect();
    assert_eq!(existed, [true, true, true, true, false]);
    assert_eq!(store.stats().log_records, records + 1);
    assert_eq!((get(&store, "key"), store.stats().versions), (vec![1], 0));
}

#[test]
fn version_whose_condition_fails_stays_and_becomes_current() {
    let (_dir, store) = new_store();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    let ids = [1, 2, 3, 4].map(|length| put(&store, "key", &vec![7; length]).version_id);
    let is_odd = |info: &haul_file_store::ObjectInfo| info.bytes % 2 == 1;
    let (version, condition) = (None, Some(&is_odd as &(dyn Fn(&_) -> bool + Sync)));
    let refused = Deletion { version, condition, ..Deletion::of("key") };
    let outcomes = |ids: &[VersionId]| {
        let deletion = |id: &VersionId| Deletion { version: Some(*id), ..refused };
        let deletions: Vec<_> = ids.iter().map(deletion).collect();
        let outcomes = store.delete_objects(BUCKET, &deletions).into_iter();
        outcomes
            .map(|outcome| match outcome {
                Ok(deleted) => deleted.existed,
                Err(Error::PreconditionFailed) => false,
                Err(other) => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&[ids[3], ids[2]]), [false, true], "the current object stays");
    assert_eq!(get(&store, "key").len(), 4);
    assert!(delete(&store, &[Some(ids[3])])[0].existed);
    put(&store, "key", b"12345");
    let newest = list_all(&store, 9)[0].info.version_id;
    assert_eq!(outcomes(&[ids[0], newest, ids[1]]), [true, true, false]);
    assert_eq!(get(&store, "key").len(), 2);
    assert_eq!(list_all(&store, 9).len(), 1);
}
