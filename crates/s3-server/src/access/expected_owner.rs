//! The owners that a client expects its request's buckets to have.

use crate::acl::owner::owner_of;
use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::fields::Fields;
use haul_store_pool::Pool;

/// The header that names the expected owner of the request's bucket.
pub(crate) const OF_BUCKET: &str = "x-amz-expected-bucket-owner";

/// The header that names the expected owner of a copy's source bucket.
pub(crate) const OF_SOURCE: &str = "x-amz-source-expected-bucket-owner";

/// Fails with `AccessDenied` if the header names anyone but the bucket owner.
pub(crate) fn check(
    store: &Pool,
    fields: &Fields,
    header: &'static str,
    bucket: &str,
) -> S3Result<()> {
    let mut expected = fields.all(header).peekable();
    if expected.peek().is_none() {
        return Ok(());
    }
    let owner = owner_of(store, bucket).name;
    if expected.all(|expected| expected == owner.as_bytes()) {
        return Ok(());
    }
    let message = format!("The bucket {bucket} does not belong to the owner in {header}");
    Err(refuse(S3ErrorCode::AccessDenied, message))
}
