//! Operations on the policy of a bucket, which is stored as the text that the client sent.

use s3s::dto::{self, PolicyStatus, PublicAccessBlockConfiguration};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::acl::rules::ListRules;
use crate::buckets::documents::absent;
use crate::buckets::settings::{POLICY, PUBLIC_ACCESS_BLOCK, load, set};
use crate::errors::{from_store, refuse};
use crate::policy::statement::Policy;
use crate::service::Haul;

pub(crate) async fn put_bucket_policy(
    haul: &Haul,
    request: S3Request<dto::PutBucketPolicyInput>,
) -> S3Result<dto::PutBucketPolicyOutput> {
    let dto::PutBucketPolicyInput { bucket, policy: text, .. } = request.input;
    let policy = Policy::parse(&text, &bucket)
        .map_err(|reason| refuse(S3ErrorCode::MalformedPolicy, reason))?;
    haul.blocking(move |store| {
        let block: Option<PublicAccessBlockConfiguration> =
            load(store, &bucket, PUBLIC_ACCESS_BLOCK)?;
        let is_blocked = block.and_then(|block| block.block_public_policy) == Some(true);
        if is_blocked && policy.is_public() {
            let message = "The public access block of the bucket refuses public policies";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
        store.set_bucket_setting(&bucket, POLICY, Some(&text)).map_err(from_store)
    })
    .await?;
    Ok(dto::PutBucketPolicyOutput::default())
}

pub(crate) async fn get_bucket_policy(
    haul: &Haul,
    request: S3Request<dto::GetBucketPolicyInput>,
) -> S3Result<dto::GetBucketPolicyOutput> {
    let bucket = request.input.bucket;
    let settings =
        haul.blocking(move |store| store.bucket_settings(&bucket).map_err(from_store)).await?;
    let policy = settings.get(POLICY).ok_or_else(|| absent("NoSuchBucketPolicy"))?;
    Ok(dto::GetBucketPolicyOutput { policy: Some(policy.to_owned()) })
}

pub(crate) async fn delete_bucket_policy(
    haul: &Haul,
    request: S3Request<dto::DeleteBucketPolicyInput>,
) -> S3Result<dto::DeleteBucketPolicyOutput> {
    let bucket = request.input.bucket;
    haul.blocking(move |store| set(store, &bucket, POLICY, None)).await?;
    Ok(dto::DeleteBucketPolicyOutput::default())
}

pub(crate) async fn get_bucket_policy_status(
    haul: &Haul,
    request: S3Request<dto::GetBucketPolicyStatusInput>,
) -> S3Result<dto::GetBucketPolicyStatusOutput> {
    let bucket = request.input.bucket;
    let is_public = haul
        .blocking(move |store| {
            let settings = store.bucket_settings(&bucket).map_err(from_store)?;
            let policy = settings.get(POLICY).map(|text| Policy::parse(text, &bucket));
            let is_public = policy.is_some_and(|policy| policy.is_ok_and(|one| one.is_public()));
            Ok(is_public || ListRules::of(&settings, &bucket)?.is_public())
        })
        .await?;
    let policy_status = Some(PolicyStatus { is_public: Some(is_public) });
    Ok(dto::GetBucketPolicyStatusOutput { policy_status })
}
