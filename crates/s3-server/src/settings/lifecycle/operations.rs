//! The requests that read and change lifecycle rules, and the header `x-amz-expiration`.

use form_urlencoded::byte_serialize;
use haul_file_store::{Attributes, Lifecycle, ObjectInfo, Store};

use super::configuration::LifecycleConfiguration;
use super::{parse, render};
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::times::header_time;

pub(crate) fn put(
    store: &Store,
    bucket: &str,
    configuration: LifecycleConfiguration,
) -> S3Result<()> {
    store.bucket(bucket).map_err(from_store)?;
    let lifecycle = parse::lifecycle(configuration)?;
    store.set_lifecycle(bucket, &lifecycle).map_err(from_store)
}

/// Returns the bucket's rules. Fails if there are none.
pub(crate) fn get(store: &Store, bucket: &str) -> S3Result<LifecycleConfiguration> {
    let lifecycle = store.lifecycle(bucket).map_err(from_store)?;
    if lifecycle.rules.is_empty() {
        let message = "The lifecycle configuration does not exist";
        return Err(refuse(S3ErrorCode::NoSuchLifecycleConfiguration, message));
    }
    Ok(render::configuration(&lifecycle))
}

pub(crate) fn delete(store: &Store, bucket: &str) -> S3Result<()> {
    store.set_lifecycle(bucket, &Lifecycle::default()).map_err(from_store)
}

/// Returns the value of `x-amz-expiration` if a rule in the bucket expires an object with these
/// attributes. The first call for a bucket may read the bucket's rules from the disk.
///
/// Returns `None` if the rules cannot be read: sweeps do not apply them either.
pub(crate) fn expiration(
    store: &Store,
    bucket: &str,
    info: &ObjectInfo,
    attributes: &Attributes,
) -> Option<String> {
    let (at, rule) = store.expiration(bucket, info, attributes).ok()??;
    let date = header_time(at);
    let rule: String = byte_serialize(rule.as_bytes()).collect();
    Some(format!("expiry-date=\"{date}\", rule-id=\"{rule}\""))
}
