//! Copies of objects. The store shares or copies the bytes; they do not pass through the server.

use haul_file_store::{Attributes, Object, ObjectInfo, Precondition, Store, VersionId};
use haul_http1::Verdict;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective,
    TaggingDirective, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::Basis;
use crate::access::service::SourceReader;
use crate::acl::new_object::NewObjectList;
use crate::audit::Changes;
use crate::body::checksum::{Checksum, show_checksum};
use crate::buckets::lifecycle::operations::expiration;
use crate::errors::{check_key, from_store, refuse};
use crate::objects::attributes;
use crate::objects::conditions::{Conditions, source_conditions};
use crate::objects::headers::stored_headers;
use crate::objects::lock::lock_headers;
use crate::objects::read::etag;
use crate::objects::{tagging, versions};
use crate::service::Haul;

pub(crate) async fn copy_object(
    haul: &Haul,
    request: S3Request<CopyObjectInput>,
) -> S3Result<CopyObjectOutput> {
    let S3Request { mut input, headers: of_request, extensions, .. } = request;
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
    let lock = lock_headers!(input).into_lock(&haul.store(), &input.bucket)?;
    let tags = tagging::parse(&headers.tagging.take().unwrap_or_default())?;
    let given = headers.into_attributes()?;
    let to = (input.bucket, input.key);
    let is_itself = from.version.is_none() && (&from.bucket, &from.key) == (&to.0, &to.1);
    if is_itself && !replace && !replace_tags {
        let message = "A copy of an object to itself must change its metadata or tags";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }

    let list = NewObjectList::of(haul, (&of_request, &extensions), (&to.0, &to.1)).await?;
    let reader = extensions.get::<SourceReader>().cloned();
    let is_opened = from.version.is_some() || is_by_list(reader.as_ref());
    let (copied, stored, expiration, checksum) = haul
        .blocking(move |store| {
            let object = open(store, &from, is_opened)?;
            confirm(reader.as_ref(), store, (&from.bucket, &from.key), &object.attributes)?;
            check_conditions(&conditions, &object.info)?;
            let mut changed = if replace { given } else { object.attributes.clone() };
            let kept_tags = tagging::from_attributes(&object.attributes);
            tagging::set(&mut changed, if replace_tags { &tags } else { &kept_tags });
            attributes::copy_checksum(&object.attributes, &mut changed);
            list.set(&mut changed)?;
            // The copy does not have the lock of its source.
            lock.set_in(&mut changed);
            attributes::fit(&mut changed);
            let source = (from.bucket.as_str(), from.key.as_str());
            let to = (to.0.as_str(), to.1.as_str());
            let stored = match is_opened {
                false => store.copy(source, to, Some(&changed), &Precondition::None),
                true => store.copy_object(&object, to, Some(&changed), &Precondition::None),
            };
            let stored = stored.map_err(from_store)?;
            let expiration = expiration(store, to.0, &stored);
            let copied = CopiedIds {
                source: versions::shown(store, source.0, object.info.version_id),
                copy: versions::shown(store, to.0, stored.version_id),
            };
            Ok((copied, stored, expiration, Checksum::from_attributes(&changed)))
        })
        .await?;
    if let Some(changes) = Changes::of(&extensions) {
        changes.stored(stored.bytes, stored.etag);
    }
    let mut result = CopyObjectResult {
        e_tag: Some(etag(stored.etag)),
        last_modified: Some(Timestamp::from(stored.modified)),
        ..CopyObjectResult::default()
    };
    show_checksum!(result, checksum);
    let copy_object_result = Some(result);
    Ok(CopyObjectOutput {
        copy_object_result,
        copy_source_version_id: copied.source,
        expiration,
        version_id: copied.copy,
        ..CopyObjectOutput::default()
    })
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

/// Returns `true` if only a list allows to read the source: the object whose list is confirmed must
/// be the one that is copied.
fn is_by_list(reader: Option<&SourceReader>) -> bool {
    reader.is_some_and(|SourceReader(reader)| reader.basis() == Basis::List)
}

/// Returns the source, with its content if `with_content` is `true`. Without it, the copy looks up
/// the current object again.
fn open(store: &Store, from: &Source, with_content: bool) -> S3Result<Object> {
    match with_content {
        true => versions::get(store, &from.bucket, &from.key, from.version),
        false => versions::head(store, &from.bucket, &from.key, from.version),
    }
}

/// Fails if the client may not read the source that was opened.
pub(crate) fn confirm(
    reader: Option<&SourceReader>,
    store: &Store,
    source: (&str, &str),
    attributes: &Attributes,
) -> S3Result<()> {
    match reader {
        Some(SourceReader(reader)) => reader.confirm_read(store, source, attributes),
        None => Ok(()),
    }
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
