//! The calls of the store for lifecycle requests, and the header that states when an object expires.

use form_urlencoded::byte_serialize;
use haul_file_store::{Lifecycle, ObjectInfo, Store};
use s3s::dto::{BucketLifecycleConfiguration, LifecycleRule, Timestamp, TimestampFormat};
use s3s::{S3ErrorCode, S3Result};

use super::{parse, render};
use crate::errors::{from_store, refuse};

/// Replaces the rules of a bucket.
pub(crate) fn put(
    store: &Store,
    bucket: &str,
    configuration: Option<BucketLifecycleConfiguration>,
) -> S3Result<()> {
    store.bucket(bucket).map_err(from_store)?;
    let Some(configuration) = configuration else {
        let message = "The request has no lifecycle configuration";
        return Err(refuse(S3ErrorCode::MalformedXML, message));
    };
    let lifecycle = parse::lifecycle(configuration.rules)?;
    store.set_lifecycle(bucket, &lifecycle).map_err(from_store)
}

/// Returns the rules of a bucket that has any.
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

/// Returns the value of `x-amz-expiration` for an object that expires by a rule of its bucket. The
/// first call for a bucket may read its rules from the disk.
///
/// Rules that cannot be read leave out the header: no sweep applies them either.
pub(crate) fn expiration(store: &Store, bucket: &str, info: &ObjectInfo) -> Option<String> {
    let (at, rule) = store.expiration(bucket, info).ok()??;
    let mut date = Vec::new();
    Timestamp::from(at).format(TimestampFormat::HttpDate, &mut date).ok()?;
    let date = String::from_utf8(date).ok()?;
    let rule: String = byte_serialize(rule.as_bytes()).collect();
    Some(format!("expiry-date=\"{date}\", rule-id=\"{rule}\""))
}
