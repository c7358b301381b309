//! Responses for bucket features that are not implemented. They equal the responses of S3 for a
//! bucket without the feature, so that clients that query the feature continue to work.

use haul_file_store::Store;
use hyper::StatusCode;
use s3s::dto::{
    self, GetBucketAclInput, GetBucketAclOutput, GetBucketRequestPaymentInput,
    GetBucketRequestPaymentOutput, GetObjectAclInput, GetObjectAclOutput, Grant, Grantee, Owner,
    Payer, Permission, Type,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::access::caller::owner_of;
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
    get_bucket_logging: GetBucketLoggingInput => GetBucketLoggingOutput;
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
    get_object_lock_configuration: GetObjectLockConfigurationInput
        => GetObjectLockConfigurationOutput, S3ErrorCode::ObjectLockConfigurationNotFoundError;
    get_object_retention: GetObjectRetentionInput => GetObjectRetentionOutput,
        S3ErrorCode::NoSuchObjectLockConfiguration;
    get_object_legal_hold: GetObjectLegalHoldInput => GetObjectLegalHoldOutput,
        S3ErrorCode::NoSuchObjectLockConfiguration;
}

pub(crate) async fn get_bucket_request_payment(
    haul: &Haul,
    request: S3Request<GetBucketRequestPaymentInput>,
) -> S3Result<GetBucketRequestPaymentOutput> {
    haul.store().bucket(&request.input.bucket).map_err(from_store)?;
    let payer = Some(Payer::from_static(Payer::BUCKET_OWNER));
    Ok(GetBucketRequestPaymentOutput { payer })
}

pub(crate) async fn get_bucket_acl(
    haul: &Haul,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<GetBucketAclOutput> {
    haul.store().bucket(&request.input.bucket).map_err(from_store)?;
    let owner = owner_of(&haul.store(), &request.input.bucket);
    Ok(GetBucketAclOutput { grants: Some(vec![owners_grant(&owner)]), owner: Some(owner) })
}

pub(crate) async fn get_object_acl(
    haul: &Haul,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<GetObjectAclOutput> {
    let GetObjectAclInput { bucket, key, .. } = request.input;
    let found = move |store: &Store| {
        store.stat(&bucket, &key).map_err(from_store)?;
        Ok(owner_of(store, &bucket))
    };
    let owner = haul.blocking(found).await?;
    let (grants, owner) = (Some(vec![owners_grant(&owner)]), Some(owner));
    Ok(GetObjectAclOutput { grants, owner, ..GetObjectAclOutput::default() })
}

fn owners_grant(owner: &Owner) -> Grant {
    let Owner { display_name, id } = owner.clone();
    let grantee = Grantee {
        display_name,
        email_address: None,
        id,
        type_: Type::from_static(Type::CANONICAL_USER),
        uri: None,
    };
    let permission = Some(Permission::from_static(Permission::FULL_CONTROL));
    Grant { grantee: Some(grantee), permission }
}

fn not_configured(code: S3ErrorCode) -> S3Error {
    let mut error = refuse(code, "The feature is not configured and is not supported");
    error.set_status_code(StatusCode::NOT_FOUND);
    error
}
