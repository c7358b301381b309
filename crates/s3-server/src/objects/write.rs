//! Storing objects.

use bytes::Bytes;
use haul_file_store::{Attributes, Error, ObjectInfo, PendingPut, Precondition, Store};
use hyper::body::Body;
use s3s::dto::{ChecksumType, PutObjectInput, PutObjectOutput};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result, StdError};

use crate::access::caller::Caller;
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
use crate::objects::conditions::precondition;
use crate::objects::headers::stored_headers;
use crate::objects::lock::lock_headers;
use crate::objects::read::etag;
use crate::objects::tagging;
use crate::objects::versions;
use crate::output::Output;
use crate::service::Haul;

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
    let caller = Caller::of(&request.extensions);
    let names = (&*input.bucket, &*input.key);
    let lock = lock_headers!(input).into_lock(&haul.store(), &caller, names)?;
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
pub(crate) fn check_bucket(store: &Store, bucket: &str) -> S3Result<()> {
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
        let tags = tagging::alone(&attributes);
        let put = SmallPut { bucket, key, attributes, precondition, collected };
        let bucket = put.bucket.clone();
        let (info, checksum) = put.store(haul).await?;
        // The first PUT to a bucket may read its rules from the disk; then they are in memory.
        let expiration = expiration(&haul.store(), &bucket, &info, &tags);
        let version_id = versions::shown_of_new(info.version_id);
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
            let expiration = expiration(store, &bucket, &info, &attributes);
            let version_id = versions::shown_of_new(info.version_id);
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
