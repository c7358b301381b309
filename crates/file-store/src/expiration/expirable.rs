//! Lists what a sweep would delete, without deleting it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use haul_append_log::Position;

use crate::error::Result;
use crate::expiration::config::lifecycle_rules;
use crate::expiration::expire::expired_entry;
use crate::expiration::page::Search;
use crate::expiration::sweep::expired_page;
use crate::expiration::tags::read_tags;
use crate::expiration::tags::{KnownTags, sort};
use crate::expiration::uploads::StaleUpload;
use crate::expiration::uploads::stale_uploads;
use crate::expiration::versions::delete::{expired_versions, version_tag_positions};
use crate::expiration::versions::list::VersionScan;
use crate::expiration::versions::list::keys_with_expired_versions;
use crate::index::entry::Entry;
use crate::inner::Inner;
use crate::lifecycle::report::SweepReport;
use crate::lifecycle::rules::{Lifecycle, LifecycleRule};
use crate::lifecycle::tags::ObjectTags;
use crate::object::{ObjectInfo, Versioning};

/// An object, version or upload that a sweep would delete now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpiredEntry {
    /// An expired object.
    Object {
        /// The key, length, modification time and hash.
        info: ObjectInfo,
        /// The rule's ID.
        rule: String,
    },
    /// An expired noncurrent version, or an expired delete marker.
    Version {
        /// The key, version ID, length, modification time and hash.
        info: ObjectInfo,
        /// `true` for a delete marker.
        is_delete_marker: bool,
        /// The rule's ID.
        rule: String,
    },
    /// A stale upload.
    Upload {
        /// The upload's ID: 32 hexadecimal digits.
        id: String,
        /// The upload's key.
        key: String,
        /// The upload's start time.
        started: SystemTime,
        /// The rule's ID.
        rule: String,
    },
}

/// See [`crate::Store::expirable`].
pub(super) fn expirable(
    inner: &Inner,
    bucket: &str,
    visit: &mut dyn FnMut(ExpiredEntry) -> bool,
) -> Result<SweepReport> {
    let rules = lifecycle_rules(inner, bucket)?;
    let lifecycle = &rules.lifecycle;
    let now_ms = inner.keyspace.clock.now_ms();
    let search = Search { bucket, prefix: "", lifecycle, now_ms };
    let mut report = SweepReport::default();
    for prefix in lifecycle.prefixes(now_ms) {
        let search = Search { prefix, ..search };
        let mut after: Option<String> = None;
        loop {
            let page = expired_page(inner, &search, after.as_deref())?;
            report.scanned_keys += page.scanned_keys;
            let positions = page.tag_positions();
            let known = tags_at(inner, lifecycle, positions, &mut report);
            for candidate in search.matching(page.candidates, &known) {
                let locked = inner.keyspace.keys.lock(bucket, &candidate.key);
                let entry = expired_entry(inner, &search, &candidate, &known, &mut report)?;
                drop(locked);
                let Some(entry) = entry else { continue };
                report.expired_objects += 1;
                report.expired_bytes += entry.bytes;
                if !visit(object(lifecycle, &candidate.key, &entry, &known)) {
                    return Ok(report);
                }
            }
            after = page.next_after;
            if after.is_none() {
                break;
            }
        }
    }
    for stale in stale_uploads(inner, &search, &mut report) {
        report.aborted_uploads += 1;
        if !visit(upload(lifecycle, stale)) {
            return Ok(report);
        }
    }
    expirable_versions(inner, &search, &mut report, visit)?;
    Ok(report)
}

fn expirable_versions(
    inner: &Inner,
    search: &Search<'_>,
    report: &mut SweepReport,
    visit: &mut dyn FnMut(ExpiredEntry) -> bool,
) -> Result<()> {
    let Search { bucket, lifecycle, now_ms, .. } = *search;
    if inner.keyspace.versioning(bucket)? == Versioning::Off {
        return Ok(());
    }
    for prefix in lifecycle.version_prefixes(now_ms) {
        let search = Search { prefix, ..*search };
        let mut scan = VersionScan::default();
        while !scan.is_complete() {
            let keys = keys_with_expired_versions(inner, &search, &mut scan)?;
            let positions = version_tag_positions(inner, &search, &keys)?;
            let known = tags_at(inner, lifecycle, positions, report);
            for key in keys {
                let locked = inner.keyspace.keys.lock(bucket, &key);
                let expired = expired_versions(inner, &search, &key, &known, report)?;
                drop(locked);
                for (row, rule) in expired {
                    report.expired_versions += 1;
                    report.expired_bytes += row.entry.bytes;
                    let info = row.entry.info(&key);
                    let is_delete_marker = row.entry.is_delete_marker();
                    let rule = rule.id.clone();
                    if !visit(ExpiredEntry::Version { info, is_delete_marker, rule }) {
                        return Ok(());
                    }
                }
            }
        }
    }
    Ok(())
}

fn tags_at(
    inner: &Inner,
    lifecycle: &Lifecycle,
    mut positions: Vec<Position>,
    report: &mut SweepReport,
) -> KnownTags {
    let mut known = KnownTags::default();
    sort(&mut positions);
    read_tags(inner, lifecycle, &positions, &mut known, report);
    known
}

fn object(lifecycle: &Lifecycle, key: &str, entry: &Entry, known: &KnownTags) -> ExpiredEntry {
    let stored_ms = entry.version.millis();
    // Tags that were not needed are not known.
    let tags = match known.at(entry.at) {
        ObjectTags::Unknown => ObjectTags::none(),
        known => known,
    };
    let rule = id(lifecycle.expires_ms(key, entry.bytes, stored_ms, tags));
    ExpiredEntry::Object { info: entry.info(key), rule }
}

fn upload(lifecycle: &Lifecycle, stale: StaleUpload) -> ExpiredEntry {
    let StaleUpload { key, id: upload, started_ms } = stale;
    let rule = id(lifecycle.upload_expires_ms(&key, started_ms));
    let started = UNIX_EPOCH + Duration::from_millis(started_ms);
    ExpiredEntry::Upload { id: format!("{upload:032x}"), key, started, rule }
}

fn id<T>(found: Option<(T, &LifecycleRule)>) -> String {
    found.map_or_else(String::new, |(_, rule)| rule.id.clone())
}
