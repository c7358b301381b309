//! Responses for bucket features that are not implemented. They equal the responses of S3 for a
//! bucket without the feature, so that clients that query the feature continue to work.

use hyper::StatusCode;
use s3s::dto::{self, GetBucketRequestPaymentInput, GetBucketRequestPaymentOutput, Payer};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::errors::{from_store, refuse};
use crate::service::Haul;

/// Defines operations that return an empty output if the bucket exists.
macro_rules! empty_outputs {
    ($($name:ident: $input:ident => $output:ident;)*) => {
        $(pub(crate) async fn $name(
            haul: &Haul,
            request: S3Request<dto::$input>,
        ) -> S3Result<dto::$output> {
            haul.store().bucket(&request.input.bucket).map_err(from_store)?;
            Ok(dto::$output::default())
        })*
    };
}

empty_outputs! {
    get_bucket_notification_configuration: GetBucketNotificationConfigurationInput
        => GetBucketNotificationConfigurationOutput;
}

/// Defines operations that return an error (the feature is not configured) if the bucket exists.
macro_rules! not_configured {
    ($($name:ident: $input:ident => $output:ident, $code:expr;)*) => {
        $(pub(crate) async fn $name(
            haul: &Haul,
            request: S3Request<dto::$input>,
        ) -> S3Result<dto::$output> {
            haul.store().bucket(&request.input.bucket).map_err(from_store)?;
            Err(not_configured($code))
        })*
    };
}

not_configured! {
    get_bucket_website: GetBucketWebsiteInput => GetBucketWebsiteOutput,
        S3ErrorCode::NoSuchWebsiteConfiguration;
    get_bucket_replication: GetBucketReplicationInput => GetBucketReplicationOutput,
        S3ErrorCode::ReplicationConfigurationNotFoundError;
}

pub(crate) async fn get_bucket_request_payment(
    haul: &Haul,
    request: S3Request<GetBucketRequestPaymentInput>,
) -> S3Result<GetBucketRequestPaymentOutput> {
    haul.store().bucket(&request.input.bucket).map_err(from_store)?;
    let payer = Some(Payer::from_static(Payer::BUCKET_OWNER));
    Ok(GetBucketRequestPaymentOutput { payer })
}

fn not_configured(code: S3ErrorCode) -> S3Error {
    let mut error = refuse(code, "The feature is not configured and is not supported");
    error.set_status_code(StatusCode::NOT_FOUND);
    error
}
