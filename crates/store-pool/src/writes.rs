//! Storing, changing and deleting objects, versions and uploads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use haul_file_store::{
    Attributes, Deleted, Deletion, Etag, NewObject, Object, ObjectInfo, ObjectWriter, PartInfo,
    Precondition, Result, Retention, Store, StoredObject, TargetBucket, VersionId, WrittenContent,
};

use crate::groups::in_groups;
use crate::member::Member;
use crate::pool::Pool;
use crate::waiting::Call;

/// A put that was started, like [`haul_file_store::PendingPut`]. Dropping it does not undo the put.
#[derive(Debug)]
pub struct PendingPut {
    pending: haul_file_store::PendingPut,
    _call: Option<Call>,
}

impl Future for PendingPut {
    type Output = Result<StoredObject>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(context)
    }
}

impl Pool {
    /// The maximum object length for [`Pool::start_put`], in bytes.
    pub const START_PUT_BYTES_MAX: usize = Store::START_PUT_BYTES_MAX;

    /// Stores an object like [`Store::put`].
    ///
    /// # Errors
    /// Fails like [`Store::put`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put(
        &self,
        bucket: &str,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        self.put_located(bucket, key, bytes, attributes, precondition).map(|stored| stored.info)
    }

    /// Stores an object like [`Store::put_located`].
    ///
    /// # Errors
    /// Fails like [`Store::put`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put_located<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<StoredObject> {
        let bucket = bucket.into();
        self.write(bucket.name(), key, |store| {
            store.put_located(bucket, key, bytes, attributes, precondition)
        })
    }

    /// Stores several objects like [`Store::put_many`]: in all members at once. Returns the results
    /// in the order of the objects.
    ///
    /// # Errors
    /// For each object, fails like [`Store::put_many`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The objects survive a power cut when this returns.
    pub fn put_many(&self, bucket: &str, objects: &[NewObject<'_>]) -> Vec<Result<ObjectInfo>> {
        in_groups(&self.members, self.shared.as_deref(), bucket, objects, |store, chosen| {
            store.put_many(bucket, &chosen)
        })
    }

    /// Starts to store a small object, like [`Store::start_put`]. Returns `None` also while the
    /// key's slot is moved.
    ///
    /// # Errors
    /// Fails like [`Store::start_put`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The object survives a power cut once the future has resolved.
    pub fn start_put<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        bytes: &[u8],
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<Option<PendingPut>> {
        let bucket = bucket.into();
        let start = |member: &Member, call| {
            let pending =
                member.store()?.start_put(bucket, key, bytes, attributes, precondition)?;
            Ok(pending.map(|pending| PendingPut { pending, _call: call }))
        };
        let Some(shared) = &self.shared else { return start(&self.members[0], None) };
        let routes = shared.routes.read();
        let route = routes.route(bucket.name(), key);
        let member = &self.members[route.to];
        let call = member.begin_write()?;
        if route.from.is_some() { Ok(None) } else { start(member, Some(call)) }
    }

    /// Returns a writer for the content of an object, like [`Store::object_writer`].
    ///
    /// # Errors
    /// Fails like [`Store::object_writer`]; [`haul_file_store::Error::MemberMissing`].
    pub fn object_writer(
        &self,
        bucket: &str,
        key: &str,
        expected: Option<u64>,
    ) -> Result<ObjectWriter> {
        self.target(bucket, key)?.object_writer(bucket, expected)
    }

    /// Returns a writer for a part of an upload, like [`Store::part_writer`].
    ///
    /// # Errors
    /// Fails like [`Store::part_writer`]; [`haul_file_store::Error::MemberMissing`].
    pub fn part_writer(
        &self,
        bucket: &str,
        key: &str,
        expected: Option<u64>,
    ) -> Result<ObjectWriter> {
        self.target(bucket, key)?.part_writer(bucket, expected)
    }

    /// Stores written content under a key, like [`Store::put_written`].
    ///
    /// # Errors
    /// Fails like [`Store::put`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn put_written<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        written: WrittenContent,
        attributes: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        self.write(bucket.name(), key, |store| {
            store.put_written(bucket, key, written, attributes, precondition)
        })
    }

    /// Stores an object under another key, like [`Store::copy_object`].
    ///
    /// # Errors
    /// Fails like [`Store::copy_object`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The copy survives a power cut when this returns.
    pub fn copy_object<'a>(
        &self,
        object: &Object,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        attributes: Option<&Attributes>,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        self.write(bucket.name(), key, |store| {
            store.copy_object(object, bucket, key, attributes, precondition)
        })
    }

    /// Changes the attributes of an object or a version, like [`Store::update_attributes`].
    ///
    /// # Errors
    /// Fails like [`Store::update_attributes`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The change survives a power cut when this returns.
    pub fn update_attributes<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        version: Option<VersionId>,
        change: &dyn Fn(&mut Attributes) -> Result<()>,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        self.write(bucket.name(), key, |store| {
            store.update_attributes(bucket, key, version, change)
        })
    }

    /// Sets or removes a version's retention, like [`Store::set_retention`].
    ///
    /// # Errors
    /// Fails like [`Store::set_retention`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The retention survives a power cut when this returns.
    pub fn set_retention(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        retention: Option<Retention>,
        bypass_governance: bool,
    ) -> Result<ObjectInfo> {
        self.write(bucket, key, |store| {
            store.set_retention(bucket, key, version, retention, bypass_governance)
        })
    }

    /// Sets or lifts a version's legal hold, like [`Store::set_legal_hold`].
    ///
    /// # Errors
    /// Fails like [`Store::set_legal_hold`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The hold survives a power cut when this returns.
    pub fn set_legal_hold(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
        is_on: bool,
    ) -> Result<ObjectInfo> {
        self.write(bucket, key, |store| store.set_legal_hold(bucket, key, version, is_on))
    }

    /// Starts an upload like [`Store::start_upload`].
    ///
    /// # Errors
    /// Fails like [`Store::start_upload`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The upload survives a power cut when this returns.
    pub fn start_upload(&self, bucket: &str, key: &str, attributes: &Attributes) -> Result<String> {
        self.write(bucket, key, |store| store.start_upload(bucket, key, attributes))
    }

    /// Stores a part like [`Store::put_part`].
    ///
    /// # Errors
    /// Fails like [`Store::put_part`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The part survives a power cut when this returns.
    pub fn put_part(
        &self,
        bucket: &str,
        key: &str,
        upload: &str,
        number: u16,
        written: WrittenContent,
        attributes: &Attributes,
    ) -> Result<PartInfo> {
        self.write(bucket, key, |store| {
            store.put_part(bucket, key, upload, number, written, attributes)
        })
    }

    /// Completes an upload like [`Store::complete_upload`].
    ///
    /// # Errors
    /// Fails like [`Store::complete_upload`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The object survives a power cut when this returns.
    pub fn complete_upload<'a>(
        &self,
        bucket: impl Into<TargetBucket<'a>>,
        key: &str,
        upload: &str,
        parts: &[(u16, Etag)],
        extra: &Attributes,
        precondition: &Precondition,
    ) -> Result<ObjectInfo> {
        let bucket = bucket.into();
        self.write(bucket.name(), key, |store| {
            store.complete_upload(bucket, key, upload, parts, extra, precondition)
        })
    }

    /// Aborts an upload like [`Store::abort_upload`].
    ///
    /// # Errors
    /// Fails like [`Store::abort_upload`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The end of the upload survives a power cut when this returns.
    pub fn abort_upload(&self, bucket: &str, key: &str, upload: &str) -> Result<()> {
        self.write(bucket, key, |store| store.abort_upload(bucket, key, upload))
    }

    /// Deletes a key's object like [`Store::delete`].
    ///
    /// # Errors
    /// Fails like [`Store::delete`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete(&self, bucket: &str, key: &str) -> Result<bool> {
        self.write(bucket, key, |store| store.delete(bucket, key))
    }

    /// Deletes a key's object or a version, like [`Store::delete_object`].
    ///
    /// # Errors
    /// Fails like [`Store::delete_object`]; [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The deletion survives a power cut when this returns.
    pub fn delete_object(
        &self,
        bucket: &str,
        key: &str,
        version: Option<VersionId>,
    ) -> Result<Deleted> {
        self.write(bucket, key, |store| store.delete_object(bucket, key, version))
    }

    /// Deletes several objects and versions, like [`Store::delete_objects`]: in
    /// all members at once, and for each key in the order of the requests. Returns the results in
    /// this order.
    ///
    /// # Errors
    /// For each request, fails like [`Store::delete_objects`];
    /// [`haul_file_store::Error::MemberMissing`].
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_objects(&self, bucket: &str, deletions: &[Deletion<'_>]) -> Vec<Result<Deleted>> {
        in_groups(&self.members, self.shared.as_deref(), bucket, deletions, |store, chosen| {
            store.delete_objects(bucket, &chosen)
        })
    }

    /// Deletes objects like [`Store::delete_many`]. For each object, returns
    /// `true` if it existed.
    ///
    /// # Errors
    /// For each key, fails like [`Pool::delete`].
    ///
    /// # Durability
    /// The deletions survive a power cut when this returns.
    pub fn delete_many(&self, bucket: &str, keys: &[&str]) -> Vec<Result<bool>> {
        let deletions: Vec<Deletion<'_>> = keys.iter().map(|key| Deletion::of(key)).collect();
        let deleted = self.delete_objects(bucket, &deletions);
        deleted.into_iter().map(|result| result.map(|deleted| deleted.existed)).collect()
    }

    /// Returns the store in which a key's new content is written. If the slot is moved meanwhile,
    /// the content is copied when it is stored.
    fn target(&self, bucket: &str, key: &str) -> Result<&Arc<Store>> {
        let Some(shared) = &self.shared else { return self.members[0].store() };
        let route = shared.routes.read().route(bucket, key);
        let member = &self.members[route.to];
        // The writer's own calls are not counted; it is only not begun while others wait.
        drop(member.begin_write()?);
        member.store()
    }
}
