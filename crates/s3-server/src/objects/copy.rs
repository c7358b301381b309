//! Copies of objects. The store shares or copies the bytes; they pass through the server only if
//! the copy has another encryption.

use haul_file_store::{Attributes, ObjectInfo, Precondition, Store, Tags, VersionId};
use haul_http1::Verdict;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective,
    TaggingDirective, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::rights::Right;
use crate::access::service::SourceReader;
use crate::acl::new_object::NewObjectList;
use crate::audit::Changes;
use crate::body::checksum::{Checksum, show_checksum};
use crate::body::copy::copy_bytes;
use crate::body::receive::Encoder;
use crate::buckets::lifecycle::operations::expiration;
use crate::encryption::content::Content;
use crate::encryption::customer::{CustomerKey, SOURCE_PREFIX};
use crate::encryption::envelope::{ATTRIBUTE, Structure};
use crate::encryption::lengths::stored_bytes;
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::{Wanted, described};
use crate::errors::{check_key, from_store, refuse};
use crate::objects::attributes;
use crate::objects::conditions::{Conditions, source_conditions};
use crate::objects::headers::stored_headers;
use crate::objects::lock::lock_headers;
use crate::objects::read::etag;
use crate::objects::tagging;
use crate::objects::versions;
use crate::output::Output;
use crate::service::Haul;

pub(crate) async fn copy_object(
    haul: &Haul,
    request: S3Request<CopyObjectInput>,
) -> S3Result<Output<CopyObjectOutput>> {
    let S3Request { mut input, headers: of_request, extensions, .. } = request;
    let wanted = Wanted::of(&of_request)?;
    let source_key = CustomerKey::of(&of_request, SOURCE_PREFIX)?;
    check_key(&input.key)?;
    let from = source(&input.copy_source)?;
    let conditions = source_conditions!(input);
    let replace = directive(
        input.metadata_directive.as_ref().map(MetadataDirective::as_str),
        "x-amz-metadata-directive",
    )?;
    let replace_tags = directive(
        input.tagging_directive.as_ref().map(TaggingDirective::as_str),
        "x-amz-tagging-directive",
    )?;
    let mut headers = stored_headers!(input);
    let caller = Caller::of(&extensions);
    let names = (&*input.bucket, &*input.key);
    let lock = lock_headers!(input).into_lock(&haul.store(), &caller, names)?;
    let tags = tagging::parse(&headers.tagging.take().unwrap_or_default())?;
    let given = headers.into_attributes()?;
    let to = (input.bucket, input.key);
    if !(replace || replace_tags) && matches!(wanted, Wanted::Default) {
        check_differs(&from, (&to.0, &to.1))?;
    }
    let master = haul.master_for(&to.0, wanted)?;
    let (keys, new_master) = (haul.encryption(), master.clone());

    let list = NewObjectList::of(haul, (&of_request, &extensions), (&to.0, &to.1)).await?;
    let reader = extensions.get::<SourceReader>().cloned();
    let (copied, stored, expiration, checksum) = haul
        .blocking(move |store| {
            let source = (from.bucket.as_str(), from.key.as_str());
            let object = versions::get_source(store, source.0, source.1, from.version)?;
            confirm(reader.as_ref(), store, source, &object.attributes)?;
            check_conditions(&conditions, &object.info)?;
            let content = Content::open(keys.as_deref(), source, object, source_key.as_ref())?;
            let object = &content.object;
            let mut changed = if replace { given } else { object.attributes.clone() };
            let tags = match replace_tags {
                true => tags,
                false => tags_of_source(reader.as_ref(), store, source, &object.attributes)?,
            };
            changed.set_tags(&tags);
            attributes::copy_checksum(&object.attributes, &mut changed);
            list.set(&mut changed)?;
            // The copy does not have the lock of its source.
            lock.set_in(&mut changed);
            attributes::fit(&mut changed);
            let to = (to.0.as_str(), to.1.as_str());
            let stored = store_copy(store, &content, to, &mut changed, new_master)?;
            let expiration = expiration(store, to.0, &stored, &changed);
            let copied = CopiedIds {
                source: versions::shown(store, source.0, object.info.version_id),
                copy: versions::shown_of_new(stored.version_id),
            };
            let stored = ObjectInfo { bytes: content.bytes(), ..stored };
            Ok((copied, stored, expiration, Checksum::from_attributes(&changed)))
        })
        .await?;
    if let Some(changes) = Changes::of(&extensions) {
        changes.stored(stored.bytes, stored.etag);
    }
    let output = CopyObjectOutput {
        copy_object_result: Some(result(&stored, checksum)),
        copy_source_version_id: copied.source,
        expiration,
        version_id: copied.copy,
        ..CopyObjectOutput::default()
    };
    Ok(described(output, master.as_ref()))
}

/// Returns the document of a response about a stored copy.
fn result(stored: &ObjectInfo, checksum: Option<Checksum>) -> CopyObjectResult {
    let mut result = CopyObjectResult {
        e_tag: Some(etag(stored.etag)),
        last_modified: Some(Timestamp::from(stored.modified)),
        ..CopyObjectResult::default()
    };
    show_checksum!(result, checksum);
    result
}

/// Stores a copy of an object with this key; `None` stores it unencrypted. Shares or copies the
/// stored bytes if the copy has the same kind of encryption as the source, or none like it:
/// encrypted bytes are those of the data key, which is sealed again. Otherwise reads the content
/// and encrypts it with a new data key, or stores it decrypted.
fn store_copy(
    store: &Store,
    content: &Content,
    to: (&str, &str),
    attributes: &mut Attributes,
    master: Option<Master>,
) -> S3Result<ObjectInfo> {
    attributes.remove(ATTRIBUTE);
    let (bytes, none) = (content.object.info.bytes, Precondition::None);
    match (&content.opened, master) {
        (None, None) => {}
        (Some(opened), Some(master)) if opened.master.is_of_same_kind(&master) => {
            let new = NewContent { master, key: opened.key.clone() };
            new.envelope(to, opened.structure.clone(), bytes)?.set(attributes);
        }
        (_, master) => return rewrite(store, content, to, attributes, master),
    }
    store.copy_object(&content.object, to, Some(attributes), &none).map_err(from_store)
}

/// Stores a copy of the content in one piece, encrypted with a new data key or unencrypted.
fn rewrite(
    store: &Store,
    content: &Content,
    to: (&str, &str),
    attributes: &mut Attributes,
    master: Option<Master>,
) -> S3Result<ObjectInfo> {
    let new = master.map(NewContent::generate).transpose()?;
    let encryption = new.as_ref().map(|new| new.start(0)).transpose()?;
    let bytes = content.bytes();
    let stored = if encryption.is_some() { stored_bytes(bytes) } else { bytes };
    let writer = store.object_writer(Some(stored)).map_err(from_store)?;
    let mut encoder = Encoder { writer, encryption };
    copy_bytes(content, 0..bytes, &mut encoder, None)?;
    let (written, _md5) = encoder.finish()?;
    if content.object.info.etag.part_count() > 0 {
        attributes::forget_parts(attributes);
    }
    if let Some(new) = new {
        new.envelope(to, Structure::OnePiece, written.bytes())?.set(attributes);
    }
    let none = Precondition::None;
    store.put_written(to.0, to.1, written, attributes, &none).map_err(from_store)
}

/// The version IDs in the response to a copy.
struct CopiedIds {
    source: Option<String>,
    copy: Option<String>,
}

/// The source of a copy.
pub(crate) struct Source {
    pub(crate) bucket: String,
    pub(crate) key: String,
    pub(crate) version: Option<VersionId>,
}

/// Returns the source of a copy.
pub(crate) fn source(source: &CopySource) -> S3Result<Source> {
    let CopySource::Bucket { bucket, key, version_id } = source else {
        return Err(refuse(
            S3ErrorCode::NotImplemented,
            "The source must be an object in a bucket",
        ));
    };
    check_key(key)?;
    let version = versions::parse(version_id.as_deref())?;
    Ok(Source { bucket: bucket.to_string(), key: key.to_string(), version })
}

/// Fails if the client may not read the source that was opened.
pub(crate) fn confirm(
    reader: Option<&SourceReader>,
    store: &Store,
    source: (&str, &str),
    attributes: &Attributes,
) -> S3Result<()> {
    match reader {
        Some(SourceReader(reader)) => reader.confirm_read(store, "GetObject", source, attributes),
        None => Ok(()),
    }
}

/// Fails if an object would be copied to itself, without a change.
fn check_differs(from: &Source, to: (&str, &str)) -> S3Result<()> {
    if from.version.is_some() || (&*from.bucket, &*from.key) != to {
        return Ok(());
    }
    let message = "A copy of an object to itself must change its metadata, tags or encryption";
    Err(refuse(S3ErrorCode::InvalidRequest, message))
}

/// Returns the tags of the source for the copy, if the client may read them.
fn tags_of_source(
    reader: Option<&SourceReader>,
    store: &Store,
    source: (&str, &str),
    attributes: &Attributes,
) -> S3Result<Tags> {
    let tags = attributes.tags();
    if let Some(SourceReader(reader)) = reader.filter(|_| !tags.is_empty()) {
        let read = ("GetObjectTagging", Action::Use(Right::Read));
        let confirmed = reader.with_compared_tags(store, source.0, || Ok(tags.clone()))?;
        confirmed.as_ref().unwrap_or(reader).check_without_lists(store, read, source)?;
    }
    Ok(tags)
}

/// Fails with 412 if a condition on the source does not hold, for every kind of condition.
pub(crate) fn check_conditions(conditions: &Conditions, info: &ObjectInfo) -> S3Result<()> {
    if matches!(conditions.verdict(info, None), Verdict::Proceed { .. }) {
        return Ok(());
    }
    let message = "At least one of the preconditions on the source did not hold";
    Err(refuse(S3ErrorCode::PreconditionFailed, message))
}

/// Returns `true` if the directive is `REPLACE`.
fn directive(value: Option<&str>, name: &str) -> S3Result<bool> {
    match value {
        None | Some("COPY") => Ok(false),
        Some("REPLACE") => Ok(true),
        Some(_) => {
            let message = format!("{name} must be COPY or REPLACE");
            Err(refuse(S3ErrorCode::InvalidArgument, message))
        }
    }
}
