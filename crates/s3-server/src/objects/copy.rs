//! Copies objects. The store shares the stored bytes with the copy if it can: a copy is encrypted
//! or decrypted only if its encryption differs from its source's.
//!
//! A copy is an object in one piece, even if its source was uploaded in parts: its `ETag` and its
//! checksum cover all bytes, for which the content is read.

use std::sync::Arc;

use haul_file_store::{
    Attributes, Error, Etag, Event, ObjectInfo, ObjectLock, Precondition, Tags, TargetBucket,
    VersionId,
};
use haul_http1::Verdict;
use haul_store_pool::Pool;

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::answer::Answer;
use crate::answer::encryption::described;
use crate::body::Body;
use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, Checksum, FULL_OBJECT, TYPE_ATTRIBUTE,
};
use crate::body::copy::{checksum_of, copy_bytes, hashes_of};
use crate::body::part_checksums::PARTS_ATTRIBUTE;
use crate::body::receive::Encoder;
use crate::encryption::content::Content;
use crate::encryption::customer::{CustomerKey, SOURCE_KEY};
use crate::encryption::envelope::{ATTRIBUTE, Structure};
use crate::encryption::lengths::stored_bytes;
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::RequestedEncryption;
use crate::errors::{
    S3Error, S3ErrorCode, S3Result, check_key, from_store, invalid_argument, refuse,
};
use crate::events::new::set_size;
use crate::objects::conditions::{Conditions, precondition};
use crate::objects::headers::{STORAGE_CLASS, StoredHeaders};
use crate::objects::lock::LockHeaders;
use crate::objects::new_acl::NewObjectAcl;
use crate::objects::write::unmet_condition_error;
use crate::request::copy_source::CopySource;
use crate::request::fields::Fields;
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::expiration;
use crate::settings::notification::name::EventName;
use crate::stored::attributes::REDIRECT;
use crate::stored::{tags, versions};
use crate::times::document_time;
use crate::xml::writer::Xml;

/// The response header with the source's version.
pub(crate) const SOURCE_VERSION: &str = "x-amz-copy-source-version-id";

const METADATA_DIRECTIVE: &str = "x-amz-metadata-directive";
const TAGGING_DIRECTIVE: &str = "x-amz-tagging-directive";

pub(crate) async fn copy_object(haul: &Haul, request: &Request, _body: Body) -> S3Result<Answer> {
    let copy = CopyRequest::new(haul, request).await?;
    let master = copy.master.clone();
    let copied = haul.blocking(move |store| copy.execute(store)).await?;
    let Copied { info, checksum, expiration, source_version, version } = copied;
    if let Some(changes) = &request.changes {
        changes.stored(info.bytes, info.etag);
    }
    let document = Xml::document("CopyObjectResult", |xml| {
        xml.element("ETag", format_args!("\"{}\"", info.etag));
        xml.element("LastModified", document_time(info.modified));
        xml.element("ChecksumType", FULL_OBJECT);
        checksum.write_xml(xml);
    });
    let answer = Answer::xml(document)
        .with_some(SOURCE_VERSION, source_version)
        .with_some("x-amz-expiration", expiration)
        .with_some("x-amz-version-id", version);
    Ok(described(answer, master.as_ref()))
}

/// The parameters of a copy request.
struct CopyRequest {
    from: Source,
    to: ObjectName,
    /// The client as the reader of the source.
    reader: Option<Caller>,
    /// The client as the writer of the copy.
    writer: Caller,
    conditions: Conditions,
    /// The condition on the object that the copy replaces.
    precondition: Precondition,
    source_key: Option<CustomerKey>,
    keys: Option<Arc<EncryptionKeys>>,
    /// The metadata in the headers; `None` if the copy keeps its source's metadata.
    metadata: Option<Attributes>,
    redirect: Option<String>,
    /// The tags in the headers; `None` if the copy keeps its source's tags.
    tags: Option<Tags>,
    lock: ObjectLock,
    list: NewObjectAcl,
    /// The checksum algorithm, if it may differ from the source's.
    algorithm: Option<Algorithm>,
    /// The key that seals the copy's data key; `None` stores the copy unencrypted.
    master: Option<Master>,
    event: Option<Event>,
}

/// A stored copy.
struct Copied {
    /// The object's description, with the length that clients see.
    info: ObjectInfo,
    checksum: Checksum,
    expiration: Option<String>,
    /// The ID of the source version that was copied.
    source_version: Option<String>,
    version: Option<String>,
}

impl CopyRequest {
    /// Reads a request's head.
    async fn new(haul: &Haul, request: &Request) -> S3Result<Self> {
        let fields = &request.head.fields;
        let to = request.name();
        let wanted = RequestedEncryption::of(fields)?;
        let source_key = CustomerKey::of(fields, SOURCE_KEY)?;
        check_key(&to.key)?;
        let from = Source::new(&request.head)?;
        let algorithm = fields.given(ALGORITHM_ATTRIBUTE).map(Algorithm::parse).transpose()?;
        let replaces_metadata = replaces(fields, METADATA_DIRECTIVE, "metadata")?;
        let replaces_tags = replaces(fields, TAGGING_DIRECTIVE, "tagging")?;
        let mut headers = StoredHeaders::from_fields(fields)?;
        let lock =
            LockHeaders::from_fields(fields).into_lock(&haul.store(), request.caller(), to)?;
        let tags = tags::parse(&headers.tagging.take().unwrap_or_default())?;
        let metadata = headers.into_attributes()?;
        let changes = replaces_metadata
            || replaces_tags
            || algorithm.is_some()
            || !matches!(wanted, RequestedEncryption::Default)
            || source_key.is_some()
            || [STORAGE_CLASS, REDIRECT].into_iter().any(|name| fields.given(name).is_some());
        if !changes {
            check_differs(&from, to)?;
        }
        Ok(Self {
            from,
            to: to.clone(),
            reader: request.source().cloned(),
            writer: request.caller().clone(),
            conditions: Conditions::from_source(fields),
            precondition: precondition(fields)?,
            source_key,
            keys: haul.encryption(),
            metadata: replaces_metadata.then_some(metadata),
            redirect: fields.given(REDIRECT).map(str::to_owned),
            tags: replaces_tags.then_some(tags),
            lock,
            list: NewObjectAcl::of(haul, request).await?,
            algorithm,
            master: haul.master_for(&to.bucket, wanted)?,
            event: haul.event(request, EventName::CreatedByCopy, &to.key),
        })
    }

    /// Opens the source, and stores the copy. Blocks.
    fn execute(mut self, store: &Pool) -> S3Result<Copied> {
        let ObjectName { bucket, key } = &self.from.name;
        let object = versions::get_source(store, bucket, key, self.from.version)?;
        confirm(self.reader.as_ref(), store, &self.from.name, &object.attributes)?;
        check_conditions(&self.conditions, &object.info)?;
        let source_version = versions::response_id(store, bucket, object.info.version_id);
        let (keys, source_key) = (self.keys.as_deref(), self.source_key.as_ref());
        let content = Content::open(keys, (bucket, key), object, source_key)?;
        let mut attributes = self.attributes(store, &content.object.attributes)?;
        let bytes = content.bytes();
        set_size(&mut self.event, bytes);
        let (stored, checksum) = self.store(store, content, &mut attributes)?;
        Ok(Copied {
            expiration: expiration(store, &self.to.bucket, &stored, &attributes),
            version: versions::response_id_of_new(stored.version_id),
            info: ObjectInfo { bytes, ..stored },
            checksum,
            source_version,
        })
    }

    /// Returns the copy's attributes, without its checksum and its encryption.
    fn attributes(&self, store: &Pool, source: &Attributes) -> S3Result<Attributes> {
        let mut attributes = match &self.metadata {
            Some(given) => given.clone(),
            None => {
                let mut attributes = source.clone();
                // As in S3, a copy has the redirect in its request, and never its source's.
                attributes.remove(REDIRECT);
                if let Some(redirect) = &self.redirect {
                    attributes.set(REDIRECT, &**redirect);
                }
                attributes
            }
        };
        let tags = match &self.tags {
            Some(tags) => tags.clone(),
            None => self.kept_tags(store, source)?,
        };
        attributes.set_tags(&tags);
        let checksums = Algorithm::ALL.map(Algorithm::header);
        let others = [ALGORITHM_ATTRIBUTE, TYPE_ATTRIBUTE, PARTS_ATTRIBUTE, ATTRIBUTE];
        checksums.into_iter().chain(others).for_each(|name| drop(attributes.remove(name)));
        self.list.set(&mut attributes)?;
        // The copy does not have its source's lock.
        self.lock.set_in(&mut attributes);
        Ok(attributes)
    }

    /// Returns the source's tags for the copy. Fails if the client may not read them, or may not
    /// store an object with them, which is checked as for a request that has them.
    fn kept_tags(&self, store: &Pool, source: &Attributes) -> S3Result<Tags> {
        let tags = source.tags();
        if tags.is_empty() {
            return Ok(tags);
        }
        if let Some(reader) = &self.reader {
            let ObjectName { bucket, key } = &self.from.name;
            let read = ("GetObjectTagging", Action::Use(Right::Read));
            let confirmed = reader.with_compared_tags(store, bucket, || Ok(tags.clone()))?;
            confirmed.as_ref().unwrap_or(reader).check_without_acls(store, read, (bucket, key))?;
        }
        let (to, write) = ((&*self.to.bucket, &*self.to.key), Action::Use(Right::Write));
        let writer = self.writer.with_request_tags(tags.clone().into_iter().collect());
        writer.check(store, "CopyObject", write, to)?;
        writer.check_without_acls(store, ("PutObjectTagging", write), to)?;
        Ok(tags)
    }

    /// Stores the copy with these attributes, and adds its checksum and its encryption to them.
    ///
    /// The copy shares the stored bytes if both are unencrypted, or if both have the same kind of
    /// encryption: the source's data key, which encrypted the bytes, is then sealed again.
    /// Encrypted parts cannot become one piece without encrypting them again.
    fn store(
        &self,
        store: &Pool,
        mut content: Content,
        attributes: &mut Attributes,
    ) -> S3Result<(ObjectInfo, Checksum)> {
        let has_parts = content.object.info.etag.part_count() > 0;
        let envelope = match (&content.opened, &self.master) {
            (None, None) => None,
            (Some(opened), Some(master)) if !has_parts && opened.master.has_same_kind(master) => {
                let new = NewContent { master: master.clone(), key: opened.key.clone() };
                let names = (&*self.to.bucket, &*self.to.key);
                let bytes = content.object.info.bytes;
                Some(new.envelope(names, opened.structure.clone(), bytes)?)
            }
            _ => return self.rewrite(store, &content, attributes),
        };
        let algorithm = self.algorithm(&content.object.attributes);
        let checksum = match self.known_checksum(&content) {
            Some(checksum) => checksum,
            None if has_parts => {
                let hashes = hashes_of(&content, algorithm)?;
                let object = Arc::get_mut(&mut content.object).ok_or_else(|| {
                    let message = "The source of the copy is in use";
                    refuse(S3ErrorCode::InternalError, message)
                })?;
                // The store gives the copy its source's ETag.
                object.info.etag = Etag { md5: hashes.md5, parts: 0 };
                hashes.checksum
            }
            None => checksum_of(&content, algorithm)?,
        };
        checksum.set(attributes);
        if let Some(envelope) = envelope {
            envelope.set(attributes);
        }
        let (to, precondition) = (&self.to, &self.precondition);
        let object = &content.object;
        let target = self.target();
        let stored = store.copy_object(object, target, &to.key, Some(attributes), precondition);
        Ok((stored.map_err(|error| self.unmet_condition_error(store, error))?, checksum))
    }

    /// Stores a copy of the content in one piece, encrypted with a new data key or unencrypted.
    fn rewrite(
        &self,
        store: &Pool,
        content: &Content,
        attributes: &mut Attributes,
    ) -> S3Result<(ObjectInfo, Checksum)> {
        let new = self.master.clone().map(NewContent::generate).transpose()?;
        let encryption = new.as_ref().map(|new| new.start(0)).transpose()?;
        let bytes = content.bytes();
        let stored = if encryption.is_some() { stored_bytes(bytes) } else { bytes };
        let writer =
            store.object_writer(&self.to.bucket, &self.to.key, Some(stored)).map_err(from_store)?;
        let mut encoder = Encoder { writer, encryption };
        let known = self.known_checksum(content);
        let algorithm = self.algorithm(&content.object.attributes);
        let missing = Some(algorithm).filter(|_| known.is_none());
        let computed = copy_bytes(content, 0..bytes, &mut encoder, missing)?;
        let checksum = known.or(computed).ok_or_else(|| {
            refuse(S3ErrorCode::InternalError, "The checksum of the copy was not computed")
        })?;
        checksum.set(attributes);
        let (written, _md5) = encoder.finish()?;
        let ObjectName { bucket, key } = &self.to;
        if let Some(new) = new {
            let structure = Structure::OnePiece;
            new.envelope((bucket, key), structure, written.bytes())?.set(attributes);
        }
        let stored = store.put_written(self.target(), key, written, attributes, &self.precondition);
        Ok((stored.map_err(|error| self.unmet_condition_error(store, error))?, checksum))
    }

    fn target(&self) -> TargetBucket<'_> {
        TargetBucket::from(&self.to.bucket).with_event(self.event.as_ref())
    }

    /// Returns the error for a copy that was not stored.
    fn unmet_condition_error(&self, store: &Pool, error: Error) -> S3Error {
        unmet_condition_error(store, &self.to.bucket, &self.to.key, &self.precondition, error)
    }

    /// Returns the copy's checksum algorithm, for a source with these attributes.
    fn algorithm(&self, source: &Attributes) -> Algorithm {
        let from_source = || Checksum::from_attributes(source).map(|checksum| checksum.algorithm);
        self.algorithm.or_else(from_source).unwrap_or(Algorithm::Crc64Nvme)
    }

    /// Returns the copy's checksum, if the source has the same one.
    fn known_checksum(&self, content: &Content) -> Option<Checksum> {
        let object = &content.object;
        // The content of an object in parts is read in any case.
        let is_in_one_piece = object.info.etag.part_count() == 0;
        let algorithm = self.algorithm(&object.attributes);
        Checksum::stored(&object.attributes, algorithm).filter(|_| is_in_one_piece)
    }
}

/// A copy's source.
pub(crate) struct Source {
    pub(crate) name: ObjectName,
    pub(crate) version: Option<VersionId>,
}

impl Source {
    /// Reads a request's head.
    ///
    /// # Errors
    /// If the source's name or version is malformed.
    pub(crate) fn new(head: &Head) -> S3Result<Self> {
        let CopySource { name, version } = CopySource::from_request(head)?;
        check_key(&name.key)?;
        Ok(Self { name, version: versions::parse(version.as_deref())? })
    }
}

/// Fails if the client may not read the source that was opened.
pub(crate) fn confirm(
    reader: Option<&Caller>,
    store: &Pool,
    source: &ObjectName,
    attributes: &Attributes,
) -> S3Result<()> {
    let ObjectName { bucket, key } = source;
    match reader {
        Some(reader) => reader.confirm_read(store, "GetObject", (bucket, key), attributes),
        None => Ok(()),
    }
}

/// Fails if an object would be copied to itself, without a change.
fn check_differs(from: &Source, to: &ObjectName) -> S3Result<()> {
    if from.version.is_some() || from.name != *to {
        return Ok(());
    }
    let message = "This copy request is illegal because it is trying to copy an object to itself \
                   without changing the object's metadata, storage class, website redirect \
                   location or encryption attributes.";
    Err(refuse(S3ErrorCode::InvalidRequest, message))
}

/// Fails with 412 if any condition on the source does not hold.
pub(crate) fn check_conditions(conditions: &Conditions, info: &ObjectInfo) -> S3Result<()> {
    if matches!(conditions.verdict(info), Verdict::Proceed { .. }) {
        return Ok(());
    }
    let message = "At least one of the preconditions on the source did not hold";
    Err(refuse(S3ErrorCode::PreconditionFailed, message))
}

/// Returns `true` if the directive in a header is `REPLACE`.
fn replaces(fields: &Fields, name: &str, what: &str) -> S3Result<bool> {
    match fields.given(name) {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(other) => Err(invalid_argument(name, other, format!("Unknown {what} directive."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;
    use crate::request::operation::COPY_SOURCE;

    #[test]
    fn directive_is_copy_or_replace() {
        for (value, expected) in
            [("", Some(false)), ("COPY", Some(false)), ("REPLACE", Some(true)), ("copy", None)]
        {
            let fields = [(METADATA_DIRECTIVE, value)].into_iter().collect();
            let found = replaces(&fields, METADATA_DIRECTIVE, "metadata");
            match expected {
                Some(expected) => assert_eq!(found.unwrap(), expected, "{value}"),
                None => assert_eq!(found.unwrap_err().code(), S3ErrorCode::InvalidArgument),
            }
        }
    }

    #[test]
    fn only_the_current_object_itself_is_the_same() {
        let to = ObjectName::new("bucket", "key");
        for (source, differs) in [
            ("bucket/key", false),
            ("/bucket/key", false),
            ("bucket/other", true),
            ("other/key", true),
            ("bucket/key?versionId=null", true),
        ] {
            let head = head("PUT /bucket/key", &[(COPY_SOURCE, source)]);
            let source = Source::new(&head).unwrap();
            assert_eq!(check_differs(&source, &to).is_ok(), differs, "{}", source.name);
        }
    }
}
