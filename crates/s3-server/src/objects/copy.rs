//! Copies of objects. The store shares or copies the bytes; they do not pass through the server.

use haul_file_store::{ObjectInfo, Precondition};
use haul_http1::Verdict;
use s3s::dto::{
    CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, MetadataDirective,
    TaggingDirective, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::audit::Changes;
use crate::body::checksum::{Checksum, show_checksum};
use crate::buckets::lifecycle::operations::expiration;
use crate::errors::{check_key, check_version, from_store, refuse};
use crate::objects::attributes;
use crate::objects::conditions::{Conditions, source_conditions};
use crate::objects::headers::stored_headers;
use crate::objects::read::etag;
use crate::objects::tagging;
use crate::service::Haul;

pub(crate) async fn copy_object(
    haul: &Haul,
    request: S3Request<CopyObjectInput>,
) -> S3Result<CopyObjectOutput> {
    let changes = Changes::of(&request.extensions).cloned();
    let mut input = request.input;
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
    let tags = headers.tagging.take();
    let given = headers.into_attributes()?;
    let tags = tagging::parse(tags.as_deref().unwrap_or_default())?;
    let to = (input.bucket, input.key);
    if from == to && !replace && !replace_tags {
        let message = "A copy of an object to itself must change its metadata or tags";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }

    let (stored, expiration, checksum) = haul
        .blocking(move |store| {
            let object = store.head(&from.0, &from.1).map_err(from_store)?;
            check_conditions(&conditions, &object.info)?;
            let mut changed = if replace { given } else { object.attributes.clone() };
            let kept_tags = tagging::from_attributes(&object.attributes);
            tagging::set(&mut changed, if replace_tags { &tags } else { &kept_tags });
            attributes::copy_checksum(&object.attributes, &mut changed);
            attributes::fit(&mut changed);
            let from = (from.0.as_str(), from.1.as_str());
            let to = (to.0.as_str(), to.1.as_str());
            let stored = store.copy(from, to, Some(&changed), &Precondition::None);
            let stored = stored.map_err(from_store)?;
            let expiration = expiration(store, to.0, &stored);
            Ok((stored, expiration, Checksum::from_attributes(&changed)))
        })
        .await?;
    if let Some(changes) = changes {
        changes.stored(stored.bytes, stored.etag);
    }
    let mut result = CopyObjectResult {
        e_tag: Some(etag(stored.etag)),
        last_modified: Some(Timestamp::from(stored.modified)),
        ..CopyObjectResult::default()
    };
    show_checksum!(result, checksum);
    let copy_object_result = Some(result);
    Ok(CopyObjectOutput { copy_object_result, expiration, ..CopyObjectOutput::default() })
}

/// Returns the bucket and key of the source.
pub(crate) fn source(source: &CopySource) -> S3Result<(String, String)> {
    let CopySource::Bucket { bucket, key, version_id } = source else {
        return Err(refuse(
            S3ErrorCode::NotImplemented,
            "The source must be an object in a bucket",
        ));
    };
    check_key(key)?;
    check_version(version_id.as_deref())?;
    Ok((bucket.to_string(), key.to_string()))
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
