//! The requests that read and change lifecycle rules, and the header `x-amz-expiration`.

use form_urlencoded::byte_serialize;
use haul_file_store::{Attributes, Lifecycle, ObjectInfo, Store};
use s3s::dto::{BucketLifecycleConfiguration, LifecycleRule, TimestampFormat};
use s3s::{S3ErrorCode, S3Result};

use super::{parse, render};
use crate::errors::{from_store, refuse};
use crate::times::timestamp;

/// Replaces the rules of a bucket.
pub(crate) fn put(
    store: &Store,
    bucket: &str,
    configuration: Option<BucketLifecycleConfiguration>,
) -> S3Result<()> {
    store.bucket(bucket).map_err(from_store)?;
    let Some(configuration) = configuration else {
        let message = "The request contains no lifecycle configuration";
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    };
    let lifecycle = parse::lifecycle(configuration.rules)?;
    store.set_lifecycle(bucket, &lifecycle).map_err(from_store)
}

/// Returns the rules of a bucket. Fails if it has none.
pub(crate) fn get(store: &Store, bucket: &str) -> S3Result<Vec<LifecycleRule>> {
    let lifecycle = store.lifecycle(bucket).map_err(from_store)?;
    if lifecycle.rules.is_empty() {
        let message = "The lifecycle configuration does not exist";
        return Err(refuse(S3ErrorCode::NoSuchLifecycleConfiguration, message));
    }
    Ok(render::rules(&lifecycle))
}

/// Removes the rules of a bucket.
pub(crate) fn delete(store: &Store, bucket: &str) -> S3Result<()> {
    store.set_lifecycle(bucket, &Lifecycle::default()).map_err(from_store)
}

/// Returns the value of `x-amz-expiration` if a rule of the bucket expires an object with these
/// attributes. The first call for a bucket may read its rules from the disk.
///
/// Returns `None` if the rules cannot be read: sweeps do not apply them either.
pub(crate) fn expiration(
    store: &Store,
    bucket: &str,
    info: &ObjectInfo,
    attributes: &Attributes,
) -> Option<String> {
    let (at, rule) = store.expiration(bucket, info, attributes).ok()??;
    let mut date = Vec::new();
    timestamp(at).format(TimestampFormat::HttpDate, &mut date).ok()?;
    let date = String::from_utf8(date).ok()?;
    let rule: String = byte_serialize(rule.as_bytes()).collect();
    Some(format!("expiry-date=\"{date}\", rule-id=\"{rule}\""))
}
