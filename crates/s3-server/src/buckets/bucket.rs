//! Operations on buckets.

use haul_file_store::{
    Attributes, Error, ListUploadsRequest, ListVersionsRequest, Store, UploadListEntry,
};
use s3s::dto::{
    Bucket, CreateBucketInput, CreateBucketOutput, DeleteBucketInput, DeleteBucketLifecycleInput,
    DeleteBucketLifecycleOutput, DeleteBucketOutput, GetBucketLifecycleConfigurationInput,
    GetBucketLifecycleConfigurationOutput, GetBucketLocationInput, GetBucketLocationOutput,
    HeadBucketInput, HeadBucketOutput, ListBucketsInput, ListBucketsOutput, ObjectOwnership,
    OwnershipControls, OwnershipControlsRule, PutBucketLifecycleConfigurationInput,
    PutBucketLifecycleConfigurationOutput, Timestamp,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::keys::key::ADMINISTRATOR;
use crate::acl::list::Acl;
use crate::acl::requested::RequestedList;
use crate::acl::rules::{Ownership, check_bucket_list};
use crate::acl::stored::encode;
use crate::buckets::lifecycle::operations as lifecycle;
use crate::buckets::settings::{self, ACL, OWNER, OWNERSHIP};
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
    let CreateBucketInput { bucket, object_lock_enabled_for_bucket, object_ownership, .. } =
        request.input;
    let is_locked = object_lock_enabled_for_bucket == Some(true);
    if bucket.contains(".-") || bucket.contains("-.") {
        // S3 refuses such names, which the store accepts.
        let message = "In the name of a bucket, a hyphen cannot stand beside a dot";
        return Err(refuse(S3ErrorCode::InvalidBucketName, message));
    }
    let location = Some(format!("/{bucket}"));
    let requested = RequestedList::of_headers(&request.headers, &|name| haul.is_user(name))?;
    let settings = settings_of_new(caller.user_name(), &requested, object_ownership)?;
    let create = move |store: &Store| create_or_confirm(store, &bucket, &settings, is_locked);
    haul.blocking(create).await?;
    Ok(CreateBucketOutput { location })
}

/// Returns the settings of a new bucket: its owner, its access list and its ownership controls.
fn settings_of_new(
    user: Option<&str>,
    requested: &RequestedList,
    ownership: Option<ObjectOwnership>,
) -> S3Result<Attributes> {
    let mut settings: Attributes = user.map(|user| (OWNER, user)).into_iter().collect();
    let owner = user.unwrap_or(ADMINISTRATOR);
    let list = requested.resolve(owner, owner)?;
    let is_private = list == Acl::private(owner);
    if !is_private {
        settings.set(ACL, encode(&list));
    }
    if let Some(object_ownership) = ownership {
        check_bucket_list(Ownership::parse(object_ownership.as_str())?, is_private)?;
        let rules = vec![OwnershipControlsRule { object_ownership }];
        settings.set(OWNERSHIP, settings::encode(&OwnershipControls { rules })?);
    }
    Ok(settings)
}

/// Creates a bucket if it does not exist. As in S3 in the region `us-east-1`, the owner can repeat
/// the creation, but not with another access list, or with object lock if the bucket has none: a
/// repetition changes nothing.
fn create_or_confirm(
    store: &Store,
    bucket: &str,
    settings: &Attributes,
    is_locked: bool,
) -> S3Result<()> {
    let created = match is_locked {
        true => store.create_locked_bucket(bucket, settings),
        false => store.create_bucket_with(bucket, settings),
    };
    let error = match created {
        Err(error @ Error::BucketExists { .. }) => error,
        created => return created.map_err(from_store),
    };
    let present = store.bucket_settings(bucket).map_err(from_store)?;
    let differs = |name: &str| present.get(name) != settings.get(name);
    let message = if differs(OWNER) {
        format!("The bucket {bucket} exists and belongs to another user")
    } else if differs(ACL) || (settings.get(OWNERSHIP).is_some() && differs(OWNERSHIP)) {
        format!("The bucket {bucket} exists and has another access list or ownership")
    } else if is_locked && !store.has_object_lock(bucket).map_err(from_store)? {
        return Err(from_store(error));
    } else {
        return store.confirm().map_err(from_store);
    };
    Err(refuse(S3ErrorCode::BucketAlreadyExists, message))
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
        abort_uploads(store, bucket)?;
    }
    store.delete_bucket(bucket)
}

fn abort_uploads(store: &Store, bucket: &str) -> haul_file_store::Result<()> {
    let request = ListUploadsRequest { limit: 1000, ..ListUploadsRequest::default() };
    loop {
        let page = store.list_uploads(bucket, &request)?;
        for entry in page.entries {
            let UploadListEntry::Upload { key, id } = entry else { continue };
            match store.abort_upload(bucket, &key, &id) {
                // Another client has completed or aborted the upload.
                Ok(()) | Err(Error::NoSuchUpload { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !page.more {
            return Ok(());
        }
    }
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
