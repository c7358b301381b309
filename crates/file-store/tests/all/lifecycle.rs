//! Rules by which objects expire and uploads are aborted, and the sweeps that apply them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::UNIX_EPOCH;

use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{
    Error, ExpiredEntry, Expiry, Lifecycle, LifecycleGate, LifecycleRule, SweepReport, TimeSource,
};
use haul_testing::eventually;

use crate::crash::open_on;
use crate::*;

const DAY_MS: u64 = 24 * 3_600_000;

/// A clock that the test sets.
#[derive(Clone)]
struct Time(Arc<AtomicU64>);

impl Time {
    fn at_day(day: u64) -> Self {
        Self(Arc::new(AtomicU64::new(day * DAY_MS)))
    }

    fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    fn options(&self) -> Options {
        Options { time: TimeSource::Manual(Arc::clone(&self.0)), ..small() }
    }

    /// Creates a store with one bucket.
    fn store(&self, options: Options) -> (TempDir, Store) {
        let dir = disk_dir();
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket(BUCKET).unwrap();
        (dir, store)
    }
}

fn days(days: u64) -> Duration {
    Duration::from_millis(days * DAY_MS)
}

fn rule(id: &str, prefix: &str) -> LifecycleRule {
    let (id, prefix) = (id.to_owned(), prefix.to_owned());
    LifecycleRule { id, enabled: true, prefix, ..LifecycleRule::default() }
}

fn expire_after(prefix: &str, age: u64) -> LifecycleRule {
    LifecycleRule { expire: Some(Expiry::After(days(age))), ..rule(prefix, prefix) }
}

fn set(store: &Store, rules: &[LifecycleRule]) -> Lifecycle {
    let lifecycle = Lifecycle { rules: rules.to_vec() };
    store.set_lifecycle(BUCKET, &lifecycle).unwrap();
    lifecycle
}

fn keys(store: &Store) -> Vec<String> {
    list(store, BUCKET).into_iter().map(|info| info.key).collect()
}

#[test]
fn expired_objects_are_deleted_and_others_stay() {
    let time = Time::at_day(100);
    let (_dir, store) = time.store(time.options());
    put(&store, "logs/old", b"12345");
    put(&store, "logs/replaced", b"old");
    put(&store, "other", b"x");
    put(&store, "big", &vec![7; BIG]);
    time.advance(DAY_MS);
    put(&store, "logs/replaced", b"new");
    let large = LifecycleRule {
        bytes_greater_than: Some(BIG as u64 - 1),
        id: "large".to_owned(),
        ..expire_after("", 1)
    };
    set(&store, &[expire_after("logs/", 2), large]);
    time.advance(DAY_MS - 1);
    let mut found = Vec::new();
    let planned = store.expirable(BUCKET, &mut |one| {
        found.push(one);
        true
    });
    let report = store.expire_now(BUCKET).unwrap();
    assert_eq!(planned.unwrap(), report);
    let expected = SweepReport {
        scanned_keys: 4,
        expired_objects: 1,
        expired_bytes: BIG as u64,
        ..SweepReport::default()
    };
    assert_eq!(report, expected, "one millisecond before the age of the others");
    let is_big = |entry: &ExpiredEntry| match entry {
        ExpiredEntry::Object { info, rule } => info.key == "big" && rule == "large",
        ExpiredEntry::Version { .. } | ExpiredEntry::Upload { .. } => false,
    };
    assert!(found.len() == 1 && is_big(&found[0]), "{found:?}");
    time.advance(1);
    assert_eq!(store.expire_now(BUCKET).unwrap().expired_bytes, 5);
    assert_eq!(keys(&store), ["logs/replaced", "other"]);
    assert_eq!(store.stats().lifecycle.expired_objects, 2);
    assert_eq!((store.stats().lifecycle.sweeps, store.stats().big_files), (2, 0));
    assert_eq!(store.expire_now("absent").unwrap_err().to_string(), no_such_bucket());
}

fn no_such_bucket() -> String {
    Error::NoSuchBucket { bucket: "absent".to_owned() }.to_string()
}

#[test]
fn object_reports_its_expiration_and_is_served_until_the_sweep() {
    let time = Time::at_day(100);
    let (_dir, store) = time.store(time.options());
    let info = put(&store, "key", b"bytes");
    assert_eq!(store.expiration(BUCKET, &info, &Attributes::new()).unwrap(), None);
    set(&store, &[LifecycleRule { round_up_to: days(1), ..expire_after("", 2) }]);
    let expected = (UNIX_EPOCH + days(102), String::new());
    assert_eq!(store.expiration(BUCKET, &info, &Attributes::new()).unwrap(), Some(expected));
    time.advance(9 * DAY_MS);
    assert_eq!(get(&store, "key"), b"bytes");
    store.expire_now(BUCKET).unwrap();
    assert!(matches!(try_get(&store, "key"), Err(Error::NoSuchKey { .. })));
}

#[test]
fn stale_uploads_are_aborted_and_their_files_removed() {
    let time = Time::at_day(100);
    let (dir, store) = time.store(time.options());
    let none = Attributes::new();
    let stale = store.start_upload(BUCKET, "tmp/a", &none).unwrap();
    put_part(&store, "tmp/a", &stale, 1, b"part");
    let twin = store.start_upload(BUCKET, "tmp/a", &none).unwrap();
    store.start_upload(BUCKET, "kept", &none).unwrap();
    time.advance(DAY_MS);
    let fresh = store.start_upload(BUCKET, "tmp/a", &none).unwrap();
    let rules = LifecycleRule { abort_uploads_after: Some(days(1)), ..rule("abort", "tmp/") };
    set(&store, &[rules]);
    let mut ids = Vec::new();
    let planned = store.expirable(BUCKET, &mut |one| {
        if let ExpiredEntry::Upload { id, .. } = one {
            ids.push(id);
        }
        true
    });
    let mut both = [stale, twin];
    both.sort();
    ids.sort();
    assert_eq!(ids, both);
    let report = store.expire_now(BUCKET).unwrap();
    assert_eq!((report.aborted_uploads, report), (2, planned.unwrap()));
    let left: Vec<String> =
        uploads_of(&store, BUCKET).unwrap().into_iter().map(|upload| upload.key).collect();
    assert_eq!(left, ["kept", "tmp/a"]);
    assert!(store.upload(BUCKET, "tmp/a", &fresh).is_ok());
    assert!(big_files(dir.path()).is_empty(), "the part is removed");
}

/// Returns rules whose needle requires several reads.
fn many_rules() -> Vec<LifecycleRule> {
    (0..500).map(|number| expire_after(&format!("prefix-{number}/"), 1 + number)).collect()
}

#[test]
fn rules_survive_reopening_compaction_snapshot_and_index_rebuild() {
    let (dir, mut store) = new_store();
    let created = store.bucket(BUCKET).unwrap().created;
    set(&store, &[expire_after("replaced/", 1)]);
    let lifecycle = set(&store, &many_rules());
    for number in 0..100 {
        put(&store, "key", &random_bytes(number, 60_000));
    }
    store.compact().unwrap();
    assert!(store.stats().volumes_compacted > 0);
    let check = |store: &Store| {
        assert_eq!(store.lifecycle(BUCKET).unwrap(), lifecycle);
        assert_eq!(store.bucket(BUCKET).unwrap().created, created);
    };
    check(&store);
    let to = dir.path().join("snapshot");
    store.snapshot(&to).unwrap();
    check(&reopen(&to).0);
    for _ in 0..2 {
        store.close().unwrap();
        store = reopen(dir.path()).0;
        check(&store);
    }
    store.close().unwrap();
    std::fs::remove_dir_all(dir.path().join("index")).unwrap();
    let (store, _) = reopen(dir.path());
    check(&store);
    assert_eq!(store.verify(&mut |_, _| {}).unwrap().damage, []);
    store.set_lifecycle(BUCKET, &Lifecycle::default()).unwrap();
    store.close().unwrap();
    let (store, _) = reopen(dir.path());
    assert_eq!(store.lifecycle(BUCKET).unwrap(), Lifecycle::default());
}

#[test]
fn new_bucket_of_a_deleted_name_has_no_rules() {
    let (_dir, store) = new_store();
    set(&store, &many_rules());
    store.delete_bucket(BUCKET).unwrap();
    assert!(matches!(store.lifecycle(BUCKET), Err(Error::NoSuchBucket { .. })));
    store.create_bucket(BUCKET).unwrap();
    assert_eq!(store.lifecycle(BUCKET).unwrap(), Lifecycle::default());
}

#[test]
fn invalid_rules_are_refused_and_the_previous_ones_stay() {
    let (_dir, store) = new_store();
    let earlier = set(&store, &[expire_after("a", 1)]);
    let long = LifecycleRule { note: "x".repeat(2 << 20), ..expire_after("a", 1) };
    for rules in [vec![rule("no action", "")], vec![long], vec![expire_after("a", 1); 2]] {
        let refused = store.set_lifecycle(BUCKET, &Lifecycle { rules });
        assert!(matches!(refused, Err(Error::Invalid { .. })));
    }
    assert_eq!(store.lifecycle(BUCKET).unwrap(), earlier);
    let refused = store.set_lifecycle("absent", &earlier);
    assert!(matches!(refused, Err(Error::NoSuchBucket { .. })));
}

#[test]
fn background_sweep_runs_once_a_day_and_after_a_change_of_rules() {
    let time = Time::at_day(100);
    let check_every = Duration::from_millis(5);
    let (dir, store) = time.store(Options { lifecycle_check_every: check_every, ..time.options() });
    put(&store, "a", b"1");
    set(&store, &[expire_after("", 1)]);
    let sweeps = || store.stats().lifecycle.sweeps;
    eventually("the first sweep", || sweeps() == 1);
    put(&store, "b", b"1");
    time.advance(DAY_MS);
    eventually("the sweep of the next day", || keys(&store).is_empty());
    eventually("the end of the sweep", || sweeps() == 2);
    // Some checks find nothing that is due.
    thread::sleep(10 * check_every);
    assert_eq!(sweeps(), 2, "nothing is due");
    put(&store, "c", b"1");
    set(&store, &[LifecycleRule { expire: Some(Expiry::At(UNIX_EPOCH)), ..rule("", "") }]);
    eventually("the sweep by the new rules", || keys(&store).is_empty());
    store.close().unwrap();
    let (store, _) =
        Store::open(dir.path(), Options { lifecycle_check_every: check_every, ..time.options() })
            .unwrap();
    eventually("the first sweep after opening", || store.stats().lifecycle.sweeps == 1);
    let stats = store.stats().lifecycle;
    assert_eq!((stats.errors, stats.last_sweep.is_some()), (0, true));
}

#[test]
fn rules_are_not_applied_before_the_gate_is_open() {
    let time = Time::at_day(100);
    let (check_every, lifecycle_gate) = (Duration::from_millis(1), LifecycleGate::closed());
    let gate = lifecycle_gate.clone();
    let options = Options { lifecycle_check_every: check_every, lifecycle_gate, ..time.options() };
    let (_dir, store) = time.store(options);
    put(&store, "a", b"1");
    set(&store, &[expire_after("", 1)]);
    time.advance(DAY_MS);
    thread::sleep(20 * check_every);
    assert_eq!((store.stats().lifecycle.sweeps, keys(&store).len()), (0, 1));
    gate.open();
    eventually("the object expires", || keys(&store).is_empty());
}

/// The checks are an hour apart, and the first one is a minute after the store is opened.
#[test]
fn short_day_shortens_the_time_between_checks() {
    let lifecycle_day = Duration::from_millis(50);
    let options = Options { lifecycle_day, ..Options::default() };
    assert_eq!(options.lifecycle_check_every, Duration::from_hours(1));
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(dir.path(), options).unwrap();
    store.create_bucket(BUCKET).unwrap();
    set(&store, &[expire_after("", 1)]);
    eventually("the first sweeps", || store.stats().lifecycle.sweeps >= 3);
    put(&store, "a", b"1");
    eventually("the object expires", || keys(&store).is_empty());
}

#[test]
fn store_closes_during_a_sweep_and_continues_it_later() {
    let time = Time::at_day(100);
    let (dir, store) = time.store(time.options());
    let objects = 3000;
    thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in (thread..objects).step_by(8) {
                    put(store, &format!("key {number}"), b"1");
                }
            });
        }
    });
    set(&store, &[expire_after("", 1)]);
    time.advance(DAY_MS);
    store.close().unwrap();
    let check_every = Duration::from_millis(1);
    let options = Options { lifecycle_check_every: check_every, ..time.options() };
    let mut expired = 0;
    let mut opened = 0;
    while expired < objects {
        let (store, _) = Store::open(dir.path(), options.clone()).unwrap();
        opened += 1;
        eventually("a batch", || store.stats().lifecycle.expired_objects > 0);
        let before = store.stats().objects;
        store.close().unwrap();
        let (store, _) = reopen(dir.path());
        assert!(store.stats().objects <= before);
        expired = objects - usize::try_from(store.stats().objects).unwrap();
        store.close().unwrap();
    }
    println!("opened {opened} times");
}

/// Keys that may have a newer state in a damaged place are not deleted, and rules that may have
/// been replaced in a damaged place delete no keys.
#[test]
fn keys_and_rules_in_doubt_are_skipped() {
    for rules_are_certain in [true, false] {
        let disk = MemoryDisk::default();
        let (store, _) = open_on(&disk);
        store.create_bucket(BUCKET).unwrap();
        let expired = LifecycleRule { expire: Some(Expiry::At(UNIX_EPOCH)), ..rule("all", "") };
        if !rules_are_certain {
            set(&store, std::slice::from_ref(&expired));
        }
        put(&store, "key", b"old");
        put(&store, "key", b"new");
        if rules_are_certain {
            set(&store, std::slice::from_ref(&expired));
        }
        put(&store, "certain", b"bytes");
        store.close().unwrap();
        disk.remove("volumes/0000000001.index").unwrap();
        let mut medium = disk.medium().cut(Survival::Everything);
        let mut volume = medium.file("volumes/0000000001.segment");
        // The checksums of the record and of the head of the key's second needle.
        let at = volume.windows(9).rposition(|window| window == b"bucketkey").unwrap();
        volume[at - 34] ^= 1;
        volume[at - 34 - 32] ^= 1;
        drop(volume);
        let disk = MemoryDisk::on(&medium);
        let (store, recovered) = open_on(&disk);
        assert_eq!(recovered.hidden.len(), 1);
        let report = store.expire_now(BUCKET);
        if rules_are_certain {
            let report = report.unwrap();
            assert_eq!((report.expired_objects, report.skipped), (1, 1));
            assert!(matches!(try_get(&store, "certain"), Err(Error::NoSuchKey { .. })));
        } else {
            assert!(matches!(report, Err(Error::Damaged { .. })), "{report:?}");
            assert!(matches!(store.lifecycle(BUCKET), Err(Error::Damaged { .. })));
            assert_eq!(get(&store, "certain"), b"bytes");
        }
        assert!(matches!(try_get(&store, "key"), Err(Error::Damaged { .. })), "still in doubt");
    }
}

/// A writer replaces objects during sweeps. No new object may disappear.
#[test]
fn objects_replaced_during_sweeps_stay() {
    let time = Time::at_day(100);
    let (_dir, store) = time.store(time.options());
    set(&store, &[expire_after("", 1)]);
    let key = |number: u64| format!("key {number:03}");
    for round in 0..20_u64 {
        (0..50).for_each(|number| drop(put(&store, &key(number), b"old")));
        time.advance(DAY_MS);
        thread::scope(|scope| {
            scope.spawn(|| store.expire_now(BUCKET).unwrap());
            for number in (round % 3..50).step_by(3) {
                put(&store, &key(number), b"new");
            }
        });
        for number in (round % 3..50).step_by(3) {
            assert_eq!(get(&store, &key(number)), b"new", "{round} {number}");
        }
        assert_eq!(list(&store, BUCKET).len(), (round % 3..50).step_by(3).count());
    }
}
