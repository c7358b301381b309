//! Storing and deleting objects.

use bytes::Bytes;
use haul_file_store::{
    Attributes, Deleted, Deletion, Error, ObjectInfo, PendingPut, Precondition, Store, VersionId,
};
use hyper::body::Body;
use s3s::dto::{
    self, ChecksumType, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, DeletedObject, ObjectIdentifier, PutObjectInput, PutObjectOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, StdError};

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::acl::new_object::NewObjectList;
use crate::audit::Changes;
use crate::body::checksum::{Checksum, FULL_OBJECT, show_checksum};
use crate::body::receive::{Collected, Receiver};
use crate::buckets::lifecycle::operations::expiration;
use crate::encryption::envelope::Structure;
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::{Wanted, described};
use crate::errors::{check_key, from_store, refuse};
use crate::objects::conditions::{DeleteConditions, precondition};
use crate::objects::headers::stored_headers;
use crate::objects::lock::{lock_headers, may_bypass};
use crate::objects::read::etag;
use crate::objects::versions;
use crate::output::Output;
use crate::service::Haul;

/// The number of objects that one request can delete, as in S3.
const DELETE_MAX: usize = 1000;

pub(crate) async fn put_object(
    haul: &Haul,
    mut request: S3Request<PutObjectInput>,
) -> S3Result<Output<PutObjectOutput>> {
    let input = &mut request.input;
    check_key(&input.key)?;
    if input.write_offset_bytes.is_some() {
        return Err(refuse(S3ErrorCode::NotImplemented, "Objects cannot be appended to"));
    }
    let precondition = precondition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let mut attributes = stored_headers!(input).into_attributes()?;
    let lock = lock_headers!(input).into_lock(&haul.store(), &input.bucket)?;
    lock.set_in(&mut attributes);
    let body = input.body.take();
    let wanted = Wanted::of(&request.headers)?;
    let receiver = Receiver::of(haul, &request, body)?;
    let changes = Changes::of(&request.extensions).cloned();
    let S3Request { headers, extensions, .. } = request;
    let PutObjectInput { bucket, key, .. } = request.input;
    // Before the client sends the body.
    check_bucket(&haul.store(), &bucket)?;
    let list = NewObjectList::of(haul, (&headers, &extensions), (&bucket, &key)).await?;
    list.set(&mut attributes)?;
    let master = haul.master_for(&bucket, wanted)?;
    let put = Put { bucket, key, attributes, precondition, master: master.clone() };
    let Stored { info, expiration, checksum, version_id } =
        match receiver.is_small() && master.is_none() {
            true => put.small(haul, receiver).await?,
            false => put.big(haul, receiver).await?,
        };

    if let Some(changes) = changes {
        changes.stored(info.bytes, info.etag);
    }
    let e_tag = Some(etag(info.etag));
    let mut output = PutObjectOutput { e_tag, expiration, version_id, ..Default::default() };
    output.checksum_type = checksum.as_ref().map(|_| ChecksumType::from_static(FULL_OBJECT));
    show_checksum!(output, checksum);
    Ok(described(output, master.as_ref()))
}

/// Fails if the bucket does not exist. If damage may hide its creation or deletion, the change of
/// the object decides: a new version of an object ends the doubt about it.
fn check_bucket(store: &Store, bucket: &str) -> S3Result<()> {
    match store.bucket(bucket) {
        Ok(_) | Err(Error::Damaged { .. }) => Ok(()),
        Err(error) => Err(from_store(error)),
    }
}

/// A put of an object.
pub(crate) struct Put {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) attributes: Attributes,
    pub(crate) precondition: Precondition,
    /// The key that seals the data key of the object; `None` stores the object as it is.
    pub(crate) master: Option<Master>,
}

/// A stored object, as the response describes it.
pub(crate) struct Stored {
    /// The length is the one that clients see.
    pub(crate) info: ObjectInfo,
    /// The value of `x-amz-expiration`.
    pub(crate) expiration: Option<String>,
    pub(crate) checksum: Option<Checksum>,
    /// The value of `x-amz-version-id`.
    pub(crate) version_id: Option<String>,
}

impl Put {
    /// Receives and stores a small object that is not encrypted.
    pub(crate) async fn small<B>(self, haul: &Haul, receiver: Receiver<B>) -> S3Result<Stored>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<StdError>,
    {
        let collected = receiver.collect(haul).await?;
        let Self { bucket, key, attributes, precondition, master: _ } = self;
        let put = SmallPut { bucket, key, attributes, precondition, collected };
        let bucket = put.bucket.clone();
        let (info, checksum) = put.store(haul).await?;
        // The first PUT to a bucket may read its rules from the disk; then they are in memory.
        let expiration = expiration(&haul.store(), &bucket, &info);
        let version_id = versions::shown(&haul.store(), &bucket, info.version_id);
        Ok(Stored { info, expiration, checksum, version_id })
    }

    /// Receives and stores an object of any length.
    pub(crate) async fn big<B>(self, haul: &Haul, receiver: Receiver<B>) -> S3Result<Stored>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Into<StdError>,
    {
        let Self { bucket, key, mut attributes, precondition, master } = self;
        let new = master.map(NewContent::generate).transpose()?;
        let encryption = new.as_ref().map(|new| new.start(0)).transpose()?;
        let streamed = receiver.stream(haul, Store::object_writer, encryption).await?;
        haul.blocking(move |store| {
            let bytes = streamed.bytes();
            let (written, checksum) = streamed.finish()?;
            keep(&mut attributes, checksum.as_ref());
            if let Some(new) = new {
                let (names, structure) = ((&*bucket, &*key), Structure::OnePiece);
                new.envelope(names, structure, written.bytes())?.set(&mut attributes);
            }
            let stored = store.put_written(&bucket, &key, written, &attributes, &precondition);
            let refused = |error| unmet(store, &bucket, &key, &precondition, error);
            let info = stored.map_err(refused)?;
            let expiration = expiration(store, &bucket, &info);
            let version_id = versions::shown(store, &bucket, info.version_id);
            let info = ObjectInfo { bytes, ..info };
            Ok(Stored { info, expiration, checksum, version_id })
        })
        .await
    }
}

/// A put of an object whose body was received.
struct SmallPut {
    bucket: String,
    key: String,
    attributes: Attributes,
    precondition: Precondition,
    collected: Collected,
}

/// The outcome of an attempt to store an object on a thread that must not block.
enum Attempt {
    /// The put was started. The checksum of the body is verified.
    Started(PendingPut, Option<Checksum>),
    /// The put must be repeated on a blocking thread: it would wait, or its error depends on a
    /// lookup of the present object.
    Blocking(Box<SmallPut>),
}

impl SmallPut {
    /// Stores the object. Uses a blocking thread only if the put would wait for anything but the
    /// sync of the log.
    async fn store(self, haul: &Haul) -> S3Result<(ObjectInfo, Option<Checksum>)> {
        match self.start(&haul.store())? {
            Attempt::Started(pending, checksum) => {
                Ok((pending.await.map_err(from_store)?, checksum))
            }
            Attempt::Blocking(put) => haul.blocking(move |store| put.store_blocking(store)).await,
        }
    }

    fn start(mut self, store: &Store) -> S3Result<Attempt> {
        if self.collected.len() > Store::START_PUT_BYTES_MAX {
            return Ok(Attempt::Blocking(Box::new(self)));
        }
        let (bytes, checksum) = self.collected.verify()?;
        keep(&mut self.attributes, checksum.as_ref());
        let Self { bucket, key, attributes, precondition, .. } = &self;
        match store.start_put(bucket, key, bytes, attributes, precondition) {
            Ok(Some(pending)) => Ok(Attempt::Started(pending, checksum)),
            Ok(None) | Err(Error::PreconditionFailed) => Ok(Attempt::Blocking(Box::new(self))),
            Err(error) => Err(from_store(error)),
        }
    }

    fn store_blocking(mut self, store: &Store) -> S3Result<(ObjectInfo, Option<Checksum>)> {
        let (bytes, checksum) = self.collected.verify()?;
        keep(&mut self.attributes, checksum.as_ref());
        let Self { bucket, key, attributes, precondition, .. } = &self;
        let stored = store.put(bucket, key, bytes, attributes, precondition);
        let refused = |error| unmet(store, bucket, key, precondition, error);
        Ok((stored.map_err(refused)?, checksum))
    }
}

pub(crate) async fn delete_object(
    haul: &Haul,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<DeleteObjectOutput> {
    let caller = Caller::of(&request.extensions);
    let bypass = request.input.bypass_governance_retention;
    let DeleteObjectInput { bucket, key, version_id, .. } = request.input;
    check_key(&key)?;
    let mut asked = Asked {
        bypasses_governance: false,
        version: versions::parse(version_id.as_deref())?,
        conditions: DeleteConditions {
            // Every object has an ETag.
            etag: request.input.if_match.and_then(|condition| condition.into_etag()),
            bytes: request.input.if_match_size,
            modified: request.input.if_match_last_modified_time,
            stored_bytes: None,
        },
    };
    let delete = move |store: &Store| {
        asked.bypasses_governance = may_bypass(&caller, store, (&bucket, &key), bypass)?;
        asked.conditions = asked.conditions.resolve(store, &bucket, &key);
        delete_all(store, &bucket, &[(&key, asked)]).remove(0)
    };
    let deleted = haul.blocking(delete).await?;
    let version_id = deleted.version_id.map(|version| version.to_string());
    let delete_marker = deleted.is_delete_marker.then_some(true);
    Ok(DeleteObjectOutput { delete_marker, version_id, ..DeleteObjectOutput::default() })
}

pub(crate) async fn delete_objects(
    haul: &Haul,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let changes = Changes::of(&request.extensions).cloned();
    let caller = Caller::of(&request.extensions);
    let DeleteObjectsInput { bucket, delete, bypass_governance_retention: bypass, .. } =
        request.input;
    if delete.objects.is_empty() || delete.objects.len() > DELETE_MAX {
        let message = format!("One request can delete 1 to {DELETE_MAX} objects");
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    }
    check_bucket(&haul.store(), &bucket)?;
    let quiet = delete.quiet == Some(true);
    let outcomes = haul
        .blocking(move |store| Ok(delete_listed(store, &caller, &bucket, (delete.objects, bypass))))
        .await?;
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    for (object, outcome) in outcomes {
        if let Some(changes) = &changes {
            let error = outcome.as_ref().err();
            changes.deleted(&object.key, error.map(|error| error.code().as_str()));
        }
        let ObjectIdentifier { key, version_id, .. } = object;
        match outcome {
            Ok(_) if quiet => {}
            Ok(done) => deleted.push(DeletedObject {
                key: Some(key),
                version_id,
                delete_marker: done.is_delete_marker.then_some(true),
                delete_marker_version_id: done
                    .version_id
                    .filter(|_| done.is_delete_marker)
                    .map(|version| version.to_string()),
            }),
            Err(error) => errors.push(dto::Error {
                code: Some(error.code().as_str().to_owned()),
                key: Some(key),
                message: error.message().map(str::to_owned),
                version_id,
            }),
        }
    }
    Ok(DeleteObjectsOutput { deleted: Some(deleted), errors: Some(errors), request_charged: None })
}

/// Deletes the objects of a request that the client may delete; returns the outcome for each.
fn delete_listed(
    store: &Store,
    caller: &Caller,
    bucket: &str,
    (objects, bypass): (Vec<ObjectIdentifier>, Option<bool>),
) -> Vec<(ObjectIdentifier, S3Result<Deleted>)> {
    let delete = Action::Use(Right::Delete);
    let checked: Vec<_> = objects
        .into_iter()
        .map(|object| {
            let version = object.version_id.as_deref().filter(|version| !version.is_empty());
            let operation = if version.is_some() { "DeleteObjectVersion" } else { "DeleteObjects" };
            let version =
                caller.with_tags(store, bucket, (&object.key, version)).and_then(|caller| {
                    caller.check(store, operation, delete, (bucket, &object.key))?;
                    check_key(&object.key)?;
                    let version = versions::parse(object.version_id.as_deref())?;
                    Ok((version, may_bypass(&caller, store, (bucket, &object.key), bypass)?))
                });
            (object, version)
        })
        .collect();
    let deletions: Vec<_> = checked
        .iter()
        .filter_map(|(object, version)| {
            let conditions = DeleteConditions {
                etag: object.e_tag.clone(),
                bytes: object.size,
                modified: object.last_modified_time.clone(),
                stored_bytes: None,
            };
            let conditions = conditions.resolve(store, bucket, &object.key);
            let (version, bypasses_governance) = *version.as_ref().ok()?;
            Some((object.key.as_str(), Asked { version, conditions, bypasses_governance }))
        })
        .collect();
    let mut outcomes = delete_all(store, bucket, &deletions).into_iter();
    checked
        .into_iter()
        .map(|(object, version)| {
            let outcome = version.and_then(|_asked| {
                let missing = || refuse(S3ErrorCode::InternalError, "The store has no outcome");
                outcomes.next().ok_or_else(missing)?
            });
            (object, outcome)
        })
        .collect()
}

/// A deletion that a request asks for.
struct Asked {
    /// `None` for the current object.
    version: Option<VersionId>,
    conditions: DeleteConditions,
    /// The request may delete a version that is retained in governance mode.
    bypasses_governance: bool,
}

/// Deletes objects with one call of the store; returns the outcome for each. The ID of a version
/// that does not exist is part of the response, too, but a bucket without versions has only the ID
/// `null`, which responses omit.
fn delete_all(store: &Store, bucket: &str, deletions: &[(&str, Asked)]) -> Vec<S3Result<Deleted>> {
    let has_versions = versions::has_versions(store, bucket);
    let tests: Vec<_> = deletions
        .iter()
        .map(|(_, asked)| |object: &ObjectInfo| asked.conditions.hold(object))
        .collect();
    let of_store: Vec<_> = deletions
        .iter()
        .zip(&tests)
        .map(|(&(key, ref asked), test)| {
            let test: &dyn Fn(&ObjectInfo) -> bool = test;
            let condition = asked.conditions.any().then_some(test);
            let bypass_governance = asked.bypasses_governance;
            Deletion { key, version: asked.version, condition, bypass_governance }
        })
        .collect();
    let outcomes = store.delete_objects(bucket, &of_store).into_iter();
    let shown = |(outcome, (_, asked)): (haul_file_store::Result<Deleted>, &(&str, Asked))| {
        let deleted = outcome.map_err(from_store)?;
        match asked.version {
            version if has_versions => {
                Ok(Deleted { version_id: deleted.version_id.or(version), ..deleted })
            }
            Some(VersionId::Id(_)) => {
                Err(refuse(S3ErrorCode::NoSuchVersion, "The version does not exist"))
            }
            _ => Ok(Deleted { version_id: None, ..deleted }),
        }
    };
    outcomes.zip(deletions).map(shown).collect()
}

/// Adds a checksum to the attributes.
pub(crate) fn keep(attributes: &mut Attributes, checksum: Option<&Checksum>) {
    if let Some(Checksum { algorithm, value }) = checksum {
        attributes.set(algorithm.header(), value);
    }
}

/// Returns the error of a conditional write. As in S3, a condition on the ETag of an object that
/// does not exist fails with `NoSuchKey`.
pub(crate) fn unmet(
    store: &Store,
    bucket: &str,
    key: &str,
    precondition: &Precondition,
    error: Error,
) -> S3Error {
    let is_on_presence = matches!(precondition, Precondition::Absent | Precondition::None);
    match (&error, store.stat(bucket, key)) {
        (Error::PreconditionFailed, Err(absent)) if !is_on_presence => from_store(absent),
        _ => from_store(error),
    }
}
