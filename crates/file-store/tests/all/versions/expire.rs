//! The expiration of versions and delete markers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{
    Error, ExpiredEntry, Expiry, Lifecycle, LifecycleAction, LifecycleObserver, LifecycleRule,
    NoncurrentExpiry, Options, Store, TimeSource, VersionId, Versioning,
};
use haul_testing::disk_dir;
use tempfile::TempDir;

use super::contents::list_all;
use crate::{BUCKET, get, put, small};

const DAY_MS: u64 = 24 * 3_600_000;

/// A store with a clock that the test sets, and the changes that sweeps reported.
struct Fixture {
    store: Store,
    time: Arc<AtomicU64>,
    reports: Arc<Mutex<Vec<(LifecycleAction, String)>>>,
    _dir: TempDir,
}

fn days(days: u64) -> Duration {
    Duration::from_millis(days * DAY_MS)
}

impl Fixture {
    fn new(rules: &[LifecycleRule]) -> Self {
        let time = Arc::new(AtomicU64::new(20_000 * DAY_MS));
        let reports: Arc<Mutex<Vec<_>>> = Arc::default();
        let observed = Arc::clone(&reports);
        let observe = move |action, bucket: &str, key: &str| {
            assert_eq!(bucket, BUCKET);
            observed.lock().unwrap().push((action, key.to_owned()));
        };
        let options = Options {
            time: TimeSource::Manual(Arc::clone(&time)),
            lifecycle_observer: LifecycleObserver::new(observe),
            ..small()
        };
        let dir = disk_dir();
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket(BUCKET).unwrap();
        store.set_versioning(BUCKET, Versioning::Enabled).unwrap();
        store.set_lifecycle(BUCKET, &Lifecycle { rules: rules.to_vec() }).unwrap();
        Self { store, time, reports, _dir: dir }
    }

    fn wait(&self, days: u64) {
        self.time.fetch_add(days * DAY_MS, Ordering::Relaxed);
    }

    fn put(&self, key: &str, bytes: &[u8]) -> VersionId {
        put(&self.store, key, bytes).version_id
    }

    fn delete(&self, key: &str) -> VersionId {
        self.store.delete_object(BUCKET, key, None).unwrap().version_id.unwrap()
    }

    /// Sweeps the bucket. Returns the versions that were removed, which a dry run lists, too.
    fn sweep(&self) -> Vec<VersionId> {
        let mut listed = Vec::new();
        let mut visit = |entry| {
            if let ExpiredEntry::Version { info, rule, .. } = entry {
                assert_eq!(rule, "rule");
                listed.push(info.version_id);
            }
            true
        };
        let expected = self.store.expirable(BUCKET, &mut visit).unwrap();
        assert_eq!(self.store.expire_now(BUCKET).unwrap(), expected);
        let reports = std::mem::take(&mut *self.reports.lock().unwrap());
        let removed = |(action, _): &(LifecycleAction, String)| match action {
            LifecycleAction::ExpireVersion(version) => Some(*version),
            _ => None,
        };
        let removed: Vec<VersionId> = reports.iter().filter_map(removed).collect();
        assert_eq!(removed, listed);
        assert_eq!(expected.expired_versions, removed.len() as u64);
        removed
    }

    fn ids(&self) -> Vec<VersionId> {
        list_all(&self.store, 3).into_iter().map(|version| version.info.version_id).collect()
    }
}

fn rule() -> LifecycleRule {
    LifecycleRule { id: "rule".to_owned(), enabled: true, ..LifecycleRule::default() }
}

fn noncurrent(after: u64, newer_versions: u32) -> LifecycleRule {
    let expire_noncurrent = Some(NoncurrentExpiry { after: days(after), newer_versions });
    LifecycleRule { expire_noncurrent, ..rule() }
}

#[test]
fn version_expires_days_after_it_was_replaced() {
    let test = Fixture::new(&[noncurrent(5, 0)]);
    let first = test.put("key", b"first");
    test.wait(10);
    let second = test.put("key", b"second");
    test.wait(4);
    assert_eq!(test.sweep(), []);
    let third = test.put("key", b"third");
    test.wait(1);
    assert_eq!(test.sweep(), [first]);
    test.wait(100);
    assert_eq!(test.sweep(), [second]);
    assert_eq!((test.ids(), get(&test.store, "key")), (vec![third], b"third".to_vec()));
    assert_eq!(test.store.stats().versions, 0);
    let stats = test.store.stats().lifecycle;
    assert_eq!((stats.expired_versions, stats.expired_objects, stats.expired_bytes), (2, 0, 11));
}

#[test]
fn newest_versions_and_versions_of_other_keys_are_kept() {
    let rules = LifecycleRule { prefix: "a/".to_owned(), ..noncurrent(1, 2) };
    let test = Fixture::new(&[rules]);
    // More versions than one record has tombstones, and keys that end a page of a listing.
    let mut expected = Vec::new();
    for key in ["a/1", "a/2", "b"] {
        let ids: Vec<VersionId> = (0..70).map(|_| test.put(key, b"bytes")).collect();
        expected.extend(ids.into_iter().take(67).filter(|_| key != "b"));
    }
    test.wait(1);
    assert_eq!(test.sweep(), expected);
    assert_eq!(test.ids().len(), 2 * 3 + 70);
    assert_eq!(test.sweep(), []);
}

#[test]
fn marker_is_removed_once_it_is_the_only_version() {
    let test = Fixture::new(&[LifecycleRule { expire_markers: true, ..noncurrent(5, 0) }]);
    let stored = test.put("key", b"bytes");
    let marker = test.delete("key");
    let other = test.put("other", b"bytes");
    test.wait(4);
    assert_eq!(test.sweep(), []);
    test.wait(1);
    assert_eq!(test.sweep(), [stored]);
    assert_eq!(test.sweep(), [marker]);
    assert_eq!(test.ids(), [other]);
}

#[test]
fn current_objects_get_markers_which_expire_by_the_same_rule() {
    let expire = Some(Expiry::After(days(5)));
    let test = Fixture::new(&[LifecycleRule { expire, ..noncurrent(1, 0) }]);
    let stored = test.put("key", b"bytes");
    test.wait(5);
    assert_eq!(test.sweep(), []);
    let marker = test.store.delete_marker(BUCKET, "key").unwrap().unwrap().info.version_id;
    test.wait(4);
    assert_eq!(test.sweep(), [stored]);
    assert_eq!(test.sweep(), []);
    test.wait(1);
    assert_eq!(test.sweep(), [marker]);
    assert_eq!(test.ids(), []);
}

#[test]
fn creation_of_a_marker_is_reported() {
    let test = Fixture::new(&[LifecycleRule { expire: Some(Expiry::At(UNIX_EPOCH)), ..rule() }]);
    test.put("key", b"bytes");
    test.store.expire_now(BUCKET).unwrap();
    let reports = test.reports.lock().unwrap().clone();
    assert_eq!(reports, [(LifecycleAction::CreateMarker, "key".to_owned())]);
}

/// The next sweep must not delete a version that has become current in the meantime.
#[test]
fn version_that_becomes_current_does_not_expire() {
    let test = Fixture::new(&[noncurrent(1, 0)]);
    let first = test.put("key", b"first");
    let second = test.put("key", b"second");
    test.wait(1);
    let mut listed = 0;
    let mut visit = |_| {
        listed += 1;
        test.store.delete_object(BUCKET, "key", Some(second)).unwrap();
        true
    };
    test.store.expirable(BUCKET, &mut visit).unwrap();
    assert_eq!((listed, test.store.expire_now(BUCKET).unwrap().expired_versions), (1, 0));
    assert_eq!((test.ids(), get(&test.store, "key")), (vec![first], b"first".to_vec()));
}

#[test]
fn rules_for_versions_do_nothing_without_versions() {
    let test = Fixture::new(&[noncurrent(1, 0)]);
    test.store.create_bucket("plain").unwrap();
    let rules = Lifecycle { rules: vec![noncurrent(1, 0)] };
    test.store.set_lifecycle("plain", &rules).unwrap();
    assert_eq!(test.store.lifecycle("plain").unwrap(), rules);
    let report = test.store.expire_now("plain").unwrap();
    assert_eq!(report, haul_file_store::SweepReport::default());
    let zero = noncurrent(0, 1);
    let set = test.store.set_lifecycle("plain", &Lifecycle { rules: vec![zero] });
    assert!(matches!(set, Err(Error::Invalid { .. })), "{set:?}");
}
