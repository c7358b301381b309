//! Retains a key's current object before it is replaced or deleted.

use crate::clock::Version;
use crate::error::{Error, Result};
use crate::format::{Head, Kind};
use crate::index::entry::{Change, Entry, Replaced};
use crate::index::quotas::Reserved;
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::{VersionRow, scan_versions};
use crate::inner::Inner;
use crate::needles::apply::{AppendedRecord, Pending};
use crate::needles::stored::{append_stored, read_stored};
use crate::object::Versioning;

/// The bytes that are read ahead in a run for one key's versions.
const READAHEAD_BYTES: usize = 16 << 10;

/// Retains a key's current object before it is replaced or deleted, unless the new version has the
/// same ID `null`. The caller has locked the key; `reserved` is its reservation. Returns the
/// tombstones for versions that the new version replaces; the caller appends them in the new
/// version's record.
///
/// # Errors
/// [`Error::Damaged`] if the current object cannot be read, or while damage may hide a newer state
/// of the key; [`Error::Full`].
///
/// # Durability
/// The copy survives a power cut when this returns. If the caller then fails, or the machine
/// crashes, the internal bucket has a copy of the current object, which listings and later changes
/// of the key recognize by its ID.
pub(crate) fn retain_current(
    inner: &Inner,
    bucket: &str,
    key: &str,
    current: Option<&Entry>,
    versioning: Versioning,
    reserved: &Reserved,
) -> Result<Vec<Change>> {
    let names = (bucket, key);
    let append =
        |records: &mut _| append_copy(inner, names, current, versioning, reserved, records);
    inner.finish(Pending::start(append))
}

/// Appends the copy of an object that [`retain_current`] retains, and adds the record to `records`.
/// The caller may append the new version before the copy is durable: after a crash the log has a
/// prefix of its records.
pub(crate) fn append_copy(
    inner: &Inner,
    (bucket, key): (&str, &str),
    current: Option<&Entry>,
    versioning: Versioning,
    reserved: &Reserved,
    records: &mut Vec<AppendedRecord>,
) -> Result<Vec<Change>> {
    if versioning == Versioning::Off {
        return Ok(Vec::new());
    }
    // A state of the key that damage hides, and that its file may restore, must be retained, too.
    inner.check_doubt(bucket, key, current.map(|entry| entry.at.lsn))?;
    if current.is_some_and(|it| it.is_versioned || versioning == Versioning::Enabled) {
        records.extend(retain_version(inner, bucket, key, reserved)?);
    }
    if versioning == Versioning::Enabled {
        return Ok(Vec::new());
    }
    let mut tombstones = Vec::new();
    scan_versions_of(inner, bucket, key, |row| {
        if row.name.is_null {
            tombstones.push(version_tombstone(inner, bucket, key, row));
        }
        true
    })?;
    Ok(tombstones)
}

fn retain_version(
    inner: &Inner,
    bucket: &str,
    key: &str,
    reserved: &Reserved,
) -> Result<Option<AppendedRecord>> {
    let stored = read_stored(inner, bucket, key)?;
    let (version, is_null) = (stored.entry.version, !stored.entry.is_versioned);
    let (versions, name) =
        (versions_bucket(bucket), VersionName { version, is_null }.key_in_bucket(key));
    if inner.find(&versions, &name)?.is_some() {
        // An earlier replacement failed after this step.
        return Ok(None);
    }
    let copy = reserved.copy(stored.entry.bytes);
    append_stored(inner, &stored, (&versions, &name), None, Vec::new(), copy).map(Some)
}

/// Calls `take` with the versions of a key in the internal bucket, from newest to oldest, until it
/// returns `false`.
///
/// # Errors
/// [`Error::Damaged`] while damage may hide versions, or if a run is damaged.
pub(crate) fn scan_versions_of(
    inner: &Inner,
    bucket: &str,
    key: &str,
    take: impl FnMut(VersionRow) -> bool,
) -> Result<()> {
    let index = inner.keyspace.index.read();
    if let Some(error) = index.any_possible_corruption() {
        return Err(error);
    }
    let keys = index.keys.snapshot();
    drop(index);
    let scanned = scan_versions(&mut keys.merged(READAHEAD_BYTES), bucket, key, take);
    scanned.map_err(|error: Error| inner.note_index_damage(error))
}

/// Returns the version for a new object or delete marker of a locked key, whose present object is
/// `current`: greater than all other versions of the key. A read is needed only if versions lie in
/// the future ([`crate::clock::Clock::next_for_key`]) and the key has no current object.
///
/// # Errors
/// Fails like [`scan_versions_of`].
pub(crate) fn next_version(
    inner: &Inner,
    bucket: &str,
    key: &str,
    current: Option<&Entry>,
    versioning: Versioning,
) -> Result<Version> {
    let clock = &inner.keyspace.clock;
    if versioning == Versioning::Off {
        // Nothing orders the successive objects of a key by their versions.
        return Ok(clock.next_for_key(None));
    }
    let mut newest = current.map(|entry| entry.version);
    if newest.is_none() && clock.has_future_versions() {
        scan_versions_of(inner, bucket, key, |row| {
            newest = Some(row.name.version);
            false
        })?;
    }
    Ok(clock.next_for_key(newest))
}

/// Returns a tombstone for a version in the internal bucket.
pub(crate) fn version_tombstone(inner: &Inner, bucket: &str, key: &str, row: VersionRow) -> Change {
    let name = row.name.key_in_bucket(key);
    tombstone(inner, &versions_bucket(bucket), &name, Some(row.entry))
}

pub(crate) fn tombstone(inner: &Inner, bucket: &str, key: &str, replaces: Option<Entry>) -> Change {
    let mut head = Head::new(Kind::Tombstone, bucket, key);
    head.version = inner.keyspace.clock.next();
    let replaces = replaces.map(Replaced::from);
    Change { head, replaces, reserved: Reserved::nothing(), event: None }
}

#[cfg(test)]
mod tests {
    use super::{Reserved, retain_current};
    use crate::{
        Attributes, ListVersionsRequest, Options, Precondition, Store, VersionId, VersionListEntry,
        Versioning,
    };

    /// Returns a store whose bucket has an object "key", and a copy of it among its versions, as a
    /// crash leaves it between the two steps of a replacement.
    fn with_copy(versioning: Versioning) -> (tempfile::TempDir, Store, VersionId) {
        let dir = tempfile::tempdir().unwrap();
        let options =
            Options { volume_bytes: 4 << 20, big_object_bytes: 64 << 10, ..Options::default() };
        let (store, _) = Store::open(dir.path(), options).unwrap();
        store.create_bucket("bucket").unwrap();
        store.set_versioning("bucket", versioning).unwrap();
        let id = put(&store, b"first");
        let current = store.inner.find("bucket", "key").unwrap();
        store.set_versioning("bucket", Versioning::Enabled).unwrap();
        let enabled = Versioning::Enabled;
        let reserved = Reserved::nothing();
        let retained =
            retain_current(&store.inner, "bucket", "key", current.as_ref(), enabled, &reserved);
        retained.unwrap();
        assert_eq!((store.stats().objects, store.stats().versions), (1, 1));
        assert_eq!(ids(&store), [id]);
        (dir, store, id)
    }

    fn put(store: &Store, bytes: &[u8]) -> VersionId {
        let none = Attributes::new();
        store.put("bucket", "key", bytes, &none, &Precondition::None).unwrap().version_id
    }

    fn ids(store: &Store) -> Vec<VersionId> {
        let request = ListVersionsRequest { limit: 10, ..ListVersionsRequest::default() };
        let page = store.list_versions("bucket", &request).unwrap();
        let id = |entry| match entry {
            VersionListEntry::Version(version) => version.info.version_id,
            VersionListEntry::Prefix(prefix) => panic!("{prefix}"),
        };
        page.entries.into_iter().map(id).collect()
    }

    #[test]
    fn copy_of_the_current_object_becomes_its_version() {
        for versioning in [Versioning::Enabled, Versioning::Suspended] {
            let (_dir, store, first) = with_copy(versioning);
            let records = store.stats().log_records;
            let second = put(&store, b"second");
            assert_eq!(ids(&store), [second, first]);
            assert_eq!(store.stats().log_records, records + 1, "it is not written again");
        }
    }

    #[test]
    fn copy_of_the_current_object_is_deleted_with_it() {
        for versioning in [Versioning::Enabled, Versioning::Suspended] {
            let (_dir, store, first) = with_copy(versioning);
            assert!(store.delete_object("bucket", "key", Some(first)).unwrap().existed);
            assert_eq!((store.stats().objects, store.stats().versions), (0, 0));
        }
    }

    #[test]
    fn new_attributes_replace_those_of_the_copy() {
        for versioning in [Versioning::Enabled, Versioning::Suspended] {
            let (_dir, store, first) = with_copy(versioning);
            let tags = Attributes::from_iter([("tag", "new")]);
            let change = |attributes: &mut Attributes| {
                attributes.set("tag", "new");
                Ok(())
            };
            store.update_attributes("bucket", "key", None, &change).unwrap();
            assert_eq!(store.stats().versions, 0);
            put(&store, b"second");
            assert_eq!(store.get_version("bucket", "key", first).unwrap().attributes, tags);
        }
    }

    #[test]
    fn suspended_put_replaces_the_version_null_and_its_copy() {
        let (_dir, store, _) = with_copy(Versioning::Suspended);
        store.set_versioning("bucket", Versioning::Suspended).unwrap();
        assert_eq!(put(&store, b"second"), VersionId::Null);
        assert_eq!((ids(&store), store.stats().versions), (vec![VersionId::Null], 0));
    }
}
