//! The owners that a client expects the buckets of its request to have.

use haul_file_store::Store;
use hyper::header::HeaderMap;
use s3s::{S3ErrorCode, S3Result};

use crate::access::caller::owner_of;
use crate::errors::refuse;

/// The header with the owner of the bucket that the request uses.
pub(crate) const OF_BUCKET: &str = "x-amz-expected-bucket-owner";

/// The header with the owner of the bucket from which the request copies.
pub(crate) const OF_SOURCE: &str = "x-amz-source-expected-bucket-owner";

/// Fails with `AccessDenied` if the header names another owner than that of the bucket.
pub(crate) fn check(
    store: &Store,
    headers: &HeaderMap,
    header: &'static str,
    bucket: &str,
) -> S3Result<()> {
    let mut expected = headers.get_all(header).into_iter().peekable();
    if expected.peek().is_none() {
        return Ok(());
    }
    let owner = owner_of(store, bucket).id.unwrap_or_default();
    if expected.all(|expected| expected.as_bytes() == owner.as_bytes()) {
        return Ok(());
    }
    let message = format!("The bucket {bucket} does not belong to the owner in {header}");
    Err(refuse(S3ErrorCode::AccessDenied, message))
}
