//! The encryption that a bucket has for new objects by default.

use s3s::dto::{
    DeleteBucketEncryptionInput, DeleteBucketEncryptionOutput, GetBucketEncryptionInput,
    GetBucketEncryptionOutput, PutBucketEncryptionInput, PutBucketEncryptionOutput,
    ServerSideEncryptionConfiguration,
};
use s3s::{S3Request, S3Result};

use crate::buckets::documents::absent;
use crate::buckets::settings::{encode, load, set};
use crate::encryption::default::{DEFAULT, master_of_default};
use crate::service::Haul;

pub(crate) async fn put_bucket_encryption(
    haul: &Haul,
    request: S3Request<PutBucketEncryptionInput>,
) -> S3Result<PutBucketEncryptionOutput> {
    let input = request.input;
    let (bucket, document) = (input.bucket, input.server_side_encryption_configuration);
    // Without the key, every PUT to the bucket would fail.
    master_of_default(haul.encryption().as_deref(), &document)?;
    let text = encode(&document)?;
    haul.blocking(move |store| set(store, &bucket, DEFAULT, Some(&text))).await?;
    Ok(PutBucketEncryptionOutput::default())
}

pub(crate) async fn get_bucket_encryption(
    haul: &Haul,
    request: S3Request<GetBucketEncryptionInput>,
) -> S3Result<GetBucketEncryptionOutput> {
    let bucket = request.input.bucket;
    let found = haul.blocking(move |store| load(store, &bucket, DEFAULT)).await?;
    let found: ServerSideEncryptionConfiguration =
        found.ok_or_else(|| absent("ServerSideEncryptionConfigurationNotFoundError"))?;
    Ok(GetBucketEncryptionOutput { server_side_encryption_configuration: Some(found) })
}

pub(crate) async fn delete_bucket_encryption(
    haul: &Haul,
    request: S3Request<DeleteBucketEncryptionInput>,
) -> S3Result<DeleteBucketEncryptionOutput> {
    let bucket = request.input.bucket;
    haul.blocking(move |store| set(store, &bucket, DEFAULT, None)).await?;
    Ok(DeleteBucketEncryptionOutput::default())
}
