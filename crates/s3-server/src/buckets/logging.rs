//! Operations on the access log of a bucket.

use haul_file_store::{Error, Store};
use s3s::dto::{
    BucketLoggingStatus, GetBucketLoggingInput, GetBucketLoggingOutput, LoggingEnabled,
    PartitionDateSource, PartitionedPrefix, PutBucketLoggingInput, PutBucketLoggingOutput,
    SimplePrefix, TargetObjectKeyFormat,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::{Basis, Caller};
use crate::bucket_logs::names::sample_key;
use crate::bucket_logs::rights::may_deliver;
use crate::bucket_logs::target::{KeyFormat, LogTarget, Source};
use crate::buckets::settings::{LOGGING, encode, load, set};
use crate::errors::{check_key, from_store, refuse};
use crate::service::Haul;

pub(crate) async fn put_bucket_logging(
    haul: &Haul,
    request: S3Request<PutBucketLoggingInput>,
) -> S3Result<PutBucketLoggingOutput> {
    check_owner(&request, "PutBucketLogging", &request.input.bucket)?;
    let PutBucketLoggingInput { bucket, bucket_logging_status: status, .. } = request.input;
    let Some(enabled) = status.logging_enabled else {
        haul.blocking(move |store| set(store, &bucket, LOGGING, None)).await?;
        return Ok(PutBucketLoggingOutput::default());
    };
    let target = LogTarget::of_document(&enabled)?;
    let document = encode(&BucketLoggingStatus { logging_enabled: Some(document(&target)) })?;
    haul.blocking(move |store| {
        let settings = store.bucket_settings(&bucket).map_err(from_store)?;
        check_target(store, &target, &Source::new(&bucket, &settings))?;
        set(store, &bucket, LOGGING, Some(&document))
    })
    .await?;
    Ok(PutBucketLoggingOutput::default())
}

pub(crate) async fn get_bucket_logging(
    haul: &Haul,
    request: S3Request<GetBucketLoggingInput>,
) -> S3Result<GetBucketLoggingOutput> {
    check_owner(&request, "GetBucketLogging", &request.input.bucket)?;
    let bucket = request.input.bucket;
    let status: Option<BucketLoggingStatus> =
        haul.blocking(move |store| load(store, &bucket, LOGGING)).await?;
    let logging_enabled = status.and_then(|status| status.logging_enabled);
    Ok(GetBucketLoggingOutput { logging_enabled })
}

/// Fails if only the policy of the bucket allows the operation: as in S3, the client must own the
/// bucket, or have the right `admin`.
fn check_owner<T>(request: &S3Request<T>, operation: &str, bucket: &str) -> S3Result<()> {
    let caller = Caller::of(&request.extensions);
    match caller.basis() {
        Basis::Right => Ok(()),
        Basis::Policy | Basis::List => {
            Err(caller.refusal(operation, "the right admin", bucket, ""))
        }
    }
}

/// Fails if the records of the source cannot be delivered to the target.
fn check_target(store: &Store, target: &LogTarget, source: &Source) -> S3Result<()> {
    let bucket = &target.bucket;
    match store.bucket(bucket) {
        Ok(_) => {}
        Err(Error::NoSuchBucket { .. } | Error::InvalidBucketName { .. }) => {
            let message = format!("The target bucket {bucket} does not exist");
            return Err(refuse(S3ErrorCode::InvalidTargetBucketForLogging, message));
        }
        Err(error) => return Err(from_store(error)),
    }
    let key = sample_key(target, source);
    check_key(&key)?;
    if may_deliver(store, target, source, &key)? {
        return Ok(());
    }
    let message = format!(
        "The policy of the target bucket {bucket} does not allow logging.s3.amazonaws.com to \
         store {}* for the bucket {}",
        target.prefix, source.bucket
    );
    Err(refuse(S3ErrorCode::AccessDenied, message))
}

/// Returns the document of a target. It has no grants: the records belong to the owner of the
/// target bucket.
fn document(target: &LogTarget) -> LoggingEnabled {
    let partitioned = |source: &'static str| TargetObjectKeyFormat {
        partitioned_prefix: Some(PartitionedPrefix {
            partition_date_source: Some(PartitionDateSource::from_static(source)),
        }),
        simple_prefix: None,
    };
    let format = match target.format {
        KeyFormat::Simple => {
            TargetObjectKeyFormat { partitioned_prefix: None, simple_prefix: Some(SimplePrefix {}) }
        }
        KeyFormat::ByEvent => partitioned(PartitionDateSource::EVENT_TIME),
        KeyFormat::ByDelivery => partitioned(PartitionDateSource::DELIVERY_TIME),
    };
    LoggingEnabled {
        target_bucket: target.bucket.clone(),
        target_grants: None,
        target_object_key_format: Some(format),
        target_prefix: target.prefix.clone(),
    }
}
