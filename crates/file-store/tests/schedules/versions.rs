//! Tests that versions and their locks are neither lost nor restored while threads store, delete and
//! lock versions of one key beside compaction and a lifecycle sweep.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Error, Lifecycle, LifecycleRule, ListVersionsRequest, NewBucket, NoncurrentExpiry,
    ObjectLock, Precondition, Retention, RetentionMode, Store, VersionId, VersionInfo,
    VersionListEntry,
};

use crate::compaction::{fill_volumes, prepare_volumes};
use crate::disk::TinyDisk;
use crate::explore::{Body, explore_part, in_threads};
use crate::{LONG, open_at, pause};

/// The bucket with versions and object lock.
const LOCKED: &str = "locked";

const KEY: &str = "key";

/// The time of all changes of a schedule: the first two prepared versions have expired.
const LATER_MS: u64 = 10_000;

/// The lengths of the versions, which identify them. A delete marker has no bytes.
const OLDEST: usize = 101;
const OLDER: usize = 102;
const NEWEST: usize = 103;
const FIRST_PUT: usize = 111;
const SECOND_PUT: usize = 112;
const MARKER: usize = 0;

/// The newest versions after each change of the thread that stores objects, down to the newest
/// prepared one.
const STATES: [&[usize]; 5] = [
    &[NEWEST],
    &[FIRST_PUT, NEWEST],
    &[MARKER, FIRST_PUT, NEWEST],
    &[SECOND_PUT, MARKER, FIRST_PUT, NEWEST],
    &[SECOND_PUT, MARKER, NEWEST],
];

/// The number of lock changes of the oldest version.
const LOCKS: usize = 3;

/// The numbers of begun and acknowledged changes of a thread.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    begun: usize,
    acknowledged: usize,
}

/// The progress of all threads.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    writes: Progress,
    locks: Progress,
    /// The outcome of the deletion of the oldest version; `Some(false)` if its lock prevented it.
    deleted: Option<bool>,
}

/// The shared state. Its lock is not one of the model, so threads do not switch at it.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<State>>);

/// The code of a thread.
type Act = Box<dyn Fn(&Store, &Shared) + Send>;

impl Shared {
    fn now(&self) -> State {
        *self.0.lock().unwrap()
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Makes one change of the thread that stores objects.
    fn write<T>(&self, change: impl FnOnce() -> T) -> T {
        self.set(|state| state.writes.begun += 1);
        let changed = change();
        self.set(|state| state.writes.acknowledged += 1);
        changed
    }
}

fn put(store: &Store, bytes: usize) -> VersionId {
    let (content, none) = (vec![u8::try_from(bytes).unwrap(); bytes], Attributes::new());
    store.put(LOCKED, KEY, &content, &none, &Precondition::None).unwrap().version_id
}

/// Returns the versions of the key, from newest to oldest.
fn list(store: &Store) -> Vec<VersionInfo> {
    let request = ListVersionsRequest { limit: 100, ..ListVersionsRequest::default() };
    let entries = store.list_versions(LOCKED, &request).unwrap().entries.into_iter();
    let versions = entries.map(|entry| match entry {
        VersionListEntry::Version(version) => version,
        VersionListEntry::Prefix(prefix) => panic!("{prefix:?} without a delimiter"),
    });
    versions.collect()
}

fn length(version: &VersionInfo) -> usize {
    usize::try_from(version.info.bytes).unwrap()
}

/// Stores the first versions, which a sweep expires unless they are locked, in a volume with dead
/// bytes.
fn fill(store: &Store) {
    store.create_bucket_with(LOCKED, &NewBucket::with_object_lock(Attributes::new())).unwrap();
    let after = Duration::from_secs(1);
    let rule = LifecycleRule {
        enabled: true,
        expire_noncurrent: Some(NoncurrentExpiry { after, newer_versions: 0 }),
        ..LifecycleRule::default()
    };
    store.set_lifecycle(LOCKED, &Lifecycle { rules: vec![rule] }).unwrap();
    for bytes in [OLDEST, OLDER, NEWEST] {
        put(store, bytes);
    }
    fill_volumes(store);
}

fn prepared() -> TinyDisk {
    static DISK: OnceLock<TinyDisk> = OnceLock::new();
    DISK.get_or_init(|| prepare_volumes(fill)).after_power_cut()
}

fn retention() -> Retention {
    let until = UNIX_EPOCH + Duration::from_millis(LATER_MS + 1);
    Retention { mode: RetentionMode::Compliance, until }
}

/// Returns the lock of the oldest version after so many changes of it.
fn lock_after(changes: usize) -> ObjectLock {
    ObjectLock {
        retention: (changes >= 2).then(retention),
        legal_hold: (changes >= 1).then_some(changes < LOCKS),
    }
}

/// Stores objects and deletes one and a version.
fn store_and_delete(store: &Store, shared: &Shared) {
    let first = shared.write(|| put(store, FIRST_PUT));
    shared.write(|| store.delete_object(LOCKED, KEY, None).unwrap());
    shared.write(|| put(store, SECOND_PUT));
    let deleted = shared.write(|| store.delete_object(LOCKED, KEY, Some(first)).unwrap());
    assert!(deleted.existed);
}

/// Changes the lock of the oldest version until its retention alone protects it, unless it was
/// removed before.
fn lock_oldest(store: &Store, shared: &Shared, oldest: VersionId) {
    for change in 0..LOCKS {
        shared.set(|state| state.locks.begun += 1);
        let outcome = match change {
            1 => store.set_retention(LOCKED, KEY, Some(oldest), Some(retention()), false),
            _ => store.set_legal_hold(LOCKED, KEY, Some(oldest), change == 0),
        };
        match outcome {
            Ok(_) => shared.set(|state| state.locks.acknowledged += 1),
            Err(Error::NoSuchVersion { .. }) if change == 0 => return,
            Err(other) => panic!("lock change {change}: {other}"),
        }
    }
}

/// Deletes the oldest versions, of which the first one may be locked.
fn delete_oldest(store: &Store, shared: &Shared, [oldest, older]: [VersionId; 2]) {
    let outcome = store.delete_object(LOCKED, KEY, Some(oldest));
    let is_deleted = match outcome {
        Ok(_) => true,
        Err(Error::Locked { .. }) => false,
        Err(other) => panic!("{other}"),
    };
    shared.set(|state| state.deleted = Some(is_deleted));
    store.delete_object(LOCKED, KEY, Some(older)).unwrap();
}

/// Checks the listed versions and the current object. Changes that were acknowledged before `from`
/// are in effect, and none that had not begun at `to`.
fn check_list(listed: &[VersionInfo], from: State, to: State) {
    let lengths: Vec<_> = listed.iter().map(length).collect();
    let at = lengths.iter().position(|bytes| *bytes == NEWEST).map_or(0, |at| at + 1);
    let (newest, oldest) = lengths.split_at(at);
    let is_state = |state: usize| STATES[state] == newest;
    let context = || format!("{lengths:?} from {from:?} to {to:?}");
    assert!((from.writes.acknowledged..=to.writes.begun).any(is_state), "{}", context());
    let all: [&[usize]; 4] = [&[OLDER, OLDEST], &[OLDER], &[OLDEST], &[]];
    assert!(all.contains(&oldest), "{}", context());
    let exists = oldest.contains(&OLDEST);
    assert!(exists || from.locks.acknowledged == 0, "a locked version is lost: {}", context());
    assert!(!exists || from.deleted != Some(true), "a version is back: {}", context());
    let ids: Vec<_> = listed.iter().map(|version| version.info.version_id).collect();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "{ids:?}");
    let latest = listed.iter().filter(|version| version.is_latest).count();
    assert!(latest == 1 && listed[0].is_latest, "{}", context());
}

/// Checks a store that no thread changes: its list, the content and the lock of each version, and
/// the current object.
fn check(store: &Store, from: State, to: State) {
    let listed = list(store);
    check_list(&listed, from, to);
    for version in &listed {
        let (bytes, id) = (length(version), version.info.version_id);
        let found = store.get_version(LOCKED, KEY, id);
        if version.is_delete_marker {
            assert_eq!(bytes, MARKER);
            assert!(matches!(found, Err(Error::IsDeleteMarker { .. })), "{found:?}");
            continue;
        }
        let found = found.unwrap();
        let content = found.read(0, LONG).unwrap();
        assert!(content.len() == bytes && content.iter().all(|it| usize::from(*it) == bytes));
        let lock = ObjectLock::of(&found.attributes).unwrap();
        let mut changes = from.locks.acknowledged..=to.locks.begun;
        let is_possible = match bytes {
            OLDEST => changes.any(|changes| lock_after(changes) == lock),
            _ => lock == ObjectLock::default(),
        };
        assert!(is_possible, "{bytes}: {lock:?} from {from:?} to {to:?}");
    }
    let current = store.get(LOCKED, KEY).map(|object| object.info.version_id);
    match current {
        Ok(id) => assert_eq!(id, listed[0].info.version_id),
        Err(Error::NoSuchKey { .. }) => assert!(listed[0].is_delete_marker),
        Err(other) => panic!("{other}"),
    }
}

/// Reads the current object and lists the versions while threads change them.
fn read(store: &Store, shared: &Shared) {
    for _ in 0..3 {
        pause(100);
        let from = shared.now();
        let found = match store.get(LOCKED, KEY) {
            Ok(object) => object.read(0, LONG).unwrap().len(),
            Err(Error::NoSuchKey { .. }) => MARKER,
            Err(other) => panic!("{other}"),
        };
        let to = shared.now();
        let mut states = from.writes.acknowledged..=to.writes.begun;
        assert!(states.any(|state| STATES[state][0] == found), "{found} from {from:?} to {to:?}");
        let listed = list(store);
        check_list(&listed, to, shared.now());
    }
}

#[test]
fn versions_and_locks_survive_compaction_sweeps_and_power_cuts() {
    prepared();
    explore_part("versions and locks", 10, || {
        let disk = prepared();
        let store = Arc::new(open_at(&disk, LATER_MS));
        let first = list(&store);
        let id_of = |bytes| first.iter().find(|it| length(it) == bytes).unwrap().info.version_id;
        let oldest = [id_of(OLDEST), id_of(OLDER)];
        let shared = Shared::default();
        let thread = |steps: u32, body: Act| -> Body {
            let (store, shared) = (Arc::clone(&store), shared.clone());
            Box::new(move || {
                pause(steps);
                body(&store, &shared);
            })
        };
        let cut = Arc::new(Mutex::new(None));
        let (taken, in_use) = (Arc::clone(&cut), disk.clone());
        in_threads(vec![
            thread(60, Box::new(store_and_delete)),
            thread(100, Box::new(move |store, shared| lock_oldest(store, shared, oldest[0]))),
            thread(100, Box::new(move |store, shared| delete_oldest(store, shared, oldest))),
            thread(
                150,
                Box::new(|store, _| {
                    store.compact().unwrap();
                }),
            ),
            thread(
                150,
                Box::new(|store, _| {
                    assert_eq!(store.expire_now(LOCKED).unwrap().skipped, 0);
                }),
            ),
            thread(0, Box::new(read)),
            // No thread runs between the two parts of the pair.
            thread(
                400,
                Box::new(move |_, shared| {
                    *taken.lock().unwrap() = Some((shared.now(), in_use.after_power_cut()));
                }),
            ),
        ]);
        let end = shared.now();
        let is_locked = end.locks.acknowledged == LOCKS;
        assert_eq!(end.deleted, Some(!is_locked), "{end:?}");
        for store in [&*store, &open_at(&disk.after_power_cut(), LATER_MS)] {
            check(store, end, end);
            let last = list(store).pop().unwrap();
            assert_eq!(length(&last), if is_locked { OLDEST } else { NEWEST });
        }
        let (at_cut, disk) = cut.lock().unwrap().take().unwrap();
        check(&open_at(&disk, LATER_MS), at_cut, at_cut);
    });
}
