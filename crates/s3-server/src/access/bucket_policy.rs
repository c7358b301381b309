//! Bucket policies in decisions about requests.

use std::sync::Arc;

use haul_file_store::Error;
use haul_store_pool::Pool;

use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::settings::POLICY;
use crate::settings::parsed::{self, BucketPolicy};

/// Returns `true` if the bucket has a policy, or if its settings cannot be read.
pub(crate) fn has_policy(store: &Pool, bucket: &str) -> bool {
    has_setting(store, bucket, POLICY)
}

/// Returns `true` if the bucket has a setting, or if its settings cannot be read.
pub(crate) fn has_setting(store: &Pool, bucket: &str, name: &str) -> bool {
    match store.bucket_settings(bucket) {
        Ok(settings) => settings.get(name).is_some(),
        Err(error) => !matches!(error, Error::NoSuchBucket { .. }),
    }
}

/// Returns `true` if the bucket policy compares object tags, or if the policy cannot be read.
pub(crate) fn policy_compares_tags(store: &Pool, bucket: &str) -> bool {
    match policy_of(store, bucket) {
        Ok(found) => found.is_some_and(|found| found.policy.uses_existing_tags()),
        Err(_) => true,
    }
}

/// Returns the bucket policy; `None` if the bucket has none.
///
/// # Errors
/// If corruption hides the policy, or if another version of the server has set it.
pub(crate) fn policy_of(store: &Pool, bucket: &str) -> S3Result<Option<Arc<BucketPolicy>>> {
    let settings = match store.bucket_settings(bucket) {
        Err(Error::NoSuchBucket { .. }) => return Ok(None),
        settings => settings.map_err(from_store)?,
    };
    parsed::policy(&settings, bucket).map_err(|reason| {
        let message = format!(
            "The policy of the bucket {bucket} cannot be applied: {reason}. The owner of the bucket \
             and the administrator can replace or delete it"
        );
        refuse(S3ErrorCode::InternalError, message)
    })
}

#[cfg(test)]
mod tests {
    use haul_file_store::Options;

    use super::*;

    #[test]
    fn malformed_policy_is_an_error_and_a_missing_one_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        assert!(policy_of(&store, "bucket").unwrap().is_none());
        assert!(policy_of(&store, "absent").unwrap().is_none());
        store.set_bucket_setting("bucket", POLICY, Some("{")).unwrap();
        assert_eq!(policy_of(&store, "bucket").err().unwrap().code().as_str(), "InternalError");
    }
}
