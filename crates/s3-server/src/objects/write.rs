//! Storing and deleting objects.

use haul_file_store::{Attributes, Error, ObjectInfo, PendingPut, Precondition, Store};
use s3s::dto::{
    self, ChecksumType, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, DeletedObject, ObjectIdentifier, PutObjectInput, PutObjectOutput,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::audit::Changes;
use crate::body::checksum::{Checksum, FULL_OBJECT, show_checksum};
use crate::body::receive::{Collected, Receiver};
use crate::buckets::lifecycle::operations::expiration;
use crate::errors::{check_key, check_version, from_store, refuse};
use crate::objects::conditions::precondition;
use crate::objects::headers::stored_headers;
use crate::objects::read::etag;
use crate::service::Haul;

/// The most objects one request deletes, as in S3.
const DELETE_MAX: usize = 1000;

pub(crate) async fn put_object(
    haul: &Haul,
    mut request: S3Request<PutObjectInput>,
) -> S3Result<PutObjectOutput> {
    let input = &mut request.input;
    check_key(&input.key)?;
    if input.write_offset_bytes.is_some() {
        return Err(refuse(S3ErrorCode::NotImplemented, "Objects cannot be appended to"));
    }
    let precondition = precondition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let mut attributes = stored_headers!(input).into_attributes()?;
    let body = input.body.take();
    let receiver = Receiver::of(haul, &request, body)?;
    let changes = Changes::of(&request.extensions).cloned();
    let PutObjectInput { bucket, key, .. } = request.input;
    // Nobody should send bytes to a bucket that is not there.
    haul.store().bucket(&bucket).map_err(from_store)?;

    let (stored, expiration, checksum) = if receiver.is_small() {
        let collected = receiver.collect(haul).await?;
        let put = SmallPut { bucket, key, attributes, precondition, collected };
        let bucket = put.bucket.clone();
        let (stored, checksum) = put.store(haul).await?;
        // The first PUT to a bucket may read its rules from the disk; then they are in memory.
        let expiration = expiration(haul.store(), &bucket, &stored);
        (stored, expiration, checksum)
    } else {
        let streamed = receiver.stream(haul, Store::object_writer).await?;
        haul.blocking(move |store| {
            let (written, checksum) = streamed.finish()?;
            keep(&mut attributes, checksum.as_ref());
            let stored = store.put_written(&bucket, &key, written, &attributes, &precondition);
            let refused = |error| unmet(store, &bucket, &key, &precondition, error);
            let stored = stored.map_err(refused)?;
            let expiration = expiration(store, &bucket, &stored);
            Ok((stored, expiration, checksum))
        })
        .await?
    };

    if let Some(changes) = changes {
        changes.stored(stored.bytes, stored.etag);
    }
    let e_tag = Some(etag(stored.etag));
    let mut output = PutObjectOutput { e_tag, expiration, ..Default::default() };
    output.checksum_type = checksum.as_ref().map(|_| ChecksumType::from_static(FULL_OBJECT));
    show_checksum!(output, checksum);
    Ok(output)
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
    /// The put must be repeated on a thread that may block: it would wait, or its error depends on
    /// a lookup of the present object.
    Blocking(Box<SmallPut>),
}

impl SmallPut {
    /// Stores the object. Uses a blocking thread only if the put would wait for anything but the
    /// sync of the log.
    async fn store(self, haul: &Haul) -> S3Result<(ObjectInfo, Option<Checksum>)> {
        match self.start(haul.store())? {
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
    let DeleteObjectInput { bucket, key, version_id, .. } = request.input;
    let conditional = request.input.if_match.is_some()
        || request.input.if_match_last_modified_time.is_some()
        || request.input.if_match_size.is_some();
    if conditional {
        return Err(refuse(S3ErrorCode::NotImplemented, "A delete takes no conditions"));
    }
    check_key(&key)?;
    check_version(version_id.as_deref())?;
    haul.blocking(move |store| store.delete(&bucket, &key).map_err(from_store)).await?;
    Ok(DeleteObjectOutput::default())
}

pub(crate) async fn delete_objects(
    haul: &Haul,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let changes = Changes::of(&request.extensions).cloned();
    let DeleteObjectsInput { bucket, delete, .. } = request.input;
    if delete.objects.is_empty() || delete.objects.len() > DELETE_MAX {
        let message = format!("Between 1 and {DELETE_MAX} objects are deleted with one request");
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    }
    haul.store().bucket(&bucket).map_err(from_store)?;
    let quiet = delete.quiet == Some(true);
    let outcomes =
        haul.blocking(move |store| Ok(delete_all(store, &bucket, delete.objects))).await?;
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    for (object, outcome) in outcomes {
        if let Some(changes) = &changes {
            let error = outcome.as_ref().err();
            changes.deleted(&object.key, error.map(|error| error.code().as_str()));
        }
        let ObjectIdentifier { key, version_id, .. } = object;
        match outcome {
            Ok(()) if quiet => {}
            Ok(()) => deleted.push(DeletedObject {
                key: Some(key),
                version_id,
                ..DeletedObject::default()
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

/// Deletes what can be deleted, with one call of the store.
fn delete_all(
    store: &Store,
    bucket: &str,
    objects: Vec<ObjectIdentifier>,
) -> Vec<(ObjectIdentifier, S3Result<()>)> {
    let checked: Vec<_> = objects
        .into_iter()
        .map(|object| {
            let good = check_key(&object.key)
                .and_then(|()| check_version(object.version_id.as_deref()))
                .and_then(|()| match (&object.e_tag, object.size, &object.last_modified_time) {
                    (None, None, None) => Ok(()),
                    _ => Err(refuse(S3ErrorCode::NotImplemented, "A delete takes no conditions")),
                });
            (object, good)
        })
        .collect();
    let keys: Vec<_> = checked
        .iter()
        .filter(|(_, good)| good.is_ok())
        .map(|(object, _)| object.key.as_str())
        .collect();
    let mut outcomes = store.delete_many(bucket, &keys).into_iter();
    checked
        .into_iter()
        .map(|(object, good)| {
            let outcome = good.and_then(|()| match outcomes.next() {
                Some(outcome) => outcome.map(drop).map_err(from_store),
                None => Err(refuse(S3ErrorCode::InternalError, "The store gave no outcome")),
            });
            (object, outcome)
        })
        .collect()
}

/// Puts a checksum among the attributes.
pub(crate) fn keep(attributes: &mut Attributes, checksum: Option<&Checksum>) {
    if let Some(Checksum { algorithm, value }) = checksum {
        attributes.set(algorithm.header(), value);
    }
}

/// The error of a write under a precondition. S3 says of an object that should have a certain ETag
/// and is not there that it is not there.
pub(crate) fn unmet(
    store: &Store,
    bucket: &str,
    key: &str,
    precondition: &Precondition,
    error: Error,
) -> S3Error {
    let about_presence = matches!(precondition, Precondition::Absent | Precondition::None);
    match (&error, store.stat(bucket, key)) {
        (Error::PreconditionFailed, Err(absent)) if !about_presence => from_store(absent),
        _ => from_store(error),
    }
}
