//! Deletion of objects and versions in buckets with versions.

use haul_append_log::Room;

use crate::clock::Version;
use crate::counters::Counters;
use crate::deletion::request::Deletion;
use crate::error::Result;
use crate::format::Kind;
use crate::index::entry::{Entry, Replaced};
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::object::{Attributes, Deleted, VersionId, Versioning};

/// The versions that the deletion of one of them depends on.
#[derive(Debug, Default)]
struct Neighbours {
    /// The version to delete, and its copy if it is the current object.
    deleted: Vec<VersionRow>,
    /// The newest version that stays, if it is older than the deleted one.
    next: Option<VersionRow>,
}

/// The newest version of a key, as far as the current object determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Newer {
    /// The current object, which is the version to delete.
    Itself,
    /// The current object, which is another version.
    Current,
    /// There is no current object.
    Unknown,
}

impl Inner {
    /// Retains the current object of a locked key, and creates a delete marker.
    ///
    /// 1. Retains the current object.
    /// 2. Appends the marker, the tombstone of the current object, and those of versions that the
    ///    marker replaces as one record. After a crash the log has all of them or none.
    pub(crate) fn delete_current(
        &self,
        bucket: &str,
        deletion: &Deletion<'_>,
        versioning: Versioning,
    ) -> Result<Deleted> {
        let key = deletion.key;
        let current = self.find(bucket, key)?;
        let existed = current.is_some();
        if let Some(entry) = &current {
            deletion.check(|| entry.info(key))?;
        }
        let mut ends = self.retain_current(bucket, key, current.as_ref(), versioning)?;
        if existed {
            ends.push(self.end_of(bucket, key, current));
        }
        let version = self.clock.next();
        let is_versioned = versioning == Versioning::Enabled;
        let name = VersionName { version, is_null: !is_versioned };
        let mut head = self.head(Kind::Object, &versions_bucket(bucket), &name.of_key(key));
        (head.version, head.is_versioned) = (version, is_versioned);
        let encoded = head.encode(&Attributes::new());
        let at = self.append_with_ends(&encoded, &[], &ends, Room::Ordinary)?.wait()?;
        self.apply(std::iter::once(head.into()).chain(ends).collect(), at);
        Counters::count(&self.counters.deletes);
        Ok(Deleted { existed, version_id: Some(name.id()), is_delete_marker: true })
    }

    /// Deletes a version of a locked key. If it was the newest one, the next older one becomes
    /// current, in the same record.
    pub(super) fn delete_version(
        &self,
        bucket: &str,
        deletion: &Deletion<'_>,
        version: VersionId,
    ) -> Result<Deleted> {
        let key = deletion.key;
        let current = self.find_certain(bucket, key)?;
        let is_current = current.as_ref().is_some_and(|it| it.version_id() == version);
        let newer = match current.is_some() {
            true if is_current => Newer::Itself,
            true => Newer::Current,
            false => Newer::Unknown,
        };
        let Neighbours { deleted, next } = self.neighbours(bucket, key, version, newer)?;
        if deleted.is_empty() && !is_current {
            return Ok(Deleted::default());
        }
        match (&current, deleted.first()) {
            (Some(entry), _) if is_current => deletion.check(|| entry.info(key))?,
            (_, Some(row)) if !is_marker(&row.entry) => deletion.check(|| row.entry.info(key))?,
            _ => {}
        }
        // A copy of the current object has the same attributes.
        let removed = current.as_ref().filter(|_| is_current);
        if let Some(entry) = removed.or(deleted.first().map(|row| &row.entry)) {
            self.check_unlocked(bucket, key, entry, deletion.bypass_governance)?;
        }
        let is_delete_marker = !is_current && deleted.iter().any(|row| is_marker(&row.entry));
        let mut ends: Vec<_> =
            deleted.into_iter().map(|row| self.end_of_version(bucket, key, row)).collect();
        match next.filter(|next| !is_marker(&next.entry)) {
            Some(next) => {
                let name = next.name.of_key(key);
                let stored = self.read_stored(&versions_bucket(bucket), &name)?;
                ends.push(self.end_of_version(bucket, key, next));
                let replaces = current.map(Replaced::from);
                self.append_stored(&stored, (bucket, key), replaces, ends)?;
            }
            None => {
                if is_current {
                    ends.push(self.end_of(bucket, key, current));
                }
                self.commit_heads(ends, Room::Reserve)?;
            }
        }
        Counters::count(&self.counters.deletes);
        Ok(Deleted { existed: true, version_id: Some(version), is_delete_marker })
    }

    /// Finds a version of a key, and the one that is the newest without it.
    fn neighbours(
        &self,
        bucket: &str,
        key: &str,
        version: VersionId,
        newer: Newer,
    ) -> Result<Neighbours> {
        let mut found = Neighbours::default();
        if let (VersionId::Id(id), Newer::Current) = (version, newer) {
            let name = VersionName { version: Version(id), is_null: false };
            let entry = self.find_certain(&versions_bucket(bucket), &name.of_key(key))?;
            found.deleted.extend(entry.map(|entry| VersionRow { name, entry }));
            return Ok(found);
        }
        self.scan_versions_of(bucket, key, |row| {
            let is_older = matches!(version, VersionId::Id(id) if row.name.version.0 < id);
            if row.name.id() == version {
                found.deleted.push(row);
            } else if newer != Newer::Current && found.next.is_none() {
                found.next = Some(row);
            }
            let has_next = newer == Newer::Current || found.next.is_some();
            // A copy of the current object is the first row, because it is the newest version.
            let has_deleted = newer == Newer::Itself || is_older || !found.deleted.is_empty();
            !(has_next && has_deleted)
        })?;
        Ok(found)
    }
}

fn is_marker(entry: &Entry) -> bool {
    entry.is_delete_marker()
}
