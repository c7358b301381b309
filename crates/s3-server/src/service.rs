//! The operations of S3 and where they are carried out.

use std::sync::Arc;

use haul_file_store::Store;
use s3s::{S3, S3ErrorCode, S3Request, S3Response, S3Result, dto};
use tokio::task::{JoinError, spawn_blocking};

use crate::config::Limits;
use crate::errors::refuse;
use crate::front::hot::HotObjects;
use crate::memory::{BodyMemory, PeerMemory, Reserved};
use crate::metrics::Metrics;
use crate::{bucket, complete, copy, list, multipart, parts, read, stubs, tagging, uploads, write};

/// What every operation works with.
#[derive(Clone)]
pub(crate) struct Haul {
    store: Arc<Store>,
    limits: Limits,
    metrics: Arc<Metrics>,
    memory: Arc<BodyMemory>,
    hot: Arc<HotObjects>,
}

impl Haul {
    pub(crate) fn new(
        store: Arc<Store>,
        limits: Limits,
        metrics: Arc<Metrics>,
        memory: Arc<BodyMemory>,
        hot: Arc<HotObjects>,
    ) -> Self {
        Self { store, limits, metrics, memory, hot }
    }

    /// The store, for the calls that need no I/O.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The cache of hot objects.
    pub(crate) fn hot(&self) -> &Arc<HotObjects> {
        &self.hot
    }

    /// Calls the store on a thread that may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Store) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let store = Arc::clone(&self.store);
        joined(spawn_blocking(move || call(&store)).await)
    }

    /// Waits for memory for `bytes` of a body of this peer.
    pub(crate) async fn reserve(
        &self,
        peer: Option<&PeerMemory>,
        bytes: u64,
    ) -> S3Result<Reserved> {
        self.memory.reserve(peer, bytes).await
    }
}

/// The result of a call on another thread; a panic there is an internal error here.
pub(crate) fn joined<T>(outcome: Result<S3Result<T>, JoinError>) -> S3Result<T> {
    outcome.unwrap_or_else(|error| {
        tracing::error!(%error, "a call of the store did not return");
        Err(refuse(S3ErrorCode::InternalError, "The call of the store did not return"))
    })
}

/// Implements the trait of `s3s` with one function per operation; all others are answered with
/// `NotImplemented`.
macro_rules! operations {
    ($($name:ident: $input:ident => $output:ident = $function:path;)*) => {
        #[async_trait::async_trait]
        impl S3 for Haul {
            $(async fn $name(
                &self,
                request: S3Request<dto::$input>,
            ) -> S3Result<S3Response<dto::$output>> {
                Ok(S3Response::new($function(self, request).await?))
            })*
        }
    };
}

operations! {
    put_object: PutObjectInput => PutObjectOutput = write::put_object;
    get_object: GetObjectInput => GetObjectOutput = read::get_object;
    head_object: HeadObjectInput => HeadObjectOutput = read::head_object;
    get_object_attributes: GetObjectAttributesInput => GetObjectAttributesOutput
        = read::get_object_attributes;
    delete_object: DeleteObjectInput => DeleteObjectOutput = write::delete_object;
    delete_objects: DeleteObjectsInput => DeleteObjectsOutput = write::delete_objects;
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
        = list::list_object_versions;

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
        = uploads::list_multipart_uploads;

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

    get_bucket_versioning: GetBucketVersioningInput => GetBucketVersioningOutput
        = stubs::get_bucket_versioning;
    get_bucket_acl: GetBucketAclInput => GetBucketAclOutput = stubs::get_bucket_acl;
    get_object_acl: GetObjectAclInput => GetObjectAclOutput = stubs::get_object_acl;
    get_bucket_request_payment: GetBucketRequestPaymentInput => GetBucketRequestPaymentOutput
        = stubs::get_bucket_request_payment;
    get_bucket_logging: GetBucketLoggingInput => GetBucketLoggingOutput
        = stubs::get_bucket_logging;
    get_bucket_notification_configuration: GetBucketNotificationConfigurationInput
        => GetBucketNotificationConfigurationOutput
        = stubs::get_bucket_notification_configuration;
    get_bucket_policy: GetBucketPolicyInput => GetBucketPolicyOutput = stubs::get_bucket_policy;
    get_bucket_policy_status: GetBucketPolicyStatusInput => GetBucketPolicyStatusOutput
        = stubs::get_bucket_policy_status;
    get_bucket_tagging: GetBucketTaggingInput => GetBucketTaggingOutput
        = stubs::get_bucket_tagging;
    get_bucket_encryption: GetBucketEncryptionInput => GetBucketEncryptionOutput
        = stubs::get_bucket_encryption;
    get_bucket_cors: GetBucketCorsInput => GetBucketCorsOutput = stubs::get_bucket_cors;
    get_bucket_website: GetBucketWebsiteInput => GetBucketWebsiteOutput
        = stubs::get_bucket_website;
    get_bucket_replication: GetBucketReplicationInput => GetBucketReplicationOutput
        = stubs::get_bucket_replication;
    get_bucket_ownership_controls: GetBucketOwnershipControlsInput
        => GetBucketOwnershipControlsOutput = stubs::get_bucket_ownership_controls;
    get_public_access_block: GetPublicAccessBlockInput => GetPublicAccessBlockOutput
        = stubs::get_public_access_block;
    get_object_lock_configuration: GetObjectLockConfigurationInput
        => GetObjectLockConfigurationOutput = stubs::get_object_lock_configuration;
    get_object_retention: GetObjectRetentionInput => GetObjectRetentionOutput
        = stubs::get_object_retention;
    get_object_legal_hold: GetObjectLegalHoldInput => GetObjectLegalHoldOutput
        = stubs::get_object_legal_hold;
}
