//! Deletes objects and versions in buckets with versions.

use std::collections::HashSet;

use haul_append_log::SpacePriority;

use crate::clock::Version;
use crate::deletion::request::Deletion;
use crate::error::Result;
use crate::events::append::event_changes;
use crate::format::{Head, Kind};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::keys::check_key;
use crate::needles::apply::{AppendedRecord, Pending};
use crate::needles::stored::{append_stored, read_stored};
use crate::object::{Attributes, Deleted, ObjectInfo, VersionId, Versioning};
use crate::object_lock::check::check_unlocked;
use crate::versions::retain::{
    append_copy, next_version, scan_versions_of, tombstone, version_tombstone,
};

/// The versions to delete from a key, and the newest one that stays.
#[derive(Debug, Default)]
struct Neighbours {
    /// The versions to delete, including the current object's copy if the current object is
    /// deleted.
    wanted: Vec<VersionRow>,
    /// The newest version that stays; `None` if a current object is newer.
    next: Option<VersionRow>,
}

/// Starts to retain the current object of a locked key and to create a delete marker.
///
/// 1. Appends the copy of the current object.
/// 2. Appends as one record the marker, the current object's tombstone, and tombstones for versions
///    that the marker replaces. After a crash the log has all of them or none, and only with the
///    copy.
pub(crate) fn start_marker(
    inner: &Inner,
    bucket: &str,
    deletion: &Deletion<'_>,
    versioning: Versioning,
) -> Pending<Deleted> {
    Pending::start(|records| append_marker(inner, bucket, deletion, versioning, records))
}

fn append_marker(
    inner: &Inner,
    bucket: &str,
    deletion: &Deletion<'_>,
    versioning: Versioning,
    records: &mut Vec<AppendedRecord>,
) -> Result<Deleted> {
    let key = deletion.key;
    // No object can have another key, and listings do not show its marker.
    check_key(key)?;
    let current = inner.find(bucket, key)?;
    let existed = current.is_some();
    if let Some(entry) = &current {
        deletion.check(|| entry.info(key))?;
    }
    let version = next_version(inner, bucket, key, current.as_ref(), versioning)?;
    // A deletion is never rejected: it is how a user makes room.
    let reserved = inner.keyspace.track(bucket);
    let names = (bucket, key);
    let mut others = append_copy(inner, names, current.as_ref(), versioning, &reserved, records)?;
    if existed {
        others.push(tombstone(inner, bucket, key, current));
    }
    let is_versioned = versioning == Versioning::Enabled;
    let name = VersionName { version, is_null: !is_versioned };
    let mut head = Head::new(Kind::Object, &versions_bucket(bucket), &name.key_in_bucket(key));
    (head.version, head.is_versioned) = (version, is_versioned);
    let encoded = head.encode(&Attributes::new());
    let info = || ObjectInfo { key: key.to_owned(), ..head.info() };
    others.extend(event_changes(inner, deletion.event, bucket, info));
    let ticket = inner.append_with(&encoded, &[], &others, SpacePriority::Ordinary)?;
    let marker = Change { head, replaces: None, reserved, event: None };
    let changes = std::iter::once(marker).chain(others).collect();
    records.push(AppendedRecord { changes, ticket });
    Ok(Deleted { existed, version_id: Some(name.id()), is_delete_marker: true })
}

/// Appends one record that deletes different versions of a locked key. If it deletes the newest
/// version, the record also makes the newest remaining version current. The versions in `absent`
/// are known not to exist.
pub(super) fn append_version_deletions(
    inner: &Inner,
    (bucket, key): (&str, &str),
    deletions: &[&Deletion<'_>],
    absent: &HashSet<(&str, VersionId)>,
    records: &mut Vec<AppendedRecord>,
) -> Result<Vec<Result<Deleted>>> {
    let ids = deletions.iter().filter_map(|deletion| deletion.version);
    let wanted: HashSet<VersionId> = ids.filter(|id| !absent.contains(&(key, *id))).collect();
    if wanted.is_empty() {
        return Ok(deletions.iter().map(|_| Ok(Deleted::default())).collect());
    }
    let current = inner.find_certain(bucket, key)?;
    let Neighbours { wanted: rows, next } =
        neighbours(inner, bucket, key, &wanted, current.as_ref())?;
    let (mut accepted, mut events) = (HashSet::new(), Vec::new());
    let delete = |deletion: &&Deletion<'_>| {
        let id = deletion.version.filter(|id| wanted.contains(id));
        let is_it = |entry: &&Entry| Some(entry.version_id()) == id;
        let row = rows.iter().find(|row| Some(row.name.id()) == id).map(|row| &row.entry);
        // A copy of the current object has the same attributes.
        let Some(entry) = current.as_ref().filter(is_it).or(row) else {
            return Ok(Deleted::default());
        };
        let is_delete_marker = entry.is_delete_marker();
        if !is_delete_marker {
            deletion.check(|| entry.info(key))?;
        }
        check_unlocked(inner, bucket, key, entry, deletion.bypass_governance)?;
        accepted.extend(id);
        events.extend(event_changes(inner, deletion.event, bucket, || entry.info(key)));
        Ok(Deleted { existed: true, version_id: id, is_delete_marker })
    };
    let outcomes: Vec<Result<Deleted>> = deletions.iter().map(delete).collect();
    if !accepted.is_empty() {
        let found = Neighbours { wanted: rows, next };
        records.push(append_accepted(inner, (bucket, key), current, found, &accepted, events)?);
    }
    Ok(outcomes)
}

/// Appends the record that deletes the accepted versions.
fn append_accepted(
    inner: &Inner,
    (bucket, key): (&str, &str),
    current: Option<Entry>,
    found: Neighbours,
    accepted: &HashSet<VersionId>,
    events: Vec<Change>,
) -> Result<AppendedRecord> {
    let is_accepted = |id: VersionId| accepted.contains(&id);
    let stays = current.as_ref().is_some_and(|current| !is_accepted(current.version_id()));
    let current = current.filter(|_| !stays);
    let (deleted, refused): (Vec<_>, Vec<_>) =
        found.wanted.into_iter().partition(|row| is_accepted(row.name.id()));
    let mut tombstones: Vec<Change> =
        deleted.into_iter().map(|row| version_tombstone(inner, bucket, key, row)).collect();
    let next = refused.into_iter().chain(found.next).max_by_key(|row| row.name.version);
    tombstones.extend(events);
    match next.filter(|next| !stays && !next.entry.is_delete_marker()) {
        Some(next) => {
            let name = next.name.key_in_bucket(key);
            let stored = read_stored(inner, &versions_bucket(bucket), &name)?;
            tombstones.push(version_tombstone(inner, bucket, key, next));
            let replaces = current.map(Replaced::from);
            let moves = Reserved::nothing();
            append_stored(inner, &stored, (bucket, key), replaces, tombstones, moves)
        }
        None => {
            if current.is_some() {
                tombstones.push(tombstone(inner, bucket, key, current));
            }
            inner.append_heads(tombstones, SpacePriority::Reserve)
        }
    }
}

/// Finds the wanted versions of a key, and the newest of its other versions.
fn neighbours(
    inner: &Inner,
    bucket: &str,
    key: &str,
    wanted: &HashSet<VersionId>,
    current: Option<&Entry>,
) -> Result<Neighbours> {
    let mut found = Neighbours::default();
    let current_id = current.map(Entry::version_id);
    let stays = current_id.is_some_and(|id| !wanted.contains(&id));
    let mut wants_null = wanted.contains(&VersionId::Null);
    if stays && !wants_null {
        for name in ids_of(wanted).map(|id| VersionName { version: id, is_null: false }) {
            let entry = inner.find_certain(&versions_bucket(bucket), &name.key_in_bucket(key))?;
            found.wanted.extend(entry.map(|entry| VersionRow { name, entry }));
        }
        return Ok(found);
    }
    // A copy of the current object is the first row, because it is the newest version.
    wants_null &= current_id != Some(VersionId::Null);
    let others = ids_of(wanted).filter(|id| current_id != Some(VersionId::Id(id.0)));
    let oldest = others.min().unwrap_or(Version(u64::MAX));
    scan_versions_of(inner, bucket, key, |row| {
        let version = row.name.version;
        if wanted.contains(&row.name.id()) {
            wants_null &= !row.name.is_null;
            found.wanted.push(row);
        } else if !stays && found.next.is_none() {
            found.next = Some(row);
        }
        let has_next = stays || found.next.is_some();
        let has_wanted = !wants_null && version <= oldest;
        !(has_next && has_wanted)
    })?;
    Ok(found)
}

/// Returns the wanted versions except `null`.
fn ids_of(wanted: &HashSet<VersionId>) -> impl Iterator<Item = Version> {
    wanted.iter().filter_map(|id| match id {
        VersionId::Id(id) => Some(Version(*id)),
        VersionId::Null => None,
    })
}
