//! The policy of a bucket in decisions about requests.

use std::sync::Arc;

use haul_file_store::{Attributes, BucketSettings, Error, Store};
use s3s::dto::PublicAccessBlockConfiguration;
use s3s::{S3ErrorCode, S3Result};

use crate::buckets::settings::{POLICY, PUBLIC_ACCESS_BLOCK, parse};
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

/// Returns the policy of a bucket; `None` if it has none. It is parsed once after each change of
/// the settings of the bucket.
///
/// # Errors
/// If damage hides the policy, or if a later version of the server has set it.
pub(crate) fn policy_of(store: &Store, bucket: &str) -> S3Result<Option<Arc<BucketPolicy>>> {
    let settings = match store.bucket_settings(bucket) {
        Err(Error::NoSuchBucket { .. }) => return Ok(None),
        settings => settings.map_err(from_store)?,
    };
    cached(&settings, bucket).map_err(|reason| {
        let message = format!("The policy of the bucket {bucket} cannot be applied: {reason}");
        refuse(S3ErrorCode::InternalError, message)
    })
}

/// The policy that is cached with the settings of a bucket, or the reason why it cannot be applied.
type Parsed = Result<Option<Arc<BucketPolicy>>, String>;

/// Returns the policy in the settings of a bucket, which is parsed at the first call.
fn cached(settings: &BucketSettings, bucket: &str) -> Parsed {
    if settings.get(POLICY).is_none() {
        return Ok(None);
    }
    Parsed::clone(&settings.derived(|settings| parsed(settings, bucket)))
}

fn parsed(settings: &Attributes, bucket: &str) -> Parsed {
    let Some(text) = settings.get(POLICY) else { return Ok(None) };
    let policy = Policy::parse(text, bucket)?;
    let block: Option<PublicAccessBlockConfiguration> =
        parse(settings, bucket, PUBLIC_ACCESS_BLOCK).map_err(|error| error.to_string())?;
    let restricts = block.and_then(|block| block.restrict_public_buckets) == Some(true);
    let is_restricted = restricts && policy.is_public();
    Ok(Some(Arc::new(BucketPolicy { policy, is_restricted })))
}

#[cfg(test)]
mod tests {
    use haul_file_store::Options;

    use super::*;

    const POLICY_TEXT: &str = r#"{"Statement":{"Effect":"Allow","Principal":"*",
        "Action":"s3:GetObject","Resource":"arn:aws:s3:::bucket/*"}}"#;

    #[test]
    fn policy_is_parsed_once_until_a_setting_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(dir.path(), Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        assert!(policy_of(&store, "bucket").unwrap().is_none());
        assert!(policy_of(&store, "absent").unwrap().is_none());
        store.set_bucket_setting("bucket", POLICY, Some(POLICY_TEXT)).unwrap();
        let found = || policy_of(&store, "bucket").unwrap().unwrap();
        let first = found();
        // As for the keys of a DeleteObjects.
        assert!((0..1000).all(|_| Arc::ptr_eq(&first, &found())));
        let block = "<PublicAccessBlockConfiguration><RestrictPublicBuckets>true\
                     </RestrictPublicBuckets></PublicAccessBlockConfiguration>";
        store.set_bucket_setting("bucket", PUBLIC_ACCESS_BLOCK, Some(block)).unwrap();
        assert!(!first.is_restricted && found().is_restricted);
        store.set_bucket_setting("bucket", POLICY, Some("{")).unwrap();
        assert_eq!(policy_of(&store, "bucket").err().unwrap().code().as_str(), "InternalError");
        store.set_bucket_setting("bucket", POLICY, None).unwrap();
        assert!(policy_of(&store, "bucket").unwrap().is_none());
    }
}
