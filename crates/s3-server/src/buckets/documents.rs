//! Settings of buckets that are documents of S3: CORS rules, tags, ownership controls, and the
//! public access block. They are stored as settings of the bucket, in the XML of S3.

use haul_file_store::{Attributes, Store};
use s3s::dto::{
    self, CORSConfiguration, OwnershipControls, PublicAccessBlockConfiguration, Tagging,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::acl::rules;
use crate::buckets::cors;
use crate::buckets::settings::{CORS, OWNERSHIP, PUBLIC_ACCESS_BLOCK, TAGGING, encode, load, set};
use crate::errors::{from_store, refuse};
use crate::service::Haul;

/// The maximum number of tags of a bucket, as in S3.
const BUCKET_TAGS_MAX: usize = 50;

/// Returns the error of S3 for a setting that a bucket does not have.
pub(super) fn absent(code: &'static str) -> S3Error {
    let code = S3ErrorCode::from_bytes(code.as_bytes())
        .unwrap_or_else(|| S3ErrorCode::Custom(code.into()));
    let mut error = refuse(code, "The bucket does not have this setting");
    error.set_status_code(hyper::StatusCode::NOT_FOUND);
    error
}

/// Defines the three operations on a document: `put` checks it against the other
/// settings of the bucket and saves it, `get` returns it or an
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
            let check: fn(&$document, &Attributes) -> S3Result<()> = $check;
            haul.blocking(move |store: &Store| {
                check(&document, &*store.bucket_settings(&bucket).map_err(from_store)?)?;
                set(store, &bucket, $name, Some(&encode(&document)?))
            })
            .await?;
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
            haul.blocking(move |store| set(store, &bucket, $name, None)).await?;
            Ok(dto::$delete_output::default())
        }
    };
}

document! {
    CORSConfiguration = CORS, or "NoSuchCORSConfiguration";
    put_bucket_cors: PutBucketCorsInput => PutBucketCorsOutput, cors_configuration, |document, _| {
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
        => PutBucketOwnershipControlsOutput, ownership_controls, rules::check_ownership;
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
        public_access_block_configuration, |_, _| Ok(());
    get_public_access_block: GetPublicAccessBlockInput => GetPublicAccessBlockOutput, |document| {
        let public_access_block_configuration = Some(complete(&document));
        dto::GetPublicAccessBlockOutput { public_access_block_configuration }
    };
    delete_public_access_block: DeletePublicAccessBlockInput => DeletePublicAccessBlockOutput;
}

/// Returns a block with all members, as S3 does: a member that a client left out is `false`.
fn complete(block: &PublicAccessBlockConfiguration) -> PublicAccessBlockConfiguration {
    PublicAccessBlockConfiguration {
        block_public_acls: Some(block.block_public_acls.unwrap_or_default()),
        block_public_policy: Some(block.block_public_policy.unwrap_or_default()),
        ignore_public_acls: Some(block.ignore_public_acls.unwrap_or_default()),
        restrict_public_buckets: Some(block.restrict_public_buckets.unwrap_or_default()),
    }
}

fn check_tags(document: &Tagging, _: &Attributes) -> S3Result<()> {
    let pairs = document
        .tag_set
        .iter()
        .map(|tag| (tag.key.clone().unwrap_or_default(), tag.value.clone().unwrap_or_default()));
    crate::objects::tagging::checked(pairs, BUCKET_TAGS_MAX).map(drop)
}
