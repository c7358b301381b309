//! Reads a key's versions from the sorted keys, and a bucket's versions in listing order.

use crate::clock::Version;
use crate::error::Result;
use crate::index::entry::{Entry, full_key};
use crate::index::keys::not_an_entry;
use crate::index::list::{successor, text};
use crate::index::runs::source::Source;
use crate::index::version_names::{
    VersionName, escape, key_versions, split_version, versions_bucket,
};
use crate::object::{ListVersionsRequest, VersionId};

/// A version in the internal bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VersionRow {
    pub(crate) name: VersionName,
    pub(crate) entry: Entry,
}

impl VersionRow {
    /// Returns `true` if the row is a copy of the current object of its key. A crash, or a full
    /// disk, may leave a copy between the two steps of a replacement.
    pub(crate) fn is_copy_of(&self, current: &Entry) -> bool {
        self.name.id() == current.version_id()
    }
}

/// Calls `take` with the versions of a key in the internal bucket, from newest to oldest, until it
/// returns `false`.
///
/// # Errors
/// An error of the source.
pub(crate) fn scan_versions(
    keys: &mut impl Source,
    bucket: &str,
    key: &str,
    mut take: impl FnMut(VersionRow) -> bool,
) -> Result<()> {
    let start = full_key(&versions_bucket(bucket), &key_versions(key));
    keys.seek(&start)?;
    while let Some((name, value)) = keys.key().zip(keys.value()) {
        let Some(rest) = name.strip_prefix(&*start) else { break };
        let name = VersionName::parse(text(rest)?).ok_or_else(not_an_entry)?;
        let entry = Entry::decode(value).ok_or_else(not_an_entry)?;
        if !take(VersionRow { name, entry }) {
            break;
        }
        keys.advance()?;
    }
    Ok(())
}

#[derive(Debug)]
pub(super) enum Position {
    /// The first version that matches the request.
    Start,
    AfterKey(String),
    AfterPrefix(String),
}

/// Two sources of the same keys: one at a current object, one at an older version in the internal
/// bucket.
pub(super) struct Sources<'a, S> {
    bucket: &'a str,
    /// The internal bucket.
    versions: String,
    current: &'a mut S,
    older: &'a mut S,
}

impl<'a, S: Source> Sources<'a, S> {
    pub(super) fn new(bucket: &'a str, current: &'a mut S, older: &'a mut S) -> Self {
        Self { bucket, versions: versions_bucket(bucket), current, older }
    }

    /// Seeks a position. Returns the key of `after` if its newest version is before the position
    /// and older versions of it may follow.
    pub(super) fn seek<'r>(
        &mut self,
        position: &Position,
        request: &ListVersionsRequest<'r>,
    ) -> Result<Option<&'r str>> {
        match position {
            Position::Start => return self.seek_start(request),
            Position::AfterKey(key) => self.seek_after_key(key)?,
            Position::AfterPrefix(prefix) => self.seek_after_prefix(prefix)?,
        }
        Ok(None)
    }

    fn seek_start<'r>(&mut self, request: &ListVersionsRequest<'r>) -> Result<Option<&'r str>> {
        let after = request.after.unwrap_or("");
        if after < request.prefix {
            self.current.seek(&full_key(self.bucket, request.prefix))?;
            self.older.seek(&full_key(&self.versions, &escape(request.prefix)))?;
        } else if let Some(version) = request.after_version {
            let includes_newest = self.seek_after_version(after, version)?;
            return Ok((!includes_newest).then_some(after));
        } else {
            self.seek_after_key(after)?;
        }
        Ok(None)
    }

    fn seek_after_key(&mut self, key: &str) -> Result<()> {
        let mut from = full_key(self.bucket, key);
        from.push(0);
        self.current.seek(&from)?;
        // The versions of a key follow its encoded form and a zero byte.
        let mut from = full_key(&self.versions, &escape(key));
        from.push(1);
        self.older.seek(&from)
    }

    /// Seeks a key's versions that are older than the given one. Returns `true` if they include the
    /// newest version.
    fn seek_after_version(&mut self, key: &str, version: VersionId) -> Result<bool> {
        let name = self.name_of(key, version)?;
        let all = full_key(&self.versions, &key_versions(key));
        self.older.seek(&all)?;
        self.current.seek(&full_key(self.bucket, key))?;
        let has_current = self.current_key()?.as_deref() == Some(key);
        let includes_newest = if has_current {
            let current = self.current_entry()?;
            match name {
                Some(name) if current.is_versioned => current.version < name.version,
                // The version of an object without an ID is rounded to milliseconds.
                Some(name) => current.version.millis() < name.version.millis(),
                None => current.is_versioned,
            }
        } else {
            let newest = self.older_key()?.filter(|(newest, _)| newest == key);
            let is_behind =
                |name: VersionName| newest.is_some_and(|it| it.1.version < name.version);
            name.is_none_or(is_behind)
        };
        if has_current && !includes_newest {
            self.current.advance()?;
        }
        if let Some(name) = name {
            let mut from = full_key(&self.versions, &name.key_in_bucket(key));
            from.push(0);
            self.older.seek(&from)?;
        }
        Ok(includes_newest)
    }

    /// Returns the name that a version has or had in the internal bucket. The name of the version
    /// `null` is unknown unless the internal bucket has it.
    fn name_of(&mut self, key: &str, version: VersionId) -> Result<Option<VersionName>> {
        let mut name = None;
        match version {
            VersionId::Id(id) => {
                name = Some(VersionName { version: Version(id), is_null: false });
            }
            VersionId::Null => scan_versions(self.older, self.bucket, key, |row| {
                name = Some(row.name).filter(|name| name.is_null);
                name.is_none()
            })?,
        }
        Ok(name)
    }

    fn seek_after_prefix(&mut self, prefix: &str) -> Result<()> {
        for (source, bucket, prefix) in [
            (&mut *self.current, self.bucket, prefix),
            (&mut *self.older, &*self.versions, &*escape(prefix)),
        ] {
            let next = successor(&full_key(bucket, prefix)).ok_or_else(not_an_entry)?;
            source.seek(&next)?;
        }
        Ok(())
    }

    /// Returns the smaller of both sources' keys.
    pub(super) fn next_key(&self) -> Result<Option<String>> {
        let older = self.older_key()?.map(|(key, _)| key);
        Ok(match (self.current_key()?, older) {
            (Some(current), Some(older)) => Some(older.min(current)),
            (current, older) => current.or(older),
        })
    }

    /// Returns a key's current object and moves past it, if it is next in its source.
    pub(super) fn take_current(&mut self, key: &str) -> Result<Option<Entry>> {
        if self.current_key()?.as_deref() != Some(key) {
            return Ok(None);
        }
        let entry = self.current_entry()?;
        self.current.advance()?;
        Ok(Some(entry))
    }

    /// Returns a key's next older version.
    pub(super) fn take_older(&mut self, key: &str) -> Result<Option<VersionRow>> {
        let name = self.older_key()?.filter(|(next, _)| next == key);
        let Some((_, name)) = name else { return Ok(None) };
        let entry = self.older.value().and_then(Entry::decode).ok_or_else(not_an_entry)?;
        self.older.advance()?;
        Ok(Some(VersionRow { name, entry }))
    }

    fn current_key(&self) -> Result<Option<String>> {
        let start = full_key(self.bucket, "");
        let key = self.current.key().and_then(|name| name.strip_prefix(&*start));
        key.map(|key| Ok(text(key)?.to_owned())).transpose()
    }

    fn older_key(&self) -> Result<Option<(String, VersionName)>> {
        let start = full_key(&self.versions, "");
        let name = self.older.key().and_then(|name| name.strip_prefix(&*start));
        name.map(|name| split_version(text(name)?).ok_or_else(not_an_entry)).transpose()
    }

    fn current_entry(&self) -> Result<Entry> {
        self.current.value().and_then(Entry::decode).ok_or_else(not_an_entry)
    }
}
