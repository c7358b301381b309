//! Settings of buckets that are documents of S3: CORS rules, tags, ownership controls, and the
//! public access block. They are stored as settings of the bucket, in the XML of S3.

use haul_file_store::Store;
use s3s::dto::{
    self, CORSConfiguration, ObjectOwnership, OwnershipControls, PublicAccessBlockConfiguration,
    Tagging,
};
use s3s::xml::{Deserialize, Deserializer, Serialize, Serializer};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::buckets::cors;
use crate::errors::{from_store, refuse};
use crate::service::Haul;

/// The names of settings.
pub(crate) const CORS: &str = "cors";
pub(crate) const OWNERSHIP: &str = "ownership";
pub(crate) const PUBLIC_ACCESS_BLOCK: &str = "public-access-block";
pub(crate) const TAGGING: &str = "tagging";

/// The maximum number of tags of a bucket, as in S3.
const BUCKET_TAGS_MAX: usize = 50;

/// Returns a document of a bucket, if it has one.
pub(crate) fn load<T: for<'a> Deserialize<'a>>(
    store: &Store,
    bucket: &str,
    name: &str,
) -> S3Result<Option<T>> {
    let settings = store.bucket_settings(bucket).map_err(from_store)?;
    let Some(xml) = settings.get(name) else { return Ok(None) };
    T::deserialize(&mut Deserializer::new(xml.as_bytes())).map(Some).map_err(|error| {
        let message = format!("The setting {name} of the bucket {bucket} is malformed: {error}");
        refuse(S3ErrorCode::InternalError, message)
    })
}

/// Replaces a document of a bucket. It is durable when this returns.
pub(super) fn save(
    store: &Store,
    bucket: &str,
    name: &str,
    document: &impl Serialize,
) -> S3Result<()> {
    let mut xml = Vec::new();
    document.serialize(&mut Serializer::new(&mut xml)).map_err(S3Error::internal_error)?;
    let xml = String::from_utf8(xml).map_err(S3Error::internal_error)?;
    store.set_bucket_setting(bucket, name, Some(&xml)).map_err(from_store)
}

pub(super) fn remove(store: &Store, bucket: &str, name: &str) -> S3Result<()> {
    if store.bucket_settings(bucket).map_err(from_store)?.get(name).is_none() {
        return Ok(());
    }
    store.set_bucket_setting(bucket, name, None).map_err(from_store)
}

/// Returns the error of S3 for a setting that a bucket does not have.
pub(super) fn absent(code: &'static str) -> S3Error {
    let code = S3ErrorCode::from_bytes(code.as_bytes())
        .unwrap_or_else(|| S3ErrorCode::Custom(code.into()));
    let mut error = refuse(code, "The bucket does not have this setting");
    error.set_status_code(hyper::StatusCode::NOT_FOUND);
    error
}

/// Defines the three operations on a document: `put` checks and saves it, `get` returns it or an
/// error of S3, and `delete` removes it.
macro_rules! document {
    (
        $document:ty = $name:expr, or $code:literal;
        $put:ident: $put_input:ident => $put_output:ident, $field:ident, $check:expr;
        $get:ident: $get_input:ident => $get_output:ident, $output:expr;
        $delete:ident: $delete_input:ident => $delete_output:ident;
    ) => {
        pub(crate) async fn $put(
            haul: &Haul,
            request: S3Request<dto::$put_input>,
        ) -> S3Result<dto::$put_output> {
            let dto::$put_input { bucket, $field: document, .. } = request.input;
            let check: fn(&$document) -> S3Result<()> = $check;
            check(&document)?;
            haul.blocking(move |store| save(store, &bucket, $name, &document)).await?;
            Ok(dto::$put_output::default())
        }

        pub(crate) async fn $get(
            haul: &Haul,
            request: S3Request<dto::$get_input>,
        ) -> S3Result<dto::$get_output> {
            let bucket = request.input.bucket;
            let found: Option<$document> =
                haul.blocking(move |store| load(store, &bucket, $name)).await?;
            let output: fn($document) -> dto::$get_output = $output;
            found.map(output).ok_or_else(|| absent($code))
        }

        pub(crate) async fn $delete(
            haul: &Haul,
            request: S3Request<dto::$delete_input>,
        ) -> S3Result<dto::$delete_output> {
            let bucket = request.input.bucket;
            haul.blocking(move |store| remove(store, &bucket, $name)).await?;
            Ok(dto::$delete_output::default())
        }
    };
}

document! {
    CORSConfiguration = CORS, or "NoSuchCORSConfiguration";
    put_bucket_cors: PutBucketCorsInput => PutBucketCorsOutput, cors_configuration, |document| {
        cors::check(document).map_err(|reason| refuse(S3ErrorCode::InvalidRequest, reason))
    };
    get_bucket_cors: GetBucketCorsInput => GetBucketCorsOutput, |document| {
        dto::GetBucketCorsOutput { cors_rules: Some(document.cors_rules) }
    };
    delete_bucket_cors: DeleteBucketCorsInput => DeleteBucketCorsOutput;
}

document! {
    Tagging = TAGGING, or "NoSuchTagSet";
    put_bucket_tagging: PutBucketTaggingInput => PutBucketTaggingOutput, tagging, check_tags;
    get_bucket_tagging: GetBucketTaggingInput => GetBucketTaggingOutput, |document| {
        dto::GetBucketTaggingOutput { tag_set: document.tag_set }
    };
    delete_bucket_tagging: DeleteBucketTaggingInput => DeleteBucketTaggingOutput;
}

document! {
    OwnershipControls = OWNERSHIP, or "OwnershipControlsNotFoundError";
    put_bucket_ownership_controls: PutBucketOwnershipControlsInput
        => PutBucketOwnershipControlsOutput, ownership_controls, check_ownership;
    get_bucket_ownership_controls: GetBucketOwnershipControlsInput
        => GetBucketOwnershipControlsOutput, |document| {
        dto::GetBucketOwnershipControlsOutput { ownership_controls: Some(document) }
    };
    delete_bucket_ownership_controls: DeleteBucketOwnershipControlsInput
        => DeleteBucketOwnershipControlsOutput;
}

document! {
    PublicAccessBlockConfiguration = PUBLIC_ACCESS_BLOCK,
        or "NoSuchPublicAccessBlockConfiguration";
    put_public_access_block: PutPublicAccessBlockInput => PutPublicAccessBlockOutput,
        public_access_block_configuration, |_| Ok(());
    get_public_access_block: GetPublicAccessBlockInput => GetPublicAccessBlockOutput, |document| {
        let public_access_block_configuration = Some(document);
        dto::GetPublicAccessBlockOutput { public_access_block_configuration }
    };
    delete_public_access_block: DeletePublicAccessBlockInput => DeletePublicAccessBlockOutput;
}

fn check_tags(document: &Tagging) -> S3Result<()> {
    let pairs = document
        .tag_set
        .iter()
        .map(|tag| (tag.key.clone().unwrap_or_default(), tag.value.clone().unwrap_or_default()));
    crate::objects::tagging::checked(pairs, BUCKET_TAGS_MAX).map(drop)
}

/// Without access lists, all objects belong to the owner of their bucket.
fn check_ownership(document: &OwnershipControls) -> S3Result<()> {
    match document.rules.as_slice() {
        [rule] => match rule.object_ownership.as_str() {
            ObjectOwnership::BUCKET_OWNER_ENFORCED => Ok(()),
            ObjectOwnership::BUCKET_OWNER_PREFERRED | ObjectOwnership::OBJECT_WRITER => {
                let message = "All objects belong to the owner of their bucket: the only \
                               ObjectOwnership is BucketOwnerEnforced";
                Err(refuse(S3ErrorCode::NotImplemented, message))
            }
            other => {
                let message = format!("Unknown ObjectOwnership: {other}");
                Err(refuse(S3ErrorCode::MalformedXML, message))
            }
        },
        _ => Err(refuse(S3ErrorCode::MalformedXML, "Expected one rule with an ObjectOwnership")),
    }
}
