//! Reads and lists versions.

use crate::clock::Version;
use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::index::version_list::list_versions;
use crate::index::version_names::{VersionName, versions_bucket};
use crate::index::version_rows::VersionRow;
use crate::inner::Inner;
use crate::needles::object::Object;
use crate::object::{ListVersionsRequest, VersionId, VersionInfo, VersionListPage, Versioning};
use crate::store::Store;
use crate::versions::retain::scan_versions_of;

/// The bytes that a listing reads ahead in a run at each of its two positions.
const LIST_READAHEAD_BYTES: usize = 64 << 10;

impl Store {
    /// Returns a version of an object like [`Store::get`].
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`], [`Error::NoSuchVersion`], [`Error::IsDeleteMarker`];
    /// [`Error::Damaged`] if the bytes read fail their checksum, or if damage may hide the version.
    pub fn get_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        self.read_version(bucket, key, version, Self::get_stored)
    }

    /// Returns a version of an object without its content, like [`Store::head`].
    ///
    /// # Errors
    /// Fails like [`Store::get_version`].
    pub fn head_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        self.read_version(bucket, key, version, Self::head_stored)
    }

    /// Returns a version of an object without its content like [`Store::head_version`] if its head
    /// is in the page cache; `None` if it is not, if the system cannot tell, or if the version does
    /// not exist. Never waits for the disk. Finds a version with the ID `null` only if it is
    /// current.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`].
    pub fn head_version_cached(
        &self,
        bucket: &str,
        key: &str,
        version: VersionId,
    ) -> Result<Option<Object>> {
        let found = |found: Result<Option<Object>>| match found {
            Err(Error::NoSuchKey { .. }) => Ok(None),
            found => found,
        };
        let current = found(self.head_cached(bucket, key))?;
        if let Some(object) = current.filter(|object| object.info.version_id == version) {
            return Ok(Some(object));
        }
        let VersionId::Id(id) = version else { return Ok(None) };
        // The key is not locked: a version that another thread retains meanwhile may not be found.
        let name = VersionName { version: Version(id), is_null: false }.key_in_bucket(key);
        let retained = found(self.head_stored_cached(&versions_bucket(bucket), &name))?;
        let mut retained = retained.filter(|object| !object.is_delete_marker());
        if let Some(object) = &mut retained {
            object.info.key = key.to_owned();
        }
        Ok(retained)
    }

    /// Returns the maximum number of bytes that [`Store::get_version`] buffers for an object.
    #[must_use]
    pub fn version_bytes_max(&self) -> u64 {
        self.inner.options.big_object_bytes
    }

    fn read_version(
        &self,
        bucket: &str,
        key: &str,
        version: VersionId,
        read: fn(&Self, &str, &str) -> Result<Object>,
    ) -> Result<Object> {
        let inner = &*self.inner;
        inner.keyspace.index.read().check_bucket(bucket)?;
        let missing =
            || Error::NoSuchVersion { bucket: bucket.to_owned(), key: key.to_owned(), version };
        // A version may become current, or be retained, between the lookups of both places.
        let _lock = inner.keyspace.keys.lock(bucket, key);
        let current = inner.find_certain(bucket, key)?;
        if current.is_some_and(|entry| entry.version_id() == version) {
            return read(self, bucket, key);
        }
        if inner.keyspace.versioning(bucket)? == Versioning::Off {
            return Err(missing());
        }
        let name =
            version_name(inner, bucket, key, version)?.ok_or_else(missing)?.key_in_bucket(key);
        let mut object = match read(self, &versions_bucket(bucket), &name) {
            Err(Error::NoSuchKey { .. }) => return Err(missing()),
            found => found?,
        };
        object.info.key = key.to_owned();
        if object.is_delete_marker() {
            let (bucket, key, created) = (bucket.to_owned(), key.to_owned(), object.info.modified);
            return Err(Error::IsDeleteMarker { bucket, key, version, created });
        }
        Ok(object)
    }

    /// Returns the newest version of a key if it is a delete marker.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide versions.
    pub fn delete_marker(&self, bucket: &str, key: &str) -> Result<Option<VersionInfo>> {
        let inner = &*self.inner;
        inner.keyspace.index.read().check_bucket(bucket)?;
        let _lock = inner.keyspace.keys.lock(bucket, key);
        if inner.keyspace.versioning(bucket)? == Versioning::Off
            || inner.find_certain(bucket, key)?.is_some()
        {
            return Ok(None);
        }
        let mut found = None;
        scan_versions_of(inner, bucket, key, |row| {
            let VersionRow { entry, .. } = row;
            let (info, is_delete_marker) = (entry.info(key), entry.is_delete_marker());
            found = Some(VersionInfo { info, is_latest: true, is_delete_marker });
            false
        })?;
        Ok(found.filter(|version| version.is_delete_marker))
    }

    /// Returns one page of a listing of a bucket's versions and delete markers. The page shows each
    /// key's versions as of one moment, even while other threads change the key; two keys may have
    /// different moments.
    ///
    /// # Errors
    /// [`Error::NoSuchBucket`]; [`Error::Damaged`] while damage may hide versions.
    pub fn list_versions(
        &self,
        bucket: &str,
        request: &ListVersionsRequest<'_>,
    ) -> Result<VersionListPage> {
        Counters::count(&self.inner.counters.local().lists);
        version_page(&self.inner, bucket, request)
    }
}

/// Returns one page of a version listing, see [`Store::list_versions`].
pub(crate) fn version_page(
    inner: &Inner,
    bucket: &str,
    request: &ListVersionsRequest<'_>,
) -> Result<VersionListPage> {
    let index = inner.keyspace.index.read();
    if let Some(error) = index.any_possible_corruption() {
        return Err(error);
    }
    index.check_bucket(bucket)?;
    let keys = index.keys.snapshot();
    drop(index);
    let mut sources = [(); 2].map(|()| keys.merged(LIST_READAHEAD_BYTES));
    let page = list_versions(&mut sources, &inner.keyspace.index, bucket, request);
    page.map_err(|error| inner.note_index_damage(error))
}

/// Returns a version's name in the internal bucket, even if the version does not exist there.
pub(super) fn version_name(
    inner: &Inner,
    bucket: &str,
    key: &str,
    version: VersionId,
) -> Result<Option<VersionName>> {
    if let VersionId::Id(id) = version {
        return Ok(Some(VersionName { version: Version(id), is_null: false }));
    }
    let mut name = None;
    scan_versions_of(inner, bucket, key, |row| {
        name = Some(row.name).filter(|name| name.is_null);
        name.is_none()
    })?;
    Ok(name)
}
