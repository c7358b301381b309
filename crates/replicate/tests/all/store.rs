//! Tests copies of file stores: a restored store has the objects of the original.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use haul_disk::Disk;
use haul_disk_sim::MemoryDisk;
use haul_file_store::{Attributes, Error as StoreError, ListRequest, Options, Precondition, Store};
use haul_replicate::{
    Fetch, Options as ReplicaOptions, Progress, Remote, Replica, Standby, StoreSource, TieredDisk,
    find_copy, restore_store,
};
use object_store::ObjectStore;

use crate::faulty::{Fault, FaultyStore};
use crate::log::{names, write};
use crate::options;

/// The length from which on an object has a file of its own.
pub(crate) const BIG_BYTES: u64 = 64 << 10;

pub(crate) fn store_options(progress: Option<&Arc<Progress>>) -> Options {
    Options {
        volume_bytes: 4 << 20,
        big_object_bytes: BIG_BYTES,
        idle_watermark_ms: 0,
        lifecycle_check_every: Duration::ZERO,
        replication: progress.map(|progress| Arc::clone(progress) as _),
        ..Options::default()
    }
}

/// A store that waits for its copy, and what it should contain.
pub(crate) struct Original {
    pub(crate) store: Arc<Store>,
    pub(crate) replica: Replica,
    pub(crate) expected: BTreeMap<String, Vec<u8>>,
}

impl Original {
    pub(crate) fn new(remote: &Remote) -> Self {
        Self::open(&MemoryDisk::default(), remote)
    }

    pub(crate) fn open(disk: &MemoryDisk, remote: &Remote) -> Self {
        Self::open_with(disk, remote, options())
    }

    pub(crate) fn open_with(disk: &MemoryDisk, remote: &Remote, options: ReplicaOptions) -> Self {
        let progress = Arc::new(Progress::new(haul_testing::PATIENCE));
        let (store, _) =
            Store::open_on(Arc::new(disk.clone()), store_options(Some(&progress))).unwrap();
        let store = Arc::new(store);
        let source = StoreSource::new(Arc::clone(&store), Arc::new(disk.clone()));
        let replica = Replica::follow_with(source, remote, options, progress).unwrap();
        Self { store, replica, expected: BTreeMap::new() }
    }

    pub(crate) fn put(&mut self, key: &str, content: Vec<u8>) {
        let none = Attributes::new();
        self.store.put("bucket", key, &content, &none, &Precondition::None).unwrap();
        self.expected.insert(key.to_owned(), content);
    }

    pub(crate) fn delete(&mut self, key: &str) {
        assert_eq!(self.store.delete("bucket", key).unwrap(), self.expected.remove(key).is_some());
    }
}

/// Returns content that differs for each number.
pub(crate) fn content(number: usize, bytes: usize) -> Vec<u8> {
    number.to_le_bytes().repeat(bytes.div_ceil(8))
}

/// Restores a store, and returns its objects and whether its index was rebuilt.
pub(crate) fn restored(store: Arc<dyn ObjectStore>) -> (BTreeMap<String, Vec<u8>>, bool) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    restore_store(&Remote::new(store, "copy").unwrap(), &disk, Fetch::Everything).unwrap();
    let (store, report) = Store::open_on(disk, store_options(None)).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    (objects(&store), report.index_rebuilt.is_some())
}

/// Returns the objects of a store.
pub(crate) fn objects(store: &Store) -> BTreeMap<String, Vec<u8>> {
    if store.bucket("bucket").is_err() {
        return BTreeMap::new();
    }
    let request = ListRequest { limit: 10_000, ..ListRequest::default() };
    let page = store.list("bucket", &request).unwrap();
    let read = |key: String| {
        let object = store.get("bucket", &key).unwrap();
        let all = usize::try_from(object.info.bytes).unwrap();
        let mut bytes = Vec::new();
        while bytes.len() < all {
            let read = object.read(bytes.len() as u64, all).unwrap();
            assert!(!read.is_empty(), "{key}");
            bytes.extend_from_slice(&read);
        }
        (key, bytes)
    };
    page.entries.into_iter().map(|entry| read(entry.name().to_owned())).collect()
}

#[test]
fn restored_store_has_the_objects_of_the_original() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let mut original = Original::new(&remote);
    original.store.create_bucket("bucket").unwrap();
    for number in 0..300 {
        original.put(&format!("small/{number}"), content(number, 10 + 100 * (number % 50)));
    }
    for number in 0..8 {
        original.put(&format!("big/{number}"), content(number, 70_000 + 100_000 * number));
    }
    for number in (0..300).step_by(3) {
        original.delete(&format!("small/{number}"));
    }
    original.put("big/0", content(99, 200_000));
    original.delete("big/1");
    assert!(restored(Arc::new(remote_store)).0 == original.expected);
}

/// Volumes and files of big objects are removed while the copy follows.
#[test]
fn copy_follows_overwrites_and_compaction() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let mut original = Original::new(&remote);
    original.store.create_bucket("bucket").unwrap();
    for round in 0..12 {
        for number in 0..30 {
            original.put(&format!("{}", number % 25), content(round * 100 + number, 40_000));
        }
        original.put("big", content(round, 150_000));
        if round % 4 == 3 {
            original.store.write_checkpoint().unwrap();
            original.store.compact().unwrap();
            original.put("after", content(round, 100));
            let (found, _) = restored(Arc::new(remote_store.clone()));
            assert!(found == original.expected, "round {round}");
        }
    }
    let volumes = original.store.log().segments().len();
    assert!(volumes < 8, "{volumes}");
}

#[test]
fn shipped_checkpoint_is_used_when_the_restored_store_is_opened() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let mut original = Original::new(&remote);
    original.store.create_bucket("bucket").unwrap();
    for number in 0..200 {
        original.put(&format!("{number}"), content(number, 1000));
    }
    original.store.write_checkpoint().unwrap();
    original.put("last", content(1, 1000));
    original.replica.stop().unwrap();
    let (found, is_rebuilt) = restored(Arc::new(remote_store));
    assert!(found == original.expected);
    assert!(!is_rebuilt, "the index was rebuilt");
}

#[test]
fn write_fails_while_the_copy_does_not_confirm_it_and_stays_in_effect() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    let progress = Arc::new(Progress::new(Duration::from_secs(2)));
    let (store, _) = Store::open_on(Arc::clone(&disk), store_options(Some(&progress))).unwrap();
    let store = Arc::new(store);
    let source = StoreSource::new(Arc::clone(&store), disk);
    let replica = Replica::follow_with(source, &remote, options(), progress).unwrap();
    store.create_bucket("bucket").unwrap();
    remote_store.set_plan(|_| Fault::Refused);
    let put =
        |key: &str| store.put("bucket", key, b"content", &Attributes::new(), &Precondition::None);
    let refused = put("one").unwrap_err();
    assert!(matches!(refused, StoreError::NotReplicated { .. }), "{refused:?}");
    assert!(refused.to_string().contains("503 Slow Down"), "{refused}");
    assert!(store.get("bucket", "one").is_ok());
    remote_store.set_plan(|_| Fault::None);
    replica.wait().unwrap();
    put("two").unwrap();
    let keys: Vec<_> = restored(Arc::new(remote_store)).0.into_keys().collect();
    assert_eq!(keys, ["one", "two"]);
}

#[test]
fn copy_of_which_nothing_was_shipped_is_an_empty_store() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    // The claim succeeds, and no round.
    remote_store.set_plan(|change| if change == 1 { Fault::None } else { Fault::Refused });
    drop(Original::new(&remote));
    for fetch in [Fetch::Everything, Fetch::OnDemand] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
        restore_store(&remote, &disk, fetch).unwrap();
        let disk = Arc::new(TieredDisk::new(disk, &remote, 0));
        let (store, report) = Store::open_on(disk, store_options(None)).unwrap();
        assert!(report.damage.is_empty(), "{:?}", report.damage);
        assert!(objects(&store).is_empty());
    }
}

/// Big objects are uploaded before the records that refer to them.
#[test]
fn takeover_before_the_first_round_opens_an_empty_store() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    remote_store.set_plan(|change| if change == 1 { Fault::None } else { Fault::Refused });
    drop(Original::new(&remote));
    remote_store.set_plan(|_| Fault::None);
    write(&remote_store, &format!("copy/files/objects/{:032x}", 7), vec![1]);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    let standby = Standby::open(&remote, &disk, Duration::ZERO).unwrap().unwrap();
    standby.control().take_over();
    let progress = Arc::new(Progress::without_waiting());
    assert!(standby.run(&progress, &options()).unwrap().is_some());
    let (store, report) = Store::open_on(disk, store_options(None)).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    assert!(objects(&store).is_empty());
}

/// At each time, the copy has all confirmed changes, and at most one change that is not confirmed.
#[test]
fn machine_can_be_lost_after_each_change_of_the_remote_store() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let mut original = Original::new(&remote);
    original.store.create_bucket("bucket").unwrap();
    remote_store.record();
    // The states after each change, with the number of snapshots at which it was confirmed.
    let mut states = vec![(0, original.expected.clone())];
    for step in 0..70 {
        match step % 7 {
            0 => original.put("big", content(step, 100_000 + 1000 * step)),
            3 if step > 3 => original.delete(&format!("{}", (step - 5) % 20)),
            5 => original.put("large", content(step, 60_000)),
            _ => original.put(&format!("{}", step % 20), content(step, 500 * step)),
        }
        states.push((remote_store.snapshots().len(), original.expected.clone()));
        if step % 20 == 19 {
            original.store.write_checkpoint().unwrap();
            original.store.compact().unwrap();
        }
    }
    let snapshots = remote_store.snapshots();
    assert!(snapshots.len() > 70, "{}", snapshots.len());
    for (number, snapshot) in snapshots.into_iter().enumerate() {
        let (found, _) = restored(snapshot);
        let confirmed = states.iter().rposition(|(count, _)| *count <= number + 1).unwrap();
        let is_next = states.get(confirmed + 1).is_some_and(|(_, state)| *state == found);
        assert!(found == states[confirmed].1 || is_next, "snapshot {number}");
    }
}

#[test]
fn files_of_deleted_objects_and_leftovers_are_deleted_from_the_copy() {
    let remote_store = FaultyStore::new();
    let remote = Remote::new(Arc::new(remote_store.clone()), "copy").unwrap();
    let disk = MemoryDisk::default();
    let mut original = Original::open(&disk, &remote);
    original.store.create_bucket("bucket").unwrap();
    original.put("kept", content(1, 100_000));
    original.put("deleted", content(2, 100_000));
    let files = || names(&remote_store).into_iter().filter(|name| name.contains("/files/")).count();
    assert_eq!(files(), 2);
    original.delete("deleted");
    let Original { store, replica, expected } = original;
    replica.stop().unwrap();
    Arc::into_inner(store).unwrap().close().unwrap();
    write(&remote_store, "copy/log/0000000009-0000000000000001/00000000-00000010-1", vec![1]);
    let continued = Original::open(&disk, &remote);
    continued.replica.wait().unwrap();
    continued.replica.stop().unwrap();
    assert_eq!(files(), 1);
    assert!(names(&remote_store).iter().all(|name| !name.contains("/0000000009-")));
    assert!(restored(Arc::new(remote_store)).0 == expected);
}

#[test]
fn file_of_the_caller_is_in_the_copy_and_in_the_restored_directory() {
    let remote_store = FaultyStore::new();
    let root = Remote::new(Arc::new(remote_store), "copies").unwrap();
    assert!(root.folders().unwrap().is_empty());
    let remote = root.below("one");
    assert_eq!(find_copy(&remote, "NOTE", None).unwrap(), None);
    let disk = MemoryDisk::default();
    // The file is replaced although the log does not change.
    for note in [None, Some(b"first"), Some(b"other")] {
        let (store, _) = Store::open_on(Arc::new(disk.clone()), store_options(None)).unwrap();
        let store = Arc::new(store);
        let source = StoreSource::new(Arc::clone(&store), Arc::new(disk.clone()));
        let source = match note {
            Some(note) => source.with_file("NOTE", note.to_vec()),
            None => source,
        };
        let progress = Arc::new(Progress::without_waiting());
        let replica = Replica::follow_with(source, &remote, options(), progress).unwrap();
        replica.wait().unwrap();
        let found = find_copy(&remote, "NOTE", None).unwrap().unwrap();
        assert_eq!(found.file.as_deref(), note.map(|note| &note[..]));
        replica.stop().unwrap();
        Arc::into_inner(store).unwrap().close().unwrap();
    }
    assert_eq!(root.folders().unwrap(), ["one"]);
    let target: Arc<dyn Disk> = Arc::new(MemoryDisk::default());
    restore_store(&remote, &target, Fetch::Everything).unwrap();
    assert!(target.list("").unwrap().contains(&"NOTE".to_owned()));
}
