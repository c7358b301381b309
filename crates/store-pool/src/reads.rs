//! Reading objects, versions and uploads.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::SystemTime;

use haul_file_store::{
    Attributes, ListPage, ListRequest, ListUploadsRequest, ListVersionsRequest, Object, ObjectInfo,
    ObjectLocation, PartInfo, Result, Store, UploadInfo, UploadListPage, VersionId, VersionInfo,
    VersionListPage,
};

use crate::listing;
use crate::pool::Pool;

impl Pool {
    /// Returns an object's description, like [`Store::stat`].
    ///
    /// # Errors
    /// Fails like [`Store::stat`]; [`haul_file_store::Error::MemberMissing`].
    pub fn stat(&self, bucket: &str, key: &str) -> Result<ObjectInfo> {
        self.read(bucket, key, |store| store.stat(bucket, key))
    }

    /// Reads an object's head, like [`Store::head`].
    ///
    /// # Errors
    /// Fails like [`Store::head`]; [`haul_file_store::Error::MemberMissing`].
    pub fn head(&self, bucket: &str, key: &str) -> Result<Object> {
        self.read(bucket, key, |store| store.head(bucket, key))
    }

    /// Opens an object like [`Store::get`].
    ///
    /// # Errors
    /// Fails like [`Store::get`]; [`haul_file_store::Error::MemberMissing`].
    pub fn get(&self, bucket: &str, key: &str) -> Result<Object> {
        self.read(bucket, key, |store| store.get(bucket, key))
    }

    /// Opens an object like [`Store::open_object`].
    ///
    /// # Errors
    /// Fails like [`Store::open_object`]; [`haul_file_store::Error::MemberMissing`].
    pub fn open_object(&self, bucket: &str, key: &str) -> Result<Object> {
        self.read(bucket, key, |store| store.open_object(bucket, key))
    }

    /// Opens an object from memory, like [`Store::get_cached`].
    ///
    /// # Errors
    /// Fails like [`Store::get_cached`]; [`haul_file_store::Error::MemberMissing`].
    pub fn get_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        self.read_cached(bucket, key, |store| store.get_cached(bucket, key))
    }

    /// Reads an object's head from memory, like [`Store::head_cached`].
    ///
    /// # Errors
    /// Fails like [`Store::head_cached`]; [`haul_file_store::Error::MemberMissing`].
    pub fn head_cached(&self, bucket: &str, key: &str) -> Result<Option<Object>> {
        self.read_cached(bucket, key, |store| store.head_cached(bucket, key))
    }

    /// Returns the maximum number of bytes that [`Pool::get`] buffers, like
    /// [`Store::open_bytes_max`].
    #[must_use]
    pub fn open_bytes_max(&self, bucket: &str, key: &str) -> u64 {
        let in_any = |store: &Store| store.open_bytes_max(bucket, key);
        self.stores().map(in_any).max().unwrap_or(0)
    }

    /// Returns an object's location like [`Store::location`]; `None` also while the key's slot is
    /// moved.
    #[must_use]
    pub fn location(&self, bucket: &str, key: &str) -> Option<ObjectLocation> {
        let Some(shared) = &self.shared else {
            return self.members[0].store().ok()?.location(bucket, key);
        };
        let routes = shared.routes.read();
        let route = routes.route(bucket, key);
        let store = self.members[route.to].store().ok()?;
        store.location(bucket, key).filter(|_| route.from.is_none())
    }

    /// Returns the store with a location, if it is open.
    fn store_at(&self, location: ObjectLocation) -> Option<&Arc<Store>> {
        let is_there = |member: &&crate::Member| member.number() == location.member();
        self.members.iter().find(is_there)?.store().ok()
    }

    /// Returns the maximum number of bytes that are buffered for an object at a location, like
    /// [`Store::open_bytes_max_at`].
    #[must_use]
    pub fn open_bytes_max_at(&self, location: ObjectLocation) -> u64 {
        self.store_at(location).map_or(0, |store| store.open_bytes_max_at(location))
    }

    /// Opens the object at a location from memory, like [`Store::get_cached_at`].
    #[must_use]
    pub fn get_cached_at(
        &self,
        bucket: &str,
        key: &str,
        location: ObjectLocation,
    ) -> Option<Object> {
        self.store_at(location)?.get_cached_at(bucket, key, location)
    }

    /// Locks the object at a location in the page cache, like [`Store::get_locked_at`].
    #[must_use]
    pub fn get_locked_at(
        &self,
        bucket: &str,
        key: &str,
        location: ObjectLocation,
        lengths: RangeInclusive<u64>,
    ) -> Option<Object> {
        self.store_at(location)?.get_locked_at(bucket, key, location, lengths)
    }

    /// Returns the number of removed volumes with locked objects, like [`Store::locked_removals`].
    #[must_use]
    pub fn locked_removals(&self) -> u64 {
        self.stores().map(Store::locked_removals).sum()
    }

    /// Opens a version like [`Store::get_version`].
    ///
    /// # Errors
    /// Fails like [`Store::get_version`]; [`haul_file_store::Error::MemberMissing`].
    pub fn get_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        self.read(bucket, key, |store| store.get_version(bucket, key, version))
    }

    /// Reads a version's head, like [`Store::head_version`].
    ///
    /// # Errors
    /// Fails like [`Store::head_version`]; [`haul_file_store::Error::MemberMissing`].
    pub fn head_version(&self, bucket: &str, key: &str, version: VersionId) -> Result<Object> {
        self.read(bucket, key, |store| store.head_version(bucket, key, version))
    }

    /// Reads a version's head from memory, like [`Store::head_version_cached`].
    ///
    /// # Errors
    /// Fails like [`Store::head_version_cached`]; [`haul_file_store::Error::MemberMissing`].
    pub fn head_version_cached(
        &self,
        bucket: &str,
        key: &str,
        version: VersionId,
    ) -> Result<Option<Object>> {
        self.read_cached(bucket, key, |store| store.head_version_cached(bucket, key, version))
    }

    /// Returns the maximum number of bytes that [`Pool::get_version`] buffers, like
    /// [`Store::version_bytes_max`].
    #[must_use]
    pub fn version_bytes_max(&self) -> u64 {
        self.stores().map(Store::version_bytes_max).max().unwrap_or(0)
    }

    /// Returns the delete marker that is a key's newest version, like [`Store::delete_marker`].
    ///
    /// # Errors
    /// Fails like [`Store::delete_marker`]; [`haul_file_store::Error::MemberMissing`].
    pub fn delete_marker(&self, bucket: &str, key: &str) -> Result<Option<VersionInfo>> {
        self.read_optional(bucket, key, |store| store.delete_marker(bucket, key))
    }

    /// Returns an upload like [`Store::upload`].
    ///
    /// # Errors
    /// Fails like [`Store::upload`]; [`haul_file_store::Error::MemberMissing`].
    pub fn upload(&self, bucket: &str, key: &str, upload: &str) -> Result<UploadInfo> {
        self.read(bucket, key, |store| store.upload(bucket, key, upload))
    }

    /// Returns an upload's parts like [`Store::parts`].
    ///
    /// # Errors
    /// Fails like [`Store::parts`]; [`haul_file_store::Error::MemberMissing`].
    pub fn parts(&self, bucket: &str, key: &str, upload: &str) -> Result<Vec<PartInfo>> {
        self.read(bucket, key, |store| store.parts(bucket, key, upload))
    }

    /// Returns the time at which an object expires, and the rule, like [`Store::expiration`].
    ///
    /// # Errors
    /// Fails like [`Store::expiration`].
    pub fn expiration(
        &self,
        bucket: &str,
        info: &ObjectInfo,
        attributes: &Attributes,
    ) -> Result<Option<(SystemTime, String)>> {
        self.bucket_store()?.expiration(bucket, info, attributes)
    }

    /// Returns the time at which an upload is aborted, and the rule, like
    /// [`Store::upload_expiration`].
    ///
    /// # Errors
    /// Fails like [`Store::upload_expiration`].
    pub fn upload_expiration(
        &self,
        bucket: &str,
        key: &str,
        started: SystemTime,
    ) -> Result<Option<(SystemTime, String)>> {
        self.bucket_store()?.upload_expiration(bucket, key, started)
    }

    /// Lists objects like [`Store::list`].
    ///
    /// # Errors
    /// Fails like [`Store::list`]; [`haul_file_store::Error::MemberMissing`], because the listing
    /// would leave out objects.
    pub fn list(&self, bucket: &str, request: &ListRequest<'_>) -> Result<ListPage> {
        let Some(shared) = &self.shared else {
            return self.members[0].store()?.list(bucket, request);
        };
        let routes = shared.routes.read();
        listing::objects(&self.members, &routes.donors(), bucket, request)
    }

    /// Lists versions like [`Store::list_versions`].
    ///
    /// # Errors
    /// Fails like [`Store::list_versions`]; [`haul_file_store::Error::MemberMissing`], because the listing
    /// would leave out versions.
    pub fn list_versions(
        &self,
        bucket: &str,
        request: &ListVersionsRequest<'_>,
    ) -> Result<VersionListPage> {
        let Some(shared) = &self.shared else {
            return self.members[0].store()?.list_versions(bucket, request);
        };
        let routes = shared.routes.read();
        listing::versions(&self.members, &routes.donors(), bucket, request)
    }

    /// Lists uploads like [`Store::list_uploads`].
    ///
    /// # Errors
    /// Fails like [`Store::list_uploads`]; [`haul_file_store::Error::MemberMissing`], because the listing
    /// would leave out uploads.
    pub fn list_uploads(
        &self,
        bucket: &str,
        request: &ListUploadsRequest<'_>,
    ) -> Result<UploadListPage> {
        let Some(shared) = &self.shared else {
            return self.members[0].store()?.list_uploads(bucket, request);
        };
        let routes = shared.routes.read();
        listing::uploads(&self.members, &routes.donors(), bucket, request)
    }
}
