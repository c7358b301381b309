//! The versioning state of buckets.

use haul_file_store::Versioning;
use s3s::dto::{
    BucketVersioningStatus, GetBucketVersioningInput, GetBucketVersioningOutput, MFADelete,
    PutBucketVersioningInput, PutBucketVersioningOutput,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::errors::{from_store, refuse};
use crate::service::Haul;

pub(crate) async fn put_bucket_versioning(
    haul: &Haul,
    request: S3Request<PutBucketVersioningInput>,
) -> S3Result<PutBucketVersioningOutput> {
    let PutBucketVersioningInput { bucket, versioning_configuration: configuration, .. } =
        request.input;
    if configuration.mfa_delete.as_ref().is_some_and(|mfa| mfa.as_str() != MFADelete::DISABLED) {
        return Err(refuse(S3ErrorCode::NotImplemented, "MFA delete is not supported"));
    }
    let status = configuration.status.as_ref().map(BucketVersioningStatus::as_str);
    let versioning = match status {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => {
            let message = "The status of the versioning must be Enabled or Suspended";
            return Err(refuse(S3ErrorCode::IllegalVersioningConfigurationException, message));
        }
    };
    let set = move |store: &haul_file_store::Store| {
        store.set_versioning(&bucket, versioning).map_err(from_store)
    };
    haul.blocking(set).await?;
    Ok(PutBucketVersioningOutput::default())
}

pub(crate) async fn get_bucket_versioning(
    haul: &Haul,
    request: S3Request<GetBucketVersioningInput>,
) -> S3Result<GetBucketVersioningOutput> {
    let status = match haul.store().versioning(&request.input.bucket).map_err(from_store)? {
        Versioning::Off => None,
        Versioning::Enabled => Some(BucketVersioningStatus::ENABLED),
        Versioning::Suspended => Some(BucketVersioningStatus::SUSPENDED),
    };
    let status = status.map(BucketVersioningStatus::from_static);
    Ok(GetBucketVersioningOutput { status, ..GetBucketVersioningOutput::default() })
}
