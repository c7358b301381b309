//! Removes expired versions in batches that share a sync.

use haul_append_log::{Position, SpacePriority, Ticket};

use crate::buckets::settings::bucket_settings;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::events::append::event_changes;
use crate::expiration::page::Search;
use crate::expiration::tags::KnownTags;
use crate::expiration::tags::tags_of;
use crate::expiration::versions::plan::{Expired, expired};
use crate::index::entry::Change;
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::lifecycle::report::LifecycleAction::ExpireVersion;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::LifecycleRule;
use crate::lifecycle::state::Rules;
use crate::lifecycle::tags::ObjectTags;
use crate::lifecycle_events::BucketEvents;
use crate::needles::apply::AppendedRecord;
use crate::object::VersionId;
use crate::object_lock::check::check_unlocked;
use crate::versions::retain::{scan_versions_of, version_tombstone};

/// The maximum number of versions that one record removes from a key.
const RECORD_VERSIONS: usize = 64;

/// A record with tombstones for a key's versions.
struct Appended<'a> {
    key: &'a str,
    removed: Vec<(VersionId, u64)>,
    changes: Vec<Change>,
    ticket: Ticket,
}

/// Removes the expired versions of keys, which are sorted.
///
/// 1. Enters the bucket, so that its rules cannot change until the batch ends, and compares them.
/// 2. Locks the keys in order. Evaluates all versions of each key again, because a version may have
///    become current since it was listed. Skips locked versions.
/// 3. Appends each key's tombstones, oldest version first. After a crash the log has a prefix of
///    them; the next sweep removes the other versions.
/// 4. Once the tombstones are durable, reports them to the observer and applies them to the index.
///
/// Returns `None`, and removes nothing, if the rules were replaced.
pub(crate) fn delete_expired_versions(
    inner: &Inner,
    search: &Search<'_>,
    rules: &Rules,
    keys: &[String],
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
    let _locked: Vec<_> =
        keys.iter().map(|key| inner.keyspace.keys.lock(search.bucket, key)).collect();
    let (mut appended, mut outcome) = (Vec::new(), Ok(Some(())));
    for key in keys {
        if let Err(error) = append_ends(inner, search, key, known, &events, &mut appended, report) {
            outcome = Err(error);
            break;
        }
    }
    // Waits for all appended needles, even if a later append failed.
    for Appended { key, removed, changes, ticket } in appended {
        match ticket.wait() {
            Ok(at) => {
                for (version, bytes) in removed {
                    let observer = &inner.options.lifecycle_observer;
                    observer.report(ExpireVersion(version), search.bucket, key);
                    Counters::count(&inner.counters.local().deletes);
                    report.expired_versions += 1;
                    report.expired_bytes += bytes;
                }
                inner.apply(changes, at);
            }
            Err(error) => outcome = outcome.and(Err(error.into())),
        }
    }
    outcome
}

fn append_ends<'a>(
    inner: &Inner,
    search: &Search<'_>,
    key: &'a str,
    known: &KnownTags,
    events: &BucketEvents<'_>,
    appended: &mut Vec<Appended<'a>>,
    report: &mut SweepReport,
) -> Result<()> {
    let expired = expired_versions(inner, search, key, known, report)?;
    let mut rows = expired.into_iter().map(|(row, _)| row);
    loop {
        let batch: Vec<VersionRow> = rows.by_ref().take(RECORD_VERSIONS).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let removed = batch.iter().map(|row| (row.name.id(), row.entry.bytes)).collect();
        let mut changes = Vec::with_capacity(batch.len());
        for row in batch {
            let event = events.event(ExpireVersion(row.name.id()), key);
            let info = || row.entry.info(key);
            let event = event_changes(inner, event.as_ref(), search.bucket, info);
            changes.push(version_tombstone(inner, search.bucket, key, row));
            changes.extend(event);
        }
        let AppendedRecord { changes, ticket } =
            inner.append_heads(changes, SpacePriority::Reserve)?;
        appended.push(Appended { key, removed, changes, ticket });
    }
}

/// Returns a locked key's expired versions that no lock protects, from oldest to newest. Counts the
/// others in the report.
pub(crate) fn expired_versions<'a>(
    inner: &Inner,
    search: &Search<'a>,
    key: &str,
    known: &KnownTags,
    report: &mut SweepReport,
) -> Result<Vec<(VersionRow, &'a LifecycleRule)>> {
    let Search { bucket, lifecycle, now_ms, .. } = *search;
    let mut removable = Vec::new();
    for found in versions_that_may_expire(inner, search, key)? {
        let tags = match found.rule {
            Some(_) => None,
            None => {
                let at = found.row.entry.at;
                let Some(tags) = tags_of(inner, (bucket, key), at, known, report)? else {
                    continue;
                };
                Some(tags)
            }
        };
        let tags = tags.as_ref().map_or(ObjectTags::none(), ObjectTags::Known);
        let Some(rule) = found.rule_for(lifecycle, key, tags, now_ms) else { continue };
        match check_unlocked(inner, bucket, key, &found.row.entry, false) {
            Ok(()) => removable.push((found.row, rule)),
            Err(Error::Locked { .. }) => report.locked += 1,
            // It may be locked.
            Err(Error::Damaged { .. }) => report.skipped += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(removable)
}

/// Returns the positions of these keys' versions whose tags must be read.
pub(crate) fn version_tag_positions(
    inner: &Inner,
    search: &Search<'_>,
    keys: &[String],
) -> Result<Vec<Position>> {
    let mut positions = Vec::new();
    if !search.lifecycle.has_tags() {
        return Ok(positions);
    }
    for key in keys {
        let _locked = inner.keyspace.keys.lock(search.bucket, key);
        let found = versions_that_may_expire(inner, search, key)?;
        let by_tags = found.iter().filter(|found| found.rule.is_none());
        positions.extend(by_tags.map(|found| found.row.entry.at));
    }
    Ok(positions)
}

/// Returns a locked key's versions that have expired, or that expire if their tags match, from
/// oldest to newest.
fn versions_that_may_expire<'a>(
    inner: &Inner,
    search: &Search<'a>,
    key: &str,
) -> Result<Vec<Expired<'a>>> {
    let Search { bucket, lifecycle, now_ms, .. } = *search;
    let current = inner.find_certain(bucket, key)?;
    let mut rows = Vec::new();
    scan_versions_of(inner, bucket, key, |row| {
        rows.push(row);
        true
    })?;
    Ok(expired(lifecycle, key, current.as_ref(), rows, now_ms))
}
