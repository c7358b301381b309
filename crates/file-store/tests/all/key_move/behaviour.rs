//! What a move does beside copying: clocks, locks, quotas, confirmations, and other threads.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;
use std::time::{Duration, SystemTime};

use haul_append_log::Lsn;
use haul_disk::Disk;
use haul_disk_sim::{MemoryDisk, print_count};
use haul_file_store::{
    Attributes, Deletion, Error, MovedKey, ObjectLock, Options, PartInfo, Precondition, Quota,
    Replication, Result, Retention, RetentionMode, Store, TimeSource, UploadInfo, VersionId,
    VersionInfo, Versioning,
};
use haul_testing::{Random, depth, seed, within_a_minute};

use super::acts::act;
use super::visible::{Readable, keys, visible};
use super::{KINDS, Kind, Pair};
use crate::{BIG, BUCKET, get, put, random_bytes, small, without_checkpoints};

const KEY: &str = "key";

fn move_key(pair: &Pair) -> MovedKey {
    let [from, to] = &pair.stores;
    from.move_key(to, BUCKET, KEY).unwrap()
}

#[test]
fn versions_in_the_other_store_are_newer_than_moved_ones() {
    let millis = [1_800_000_000_000, 1_700_000_000_000].map(|ms| Arc::new(AtomicU64::new(ms)));
    let options = millis.map(|ms| Options { time: TimeSource::Manual(ms), ..small() });
    let disks = [MemoryDisk::default(), MemoryDisk::default()];
    let pair = Pair::create_on(disks.each_ref(), Kind::Versions, options);
    pair.set_versioning(Versioning::Enabled);
    let [from, to] = &pair.stores;
    let first = put(from, KEY, b"first").version_id;
    let upload = from.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
    move_key(&pair);
    let (VersionId::Id(first), VersionId::Id(second)) = (first, put(to, KEY, b"").version_id)
    else {
        panic!("versioning is enabled")
    };
    assert!(first < second);
    let later = to.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
    assert!(upload < later, "uploads are listed in the order in which they were started");
}

#[test]
fn locked_versions_are_moved_and_stay_locked() {
    let pair = Pair::create(&MemoryDisk::default(), Kind::Locked);
    let [from, to] = &pair.stores;
    let until = SystemTime::now() + Duration::from_hours(24);
    let retention = Some(Retention { mode: RetentionMode::Compliance, until });
    let mut attributes = Attributes::new();
    ObjectLock { retention, legal_hold: None }.set_in(&mut attributes);
    let retained = from.put(BUCKET, KEY, b"retained", &attributes, &Precondition::None).unwrap();
    let held = put(from, KEY, b"held").version_id;
    from.set_legal_hold(BUCKET, KEY, Some(held), true).unwrap();
    let before = visible(from);
    assert_eq!(move_key(&pair), MovedKey { objects: 2, uploads: 0, bytes: 12 });
    assert_eq!(visible(from), BTreeMap::new());
    assert_eq!(visible(to), before);
    for version in [retained.version_id, held] {
        let deletion =
            Deletion { version: Some(version), bypass_governance: true, ..Deletion::of(KEY) };
        let deleted = to.delete_objects(BUCKET, &[deletion]).pop().unwrap();
        assert!(matches!(deleted, Err(Error::Locked { .. })), "{deleted:?}");
    }
}

#[test]
fn discarded_key_leaves_nothing_behind() {
    let pair = Pair::create(&MemoryDisk::default(), Kind::Locked);
    let store = &pair.stores[0];
    let held = put(store, KEY, b"held").version_id;
    store.set_legal_hold(BUCKET, KEY, Some(held), true).unwrap();
    put(store, KEY, &random_bytes(1, 2 * BIG));
    store.delete(BUCKET, KEY).unwrap();
    let upload = store.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
    crate::put_part(store, KEY, &upload, 1, b"part");
    put(store, "other", b"other");
    store.discard_key(BUCKET, KEY).unwrap();
    store.discard_key(BUCKET, KEY).unwrap();
    assert_eq!(store.stored_keys(BUCKET, None, 10).unwrap(), ["other"]);
    assert_eq!(store.stats().big_files, 0);
    store.discard_key(BUCKET, "other").unwrap();
    store.delete_bucket(BUCKET).unwrap();
    assert!(matches!(store.discard_key(BUCKET, KEY), Err(Error::NoSuchBucket { .. })));
}

#[test]
fn move_is_not_rejected_by_a_quota_and_does_not_change_its_usage() {
    let pair = Pair::create(&MemoryDisk::default(), Kind::Plain);
    let [from, to] = &pair.stores;
    put(from, KEY, &random_bytes(1, 2 * BIG));
    let upload = from.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
    crate::put_part(from, KEY, &upload, 1, b"part");
    for store in [from, to] {
        store.set_quota(BUCKET, Quota { bytes: Some(1), objects: Some(1) }).unwrap();
    }
    let usage = from.quota(BUCKET).unwrap().usage;
    assert_eq!((usage.bytes, usage.objects), (2 * BIG as u64 + 4, 1));
    assert_eq!(move_key(&pair), MovedKey { objects: 1, uploads: 1, bytes: usage.bytes });
    assert_eq!([from, to].map(|store| store.quota(BUCKET).unwrap().usage), [usage; 2]);
    assert_eq!((from.stats().big_files, to.stats().big_files), (0, 2));
}

#[test]
fn versions_that_share_a_file_share_its_copy() {
    let pair = Pair::create(&MemoryDisk::default(), Kind::Versions);
    pair.set_versioning(Versioning::Enabled);
    let [from, to] = &pair.stores;
    put(from, KEY, &random_bytes(1, 2 * BIG));
    for _ in 0..3 {
        from.copy((BUCKET, KEY), (BUCKET, KEY), None, &Precondition::None).unwrap();
    }
    assert_eq!(from.stats().big_files, 1);
    assert_eq!(move_key(&pair).objects, 4);
    assert_eq!((from.stats().big_files, to.stats().big_files), (0, 1));
}

#[test]
fn key_with_many_versions_is_moved_in_batches() {
    let pair = Pair::create(&MemoryDisk::default(), Kind::Versions);
    pair.set_versioning(Versioning::Enabled);
    let [from, to] = &pair.stores;
    for _ in 0..1500 {
        put(from, KEY, b"bytes");
    }
    assert!(from.delete(BUCKET, KEY).unwrap());
    assert_eq!(move_key(&pair), MovedKey { objects: 1501, uploads: 0, bytes: 1500 * 5 });
    assert_eq!((from.stats().versions, to.stats().versions), (0, 1501));
    assert_eq!((keys(from, 10), keys(to, 10)), (vec![], vec![KEY.to_owned()]));
}

#[test]
fn stores_with_different_buckets_are_rejected() {
    let millis = Arc::new(AtomicU64::new(1_800_000_000_000));
    let options = || Options { time: TimeSource::Manual(Arc::clone(&millis)), ..small() };
    let disks = [MemoryDisk::default(), MemoryDisk::default()];
    let pair = Pair::create_on(disks.each_ref(), Kind::Plain, [options(), options()]);
    let [from, to] = &pair.stores;
    put(from, KEY, b"bytes");
    let rejected =
        |outcome: Result<MovedKey>| matches!(outcome, Err(Error::InvalidBucketState { .. }));
    from.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    assert!(rejected(from.move_key(to, BUCKET, KEY)));
    to.set_versioning(BUCKET, Versioning::Enabled).unwrap();
    assert_eq!(from.move_key(to, BUCKET, KEY).unwrap().objects, 1);
    from.create_bucket("another").unwrap();
    // Buckets of the same millisecond may have the same identity.
    millis.fetch_add(1, Ordering::Relaxed);
    to.create_bucket("another").unwrap();
    assert!(rejected(from.move_key(to, "another", KEY)));
    let missing = from.move_key(to, "missing", KEY);
    assert!(matches!(missing, Err(Error::NoSuchBucket { .. })), "{missing:?}");
    let same = from.move_key(from, BUCKET, KEY);
    assert!(matches!(same, Err(Error::Invalid { .. })), "{same:?}");
    assert!(matches!(from.move_key(to, BUCKET, ""), Err(Error::InvalidKey { .. })));
}

/// If writes came to both stores, their versions are united, and the newest one is current.
#[test]
fn states_of_both_stores_are_united() {
    let first = seed();
    let mut united = 0;
    for round in 0..20 * depth() {
        for kind in KINDS {
            let mut random = Random(first.wrapping_add(round));
            // Both stores never write in the same millisecond, in which their versions may be equal.
            let millis = Arc::new(AtomicU64::new(1_800_000_000_000));
            let time = TimeSource::Manual(Arc::clone(&millis));
            let options = [Options { time: time.clone(), ..small() }, Options { time, ..small() }];
            let disks = [MemoryDisk::default(), MemoryDisk::default()];
            let pair = Pair::create_on(disks.each_ref(), kind, options);
            for number in 0..24 {
                millis.fetch_add(1, Ordering::Relaxed);
                if number == 4 && kind == Kind::Versions {
                    pair.set_versioning(Versioning::Enabled);
                }
                let on = random.index(2);
                act(&mut random, &pair, on, kind, KEY);
            }
            united += unite(&pair);
        }
    }
    print_count(&format!("{united} versions united"), first);
}

/// The versions of a key as a listing has them, and their content.
type Versions = [(VersionInfo, Option<Readable>)];

/// Moves a key of which both stores have versions. Returns the number of its versions.
fn unite(pair: &Pair) -> usize {
    let [from, to] = &pair.stores;
    let [here, there] = [from, to].map(|store| visible(store).remove(KEY).unwrap_or_default());
    let mut all = [there.versions, here.versions].concat();
    all.sort_by_key(|(version, _)| Reverse(version.info.modified));
    let is_null = |(version, _): &(VersionInfo, _)| version.info.version_id == VersionId::Null;
    let mut has_null = false;
    all.retain(|version| !is_null(version) || !std::mem::replace(&mut has_null, true));
    from.move_key(to, BUCKET, KEY).unwrap();
    assert_eq!(visible(from).remove(KEY), None);
    let after = visible(to).remove(KEY).unwrap_or_default();
    let infos = |versions: &Versions| -> Vec<_> {
        versions.iter().map(|(version, read)| (version.info.clone(), read.clone())).collect()
    };
    assert_eq!(infos(&after.versions), infos(&all));
    let newest = all.first().and_then(|(_, read)| read.clone());
    assert_eq!(after.current, newest, "the newest version is current, unless it is a marker");
    let ids = |uploads: &[(UploadInfo, Vec<PartInfo>)]| -> BTreeSet<String> {
        uploads.iter().map(|(upload, _)| upload.id.clone()).collect()
    };
    assert_eq!(ids(&after.uploads), &ids(&here.uploads) | &ids(&there.uploads));
    after.versions.len()
}

/// The end of an upload that was moved away does not end the upload that came back.
#[test]
fn upload_that_came_back_survives_compaction() {
    let disks = [MemoryDisk::default(), MemoryDisk::default()];
    // A checkpoint would have the end of the upload, which then need not be kept.
    let options = || [without_checkpoints(), without_checkpoints()];
    let pair = Pair::create_on(disks.each_ref(), Kind::Plain, options());
    let [one, other] = &pair.stores;
    let fill = |name: &str, length| drop(put(one, name, &random_bytes(1, length)));
    fill("first", 1 << 10);
    let upload = one.start_upload(BUCKET, KEY, &Attributes::new()).unwrap();
    crate::put_part(one, KEY, &upload, 1, b"part");
    let before = visible(one).remove(KEY);
    // The end of the upload is in a later volume than its start.
    let names: Vec<String> = (0..200).map(|number| format!("filler-{number}")).collect();
    names[..100].iter().for_each(|name| fill(name, 50_000));
    one.move_key(other, BUCKET, KEY).unwrap();
    names[100..].iter().for_each(|name| fill(name, 50_000));
    assert_eq!(other.move_key(one, BUCKET, KEY).unwrap().uploads, 1);
    names[80..].iter().for_each(|name| assert!(one.delete(BUCKET, name).unwrap()));
    assert!(one.compact().unwrap().volumes_removed > 0);
    assert_eq!(visible(one).remove(KEY), before);
    pair.close();
    for name in disks[0].list("index").unwrap() {
        disks[0].remove(&format!("index/{name}")).unwrap();
    }
    let reopened = disks.each_ref().map(|disk| Arc::new(disk.clone()) as Arc<dyn Disk>);
    let pair = Pair::open_on(reopened, options());
    assert_eq!(visible(&pair.stores[0]).remove(KEY), before, "rebuilt from the volumes");
}

/// A copy that checks, in each wait, that the store can be used.
#[derive(Debug, Default)]
struct Copy {
    store: OnceLock<Weak<Store>>,
    waits: AtomicU64,
    is_unreachable: AtomicBool,
}

impl Replication for Copy {
    fn wait(&self, _: Lsn) -> std::result::Result<(), String> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        if let Some(store) = self.store.get().and_then(Weak::upgrade) {
            within_a_minute("a checkpoint during the wait", move || {
                store.write_checkpoint().unwrap();
            });
        }
        match self.is_unreachable.load(Ordering::Relaxed) {
            true => Err("the copy is unreachable".to_owned()),
            false => Ok(()),
        }
    }
}

#[test]
fn nothing_is_removed_before_the_copy_of_the_other_store_confirms_it() {
    let copy = Arc::new(Copy::default());
    let replication = Some(Arc::clone(&copy) as Arc<dyn Replication>);
    let options = [small(), Options { replication, ..small() }];
    let disks = [MemoryDisk::default(), MemoryDisk::default()];
    let Pair { stores: [from, to] } = Pair::create_on(disks.each_ref(), Kind::Plain, options);
    let to = Arc::new(to);
    copy.store.set(Arc::downgrade(&to)).unwrap();
    put(&from, KEY, b"bytes");
    copy.is_unreachable.store(true, Ordering::Relaxed);
    let outcome = from.move_key(&to, BUCKET, KEY);
    assert!(matches!(outcome, Err(Error::NotReplicated { .. })), "{outcome:?}");
    assert_eq!((get(&from, KEY), get(&to, KEY)), (b"bytes".to_vec(), b"bytes".to_vec()));
    copy.is_unreachable.store(false, Ordering::Relaxed);
    let waits = copy.waits.load(Ordering::Relaxed);
    assert_eq!(from.move_key(&to, BUCKET, KEY).unwrap().objects, 1);
    assert!(
        copy.waits.load(Ordering::Relaxed) > waits,
        "the move waits although it copies nothing"
    );
    assert_eq!(keys(&from, 10), Vec::<String>::new());
}

/// Moves in both directions, writers and readers of other keys, checkpoints, compaction, and a
/// thread that closes the gates of both stores, as the deletion of a bucket does.
#[test]
fn other_keys_are_read_and_written_meanwhile() {
    within_a_minute("moves beside other calls", || {
        let disk = MemoryDisk::default();
        let pair = Arc::new(Pair::create(&disk, Kind::Versions));
        pair.set_versioning(Versioning::Enabled);
        let name = |on: usize, number: u64| format!("{on}-{number:03}");
        for number in 0..60 {
            for (on, store) in pair.stores.iter().enumerate() {
                let length = if number % 10 == 0 { BIG + 1 } else { 1000 };
                put(store, &name(on, number), &random_bytes(number, length));
                put(store, &name(on, number), &random_bytes(number + 1, 100));
            }
        }
        let is_over = AtomicBool::new(false);
        let acts = AtomicU64::new(0);
        thread::scope(|scope| {
            let movers: Vec<_> = [0, 1]
                .map(|on| {
                    let pair = &pair;
                    scope.spawn(move || {
                        for number in 0..60 {
                            let (from, to) = (&pair.stores[on], &pair.stores[1 - on]);
                            let moved = from.move_key(to, BUCKET, &name(on, number)).unwrap();
                            assert_eq!(moved.objects, 2);
                        }
                    })
                })
                .into();
            for on in 0..4 {
                let (pair, is_over, acts) = (&pair, &is_over, &acts);
                scope.spawn(move || {
                    for round in 0.. {
                        let (store, key) = (&pair.stores[on % 2], format!("written-{on}"));
                        let bytes = random_bytes(round, 500);
                        put(store, &key, &bytes);
                        assert!(get(store, &key) == bytes);
                        acts.fetch_add(1, Ordering::Relaxed);
                        if is_over.load(Ordering::Relaxed) {
                            return;
                        }
                    }
                });
            }
            let (pair, is_over) = (&pair, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _both = pair.stores.each_ref().map(Store::lock_buckets);
                    thread::yield_now();
                }
            });
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    pair.stores.iter().for_each(|store| {
                        store.compact().unwrap();
                    });
                }
            });
            movers.into_iter().for_each(|mover| mover.join().unwrap());
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(acts.load(Ordering::Relaxed) >= 4);
        for (on, store) in pair.stores.iter().enumerate() {
            let moved: Vec<String> = (0..60).map(|number| name(1 - on, number)).collect();
            let found: Vec<String> =
                keys(store, 7).into_iter().filter(|key| !key.starts_with("written")).collect();
            assert_eq!(found, moved);
        }
    });
}
