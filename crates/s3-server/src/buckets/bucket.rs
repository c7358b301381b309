//! Operations on buckets.

use haul_file_store::{Error, ListVersionsRequest, Store};
use s3s::dto::{
    Bucket, CreateBucketInput, CreateBucketOutput, DeleteBucketInput, DeleteBucketLifecycleInput,
    DeleteBucketLifecycleOutput, DeleteBucketOutput, GetBucketLifecycleConfigurationInput,
    GetBucketLifecycleConfigurationOutput, GetBucketLocationInput, GetBucketLocationOutput,
    HeadBucketInput, HeadBucketOutput, ListBucketsInput, ListBucketsOutput,
    PutBucketLifecycleConfigurationInput, PutBucketLifecycleConfigurationOutput, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::action::Action;
use crate::access::caller::{Caller, OWNER};
use crate::buckets::lifecycle::operations as lifecycle;
use crate::errors::{from_store, refuse};
use crate::service::Haul;

/// The region of every bucket: the default region of clients.
const REGION: &str = "us-east-1";

/// The maximum number of buckets in a response.
const BUCKETS_MAX: usize = 10_000;

pub(crate) async fn create_bucket(
    haul: &Haul,
    request: S3Request<CreateBucketInput>,
) -> S3Result<CreateBucketOutput> {
    let caller = Caller::of(&request.extensions);
    let CreateBucketInput { bucket, object_lock_enabled_for_bucket, .. } = request.input;
    if bucket.contains(".-") || bucket.contains("-.") {
        // The store accepts such names, which earlier versions created.
        let message = "In the name of a bucket, a hyphen cannot stand beside a dot";
        return Err(refuse(S3ErrorCode::InvalidBucketName, message));
    }
    let location = Some(format!("/{bucket}"));
    let is_locked = object_lock_enabled_for_bucket == Some(true);
    let create = move |store: &Store| {
        create_or_confirm(store, &bucket, caller.user().map(|user| &**user), is_locked)
    };
    haul.blocking(create).await?;
    Ok(CreateBucketOutput { location })
}

/// Creates a bucket of a user if it does not exist. As in S3 in the region `us-east-1`, the owner
/// can repeat the creation, unless the request is for object lock and the bucket has none.
fn create_or_confirm(
    store: &Store,
    bucket: &str,
    user: Option<&str>,
    is_locked: bool,
) -> S3Result<()> {
    let settings = user.map(|user| (OWNER, user)).into_iter().collect();
    let created = match is_locked {
        true => store.create_locked_bucket(bucket, &settings),
        false => store.create_bucket_with(bucket, &settings),
    };
    match created {
        Err(Error::BucketExists { .. })
            if store.bucket_settings(bucket).map_err(from_store)?.get(OWNER) != user =>
        {
            let message = format!("The bucket {bucket} exists and belongs to another user");
            Err(refuse(S3ErrorCode::BucketAlreadyExists, message))
        }
        Err(error @ Error::BucketExists { .. })
            if is_locked && !store.has_object_lock(bucket).map_err(from_store)? =>
        {
            Err(from_store(error))
        }
        Err(Error::BucketExists { .. }) => store.confirm().map_err(from_store),
        created => created.map_err(from_store),
    }
}

pub(crate) async fn delete_bucket(
    haul: &Haul,
    request: S3Request<DeleteBucketInput>,
) -> S3Result<DeleteBucketOutput> {
    let bucket = request.input.bucket;
    haul.blocking(move |store| delete_if_empty(store, &bucket).map_err(from_store)).await?;
    Ok(DeleteBucketOutput::default())
}

/// Deletes a bucket that has no objects and no versions. Uploads that are neither completed nor
/// aborted do not prevent the deletion, because a listing shows an empty bucket.
fn delete_if_empty(store: &Store, bucket: &str) -> haul_file_store::Result<()> {
    let request = ListVersionsRequest { limit: 1, ..ListVersionsRequest::default() };
    if store.list_versions(bucket, &request)?.entries.is_empty() {
        for upload in store.uploads(bucket)? {
            match store.abort_upload(bucket, &upload.key, &upload.id) {
                // Another client has completed or aborted the upload.
                Ok(()) | Err(Error::NoSuchUpload { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    store.delete_bucket(bucket)
}

pub(crate) async fn head_bucket(
    haul: &Haul,
    request: S3Request<HeadBucketInput>,
) -> S3Result<HeadBucketOutput> {
    haul.store().bucket(&request.input.bucket).map_err(from_store)?;
    let bucket_region = Some(REGION.to_owned());
    Ok(HeadBucketOutput { bucket_region, ..HeadBucketOutput::default() })
}

pub(crate) async fn get_bucket_location(
    haul: &Haul,
    request: S3Request<GetBucketLocationInput>,
) -> S3Result<GetBucketLocationOutput> {
    haul.store().bucket(&request.input.bucket).map_err(from_store)?;
    // The location constraint of S3's default region is empty.
    Ok(GetBucketLocationOutput::default())
}

pub(crate) async fn put_bucket_lifecycle_configuration(
    haul: &Haul,
    request: S3Request<PutBucketLifecycleConfigurationInput>,
) -> S3Result<PutBucketLifecycleConfigurationOutput> {
    let input = request.input;
    let put =
        move |store: &Store| lifecycle::put(store, &input.bucket, input.lifecycle_configuration);
    haul.blocking(put).await?;
    Ok(PutBucketLifecycleConfigurationOutput::default())
}

pub(crate) async fn get_bucket_lifecycle_configuration(
    haul: &Haul,
    request: S3Request<GetBucketLifecycleConfigurationInput>,
) -> S3Result<GetBucketLifecycleConfigurationOutput> {
    let bucket = request.input.bucket;
    let rules = Some(haul.blocking(move |store| lifecycle::get(store, &bucket)).await?);
    Ok(GetBucketLifecycleConfigurationOutput { rules, ..Default::default() })
}

pub(crate) async fn delete_bucket_lifecycle(
    haul: &Haul,
    request: S3Request<DeleteBucketLifecycleInput>,
) -> S3Result<DeleteBucketLifecycleOutput> {
    let bucket = request.input.bucket;
    haul.blocking(move |store| lifecycle::delete(store, &bucket)).await?;
    Ok(DeleteBucketLifecycleOutput::default())
}

pub(crate) async fn list_buckets(
    haul: &Haul,
    request: S3Request<ListBucketsInput>,
) -> S3Result<ListBucketsOutput> {
    let caller = Caller::of(&request.extensions);
    let owner = Some(caller.owner());
    let ListBucketsInput { prefix, continuation_token, max_buckets, .. } = request.input;
    let limit = match max_buckets.map(usize::try_from) {
        None => BUCKETS_MAX,
        Some(Ok(limit)) if (1..=BUCKETS_MAX).contains(&limit) => limit,
        Some(_) => {
            let message = "max-buckets must be between 1 and 10000";
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        }
    };
    let after = continuation_token.unwrap_or_default();
    let begin = prefix.clone().unwrap_or_default();
    let visible = move |store: &Store| {
        let mut buckets = store.buckets().map_err(from_store)?;
        buckets.retain(|bucket| bucket.name.starts_with(&begin) && bucket.name > after);
        let mut visible = Vec::new();
        for bucket in buckets {
            // May read the owner of the bucket from the disk.
            if caller.has_right(store, Action::UseBucket, &bucket.name, "")? {
                visible.push(bucket);
            }
        }
        Ok(visible)
    };
    let mut buckets = haul.blocking(visible).await?;
    buckets.sort_by(|a, b| a.name.cmp(&b.name));
    let more = buckets.len() > limit;
    buckets.truncate(limit);
    // The name is used as the token: it is neither secret nor encoded.
    let continuation_token = buckets.last().filter(|_| more).map(|bucket| bucket.name.clone());
    let buckets = buckets
        .into_iter()
        .map(|bucket| Bucket {
            bucket_region: max_buckets.map(|_| REGION.to_owned()),
            creation_date: Some(Timestamp::from(bucket.created)),
            name: Some(bucket.name),
        })
        .collect();
    Ok(ListBucketsOutput { buckets: Some(buckets), continuation_token, owner, prefix })
}
