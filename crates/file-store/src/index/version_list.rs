//! The versions of a key, and pages of listings of versions, computed from the sorted keys.

use crate::error::Result;
use crate::index::entry::{Entry, full_key};
use crate::index::keys::not_an_entry;
use crate::index::list::{folded_end, successor, text};
use crate::index::runs::source::Source;
use crate::index::version_names::{
    VersionName, escape, key_versions, split_version, versions_bucket,
};
use crate::object::{
    ListVersionsRequest, VersionId, VersionInfo, VersionListEntry, VersionListPage,
};

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
/// Those of the source.
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

/// The two sources of a listing of versions.
struct Sources<'a, S> {
    bucket: &'a str,
    /// The internal bucket.
    versions: String,
    current: &'a mut S,
    older: &'a mut S,
}

/// Returns the page of the versions of a bucket that `request` describes. `current` and `older` are
/// two sources of the same keys.
pub(crate) fn list_versions<S: Source>(
    current: &mut S,
    older: &mut S,
    bucket: &str,
    request: &ListVersionsRequest<'_>,
) -> Result<VersionListPage> {
    let mut page = VersionListPage::default();
    if request.limit == 0 {
        return Ok(page);
    }
    let after = request.after.unwrap_or("");
    let mut sources = Sources { bucket, versions: versions_bucket(bucket), current, older };
    let includes_newest = sources.seek(request)?;
    // The key whose newest version was listed.
    let mut listed = request.after_version.filter(|_| !includes_newest).map(|_| after.to_owned());
    let mut newest: Option<Entry> = None;
    loop {
        let (current, older) = (sources.current_key()?, sources.older_key()?);
        let is_current = match (&current, &older) {
            (Some(current), Some((older, _))) => current <= older,
            (current, _) => current.is_some(),
        };
        let Some(key) = (if is_current { current } else { older.as_ref().map(|o| o.0.clone()) })
        else {
            break;
        };
        let Some(rest) = key.strip_prefix(request.prefix) else { break };
        let folded = folded_end(rest.as_bytes(), request.delimiter)
            .map(|end| &key[..request.prefix.len() + end]);
        if let Some(folded) = folded {
            if folded > after {
                if page.entries.len() == request.limit {
                    page.more = true;
                    break;
                }
                page.entries.push(VersionListEntry::Prefix(folded.to_owned()));
            }
            sources.seek_behind_prefix(folded)?;
            continue;
        }
        let is_latest = listed.as_ref() != Some(&key);
        let (entry, name) = match (is_current, older) {
            (false, Some((_, name))) => (sources.older_entry()?, Some(name)),
            _ => (sources.current_entry()?, None),
        };
        let is_copy = name.is_some_and(|name| {
            let row = VersionRow { name, entry: entry.clone() };
            !is_latest && newest.as_ref().is_some_and(|newest| row.is_copy_of(newest))
        });
        if !is_copy {
            if page.entries.len() == request.limit {
                page.more = true;
                break;
            }
            page.entries.push(VersionListEntry::Version(VersionInfo {
                info: entry.info(&key),
                is_latest,
                is_delete_marker: name.is_some() && entry.is_delete_marker(),
            }));
        }
        if is_latest {
            newest = is_current.then_some(entry);
        }
        listed = Some(key);
        sources.advance(is_current)?;
    }
    Ok(page)
}

impl<S: Source> Sources<'_, S> {
    /// Seeks the first version that the request describes. Returns `true` if this is the newest
    /// version of the key in `after`: all versions up to that in `after_version` were deleted since
    /// the previous page.
    fn seek(&mut self, request: &ListVersionsRequest<'_>) -> Result<bool> {
        let after = request.after.unwrap_or("");
        if after < request.prefix {
            self.current.seek(&full_key(self.bucket, request.prefix))?;
            self.older.seek(&full_key(&self.versions, &escape(request.prefix)))?;
            return Ok(false);
        }
        if let Some(version) = request.after_version {
            return self.seek_behind_version(after, version);
        }
        let mut from = full_key(self.bucket, after);
        from.push(0);
        self.current.seek(&from)?;
        // The versions of a key follow its encoded form and a zero byte.
        let mut from = full_key(&self.versions, &escape(after));
        from.push(1);
        self.older.seek(&from)?;
        Ok(false)
    }

    /// Seeks the versions of a key that are older than the given one. Returns `true` if the newest
    /// version is one of them.
    fn seek_behind_version(&mut self, key: &str, version: VersionId) -> Result<bool> {
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
            let mut from = full_key(&self.versions, &name.of_key(key));
            from.push(0);
            self.older.seek(&from)?;
        }
        Ok(includes_newest)
    }

    /// Returns the name that a version has or had in the internal bucket. The name of the version
    /// `null` is unknown while it is not there.
    fn name_of(&mut self, key: &str, version: VersionId) -> Result<Option<VersionName>> {
        let mut name = None;
        match version {
            VersionId::Id(id) => {
                name = Some(VersionName { version: crate::clock::Version(id), is_null: false });
            }
            VersionId::Null => scan_versions(self.older, self.bucket, key, |row| {
                name = Some(row.name).filter(|name| name.is_null);
                name.is_none()
            })?,
        }
        Ok(name)
    }

    fn seek_behind_prefix(&mut self, prefix: &str) -> Result<()> {
        for (source, bucket, prefix) in [
            (&mut *self.current, self.bucket, prefix),
            (&mut *self.older, &*self.versions, &*escape(prefix)),
        ] {
            let next = successor(&full_key(bucket, prefix)).ok_or_else(not_an_entry)?;
            source.seek(&next)?;
        }
        Ok(())
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

    fn older_entry(&self) -> Result<Entry> {
        self.older.value().and_then(Entry::decode).ok_or_else(not_an_entry)
    }

    fn advance(&mut self, is_current: bool) -> Result<()> {
        if is_current { self.current.advance() } else { self.older.advance() }
    }
}
