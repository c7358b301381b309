//! Stores objects.

use std::sync::Arc;

use haul_file_store::{
    Attributes, BucketId, Error, Event, ObjectInfo, Precondition, StoredObject, TargetBucket,
    VersionId,
};
use haul_store_pool::Pool;

use crate::answer::checksum::with_checksum;
use crate::answer::encryption::described;
use crate::answer::{Answer, quoted};
use crate::body::Body;
use crate::body::checksum::{Checksum, FULL_OBJECT};
use crate::body::receive::{Collected, Receiver};
use crate::encryption::envelope::Structure;
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::RequestedEncryption;
use crate::errors::{S3Error, S3ErrorCode, S3Result, check_key, from_store, refuse};
use crate::events::new::set_size;
use crate::hot::HotObjects;
use crate::hot::object::HotObject;
use crate::objects::conditions::precondition;
use crate::objects::headers::StoredHeaders;
use crate::objects::lock::LockHeaders;
use crate::objects::new_acl::NewObjectAcl;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::expiration;
use crate::settings::notification::name::EventName;
use crate::stored::{tags, versions};

pub(crate) async fn put_object(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let fields = &request.head.fields;
    let name = request.name();
    check_key(&name.key)?;
    if fields.has("x-amz-write-offset-bytes") {
        return Err(refuse(S3ErrorCode::NotImplemented, "Objects cannot be appended to"));
    }
    let precondition = precondition(fields)?;
    let mut attributes = StoredHeaders::from_fields(fields)?.into_attributes()?;
    let lock = LockHeaders::from_fields(fields).into_lock(&haul.store(), request.caller(), name)?;
    lock.set_in(&mut attributes);
    let wanted = RequestedEncryption::of(fields)?;
    let receiver = Receiver::new(haul, request, body)?;
    // Checked before the client sends the body.
    check_bucket(&haul.store(), &name.bucket)?;
    NewObjectAcl::of(haul, request).await?.set(&mut attributes)?;
    let master = haul.master_for(&name.bucket, wanted)?;
    let event_name =
        if request.is_form { EventName::CreatedByPost } else { EventName::CreatedByPut };
    let put = Put {
        name: name.clone(),
        bucket: request.bucket(),
        attributes,
        precondition,
        master: master.clone(),
        event: haul.event(request, event_name, &name.key),
    };
    let Stored { info, expiration, checksum, version_id } =
        match receiver.is_small() && master.is_none() {
            true => put.small(haul, receiver).await?,
            false => put.big(haul, receiver).await?,
        };
    if let Some(changes) = &request.changes {
        changes.stored(info.bytes, info.etag);
    }
    let answer = Answer::ok()
        .with("etag", quoted(&info.etag))
        .with_some("x-amz-expiration", expiration)
        .with_some("x-amz-version-id", version_id);
    let answer = with_checksum(answer, checksum.as_ref(), FULL_OBJECT);
    Ok(described(answer, master.as_ref()))
}

/// Fails if the bucket does not exist. Succeeds if corruption may hide its creation or deletion:
/// the change to the object then decides.
pub(crate) fn check_bucket(store: &Pool, bucket: &str) -> S3Result<()> {
    match store.bucket_id(bucket) {
        Ok(_) | Err(Error::Damaged { .. }) => Ok(()),
        Err(error) => Err(from_store(error)),
    }
}

pub(crate) struct Put {
    pub(crate) name: ObjectName,
    /// The bucket for which the PUT was authorized.
    pub(crate) bucket: Option<BucketId>,
    pub(crate) attributes: Attributes,
    pub(crate) precondition: Precondition,
    /// The key that seals the object's data key; `None` stores the object unencrypted.
    pub(crate) master: Option<Master>,
    pub(crate) event: Option<Event>,
}

/// A stored object, as described by the response.
pub(crate) struct Stored {
    /// The object's description, with the length that clients see.
    pub(crate) info: ObjectInfo,
    /// The value of `x-amz-expiration`.
    pub(crate) expiration: Option<String>,
    pub(crate) checksum: Option<Checksum>,
    /// The value of `x-amz-version-id`.
    pub(crate) version_id: Option<String>,
}

impl Put {
    /// Receives and stores a small object that is not encrypted.
    pub(crate) async fn small(self, haul: &Haul, receiver: Receiver) -> S3Result<Stored> {
        let collected = receiver.collect(haul).await?;
        let Self { name, bucket: id, attributes, precondition, master: _, event } = self;
        let tags = tags::only_tags(&attributes);
        let put = SmallPut { name, id, attributes, precondition, collected, event };
        let bucket = put.name.bucket.clone();
        let (info, checksum) = put.store(haul).await?;
        // The first PUT to a bucket may read the bucket's rules from the disk; then they are in
        // memory.
        let expiration = expiration(&haul.store(), &bucket, &info, &tags);
        let version_id = versions::response_id_of_new(info.version_id);
        Ok(Stored { info, expiration, checksum, version_id })
    }

    /// Receives and stores an object of any length.
    pub(crate) async fn big(self, haul: &Haul, receiver: Receiver) -> S3Result<Stored> {
        let Self { name, bucket: id, mut attributes, precondition, master, mut event } = self;
        let new = master.map(NewContent::generate).transpose()?;
        let encryption = new.as_ref().map(|new| new.start(0)).transpose()?;
        let open = Pool::object_writer;
        let streamed = receiver.stream(haul, &name, open, encryption).await?;
        haul.blocking(move |store| {
            let bytes = streamed.bytes();
            let (written, checksum) = streamed.finish()?;
            add_checksum(&mut attributes, checksum.as_ref());
            let ObjectName { bucket, key } = &name;
            if let Some(new) = new {
                let structure = Structure::OnePiece;
                new.envelope((bucket, key), structure, written.bytes())?.set(&mut attributes);
            }
            set_size(&mut event, bytes);
            let target = TargetBucket::new(bucket, id).with_event(event.as_ref());
            let stored = store.put_written(target, key, written, &attributes, &precondition);
            let refused = |error| unmet_condition_error(store, bucket, key, &precondition, error);
            let info = stored.map_err(refused)?;
            let expiration = expiration(store, bucket, &info, &attributes);
            let version_id = versions::response_id_of_new(info.version_id);
            let info = ObjectInfo { bytes, ..info };
            Ok(Stored { info, expiration, checksum, version_id })
        })
        .await
    }
}

/// An object that was received, and is not stored yet.
struct SmallPut {
    name: ObjectName,
    id: Option<BucketId>,
    attributes: Attributes,
    precondition: Precondition,
    collected: Collected,
    event: Option<Event>,
}

/// A PUT that was started on a thread that must not block. The body's checksum is verified.
struct StartedPut {
    pending: haul_store_pool::PendingPut,
    checksum: Option<Checksum>,
}

impl SmallPut {
    /// Stores the object. Uses a blocking thread only if the PUT would have to wait for more than
    /// the log's sync.
    async fn store(mut self, haul: &Haul) -> S3Result<(ObjectInfo, Option<Checksum>)> {
        let started = self.start(&haul.store())?;
        let hot = Arc::clone(&haul.hot);
        match started {
            Some(StartedPut { pending, checksum }) => {
                let stored = pending.await.map_err(from_store)?;
                self.cache(&hot, &stored);
                Ok((stored.info, checksum))
            }
            None => haul.blocking(move |store| self.store_blocking(store, &hot)).await,
        }
    }

    /// Starts to store the object. Returns `None` if the PUT must be repeated on a blocking thread:
    /// it would wait, or its error depends on a lookup of the present object.
    fn start(&mut self, store: &Pool) -> S3Result<Option<StartedPut>> {
        if self.collected.len() > Pool::START_PUT_BYTES_MAX {
            return Ok(None);
        }
        let (bytes, checksum) = self.collected.verify()?;
        add_checksum(&mut self.attributes, checksum.as_ref());
        let Self { name: ObjectName { bucket, key }, attributes, precondition, .. } = &self;
        let target = TargetBucket::new(bucket, self.id).with_event(self.event.as_ref());
        match store.start_put(target, key, bytes, attributes, precondition) {
            Ok(Some(pending)) => Ok(Some(StartedPut { pending, checksum })),
            Ok(None) | Err(Error::PreconditionFailed) => Ok(None),
            Err(error) => Err(from_store(error)),
        }
    }

    fn store_blocking(
        mut self,
        store: &Pool,
        hot: &HotObjects,
    ) -> S3Result<(ObjectInfo, Option<Checksum>)> {
        let (bytes, checksum) = self.collected.verify()?;
        add_checksum(&mut self.attributes, checksum.as_ref());
        let Self { name: ObjectName { bucket, key }, attributes, precondition, .. } = &self;
        let target = TargetBucket::new(bucket, self.id).with_event(self.event.as_ref());
        let stored = store.put_located(target, key, bytes, attributes, precondition);
        let refused = |error| unmet_condition_error(store, bucket, key, precondition, error);
        let stored = stored.map_err(refused)?;
        self.cache(hot, &stored);
        Ok((stored.info, checksum))
    }

    /// Caches the stored object if it is likely to be read.
    fn cache(&self, hot: &HotObjects, stored: &StoredObject) {
        // Versions are not served from the cache.
        if stored.info.version_id == VersionId::Null {
            hot.insert_stored(&self.name, stored.info.bytes, || {
                HotObject::stored(stored, &self.attributes, self.collected.copied())
            });
        }
    }
}

/// Adds a checksum to the attributes.
pub(crate) fn add_checksum(attributes: &mut Attributes, checksum: Option<&Checksum>) {
    if let Some(Checksum { algorithm, value }) = checksum {
        attributes.set(algorithm.header(), value);
    }
}

/// Returns the error for a failed conditional write. As in S3, a condition on a missing object's
/// ETag fails with `NoSuchKey`.
pub(crate) fn unmet_condition_error(
    store: &Pool,
    bucket: &str,
    key: &str,
    precondition: &Precondition,
    error: Error,
) -> S3Error {
    let is_on_presence = matches!(precondition, Precondition::Absent | Precondition::None);
    let condition = match precondition {
        Precondition::Matches(_) | Precondition::Present => "If-Match",
        _ => "If-None-Match",
    };
    match (&error, store.stat(bucket, key)) {
        (Error::PreconditionFailed, Err(absent)) if !is_on_presence => from_store(absent),
        (Error::PreconditionFailed, _) => from_store(error).with_field("Condition", condition),
        _ => from_store(error),
    }
}
