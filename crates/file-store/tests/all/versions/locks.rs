//! Object lock: behaviour, random acts, crashes, and damage.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{
    Attributes, DefaultRetention, Deletion, Error, Expiry, Lifecycle, LifecycleRule, NewBucket,
    NewObject, NoncurrentExpiry, ObjectLock, Precondition, Result, Retention, RetentionMode,
    RetentionPeriod, Store, VersionId, Versioning,
};
use haul_testing::{PrintOnPanic, Random, disk_dir, replay_command, seed};
use tempfile::TempDir;

use super::contents::list_all;
use super::lock_model::{LockModel, START_MS, attack, create, options};
use crate::{BIG, BUCKET, get, new_store, put, reopen, small, try_put};

const GOVERNANCE: RetentionMode = RetentionMode::Governance;
const COMPLIANCE: RetentionMode = RetentionMode::Compliance;

fn locked_store() -> (TempDir, Store) {
    let dir = disk_dir();
    let (store, _) = reopen(dir.path());
    store.create_bucket_with(BUCKET, &NewBucket::with_object_lock(Attributes::new())).unwrap();
    (dir, store)
}

fn for_days(mode: RetentionMode, days: u64) -> Option<Retention> {
    let until = SystemTime::now() + Duration::from_hours(24 * days);
    Some(Retention { mode, until })
}

fn lock_of(store: &Store, key: &str, id: VersionId) -> ObjectLock {
    ObjectLock::of(&store.head_version(BUCKET, key, id).unwrap().attributes).unwrap()
}

fn is_locked<T: std::fmt::Debug>(outcome: Result<T>) -> bool {
    matches!(outcome, Err(Error::Locked { .. }))
}

fn bypass(store: &Store, key: &str, id: VersionId) -> Result<haul_file_store::Deleted> {
    let deletion = Deletion { version: Some(id), bypass_governance: true, ..Deletion::of(key) };
    store.delete_objects(BUCKET, &[deletion]).pop().unwrap()
}

/// Sets a rule by which all versions that are not current, and all current objects, expire.
fn expire_everything(store: &Store) {
    let expire = Some(Expiry::At(std::time::UNIX_EPOCH));
    let after = Duration::from_millis(1);
    let expire_noncurrent = Some(NoncurrentExpiry { after, newer_versions: 0 });
    let rule =
        LifecycleRule { enabled: true, expire, expire_noncurrent, ..LifecycleRule::default() };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
}

#[test]
fn locks_need_versioning_which_cannot_be_suspended() {
    let (dir, store) = new_store();
    let is_state_error = |outcome| matches!(outcome, Err(Error::InvalidBucketState { .. }));
    assert!(is_state_error(store.enable_object_lock(BUCKET)));
    store.set_versioning(BUCKET, Versioning::Suspended).unwrap();
    assert!(is_state_error(store.enable_object_lock(BUCKET)));
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    assert!(!store.has_object_lock(BUCKET).unwrap());
    store.enable_object_lock(BUCKET).unwrap();
    store.enable_object_lock(BUCKET).unwrap();
    let owned = Attributes::from_iter([("owner", "ann")]);
    store.create_bucket_with("other", &NewBucket::with_object_lock(owned)).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    for bucket in [BUCKET, "other"] {
        assert!(store.has_object_lock(bucket).unwrap());
        assert_eq!(store.versioning(bucket).unwrap(), Versioning::Enabled);
        assert!(is_state_error(store.set_versioning(bucket, Versioning::Suspended)));
    }
    assert_eq!(store.bucket_settings("other").unwrap().get("owner"), Some("ann"));
    let again = store.create_bucket_with("other", &NewBucket::with_object_lock(Attributes::new()));
    assert!(matches!(again, Err(Error::BucketExists { .. })));
    store.delete_bucket("other").unwrap();
    store.create_bucket("other").unwrap();
    assert!(!store.has_object_lock("other").unwrap());
    assert_eq!(store.versioning("other").unwrap(), Versioning::Off);
}

#[test]
fn bucket_without_object_lock_refuses_locks() {
    let (_dir, store) = new_store();
    let mut attributes = Attributes::new();
    ObjectLock { retention: for_days(GOVERNANCE, 1), legal_hold: None }.set_in(&mut attributes);
    for versioning in [Versioning::Off, Versioning::Enabled] {
        if versioning != Versioning::Off {
            store.set_versioning(BUCKET, versioning).unwrap();
        }
        let none = &Precondition::None;
        let object =
            NewObject { key: "a", bytes: b"", attributes: &attributes, precondition: none };
        let upload = store.start_upload(BUCKET, "a", &attributes).unwrap();
        let part = crate::put_part(&store, "a", &upload, 1, b"");
        let more = Attributes::new();
        put(&store, "b", b"");
        for outcome in [
            store.put(BUCKET, "a", b"", &attributes, none),
            store.put_many(BUCKET, &[object]).pop().unwrap(),
            store.complete_upload(BUCKET, "a", &upload, &[part], &more, none),
            store.set_retention(BUCKET, "b", None, for_days(GOVERNANCE, 1), false),
            store.set_legal_hold(BUCKET, "b", None, true),
        ] {
            assert!(matches!(outcome, Err(Error::NoObjectLock { .. })), "{outcome:?}");
        }
        assert!(matches!(store.start_put(BUCKET, "a", b"", &attributes, none), Ok(None)));
        let default = DefaultRetention { mode: GOVERNANCE, period: RetentionPeriod::Days(1) };
        let set = store.set_default_retention(BUCKET, Some(default));
        assert!(matches!(set, Err(Error::NoObjectLock { .. })), "{set:?}");
    }
}

#[test]
fn default_retention_applies_to_new_objects_without_one() {
    let (dir, store) = locked_store();
    let before = put(&store, "key", b"before");
    let default = DefaultRetention { mode: COMPLIANCE, period: RetentionPeriod::Years(1) };
    store.set_default_retention(BUCKET, Some(default)).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.default_retention(BUCKET).unwrap(), Some(default));
    let (none, any) = (Attributes::new(), Precondition::None);
    let upload = store.start_upload(BUCKET, "key", &none).unwrap();
    let part = crate::put_part(&store, "key", &upload, 1, b"part");
    let object = NewObject { key: "key", bytes: b"x", attributes: &none, precondition: &any };
    assert!(store.start_put(BUCKET, "key", b"", &none, &any).unwrap().is_none());
    for stored in [
        put(&store, "key", b"next"),
        put(&store, "key", &crate::random_bytes(1, BIG)),
        store.put_many(BUCKET, &[object]).pop().unwrap().unwrap(),
        store.complete_upload(BUCKET, "key", &upload, &[part], &none, &any).unwrap(),
        store.copy((BUCKET, "key"), (BUCKET, "key"), None, &any).unwrap(),
    ] {
        let until = stored.modified + Duration::from_hours(24 * 365);
        let Retention { mode, until: found } =
            lock_of(&store, "key", stored.version_id).retention.unwrap();
        let difference = found.duration_since(until).unwrap_or_else(|error| error.duration());
        assert!(mode == COMPLIANCE && difference < Duration::from_mins(1), "{difference:?}");
        assert!(is_locked(bypass(&store, "key", stored.version_id)));
    }
    assert_eq!(lock_of(&store, "key", before.version_id), ObjectLock::default());
    let mut own = Attributes::new();
    let lock = ObjectLock { retention: for_days(GOVERNANCE, 1), legal_hold: Some(true) };
    lock.set_in(&mut own);
    let stored = store.put(BUCKET, "own", b"", &own, &any).unwrap();
    assert_eq!(lock_of(&store, "own", stored.version_id).legal_hold, Some(true));
    let copied = store.copy((BUCKET, "own"), (BUCKET, "copy"), None, &any).unwrap();
    let copied = lock_of(&store, "copy", copied.version_id);
    assert_eq!((copied.legal_hold, copied.retention.unwrap().mode), (None, COMPLIANCE));
    store.set_default_retention(BUCKET, None).unwrap();
    let stored = put(&store, "key", b"last");
    assert_eq!(lock_of(&store, "key", stored.version_id), ObjectLock::default());
}

/// A version that was stored before versioning was enabled can be locked like others.
#[test]
fn version_null_is_protected() {
    let (_dir, store) = new_store();
    put(&store, "key", b"bytes");
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    store.enable_object_lock(BUCKET).unwrap();
    store.set_legal_hold(BUCKET, "key", None, true).unwrap();
    assert!(is_locked(bypass(&store, "key", VersionId::Null)));
    put(&store, "key", b"next");
    assert!(is_locked(bypass(&store, "key", VersionId::Null)));
    store.set_legal_hold(BUCKET, "key", Some(VersionId::Null), false).unwrap();
    assert!(store.delete_object(BUCKET, "key", Some(VersionId::Null)).unwrap().existed);
}

#[test]
fn locked_version_stays_when_a_newer_one_is_deleted() {
    let (_dir, store) = locked_store();
    let [first, second] = [b"first", b"other"].map(|bytes| put(&store, "key", bytes).version_id);
    let retention = for_days(GOVERNANCE, 1);
    store.set_retention(BUCKET, "key", Some(first), retention, false).unwrap();
    assert!(store.delete_object(BUCKET, "key", Some(second)).unwrap().existed);
    assert_eq!(get(&store, "key"), b"first");
    assert!(is_locked(store.delete_object(BUCKET, "key", Some(first))));
    let marker = store.delete_object(BUCKET, "key", None).unwrap();
    assert!(marker.is_delete_marker && is_locked(store.delete_object(BUCKET, "key", Some(first))));
    assert!(store.delete_object(BUCKET, "key", marker.version_id).unwrap().existed);
    assert!(bypass(&store, "key", first).unwrap().existed);
    store.delete_bucket(BUCKET).unwrap();
}

#[test]
fn locked_version_stays_when_all_versions_are_deleted_in_one_request() {
    let (_dir, store) = locked_store();
    let ids = [b"1", b"2", b"3"].map(|bytes| put(&store, "key", bytes).version_id);
    let retention = for_days(GOVERNANCE, 1);
    store.set_retention(BUCKET, "key", Some(ids[1]), retention, false).unwrap();
    let deletion = |id: &VersionId| Deletion { version: Some(*id), ..Deletion::of("key") };
    let mut outcomes = store.delete_objects(BUCKET, &ids.each_ref().map(deletion));
    assert!(is_locked(outcomes.remove(1)));
    assert!(outcomes.into_iter().all(|deleted| deleted.unwrap().existed));
    assert_eq!((get(&store, "key"), list_all(&store, 9).len()), (b"2".to_vec(), 1));
}

fn run(seed: u64, acts: u32, is_long: bool) -> u64 {
    let _context = PrintOnPanic(replay_command(seed));
    let (mut random, time) = (Random(seed), Arc::new(AtomicU64::new(START_MS)));
    let dir = disk_dir();
    let mut store = Store::open(dir.path(), options(&time)).unwrap().0;
    create(&store);
    let (mut model, mut compacted) = (LockModel::new(), 0);
    for _ in 0..acts {
        let act = model.plan(&mut random, is_long);
        let stored = model.execute(&act, &store, &time);
        model.apply(&act, stored);
        if random.below(20) == 0 {
            assert!(model.is_state_of(&store), "{act:?}");
        }
        if random.below(60) == 0 {
            compacted += store.stats().volumes_compacted;
            store.close().unwrap();
            if random.below(2) == 0 {
                std::fs::remove_dir_all(dir.path().join("index")).unwrap();
            }
            store = Store::open(dir.path(), options(&time)).unwrap().0;
            assert!(model.is_state_of(&store));
        }
    }
    assert!(model.is_state_of(&store));
    attack(&store, model.now_ms);
    compacted + store.stats().volumes_compacted
}

#[test]
fn random_acts_on_locked_versions_agree_with_the_model() {
    let seed = seed();
    (0..4).for_each(|n| {
        run(seed + n, 500, false);
    });
    assert!(run(seed + 4, 600, true) > 0, "no volume was compacted");
}

/// Returns a store with the versions "older" and "newer" of two keys, of which those of `key` have
/// a lock that has ended. In the last needle of the version "older" of `key`, `damaged` is damaged.
fn with_damage(damaged: &[u8], is_locked: bool) -> (Store, VersionId) {
    let disk = MemoryDisk::default();
    let (store, _) = crate::crash::open_on(&disk);
    store.create_bucket(BUCKET).unwrap();
    store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    if is_locked {
        store.enable_object_lock(BUCKET).unwrap();
    }
    let attributes = Attributes::from_iter([("name", "attribute of older")]);
    let older = store.put(BUCKET, "key", b"content of older", &attributes, &Precondition::None);
    put(&store, "key", b"newer");
    put(&store, "other", b"older");
    put(&store, "other", b"newer");
    store.close().unwrap();
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file("volumes/0000000001.segment");
    let at = volume.windows(damaged.len()).rposition(|window| window == damaged).unwrap();
    volume[at] ^= 1;
    drop(volume);
    (crate::crash::open_on(&MemoryDisk::on(&medium)).0, older.unwrap().version_id)
}

#[test]
fn version_with_unreadable_attributes_is_not_removed() {
    let (store, id) = with_damage(b"attribute of older", true);
    for outcome in [store.delete_object(BUCKET, "key", Some(id)), bypass(&store, "key", id)] {
        assert!(matches!(outcome, Err(Error::Damaged { .. })), "{outcome:?}");
    }
    std::thread::sleep(Duration::from_millis(2));
    expire_everything(&store);
    let report = store.expire_now(BUCKET).unwrap();
    // The current objects become versions that are not current, and do not expire at once.
    assert_eq!((report.expired_objects, report.skipped, report.locked), (2, 1, 0));
    assert_eq!(report.expired_versions, 1, "that of the other key");
    assert!(list_all(&store, 100).iter().any(|it| it.info.version_id == id));
    // Without object lock, it cannot be locked.
    let (store, id) = with_damage(b"attribute of older", false);
    assert!(store.delete_object(BUCKET, "key", Some(id)).unwrap().existed);
}

#[test]
fn version_with_damaged_content_is_removed_if_it_is_not_locked() {
    let (store, id) = with_damage(b"content of older", true);
    store.delete_object(BUCKET, "key", Some(id)).unwrap();
    assert!(list_all(&store, 100).iter().all(|it| it.info.version_id != id));
}

/// Damage may hide that a bucket has object lock: its versions are then treated as if it had.
#[test]
fn locks_hold_while_damage_hides_the_state_of_the_bucket() {
    let disk = MemoryDisk::default();
    let (store, _) = crate::crash::open_on(&disk);
    store.create_bucket_with(BUCKET, &NewBucket::with_object_lock(Attributes::new())).unwrap();
    let id = put(&store, "key", b"bytes").version_id;
    store.close().unwrap();
    let mut medium = disk.medium().cut(Survival::Everything);
    let mut volume = medium.file("volumes/0000000001.segment");
    let at = volume.windows(13).position(|window| window == b"bucket:locked").unwrap();
    volume[at] ^= 1;
    drop(volume);
    for name in disk.list("index").unwrap() {
        disk.remove(&format!("index/{name}")).unwrap();
    }
    let disk = MemoryDisk::on(&medium);
    for name in disk.list("index").unwrap() {
        disk.remove(&format!("index/{name}")).unwrap();
    }
    for name in disk.list("volumes").unwrap().into_iter().filter(|name| name.contains("index")) {
        disk.remove(&format!("volumes/{name}")).unwrap();
    }
    let (store, recovered) = Store::open_on(Arc::new(disk), small()).unwrap();
    assert_eq!(recovered.hidden.len(), 1, "{recovered:?}");
    let is_damaged = |outcome: Result<()>| matches!(outcome, Err(Error::Damaged { .. }));
    assert!(is_damaged(store.has_object_lock(BUCKET).map(drop)));
    assert!(is_damaged(store.set_versioning(BUCKET, Versioning::Suspended)));
    assert!(is_damaged(store.delete_object(BUCKET, "key", Some(id)).map(drop)));
    assert!(is_damaged(store.delete_bucket(BUCKET)));
    drop(try_put(&store, "key", b"next"));
    assert!(is_damaged(store.expire_now(BUCKET).map(drop)) || store.stats().deletes == 0);
}
