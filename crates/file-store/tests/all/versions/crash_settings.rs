//! Crashes after every step of changes of the versioning and the object lock of buckets.

use std::sync::Arc;

use haul_disk_sim::{Crash, Crashes, MemoryDisk, crash_everywhere};
use haul_file_store::{
    Attributes, DefaultRetention, Error, ListVersionsRequest, NewBucket, ObjectLock, Precondition,
    RetentionMode, RetentionPeriod, Store, VersionInfo, VersionListEntry, Versioning,
};

use crate::small;

/// A bucket that gets versions and object lock after its creation, and one that is created with
/// them.
const BUCKETS: [&str; 2] = ["later", "created"];

/// The state of a bucket, and the modes of the retention of its versions, from newest to oldest.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BucketState {
    versioning: Versioning,
    has_lock: bool,
    default: Option<DefaultRetention>,
    modes: Vec<Option<RetentionMode>>,
}

/// The states of the buckets; `None` for a bucket that does not exist.
type State = [Option<BucketState>; 2];

/// The number of acknowledged acts.
struct Acknowledged(usize);

/// The state after the first recovery.
struct Recovered(State);

const BUCKET: &str = BUCKETS[0];

/// The acts, in order.
const ACTS: [fn(&Store); 12] = [
    |store| store.create_bucket(BUCKET).unwrap(),
    |store| put(store, BUCKET),
    |store| store.set_versioning(BUCKET, Versioning::Enabled).unwrap(),
    |store| put(store, BUCKET),
    |store| store.enable_object_lock(BUCKET).unwrap(),
    |store| put(store, BUCKET),
    |store| set_default(store, BUCKET, Some(RetentionMode::Governance)),
    |store| put(store, BUCKET),
    |store| {
        store
            .create_bucket_with(BUCKETS[1], &NewBucket::with_object_lock(Attributes::new()))
            .unwrap()
    },
    |store| set_default(store, BUCKETS[1], Some(RetentionMode::Compliance)),
    |store| put(store, BUCKETS[1]),
    |store| set_default(store, BUCKET, None),
];

fn open_on(disk: &MemoryDisk) -> Store {
    Store::open_on(Arc::new(disk.clone()), small()).unwrap().0
}

fn put(store: &Store, bucket: &str) {
    let none = Attributes::new();
    drop(store.put(bucket, "key", b"bytes", &none, &Precondition::None).unwrap());
}

fn set_default(store: &Store, bucket: &str, mode: Option<RetentionMode>) {
    let period = RetentionPeriod::Years(1);
    let default = mode.map(|mode| DefaultRetention { mode, period });
    store.set_default_retention(bucket, default).unwrap();
}

/// Returns the versions of a bucket, from newest to oldest.
fn versions(store: &Store, bucket: &str) -> Vec<VersionInfo> {
    let request = ListVersionsRequest { limit: 100, ..ListVersionsRequest::default() };
    let entries = store.list_versions(bucket, &request).unwrap().entries.into_iter();
    let versions = entries.map(|entry| match entry {
        VersionListEntry::Version(version) => version,
        VersionListEntry::Prefix(prefix) => panic!("{prefix:?} without a delimiter"),
    });
    versions.collect()
}

fn state(store: &Store) -> State {
    BUCKETS.map(|bucket| {
        let versioning = match store.versioning(bucket) {
            Ok(versioning) => versioning,
            Err(Error::NoSuchBucket { .. }) => return None,
            Err(other) => panic!("{other}"),
        };
        let modes = versions(store, bucket).into_iter().map(|version| {
            let found = store.get_version(bucket, "key", version.info.version_id).unwrap();
            assert_eq!(&found.read(0, 10).unwrap()[..], b"bytes");
            ObjectLock::of(&found.attributes).unwrap().retention.map(|it| it.mode)
        });
        Some(BucketState {
            versioning,
            has_lock: store.has_object_lock(bucket).unwrap(),
            default: store.default_retention(bucket).unwrap(),
            modes: modes.collect(),
        })
    })
}

/// Returns the states before each act and after the last one.
fn run(disk: &MemoryDisk) -> Vec<State> {
    let store = open_on(disk);
    let mut states = vec![state(&store)];
    disk.note(Acknowledged(0));
    for (number, act) in (1..).zip(ACTS) {
        act(&store);
        disk.note(Acknowledged(number));
        states.push(state(&store));
    }
    states
}

/// Returns the parts of a state that deletions of versions without a lock do not change.
fn locks(state: &State) -> [Option<(bool, Option<DefaultRetention>, usize)>; 2] {
    let visible_state = |bucket: &BucketState| {
        (bucket.has_lock, bucket.default, bucket.modes.iter().flatten().count())
    };
    state.each_ref().map(|bucket| bucket.as_ref().map(visible_state))
}

fn recover(states: &[State], crash: &Crash) {
    let acknowledged = crash.notes().last().map_or(0, |Acknowledged(acts)| *acts);
    let store = open_on(&crash.disk);
    let found = state(&store);
    if let Some(Recovered(before)) = crash.notes().last() {
        // The first recovery may have deleted versions.
        assert_eq!(locks(&found), locks(before), "after {acknowledged}");
    } else {
        let possible = &states[acknowledged..=(acknowledged + 1).min(ACTS.len())];
        assert!(possible.contains(&found), "after {acknowledged}: {found:?}");
    }
    crash.disk.note(Recovered(found.clone()));
    for (bucket, found) in BUCKETS.iter().zip(&found) {
        if let Some(BucketState { has_lock: true, modes, .. }) = found {
            let suspended = store.set_versioning(bucket, Versioning::Suspended);
            assert!(matches!(suspended, Err(Error::InvalidBucketState { .. })), "{suspended:?}");
            check_protected(&store, bucket, modes);
        }
    }
}

/// Tries to delete all versions of a bucket. Those with a retention must stay.
fn check_protected(store: &Store, bucket: &str, modes: &[Option<RetentionMode>]) {
    for (version, mode) in versions(store, bucket).iter().zip(modes) {
        let deleted = store.delete_object(bucket, "key", Some(version.info.version_id));
        let is_locked = matches!(deleted, Err(Error::Locked { .. }));
        assert_eq!(is_locked, mode.is_some(), "{deleted:?}");
    }
}

#[test]
fn crash_loses_no_state_of_versioning_and_object_lock() {
    let crashes = Crashes { draws: 4, again_one_in: 8, ..Crashes::default() };
    let states = crash_everywhere(&crashes, run, |states, crash| recover(states, crash));
    assert!(states > 200, "{states}");
}

#[test]
fn states_of_the_acts_are_those_of_their_names() {
    let states = run(&MemoryDisk::default());
    let [later, created] = states.last().unwrap();
    let (later, created) = (later.as_ref().unwrap(), created.as_ref().unwrap());
    assert_eq!(
        (later.versioning, later.has_lock, later.default),
        (Versioning::Enabled, true, None)
    );
    assert_eq!(later.modes, [Some(RetentionMode::Governance), None, None, None]);
    assert_eq!(created.modes, [Some(RetentionMode::Compliance)]);
    assert_eq!(created.default.map(|it| it.mode), Some(RetentionMode::Compliance));
}
