//! The names of bucket settings. Settings that are S3 documents are stored in S3's XML.
//!
//! `parsed` caches the documents that decisions about requests need; the other modules are document
//! models.

pub(crate) mod cors;
pub(crate) mod lifecycle;
pub(crate) mod notification;
pub(crate) mod ownership_controls;
pub(crate) mod parsed;
pub(crate) mod public_access_block;
pub(crate) mod website;

use haul_file_store::{Attributes, OWNER_SETTING};
use haul_store_pool::Pool;

use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::xml::Document;

/// The bucket's ACL, in the format of `acl::stored`; without it, the ACL is private.
pub(crate) const ACL: &str = "acl";
pub(crate) const CORS: &str = "cors";
/// The delivery of access logs, as a `BucketLoggingStatus`.
pub(crate) const LOGGING: &str = "logging";
/// The notification rules, as a `NotificationConfiguration`.
pub(crate) const NOTIFICATION: &str = "notification";
/// Set before the first object gets an ACL or an owner. Without it, a rejected request need not
/// read the object's ACL.
pub(crate) const OBJECT_LISTS: &str = "object-acls";
/// The user that owns the bucket; without it, the administrator owns it.
pub(crate) const OWNER: &str = OWNER_SETTING;
pub(crate) const OWNERSHIP: &str = "ownership";
pub(crate) const POLICY: &str = "policy";
pub(crate) const PUBLIC_ACCESS_BLOCK: &str = "public-access-block";
pub(crate) const TAGGING: &str = "tagging";
/// The minimum size of objects to which transitions apply, if it is not the default: no rule of
/// this server has transitions, but clients compare the value.
pub(crate) const TRANSITION_SIZE: &str = "transition-size";
pub(crate) const WEBSITE: &str = "website";

/// Returns a bucket's document, if it has one.
pub(crate) fn load<T: Document>(store: &Pool, bucket: &str, name: &str) -> S3Result<Option<T>> {
    parse(&*store.bucket_settings(bucket).map_err(from_store)?, bucket, name)
}

/// Returns a document in a bucket's settings, if they have one.
pub(crate) fn parse<T: Document>(
    settings: &Attributes,
    bucket: &str,
    name: &str,
) -> S3Result<Option<T>> {
    let Some(xml) = settings.get(name) else { return Ok(None) };
    T::parse(xml.as_bytes()).map(Some).map_err(|error| {
        let message = format!("The setting {name} of the bucket {bucket} is malformed: {error}");
        refuse(S3ErrorCode::InternalError, message)
    })
}

/// Sets a setting, or removes it if the bucket has it. The change is durable when this returns.
pub(crate) fn set(store: &Pool, bucket: &str, name: &str, value: Option<&str>) -> S3Result<()> {
    if value.is_none() && store.bucket_settings(bucket).map_err(from_store)?.get(name).is_none() {
        return Ok(());
    }
    store.set_bucket_setting(bucket, name, value).map_err(from_store)
}
