//! Tests stores of which parts are only in the copy.

use std::sync::Arc;

use haul_disk::{Disk, Open};
use haul_disk_sim::{MemoryDisk, Survival};
use haul_file_store::{Error as StoreError, Store};
use haul_replicate::{
    Fetch, Progress, Remote, Replica, StoreSource, Tier, TierStatus, TieredDisk, restore_store,
};
use haul_testing::eventually;

use crate::faulty::FaultyStore;
use crate::log::{names, read, write};
use crate::options;
use crate::store::{Original, content, objects, store_options};

const CACHE_BYTES: u64 = 1 << 20;

/// The length of a block of the cache.
const BLOCK_BYTES: u64 = 64 << 10;

fn remote(store: &FaultyStore) -> Remote {
    Remote::new(Arc::new(store.clone()), "copy").unwrap()
}

/// A store with several volumes and big objects, whose copy is complete.
fn original(remote: &Remote) -> Original {
    let mut original = Original::new(remote);
    original.store.create_bucket("bucket").unwrap();
    for number in 0..300 {
        original.put(&format!("small/{number}"), content(number, 1000 + 300 * (number % 100)));
    }
    for number in 0..600 {
        original.put(&format!("more/{number}"), content(number, 30_000));
    }
    for number in 0..4 {
        original.put(&format!("big/{number}"), content(number, 70_000 + 400_000 * number));
    }
    original.store.write_checkpoint().unwrap();
    original.put("last", content(1, 100));
    assert!(original.store.log().segments().len() > 4);
    original
}

/// A store on a disk of which parts may be only in the copy.
struct Tiered {
    store: Arc<Store>,
    disk: Arc<TieredDisk>,
    remote: Remote,
}

impl Tiered {
    fn open(disk: &MemoryDisk, remote: &Remote) -> Self {
        let local: Arc<dyn Disk> = Arc::new(disk.clone());
        let tiered = Arc::new(TieredDisk::new(local, remote, CACHE_BYTES));
        let on: Arc<dyn Disk> = Arc::clone(&tiered) as _;
        let (store, report) = Store::open_on(on, store_options(None)).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        assert_eq!(report.index_rebuilt, None);
        Self { store: Arc::new(store), disk: tiered, remote: remote.clone() }
    }

    /// Continues the copy. Call this only on the store that owns it.
    fn follow(&self) -> Replica {
        let source = StoreSource::new(Arc::clone(&self.store), Arc::clone(&self.disk) as _);
        let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
        Replica::follow_with(source, &self.remote, options(), progress).unwrap()
    }

    fn tier(&self, local_bytes_max: Option<u64>) -> Tier {
        Tier::start(Arc::clone(&self.store), Arc::clone(&self.disk), local_bytes_max).unwrap()
    }

    fn remote_volumes(&self) -> usize {
        self.store.log().segments().iter().filter(|segment| !segment.is_local).count()
    }
}

/// Waits until the state of a tier is as wanted.
fn wait_until(tier: &Tier, is_wanted: impl Fn(&TierStatus) -> bool) {
    eventually("the tier has the wanted state", || is_wanted(&tier.status()));
}

#[test]
fn restored_store_reads_its_objects_before_they_are_fetched() {
    let remote_store = FaultyStore::new();
    let original = original(&remote(&remote_store));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    let local: Arc<dyn Disk> = Arc::new(disk.clone());
    let restored = restore_store(&remote, &local, Fetch::OnDemand).unwrap();
    assert!(restored.fetched_bytes < 3 << 20, "{restored:?}");
    let before = remote.requests();
    let tiered = Tiered::open(&disk, &remote);
    assert!(tiered.remote_volumes() > 2, "{}", tiered.remote_volumes());
    assert_eq!(remote.requests() - before, 0, "opening the store reads nothing");
    assert!(objects(&tiered.store) == original.expected);
}

#[test]
fn cold_read_fetches_only_the_blocks_of_the_object() {
    let remote_store = FaultyStore::new();
    drop(original(&remote(&remote_store)));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    let tiered = Tiered::open(&disk, &remote);
    let (mut bytes, mut requests) = (0, 0);
    for number in (0..300).step_by(29) {
        let before = (remote.received_bytes(), remote.requests());
        let object = tiered.store.get("bucket", &format!("small/{number}")).unwrap();
        let fetched = remote.received_bytes() - before.0;
        let most = (object.info.bytes + 200).div_ceil(BLOCK_BYTES) + 1;
        assert!(fetched <= most * BLOCK_BYTES, "{number}: {fetched} bytes");
        bytes += object.info.bytes + BLOCK_BYTES;
        requests += remote.requests() - before.1;
    }
    // The first read also loads the manifest. Two objects may be in one block.
    assert!(requests <= 12, "{requests} requests");
    assert!(remote.received_bytes() <= bytes * 13 / 10, "{bytes}");
    // What was read is in the cache.
    let before = remote.requests();
    drop(tiered.store.get("bucket", "small/290").unwrap());
    assert_eq!(remote.requests(), before);
}

#[test]
fn everything_is_fetched_in_the_background() {
    let remote_store = FaultyStore::new();
    let original = original(&remote(&remote_store));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    let refused = Store::open_on(Arc::new(disk.clone()), store_options(None)).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert!(refused.to_string().contains("only in its remote copy"), "{refused}");
    assert!(TieredDisk::is_needed(&disk).unwrap());
    let tiered = Tiered::open(&disk, &remote);
    let tier = tiered.tier(None);
    wait_until(&tier, |_| !TieredDisk::is_needed(&disk).unwrap());
    drop(tier);
    assert_eq!(tiered.remote_volumes(), 0);
    assert!(disk.open("REMOTE.cache", Open::default()).unwrap_err().is_not_found());
    drop(tiered);
    let (store, report) = Store::open_on(Arc::new(disk), store_options(None)).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert!(objects(&store) == original.expected);
}

#[test]
fn cold_parts_are_dropped_and_still_read_changed_and_removed() {
    let remote_store = FaultyStore::new();
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    let mut first = Original::open(&disk, &remote);
    first.store.create_bucket("bucket").unwrap();
    for number in 0..500 {
        first.put(&format!("{number}"), content(number, 30_000));
    }
    for number in 0..3 {
        first.put(&format!("big/{number}"), content(number, 300_000));
    }
    first.replica.stop().unwrap();
    let mut expected = first.expected;
    drop(first.store);

    let tiered = Tiered::open(&disk, &remote);
    let replica = tiered.follow();
    let tier = tiered.tier(Some(1 << 20));
    // The newest volume stays.
    wait_until(&tier, |status| status.remote_objects == 3 && status.remote_volumes > 2);
    let volumes = disk.list("volumes").unwrap();
    let whole = |name: &&String| name.ends_with(".segment");
    assert!(volumes.iter().filter(whole).count() <= 2, "{volumes:?}");
    assert_eq!(disk.list("objects").unwrap(), Vec::<String>::new());
    assert!(objects(&tiered.store) == expected);
    for number in 0..400 {
        let key = format!("{number}");
        tiered.store.delete("bucket", &key).unwrap();
        expected.remove(&key);
    }
    tiered.store.delete("bucket", "big/1").unwrap();
    expected.remove("big/1");
    let before = tiered.remote_volumes();
    tiered.store.write_checkpoint().unwrap();
    tiered.store.compact().unwrap();
    assert!(tiered.remote_volumes() < before, "no volume was removed");
    replica.wait().unwrap();
    assert!(objects(&tiered.store) == expected);
    drop(tier);
    replica.stop().unwrap();
    drop(tiered);
    let reopened = Tiered::open(&disk, &remote);
    assert!(objects(&reopened.store) == expected);
    // A removed volume does not come back, and a deleted object does not stay in the copy.
    let replica = reopened.follow();
    replica.wait().unwrap();
    replica.stop().unwrap();
    assert!(objects(&reopened.store) == expected);
    assert_eq!(names(&remote_store).iter().filter(|name| name.contains("/files/")).count(), 2);
}

#[test]
fn failed_request_is_no_damage() {
    let remote_store = FaultyStore::new();
    let original = original(&remote(&remote_store));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    let tiered = Tiered::open(&disk, &remote);
    remote_store.refuse_reads(true);
    for key in ["small/1", "more/2", "big/3"] {
        let failed = tiered.store.get("bucket", key).and_then(|object| object.read(0, 10));
        let failed = failed.unwrap_err();
        assert!(matches!(failed, StoreError::Disk(_) | StoreError::Log(_)), "{failed:?}");
        let text = haul_disk::error_chain(&failed).to_string();
        assert!(text.contains("503 Slow Down"), "{text}");
    }
    remote_store.refuse_reads(false);
    assert!(objects(&tiered.store) == original.expected);
    assert!(tiered.store.damage().is_empty());
}

/// After a power cut at each step of dropping and fetching, the store opens and has all objects.
#[test]
fn power_cut_while_parts_are_moved_loses_nothing() {
    let remote_store = FaultyStore::new();
    let remote = remote(&remote_store);
    let original = original(&remote);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    let mut states = 0;
    for local_bytes_max in [None, Some(0)] {
        let (mut medium, steps) = (disk.medium(), disk.steps().len());
        let tiered = Tiered::open(&disk, &remote);
        let tier = tiered.tier(local_bytes_max);
        wait_until(&tier, |status| match local_bytes_max {
            None => !TieredDisk::is_needed(&disk).unwrap(),
            Some(_) => status.remote_volumes > 4 && status.remote_objects == 4,
        });
        drop(tier);
        drop(tiered);
        let steps = disk.steps().split_off(steps);
        let every = steps.len() / 100 + 1;
        for (number, step) in steps.iter().enumerate() {
            medium.apply_step(step);
            if number % every > 0 && number + 1 < steps.len() {
                continue;
            }
            let survivals = [Survival::Nothing, Survival::Half { seed: number as u64 }];
            for survival in survivals {
                let left = MemoryDisk::on(&medium.cut(survival));
                let reopened = Tiered::open(&left, &remote);
                assert!(objects(&reopened.store) == original.expected, "step {number}: {step:?}");
                states += 1;
            }
        }
    }
    assert!(states > 200, "{states}");
}

#[test]
fn new_store_and_other_directories_are_not_changed_before_they_need_the_copy() {
    let remote = remote(&FaultyStore::new());
    let disk = MemoryDisk::default();
    drop(Tiered::open(&disk, &remote));
    let (store, _) = Store::open_on(Arc::new(disk.clone()), store_options(None)).unwrap();
    drop(store);
    let foreign = MemoryDisk::default();
    foreign.create_dir("volumes").unwrap();
    for name in ["volumes/a", "volumes/a.remote", "file"] {
        drop(foreign.create(name, Open::default()).unwrap());
    }
    let tiered = TieredDisk::new(Arc::new(foreign.clone()), &remote, CACHE_BYTES);
    let refused = Store::open_on(Arc::new(tiered), store_options(None)).unwrap_err();
    assert!(matches!(refused, StoreError::NotAStore { .. }), "{refused:?}");
    assert_eq!(foreign.list("").unwrap(), ["file", "volumes"]);
    assert_eq!(foreign.list("volumes").unwrap(), ["a", "a.remote"]);
}

/// Flips a bit in each chunk and each big object of a copy.
fn damage(store: &FaultyStore) {
    let is_content = |name: &String| name.contains("/log/") || name.contains("/files/");
    for name in names(store).into_iter().filter(is_content) {
        let mut bytes = read(store, &name);
        // In the middle: the header page of a segment is not compared.
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        write(store, &name, bytes);
    }
}

#[test]
fn part_that_differs_from_the_copy_is_not_dropped() {
    let remote_store = FaultyStore::new();
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    let mut first = Original::open(&disk, &remote);
    first.store.create_bucket("bucket").unwrap();
    for number in 0..400 {
        first.put(&format!("{number}"), content(number, 30_000));
    }
    first.put("big", content(1, 300_000));
    first.replica.stop().unwrap();
    let expected = first.expected;
    drop(first.store);
    damage(&remote_store);
    let tiered = Tiered::open(&disk, &remote);
    let tier = tiered.tier(Some(1));
    // Each look compares everything again.
    let before = remote.requests();
    eventually("the tier has compared everything", || {
        assert_eq!(tier.status().last_error, None);
        remote.requests() - before >= 30
    });
    drop(tier);
    assert_eq!(tiered.remote_volumes(), 0);
    assert!(!TieredDisk::is_needed(&disk).unwrap());
    assert!(objects(&tiered.store) == expected);
}

#[test]
fn damaged_volume_of_the_copy_does_not_take_the_place_of_its_stub() {
    let remote_store = FaultyStore::new();
    drop(original(&remote(&remote_store)));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    damage(&remote_store);
    let tiered = Tiered::open(&disk, &remote);
    let before = tiered.remote_volumes();
    let tier = tiered.tier(None);
    wait_until(&tier, |status| status.last_error.is_some());
    let error = tier.status().last_error.unwrap_or_default();
    assert!(error.contains("do not match their checksum"), "{error}");
    drop(tier);
    assert_eq!(tiered.remote_volumes(), before);
    assert!(TieredDisk::is_needed(&disk).unwrap());
    assert_eq!(disk.list("REMOTE.incomplete").unwrap(), Vec::<String>::new());
}

#[test]
fn damaged_stub_is_reported() {
    let remote_store = FaultyStore::new();
    drop(original(&remote(&remote_store)));
    let remote = remote(&remote_store);
    let disk = MemoryDisk::default();
    restore_store(&remote, &(Arc::new(disk.clone()) as _), Fetch::OnDemand).unwrap();
    let names = disk.list("volumes").unwrap();
    let stub = names.iter().find(|name| name.ends_with(".remote")).unwrap();
    // In the page after the volume, which has the end of the bytes in the copy.
    disk.rot(&format!("volumes/{stub}"), (4 << 20) + 9, 1);
    let tiered = TieredDisk::new(Arc::new(disk.clone()), &remote, CACHE_BYTES);
    let refused = Store::open_on(Arc::new(tiered), store_options(None)).err().unwrap();
    let text = haul_disk::error_chain(&refused).to_string();
    assert!(text.contains("its stub is damaged") && text.contains(".segment"), "{text}");
}
