//! Operations on a bucket's access log.

use haul_file_store::Error;
use haul_store_pool::Pool;

use crate::access::decision::Basis;
use crate::answer::Answer;
use crate::body::Body;
use crate::bucket_logs::names::sample_key;
use crate::bucket_logs::rights::may_deliver;
use crate::bucket_logs::target::{BucketLoggingStatus, LogTarget, Source};
use crate::buckets::documents::receive;
use crate::errors::{S3ErrorCode, S3Result, check_key, from_store, refuse};
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::{LOGGING, load, set};
use crate::xml::Document;

pub(crate) async fn put_bucket_logging(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    check_owner(request)?;
    let status: BucketLoggingStatus = receive(haul, request, body).await?;
    let bucket = request.name().bucket.clone();
    let put = move |store: &Pool| {
        let Some(target) = &status.target else { return set(store, &bucket, LOGGING, None) };
        let settings = store.bucket_settings(&bucket).map_err(from_store)?;
        check_target(store, target, &Source::new(&bucket, &settings))?;
        set(store, &bucket, LOGGING, Some(&status.text()))
    };
    haul.blocking(put).await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_bucket_logging(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    check_owner(request)?;
    let bucket = request.name().bucket.clone();
    let status: Option<BucketLoggingStatus> =
        haul.blocking(move |store| load(store, &bucket, LOGGING)).await?;
    let status = status.unwrap_or(BucketLoggingStatus { target: None });
    Ok(Answer::xml(status.text()))
}

/// Fails if only the bucket policy or an ACL allows the operation: as in S3, the client must own
/// the bucket, or have the right `admin`.
fn check_owner(request: &Request) -> S3Result<()> {
    let caller = request.caller();
    match caller.basis() {
        Basis::Right => Ok(()),
        Basis::Policy | Basis::Acl => {
            let (operation, bucket) = (request.operation.name(), &request.name().bucket);
            Err(caller.access_denied(operation, "the right admin", bucket, ""))
        }
    }
}

/// Fails if the source's records cannot be delivered to the target.
fn check_target(store: &Pool, target: &LogTarget, source: &Source) -> S3Result<()> {
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
