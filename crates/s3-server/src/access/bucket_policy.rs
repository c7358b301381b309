//! The policy of a bucket in decisions about requests.

use haul_file_store::{Error, Store};
use s3s::dto::PublicAccessBlockConfiguration;
use s3s::{S3ErrorCode, S3Result};

use crate::buckets::settings::{POLICY, PUBLIC_ACCESS_BLOCK, load};
use crate::errors::{from_store, refuse};
use crate::policy::statement::Policy;

/// The policy of a bucket, and whether it applies to its owner only.
pub(crate) struct BucketPolicy {
    pub(crate) policy: Policy,
    /// `true` if the policy is public, and the public access block of the bucket restricts it: then
    /// it can deny, and allows nothing.
    pub(crate) is_restricted: bool,
}

/// Returns `true` if the bucket has a policy, or if that cannot be found out.
pub(crate) fn has_policy(store: &Store, bucket: &str) -> bool {
    has_setting(store, bucket, POLICY)
}

/// Returns `true` if the bucket has a setting, or if that cannot be found out.
pub(crate) fn has_setting(store: &Store, bucket: &str, name: &str) -> bool {
    match store.bucket_settings(bucket) {
        Ok(settings) => settings.get(name).is_some(),
        Err(error) => !matches!(error, Error::NoSuchBucket { .. }),
    }
}

/// Returns the policy of a bucket; `None` if it has none.
///
/// # Errors
/// If damage hides the policy, or if a later version of the server has set it.
pub(crate) fn policy_of(store: &Store, bucket: &str) -> S3Result<Option<BucketPolicy>> {
    let settings = match store.bucket_settings(bucket) {
        Err(Error::NoSuchBucket { .. }) => return Ok(None),
        settings => settings.map_err(from_store)?,
    };
    let Some(text) = settings.get(POLICY) else { return Ok(None) };
    let policy = Policy::parse(text, bucket).map_err(|reason| {
        let message = format!("The policy of the bucket {bucket} cannot be applied: {reason}");
        refuse(S3ErrorCode::InternalError, message)
    })?;
    let block: Option<PublicAccessBlockConfiguration> = load(store, bucket, PUBLIC_ACCESS_BLOCK)?;
    let restricts = block.and_then(|block| block.restrict_public_buckets) == Some(true);
    let is_restricted = restricts && policy.is_public();
    Ok(Some(BucketPolicy { policy, is_restricted }))
}
