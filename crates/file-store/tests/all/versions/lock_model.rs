//! A simple model of a bucket with object lock and lifecycle rules, and random acts on it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_file_store::{
    Attributes, Deletion, Error, Lifecycle, LifecycleRule, NewBucket, NoncurrentExpiry, ObjectInfo,
    ObjectLock, Options, Precondition, Result, Retention, RetentionMode, Store, TimeSource,
    VersionId,
};
use haul_testing::Random;

use super::contents::list_all;
use crate::{BIG, BUCKET, content, put_part, small};

/// The time since which a version is not current when it expires.
pub(super) const EXPIRE_AFTER_MS: u64 = 1000;

/// The first time of the clock.
pub(super) const START_MS: u64 = 1_800_000_000_000;

/// A version; without content, a delete marker.
#[derive(Debug, Clone)]
pub(super) struct LockedVersion {
    /// The ID and the time; `None` if the act that created it was not acknowledged.
    stored: Option<(VersionId, u64)>,
    content: Option<Arc<[u8]>>,
    lock: ObjectLock,
}

/// The versions of the keys, from newest to oldest, and the time.
#[derive(Debug, Clone)]
pub(super) struct LockModel {
    keys: BTreeMap<String, Vec<LockedVersion>>,
    pub(super) now_ms: u64,
}

/// An act. Versions are named by their number, from the newest one.
#[derive(Debug, Clone)]
pub(super) enum LockAct {
    Put { key: String, bytes: Arc<[u8]>, lock: ObjectLock, in_parts: bool },
    Delete { key: String },
    DeleteVersion { key: String, number: usize, bypass: bool },
    SetRetention { key: String, number: usize, retention: Option<Retention>, bypass: bool },
    SetHold { key: String, number: usize, is_on: bool },
    SetTag { key: String, number: usize, tag: u64 },
    Expire,
    Compact,
    Wait { ms: u64 },
}

/// The content and the lock of a version in a store.
type Line = (Option<Vec<u8>>, ObjectLock);

pub(super) fn options(time: &Arc<AtomicU64>) -> Options {
    Options { time: TimeSource::Manual(Arc::clone(time)), ..small() }
}

/// Creates the bucket, with rules that expire all but one of the versions that are not current.
pub(super) fn create(store: &Store) {
    store.create_bucket_with(BUCKET, &NewBucket::with_object_lock(Attributes::new())).unwrap();
    let after = Duration::from_millis(EXPIRE_AFTER_MS);
    let rule = LifecycleRule {
        enabled: true,
        expire_noncurrent: Some(NoncurrentExpiry { after, newer_versions: 1 }),
        expire_markers: true,
        ..LifecycleRule::default()
    };
    store.set_lifecycle(BUCKET, &Lifecycle { rules: vec![rule] }).unwrap();
}

fn millis(time: SystemTime) -> u64 {
    u64::try_from(time.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn is_protected(lock: &ObjectLock, now_ms: u64, bypass: bool) -> bool {
    let is_retained = lock.retention.is_some_and(|retention| {
        let is_bypassed = bypass && retention.mode == RetentionMode::Governance;
        millis(retention.until) > now_ms && !is_bypassed
    });
    lock.legal_hold == Some(true) || is_retained
}

fn pick(random: &mut Random, bound: usize) -> usize {
    usize::try_from(random.below(u64::try_from(bound).unwrap())).unwrap()
}

fn retention(random: &mut Random, now_ms: u64) -> Option<Retention> {
    let mode = [RetentionMode::Governance, RetentionMode::Compliance][pick(random, 2)];
    let until = UNIX_EPOCH + Duration::from_millis(now_ms - 500 + random.below(5000));
    (random.below(4) > 0).then_some(Retention { mode, until })
}

fn is_locked<T>(outcome: Result<T>) -> bool {
    match outcome {
        Ok(_) => false,
        Err(Error::Locked { .. }) => true,
        Err(other) => panic!("{other:?}"),
    }
}

impl LockModel {
    pub(super) fn new() -> Self {
        Self { keys: BTreeMap::new(), now_ms: START_MS }
    }

    /// Returns a random act. Long objects fill volumes, so that they are compacted.
    pub(super) fn plan(&self, random: &mut Random, is_long: bool) -> LockAct {
        let key = ["a", "a\0b", "b"][pick(random, 3)].to_owned();
        let versions = self.keys.get(&key).map_or(0, Vec::len);
        let number = pick(random, versions.max(1));
        let bypass = random.below(2) == 0;
        match random.below(24) {
            0 | 1 => LockAct::Delete { key },
            2..7 if versions > 0 => LockAct::DeleteVersion { key, number, bypass },
            7..11 if versions > 0 => {
                let retention = retention(random, self.now_ms);
                LockAct::SetRetention { key, number, retention, bypass }
            }
            11 | 12 if versions > 0 => LockAct::SetHold { key, number, is_on: bypass },
            13 if versions > 0 => LockAct::SetTag { key, number, tag: random.below(9) },
            14..16 => LockAct::Expire,
            16 => LockAct::Compact,
            17..19 => LockAct::Wait { ms: random.below(2000) },
            _ => {
                let length = match (random.below(6), is_long) {
                    (0, false) => BIG + pick(random, 100),
                    (_, false) => pick(random, 2000),
                    (_, true) => BIG / 2 + pick(random, BIG / 2),
                };
                let legal_hold = [None, Some(false), Some(true)][pick(random, 3)];
                let lock = ObjectLock { retention: retention(random, self.now_ms), legal_hold };
                let bytes = random.bytes(length).into();
                LockAct::Put { key, bytes, lock, in_parts: random.below(4) == 0 }
            }
        }
    }

    fn version(&self, key: &str, number: usize) -> &LockedVersion {
        &self.keys[key][number]
    }

    /// Executes an act, and checks that locks refuse it exactly if they must. Returns the ID and
    /// the time of a version that it created.
    pub(super) fn execute(
        &self,
        act: &LockAct,
        store: &Store,
        time: &AtomicU64,
    ) -> Option<(VersionId, u64)> {
        let of = |info: ObjectInfo| Some((info.version_id, millis(info.modified)));
        let none = Precondition::None;
        match act {
            LockAct::Put { key, bytes, lock, in_parts } => {
                let mut attributes = Attributes::from_iter([("name", "value")]);
                lock.set_in(&mut attributes);
                if !in_parts {
                    return of(store.put(BUCKET, key, bytes, &attributes, &none).unwrap());
                }
                let upload = store.start_upload(BUCKET, key, &attributes).unwrap();
                let part = put_part(store, key, &upload, 1, bytes);
                let more = Attributes::new();
                let done = store.complete_upload(BUCKET, key, &upload, &[part], &more, &none);
                of(done.unwrap())
            }
            LockAct::Delete { key } => {
                let deleted = store.delete_object(BUCKET, key, None).unwrap();
                let id = deleted.version_id.unwrap();
                let all = list_all(store, 1000);
                let marker = all.into_iter().find(|it| it.info.version_id == id).unwrap();
                Some((id, millis(marker.info.modified)))
            }
            LockAct::DeleteVersion { key, number, bypass } => {
                let version = self.version(key, *number);
                let id = version.stored.unwrap().0;
                let (version_id, bypass_governance) = (Some(id), *bypass);
                let deletion =
                    Deletion { version: version_id, bypass_governance, ..Deletion::of(key) };
                let outcome = store.delete_objects(BUCKET, &[deletion]).pop().unwrap();
                let expected = is_protected(&version.lock, self.now_ms, *bypass);
                assert_eq!(is_locked(outcome), expected, "{act:?} {version:?}");
                None
            }
            LockAct::SetRetention { .. } | LockAct::SetHold { .. } | LockAct::SetTag { .. } => {
                self.set_attributes(act, store);
                None
            }
            LockAct::Expire => {
                let report = store.expire_now(BUCKET).unwrap();
                let mut after = self.clone();
                after.apply(act, None);
                let removed = self.versions() - after.versions();
                assert_eq!((report.expired_versions, report.skipped), (removed, 0));
                None
            }
            LockAct::Compact => {
                store.compact().unwrap();
                None
            }
            LockAct::Wait { ms } => {
                time.fetch_add(*ms, Ordering::Relaxed);
                None
            }
        }
    }

    /// Executes an act that changes the attributes of a version.
    fn set_attributes(&self, act: &LockAct, store: &Store) {
        match act {
            LockAct::SetRetention { key, number, retention, bypass } => {
                let version = self.version(key, *number);
                let id = version.stored.unwrap().0;
                let outcome = store.set_retention(BUCKET, key, Some(id), *retention, *bypass);
                match &version.content {
                    Some(_) => {
                        let expected = !self.allows(&version.lock, *retention, *bypass);
                        assert_eq!(is_locked(outcome), expected, "{act:?} {version:?}");
                    }
                    None => assert!(matches!(outcome, Err(Error::IsDeleteMarker { .. }))),
                }
            }
            LockAct::SetHold { key, number, is_on } => {
                let version = self.version(key, *number);
                let id = version.stored.unwrap().0;
                let outcome = store.set_legal_hold(BUCKET, key, Some(id), *is_on);
                assert_eq!(outcome.is_ok(), version.content.is_some(), "{outcome:?}");
            }
            LockAct::SetTag { key, number, tag } => {
                let version = self.version(key, *number);
                let id = version.stored.unwrap().0;
                // Also a lock, which has no effect.
                let mut attributes = Attributes::from_iter([("tag", tag.to_string())]);
                ObjectLock { retention: None, legal_hold: Some(false) }.set_in(&mut attributes);
                let change = |present: &mut Attributes| {
                    *present = attributes.clone();
                    Ok(())
                };
                let outcome = store.update_attributes(BUCKET, key, Some(id), &change);
                assert_eq!(outcome.is_ok(), version.content.is_some(), "{outcome:?}");
            }
            _ => panic!("{act:?}"),
        }
    }

    /// Returns `true` if the retention of a version can be changed like this.
    fn allows(&self, lock: &ObjectLock, retention: Option<Retention>, bypass: bool) -> bool {
        let Some(old) = lock.retention.filter(|old| millis(old.until) > self.now_ms) else {
            return true;
        };
        let is_bypassed = bypass && old.mode == RetentionMode::Governance;
        is_bypassed || retention.is_some_and(|new| new.mode == old.mode && new.until >= old.until)
    }

    fn versions(&self) -> u64 {
        self.keys.values().map(|versions| versions.len() as u64).sum()
    }

    /// Applies an act, which created a version with this ID at this time.
    pub(super) fn apply(&mut self, act: &LockAct, stored: Option<(VersionId, u64)>) {
        let now_ms = self.now_ms;
        match act.clone() {
            LockAct::Put { key, bytes, lock, .. } => {
                let version = LockedVersion { stored, content: Some(bytes), lock };
                self.keys.entry(key).or_default().insert(0, version);
            }
            LockAct::Delete { key } => {
                let lock = ObjectLock::default();
                let marker = LockedVersion { stored, content: None, lock };
                self.keys.entry(key).or_default().insert(0, marker);
            }
            LockAct::DeleteVersion { key, number, bypass } => {
                if !is_protected(&self.version(&key, number).lock, now_ms, bypass) {
                    self.keys.get_mut(&key).unwrap().remove(number);
                }
            }
            LockAct::SetRetention { key, number, retention, bypass } => {
                let lock = self.version(&key, number).lock;
                if self.allows(&lock, retention, bypass) {
                    self.set(&key, number, ObjectLock { retention, ..lock });
                }
            }
            LockAct::SetHold { key, number, is_on } => {
                let lock = self.version(&key, number).lock;
                self.set(&key, number, ObjectLock { legal_hold: Some(is_on), ..lock });
            }
            LockAct::Expire => self.keys.values_mut().for_each(|all| expire(all, now_ms)),
            LockAct::SetTag { .. } | LockAct::Compact => {}
            LockAct::Wait { ms } => self.now_ms += ms,
        }
        self.keys.retain(|_, versions| !versions.is_empty());
    }

    fn set(&mut self, key: &str, number: usize, lock: ObjectLock) {
        let version = &mut self.keys.get_mut(key).unwrap()[number];
        if version.content.is_some() {
            version.lock = lock;
        }
    }

    fn lines(&self) -> BTreeMap<String, Vec<Line>> {
        let line = |it: &LockedVersion| (it.content.as_ref().map(|bytes| bytes.to_vec()), it.lock);
        self.keys.iter().map(|(key, all)| (key.clone(), all.iter().map(line).collect())).collect()
    }

    /// Returns `true` if the store has the versions and locks of the model.
    pub(super) fn is_state_of(&self, store: &Store) -> bool {
        self.lines() == lines(store)
    }

    /// Returns `true` if the store has all versions of `after`, to which a sweep changes this
    /// model, and no others than this model.
    pub(super) fn is_between(&self, after: &Self, store: &Store) -> bool {
        let found = lines(store);
        contains(&self.lines(), &found) && contains(&found, &after.lines())
    }

    /// Returns `true` if the store has each protected version that this model and `after` have.
    pub(super) fn is_protected_in(&self, after: &Self, store: &Store) -> bool {
        let (mut protected, after) = (self.lines(), after.lines());
        for (key, lines) in &mut protected {
            let others = after.get(key).map_or(&[][..], Vec::as_slice);
            lines.retain(|line| is_protected(&line.1, self.now_ms, false) && others.contains(line));
        }
        contains(&lines(store), &protected)
    }
}

/// Returns `true` if `all` has the lines of `some` in the same order.
fn contains(all: &BTreeMap<String, Vec<Line>>, some: &BTreeMap<String, Vec<Line>>) -> bool {
    some.iter().all(|(key, lines)| {
        let mut rest = all.get(key).map_or(&[][..], Vec::as_slice).iter();
        lines.iter().all(|line| rest.any(|other| other == line))
    })
}

/// Removes the expired versions of a key.
fn expire(versions: &mut Vec<LockedVersion>, now_ms: u64) {
    if let [LockedVersion { content: None, .. }] = versions[..] {
        versions.clear();
        return;
    }
    let stored: Vec<u64> = versions.iter().map(|it| it.stored.map_or(0, |it| it.1)).collect();
    let mut number = 0;
    versions.retain(|version| {
        let is_old = number >= 2 && stored[number - 1] + EXPIRE_AFTER_MS <= now_ms;
        number += 1;
        !is_old || is_protected(&version.lock, now_ms, false)
    });
}

/// Returns all versions of the bucket; none if it was deleted, which its attack may have done.
fn lines(store: &Store) -> BTreeMap<String, Vec<Line>> {
    let mut lines: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    if store.buckets().unwrap().iter().all(|bucket| bucket.name != BUCKET) {
        return lines;
    }
    for version in list_all(store, 1000) {
        let line = match version.is_delete_marker {
            true => (None, ObjectLock::default()),
            false => {
                let (key, id) = (&version.info.key, version.info.version_id);
                let object = store.get_version(BUCKET, key, id).unwrap();
                let lock = ObjectLock::of(&object.attributes).unwrap();
                (Some(content(&object).unwrap()), lock)
            }
        };
        lines.entry(version.info.key).or_default().push(line);
    }
    lines
}

/// Tries to remove each version of the bucket in all ways. Protected ones must stay.
pub(super) fn attack(store: &Store, now_ms: u64) {
    let protected = |store: &Store| -> Vec<(String, VersionId)> {
        let all = list_all(store, 1000).into_iter().filter(|it| !it.is_delete_marker);
        let lock = |info: &ObjectInfo| {
            let head = store.head_version(BUCKET, &info.key, info.version_id).unwrap();
            ObjectLock::of(&head.attributes).unwrap()
        };
        let all = all.filter(|it| is_protected(&lock(&it.info), now_ms, false));
        all.map(|it| (it.info.key, it.info.version_id)).collect()
    };
    let before = protected(store);
    store.expire_now(BUCKET).unwrap();
    for (key, id) in &before {
        assert!(is_locked(store.delete_object(BUCKET, key, Some(*id))), "{key} {id}");
        store.put(BUCKET, key, b"next", &Attributes::new(), &Precondition::None).unwrap();
        store.delete(BUCKET, key).unwrap();
    }
    let deleted = store.delete_bucket(BUCKET);
    assert!(before.is_empty() || matches!(deleted, Err(Error::BucketNotEmpty { .. })));
    if !before.is_empty() {
        store.compact().unwrap();
        assert_eq!(protected(store), before);
    }
}
