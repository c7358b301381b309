//! The table of S3 operations: maps each operation to its function.

use s3s::{S3, S3Request, S3Response, S3Result, dto};

use crate::acl::operations as acl;
use crate::buckets::{
    bucket, documents, encryption, logging, object_lock, policy, stubs, versioning,
};
use crate::objects::listing::{objects as list, versions as version_list};
use crate::objects::{copy, delete, get_attributes, lock, read, tagging, write};
use crate::output::Output;
use crate::service::Haul;
use crate::uploads::{self, complete, multipart, parts};

/// Implements the trait of `s3s` with one function per operation. `s3s` answers the other
/// operations with `NotImplemented`.
macro_rules! operations {
    ($($name:ident: $input:ident => $output:ident = $function:path;)*) => {
        #[async_trait::async_trait]
        impl S3 for Haul {
            $(async fn $name(
                &self,
                request: S3Request<dto::$input>,
            ) -> S3Result<S3Response<dto::$output>> {
                let Output { output, headers } = $function(self, request).await?.into();
                Ok(S3Response::with_headers(output, headers))
            })*
        }
    };
}

operations! {
    put_object: PutObjectInput => PutObjectOutput = write::put_object;
    get_object: GetObjectInput => GetObjectOutput = read::get_object;
    head_object: HeadObjectInput => HeadObjectOutput = read::head_object;
    get_object_attributes: GetObjectAttributesInput => GetObjectAttributesOutput
        = get_attributes::get_object_attributes;
    delete_object: DeleteObjectInput => DeleteObjectOutput = delete::delete_object;
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput = delete::delete_objects;
    copy_object: CopyObjectInput => CopyObjectOutput = copy::copy_object;

    get_object_tagging: GetObjectTaggingInput => GetObjectTaggingOutput
        = tagging::get_object_tagging;
    put_object_tagging: PutObjectTaggingInput => PutObjectTaggingOutput
        = tagging::put_object_tagging;
    delete_object_tagging: DeleteObjectTaggingInput => DeleteObjectTaggingOutput
        = tagging::delete_object_tagging;

    list_objects: ListObjectsInput => ListObjectsOutput = list::list_objects;
    list_objects_v2: ListObjectsV2Input => ListObjectsV2Output = list::list_objects_v2;
    list_object_versions: ListObjectVersionsInput => ListObjectVersionsOutput
        = version_list::list_object_versions;

    create_multipart_upload: CreateMultipartUploadInput => CreateMultipartUploadOutput
        = multipart::create_multipart_upload;
    complete_multipart_upload: CompleteMultipartUploadInput => CompleteMultipartUploadOutput
        = complete::complete_multipart_upload;
    abort_multipart_upload: AbortMultipartUploadInput => AbortMultipartUploadOutput
        = multipart::abort_multipart_upload;
    upload_part: UploadPartInput => UploadPartOutput = parts::upload_part;
    upload_part_copy: UploadPartCopyInput => UploadPartCopyOutput = parts::upload_part_copy;
    list_parts: ListPartsInput => ListPartsOutput = parts::list_parts;
    list_multipart_uploads: ListMultipartUploadsInput => ListMultipartUploadsOutput
        = uploads::list::list_multipart_uploads;

    create_bucket: CreateBucketInput => CreateBucketOutput = bucket::create_bucket;
    delete_bucket: DeleteBucketInput => DeleteBucketOutput = bucket::delete_bucket;
    head_bucket: HeadBucketInput => HeadBucketOutput = bucket::head_bucket;
    list_buckets: ListBucketsInput => ListBucketsOutput = bucket::list_buckets;
    get_bucket_location: GetBucketLocationInput => GetBucketLocationOutput
        = bucket::get_bucket_location;

    put_bucket_lifecycle_configuration: PutBucketLifecycleConfigurationInput
        => PutBucketLifecycleConfigurationOutput = bucket::put_bucket_lifecycle_configuration;
    get_bucket_lifecycle_configuration: GetBucketLifecycleConfigurationInput
        => GetBucketLifecycleConfigurationOutput = bucket::get_bucket_lifecycle_configuration;
    delete_bucket_lifecycle: DeleteBucketLifecycleInput => DeleteBucketLifecycleOutput
        = bucket::delete_bucket_lifecycle;

    put_bucket_cors: PutBucketCorsInput => PutBucketCorsOutput = documents::put_bucket_cors;
    get_bucket_cors: GetBucketCorsInput => GetBucketCorsOutput = documents::get_bucket_cors;
    delete_bucket_cors: DeleteBucketCorsInput => DeleteBucketCorsOutput
        = documents::delete_bucket_cors;
    put_bucket_tagging: PutBucketTaggingInput => PutBucketTaggingOutput
        = documents::put_bucket_tagging;
    get_bucket_tagging: GetBucketTaggingInput => GetBucketTaggingOutput
        = documents::get_bucket_tagging;
    delete_bucket_tagging: DeleteBucketTaggingInput => DeleteBucketTaggingOutput
        = documents::delete_bucket_tagging;
    put_bucket_ownership_controls: PutBucketOwnershipControlsInput
        => PutBucketOwnershipControlsOutput = documents::put_bucket_ownership_controls;
    get_bucket_ownership_controls: GetBucketOwnershipControlsInput
        => GetBucketOwnershipControlsOutput = documents::get_bucket_ownership_controls;
    delete_bucket_ownership_controls: DeleteBucketOwnershipControlsInput
        => DeleteBucketOwnershipControlsOutput = documents::delete_bucket_ownership_controls;
    put_public_access_block: PutPublicAccessBlockInput => PutPublicAccessBlockOutput
        = documents::put_public_access_block;
    get_public_access_block: GetPublicAccessBlockInput => GetPublicAccessBlockOutput
        = documents::get_public_access_block;
    delete_public_access_block: DeletePublicAccessBlockInput => DeletePublicAccessBlockOutput
        = documents::delete_public_access_block;

    put_bucket_versioning: PutBucketVersioningInput => PutBucketVersioningOutput
        = versioning::put_bucket_versioning;
    get_bucket_versioning: GetBucketVersioningInput => GetBucketVersioningOutput
        = versioning::get_bucket_versioning;
    get_bucket_acl: GetBucketAclInput => GetBucketAclOutput = acl::get_bucket_acl;
    put_bucket_acl: PutBucketAclInput => PutBucketAclOutput = acl::put_bucket_acl;
    get_object_acl: GetObjectAclInput => GetObjectAclOutput = acl::get_object_acl;
    put_object_acl: PutObjectAclInput => PutObjectAclOutput = acl::put_object_acl;
    get_bucket_request_payment: GetBucketRequestPaymentInput => GetBucketRequestPaymentOutput
        = stubs::get_bucket_request_payment;
    get_bucket_logging: GetBucketLoggingInput => GetBucketLoggingOutput
        = logging::get_bucket_logging;
    put_bucket_logging: PutBucketLoggingInput => PutBucketLoggingOutput
        = logging::put_bucket_logging;
    get_bucket_notification_configuration: GetBucketNotificationConfigurationInput
        => GetBucketNotificationConfigurationOutput
        = stubs::get_bucket_notification_configuration;
    put_bucket_policy: PutBucketPolicyInput => PutBucketPolicyOutput = policy::put_bucket_policy;
    get_bucket_policy: GetBucketPolicyInput => GetBucketPolicyOutput = policy::get_bucket_policy;
    delete_bucket_policy: DeleteBucketPolicyInput => DeleteBucketPolicyOutput
        = policy::delete_bucket_policy;
    get_bucket_policy_status: GetBucketPolicyStatusInput => GetBucketPolicyStatusOutput
        = policy::get_bucket_policy_status;
    get_bucket_encryption: GetBucketEncryptionInput => GetBucketEncryptionOutput
        = encryption::get_bucket_encryption;
    put_bucket_encryption: PutBucketEncryptionInput => PutBucketEncryptionOutput
        = encryption::put_bucket_encryption;
    delete_bucket_encryption: DeleteBucketEncryptionInput => DeleteBucketEncryptionOutput
        = encryption::delete_bucket_encryption;
    get_bucket_website: GetBucketWebsiteInput => GetBucketWebsiteOutput
        = stubs::get_bucket_website;
    get_bucket_replication: GetBucketReplicationInput => GetBucketReplicationOutput
        = stubs::get_bucket_replication;
    get_object_lock_configuration: GetObjectLockConfigurationInput
        => GetObjectLockConfigurationOutput = object_lock::get_object_lock_configuration;
    put_object_lock_configuration: PutObjectLockConfigurationInput
        => PutObjectLockConfigurationOutput = object_lock::put_object_lock_configuration;
    get_object_retention: GetObjectRetentionInput => GetObjectRetentionOutput
        = lock::get_object_retention;
    put_object_retention: PutObjectRetentionInput => PutObjectRetentionOutput
        = lock::put_object_retention;
    get_object_legal_hold: GetObjectLegalHoldInput => GetObjectLegalHoldOutput
        = lock::get_object_legal_hold;
    put_object_legal_hold: PutObjectLegalHoldInput => PutObjectLegalHoldOutput
        = lock::put_object_legal_hold;
}
