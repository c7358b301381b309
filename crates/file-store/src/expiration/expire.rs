//! Deletes expired objects in batches that share a sync.

use haul_append_log::SpacePriority;

use crate::buckets::settings::bucket_settings;
use crate::counters::Counters;
use crate::deletion::request::Deletion;
use crate::deletion::version::start_marker;
use crate::error::Result;
use crate::events::append::event_changes;
use crate::expiration::page::{Candidate, Search};
use crate::expiration::tags::KnownTags;
use crate::expiration::tags::tags_of;
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::lifecycle::report::LifecycleAction::{self, CreateMarker, ExpireObject};
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::state::Rules;
use crate::lifecycle::tags::ObjectTags;
use crate::lifecycle_events::BucketEvents;
use crate::needles::apply::Pending;
use crate::object::Versioning;
use crate::versions::retain::tombstone;

/// The maximum number of deletions that share a sync. A writer in the same batch is hardly delayed.
pub(super) const BATCH: usize = 256;

/// A deletion that may not be durable yet, and the object's length in bytes.
struct Appended<'a> {
    key: &'a str,
    action: LifecycleAction,
    pending: Pending<()>,
    bytes: u64,
}

/// Deletes the candidates, sorted by key, that are still expired.
///
/// 1. Enters the bucket, so that its rules cannot change until the batch ends, and compares them.
/// 2. Locks the keys in order. An object that was replaced since it was listed, or whose tags were,
///    is evaluated again; an object is skipped if damage may hide its newest state.
/// 3. Appends the tombstones, or in a bucket with versions the copies and delete markers. After a
///    crash the log has a prefix of them; the next sweep deletes the other objects.
/// 4. Once they are durable, applies them to the index and reports them to the observer.
///
/// Returns `None`, and deletes nothing, if the rules were replaced.
pub(super) fn delete_expired(
    inner: &Inner,
    search: &Search<'_>,
    rules: &Rules,
    batch: &[Candidate],
    known: &KnownTags,
    report: &mut SweepReport,
) -> Result<Option<()>> {
    // Before keys are locked, because this may lock the bucket.
    let settings = || bucket_settings(inner, search.bucket);
    let events = inner.options.lifecycle_events.for_bucket(search.bucket, settings)?;
    let _writer = inner.keyspace.enter(search.bucket)?;
    if !inner.maintenance.lifecycle.is_current(search.bucket, rules) {
        return Ok(None);
    }
    let lock = |candidate: &Candidate| inner.keyspace.keys.lock(search.bucket, &candidate.key);
    let _locked: Vec<_> = batch.iter().map(lock).collect();
    let mut appended = Vec::with_capacity(batch.len());
    let mut outcome = Ok(Some(()));
    for candidate in batch {
        match append_expired(inner, search, candidate, known, &events, report) {
            Ok(None) => {}
            Ok(Some(expired)) => {
                let has_failed = expired.pending.outcome.is_err();
                appended.push(expired);
                if has_failed {
                    break;
                }
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    // Waits for all appended needles, even if a later append failed.
    for Appended { key, action, pending, bytes } in appended {
        match inner.finish(pending) {
            Ok(()) => {
                inner.options.lifecycle_observer.report(action, search.bucket, key);
                Counters::count(&inner.counters.local().deletes);
                report.expired_objects += 1;
                report.expired_bytes += bytes;
            }
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    outcome
}

/// Appends an object's tombstone, or in a bucket with versions its copy and a delete marker, if the
/// object is expired. Its key is locked.
fn append_expired<'a>(
    inner: &Inner,
    search: &Search<'_>,
    candidate: &'a Candidate,
    known: &KnownTags,
    events: &BucketEvents<'_>,
    report: &mut SweepReport,
) -> Result<Option<Appended<'a>>> {
    let key = candidate.key.as_str();
    let entry = expired_entry(inner, search, candidate, known, report)?;
    let Some(entry) = entry else { return Ok(None) };
    let bytes = entry.bytes;
    let versioning = inner.keyspace.versioning(search.bucket)?;
    if versioning != Versioning::Off {
        let event = events.event(CreateMarker, key);
        let deletion = Deletion { event: event.as_ref(), ..Deletion::of(key) };
        let marker = start_marker(inner, search.bucket, &deletion, versioning);
        let (action, pending) = (CreateMarker, marker.map(drop));
        return Ok(Some(Appended { key, action, pending, bytes }));
    }
    let info = entry.info(key);
    let mut changes = vec![tombstone(inner, search.bucket, key, Some(entry))];
    let event = events.event(ExpireObject, key);
    changes.extend(event_changes(inner, event.as_ref(), search.bucket, || info));
    let record = inner.append_heads(changes, SpacePriority::Reserve)?;
    let pending = Pending { records: vec![record], outcome: Ok(()) };
    Ok(Some(Appended { key, action: ExpireObject, pending, bytes }))
}

/// Returns a locked key's current entry if its object is expired. Needs no read if the object has
/// not moved since it was listed and since its tags were read. Skips and counts an object if damage
/// may hide its newest state, or if its tags cannot be read.
pub(super) fn expired_entry(
    inner: &Inner,
    search: &Search<'_>,
    candidate: &Candidate,
    known: &KnownTags,
    report: &mut SweepReport,
) -> Result<Option<Entry>> {
    let Candidate { key, entry: listed, .. } = candidate;
    let (bucket, key) = (search.bucket, key.as_str());
    let is_unchanged = inner.keyspace.index.read().is_object_at(bucket, key, listed.at);
    let (entry, needs_tags) = if is_unchanged {
        (listed.clone(), candidate.needs_tags)
    } else {
        let Some(entry) = inner.find(bucket, key)? else { return Ok(None) };
        let needs_tags = !search.has_expired(key, &entry, ObjectTags::none());
        (entry, needs_tags)
    };
    if needs_tags && !search.has_expired(key, &entry, known.at(entry.at)) {
        return Ok(None);
    }
    if inner.keyspace.index.read().possible_corruption(bucket, key, Some(entry.at.lsn)).is_some() {
        report.skipped += 1;
        return Ok(None);
    }
    if needs_tags {
        let tags = tags_of(inner, (bucket, key), entry.at, known, report)?;
        let tags = tags.filter(|tags| search.has_expired(key, &entry, ObjectTags::Known(tags)));
        return Ok(tags.map(|_| entry));
    }
    Ok(Some(entry))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;
    use crate::expiration::config::lifecycle_rules;
    use crate::expiration::page::PAGE_KEYS;
    use crate::lifecycle::rules::{Expiry, Lifecycle, LifecycleRule};
    use crate::{Attributes, Options, Precondition, Store};

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let (volume_bytes, big_object_bytes) = (4 << 20, 64 << 10);
        let lifecycle_check_every = Duration::ZERO;
        let options =
            Options { volume_bytes, big_object_bytes, lifecycle_check_every, ..Options::default() };
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket("bucket").unwrap();
        set(&store, UNIX_EPOCH);
        (dir, store)
    }

    /// Sets rules by which the objects that exist at `time` expire at that time.
    fn set(store: &Store, time: std::time::SystemTime) {
        let expire = Some(Expiry::At(time));
        let rule = LifecycleRule { enabled: true, expire, ..LifecycleRule::default() };
        store.set_lifecycle("bucket", &Lifecycle { rules: vec![rule] }).unwrap();
    }

    fn put(store: &Store, key: &str, bytes: &[u8]) {
        store.put("bucket", key, bytes, &Attributes::new(), &Precondition::None).unwrap();
    }

    /// Lists expired objects, calls `meanwhile`, which may change the store, and deletes those that
    /// are still expired. A limit on the size keeps longer objects. Returns the outcome.
    fn expire(store: &Store, meanwhile: impl FnOnce()) -> (Option<()>, SweepReport) {
        let inner = &store.inner;
        let rules = lifecycle_rules(inner, "bucket").unwrap();
        let mut lifecycle = rules.lifecycle.clone();
        lifecycle.rules[0].bytes_less_than = Some(10);
        let now_ms = inner.keyspace.clock.now_ms();
        let search = Search { bucket: "bucket", prefix: "", lifecycle: &lifecycle, now_ms };
        let keys = inner.keyspace.index.read().keys.snapshot();
        let page = search.page(&mut keys.merged(4096), None, PAGE_KEYS).unwrap();
        meanwhile();
        let mut report = SweepReport::default();
        let (found, none) = (&page.candidates, KnownTags::default());
        let outcome = delete_expired(inner, &search, &rules, found, &none, &mut report).unwrap();
        (outcome, report)
    }

    #[test]
    fn object_replaced_after_it_was_listed_is_evaluated_again() {
        let (_dir, store) = store();
        ["a", "b", "c", "d"].iter().for_each(|key| put(&store, key, b"old"));
        let (outcome, report) = expire(&store, || {
            put(&store, "b", b"too long to be expired");
            assert!(store.delete("bucket", "c").unwrap());
            put(&store, "d", b"short");
        });
        assert!(outcome.is_some());
        // Three bytes of `a` and five of the new `d`.
        assert_eq!((report.expired_objects, report.expired_bytes), (2, 8));
        assert_eq!(store.bucket("bucket").unwrap().objects, 1);
        assert!(store.stat("bucket", "b").is_ok());
    }

    #[test]
    fn object_moved_by_compaction_after_it_was_listed_is_deleted() {
        let (_dir, store) = store();
        put(&store, "a", b"old");
        let place =
            || store.inner.keyspace.index.read().candidates("bucket", "a").first().unwrap().lsn;
        let listed_at = place();
        let (_, report) = expire(&store, || {
            (0..120).for_each(|_| put(&store, "filler", &[7; 60_000]));
            store.compact().unwrap();
            assert_ne!(place(), listed_at);
        });
        assert_eq!(report.expired_objects, 1);
        assert!(store.stat("bucket", "a").is_err());
    }

    #[test]
    fn replaced_rules_delete_nothing() {
        let (_dir, store) = store();
        put(&store, "a", b"old");
        let later = UNIX_EPOCH + Duration::from_hours(24 * 365 * 200);
        let (outcome, report) = expire(&store, || set(&store, later));
        assert_eq!((outcome, report.expired_objects), (None, 0));
        let (outcome, _) = expire(&store, || set(&store, UNIX_EPOCH));
        assert_eq!(outcome, None, "equal rules were set again");
        store.delete("bucket", "a").unwrap();
        let (outcome, _) = expire(&store, || {
            store.delete_bucket("bucket").unwrap();
            store.create_bucket("bucket").unwrap();
            put(&store, "a", b"new");
        });
        assert_eq!(outcome, None, "the bucket was recreated");
    }

    #[test]
    fn unmoved_object_is_deleted_without_a_read() {
        let (dir, store) = store();
        (0..100).for_each(|number| put(&store, &format!("key {number}"), b"old"));
        let options = store.inner.options.clone();
        store.close().unwrap();
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.expire_now("bucket").unwrap();
        let stats = store.stats();
        // Only the rules are read.
        assert_eq!((stats.objects, stats.needle_reads), (0, 1));
    }
}
