//! The table of S3 operations: each operation's function.

use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::{
    acl, bucket, documents, encryption, logging, notification, object_lock, policy, quota, stubs,
    versioning,
};
use crate::errors::S3Result;
use crate::objects::listing::{objects as list, versions as version_list};
use crate::objects::{acl as object_acl, copy, delete, get_attributes, lock, read, tagging, write};
use crate::request::operation::Operation;
use crate::service::Haul;
use crate::service::request::Request;
use crate::uploads::{self, complete, multipart, parts};

/// Defines [`execute`], which calls the function for a request's operation.
macro_rules! operations {
    ($($operation:ident => $function:path;)*) => {
        /// Executes a request's operation.
        pub(crate) async fn execute(
            haul: &Haul,
            request: &Request,
            body: Body,
        ) -> S3Result<Answer> {
            match request.operation {
                $(Operation::$operation => Box::pin($function(haul, request, body)).await,)*
            }
        }
    };
}

operations! {
    PutObject => write::put_object;
    // The file in a form is stored by a request of its own.
    PostObject => write::put_object;
    GetObject => read::get_object;
    HeadObject => read::head_object;
    GetObjectAttributes => get_attributes::get_object_attributes;
    DeleteObject => delete::delete_object;
    DeleteObjects => delete::delete_objects;
    CopyObject => copy::copy_object;

    GetObjectTagging => tagging::get_object_tagging;
    PutObjectTagging => tagging::put_object_tagging;
    DeleteObjectTagging => tagging::delete_object_tagging;
    GetObjectAcl => object_acl::get_object_acl;
    PutObjectAcl => object_acl::put_object_acl;
    GetObjectRetention => lock::get_object_retention;
    PutObjectRetention => lock::put_object_retention;
    GetObjectLegalHold => lock::get_object_legal_hold;
    PutObjectLegalHold => lock::put_object_legal_hold;

    ListObjects => list::list_objects;
    ListObjectsV2 => list::list_objects_v2;
    ListObjectVersions => version_list::list_object_versions;

    CreateMultipartUpload => multipart::create_multipart_upload;
    CompleteMultipartUpload => complete::complete_multipart_upload;
    AbortMultipartUpload => multipart::abort_multipart_upload;
    UploadPart => parts::upload_part;
    UploadPartCopy => parts::upload_part_copy;
    ListParts => parts::list_parts;
    ListMultipartUploads => uploads::list::list_multipart_uploads;

    CreateBucket => bucket::create_bucket;
    DeleteBucket => bucket::delete_bucket;
    HeadBucket => bucket::head_bucket;
    ListBuckets => bucket::list_buckets;
    GetBucketLocation => bucket::get_bucket_location;
    PutBucketLifecycleConfiguration => bucket::put_bucket_lifecycle_configuration;
    GetBucketLifecycleConfiguration => bucket::get_bucket_lifecycle_configuration;
    DeleteBucketLifecycle => bucket::delete_bucket_lifecycle;
    PutBucketCors => documents::put_bucket_cors;
    GetBucketCors => documents::get_bucket_cors;
    DeleteBucketCors => documents::delete_bucket_cors;
    PutBucketTagging => documents::put_bucket_tagging;
    GetBucketTagging => documents::get_bucket_tagging;
    DeleteBucketTagging => documents::delete_bucket_tagging;
    PutBucketOwnershipControls => documents::put_bucket_ownership_controls;
    GetBucketOwnershipControls => documents::get_bucket_ownership_controls;
    DeleteBucketOwnershipControls => documents::delete_bucket_ownership_controls;
    PutPublicAccessBlock => documents::put_public_access_block;
    GetPublicAccessBlock => documents::get_public_access_block;
    DeletePublicAccessBlock => documents::delete_public_access_block;
    PutBucketWebsite => documents::put_bucket_website;
    GetBucketWebsite => documents::get_bucket_website;
    DeleteBucketWebsite => documents::delete_bucket_website;
    PutBucketQuota => quota::put_bucket_quota;
    GetBucketQuota => quota::get_bucket_quota;
    DeleteBucketQuota => quota::delete_bucket_quota;
    PutBucketVersioning => versioning::put_bucket_versioning;
    GetBucketVersioning => versioning::get_bucket_versioning;
    PutBucketAcl => acl::put_bucket_acl;
    GetBucketAcl => acl::get_bucket_acl;
    GetBucketRequestPayment => stubs::get_bucket_request_payment;
    PutBucketLogging => logging::put_bucket_logging;
    GetBucketLogging => logging::get_bucket_logging;
    ListenNotification => notification::listen_notification;
    ListenBucketNotification => notification::listen_notification;
    PutBucketNotificationConfiguration => notification::put_bucket_notification_configuration;
    GetBucketNotificationConfiguration => notification::get_bucket_notification_configuration;
    PutBucketPolicy => policy::put_bucket_policy;
    GetBucketPolicy => policy::get_bucket_policy;
    DeleteBucketPolicy => policy::delete_bucket_policy;
    GetBucketPolicyStatus => policy::get_bucket_policy_status;
    PutBucketEncryption => encryption::put_bucket_encryption;
    GetBucketEncryption => encryption::get_bucket_encryption;
    DeleteBucketEncryption => encryption::delete_bucket_encryption;
    GetBucketReplication => stubs::get_bucket_replication;
    PutObjectLockConfiguration => object_lock::put_object_lock_configuration;
    GetObjectLockConfiguration => object_lock::get_object_lock_configuration;
}

#[cfg(test)]
mod tests;
