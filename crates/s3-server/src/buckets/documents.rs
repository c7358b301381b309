//! Bucket settings that are S3 documents: CORS rules, tags, ownership controls, the public access
//! block, and the website. They are stored as bucket settings, in S3's XML.

use haul_file_store::Attributes;
use haul_store_pool::Pool;
use http::StatusCode;

use crate::acl::rules;
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::buckets::tags;
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::cors::{self, CorsConfiguration};
use crate::settings::ownership_controls::OwnershipControls;
use crate::settings::public_access_block::PublicAccessBlock;
use crate::settings::website::configuration::{self as website, WebsiteConfiguration};
use crate::settings::{CORS, OWNERSHIP, PUBLIC_ACCESS_BLOCK, TAGGING, WEBSITE, load, set};
use crate::xml::Document;
use crate::xml::tagging::Tagging;

/// Returns the S3 error for a missing bucket setting.
pub(super) fn absent(code: S3ErrorCode) -> S3Error {
    refuse(code, "The bucket does not have this setting")
}

/// Receives the document in a request body.
///
/// # Errors
/// If there is none, if it has another schema, or if it does not match the client's claims about
/// it.
pub(super) async fn receive<T: Document>(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<T> {
    match receive_optional(haul, request, body).await? {
        Some(document) => Ok(document),
        None => Err(refuse(S3ErrorCode::MissingRequestBodyError, "Request Body is empty")),
    }
}

/// Like [`receive`], but `None` for an empty body.
pub(super) async fn receive_optional<T: Document>(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Option<T>> {
    let claims = Claims::for_document(request)?;
    let bytes = Receiver::document(haul, request, body, claims).await?;
    if bytes.is_empty() { Ok(None) } else { T::parse(&bytes).map(Some) }
}

/// A function that checks a document against the bucket's other settings.
type Check<T> = fn(&T, &Attributes) -> S3Result<()>;

/// Receives a document, checks it, and stores it as this bucket setting.
async fn put<T: Document + Send + 'static>(
    haul: &Haul,
    request: &Request,
    body: Body,
    name: &'static str,
    check: Check<T>,
) -> S3Result<Answer> {
    let document: T = receive(haul, request, body).await?;
    let bucket = request.name().bucket.clone();
    let put = move |store: &Pool| {
        check(&document, &*store.bucket_settings(&bucket).map_err(from_store)?)?;
        set(store, &bucket, name, Some(&document.text()))
    };
    haul.blocking(put).await?;
    Ok(Answer::ok())
}

/// Returns the document that is stored as this bucket setting.
///
/// # Errors
/// Fails with the code `absence` if the bucket lacks the setting.
pub(super) async fn get<T: Document + Send + 'static>(
    haul: &Haul,
    request: &Request,
    name: &'static str,
    absence: S3ErrorCode,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let found = haul.blocking(move |store| load::<T>(store, &bucket, name)).await?;
    let document = found.ok_or_else(|| absent(absence))?;
    Ok(Answer::xml(document.text()))
}

pub(super) async fn delete(haul: &Haul, request: &Request, name: &'static str) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    haul.blocking(move |store| set(store, &bucket, name, None)).await?;
    Ok(Answer::no_content())
}

pub(crate) async fn put_bucket_cors(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    put(haul, request, body, CORS, |document, _settings| cors::check(document)).await
}

pub(crate) async fn get_bucket_cors(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    get::<CorsConfiguration>(haul, request, CORS, S3ErrorCode::NoSuchCORSConfiguration).await
}

pub(crate) async fn delete_bucket_cors(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, CORS).await
}

pub(crate) async fn put_bucket_tagging(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let check: Check<Tagging> = |document, _settings| tags::check(document);
    let answer = put(haul, request, body, TAGGING, check).await?;
    // As in S3, which responds to other settings with 200.
    Ok(Answer { status: StatusCode::NO_CONTENT, ..answer })
}

pub(crate) async fn get_bucket_tagging(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    get::<Tagging>(haul, request, TAGGING, S3ErrorCode::NoSuchTagSet).await
}

pub(crate) async fn delete_bucket_tagging(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, TAGGING).await
}

pub(crate) async fn put_bucket_ownership_controls(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    put(haul, request, body, OWNERSHIP, rules::check_ownership).await
}

pub(crate) async fn get_bucket_ownership_controls(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let absence = S3ErrorCode::OwnershipControlsNotFoundError;
    get::<OwnershipControls>(haul, request, OWNERSHIP, absence).await
}

pub(crate) async fn delete_bucket_ownership_controls(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, OWNERSHIP).await
}

pub(crate) async fn put_public_access_block(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let check: Check<PublicAccessBlock> = |_document, _settings| Ok(());
    put(haul, request, body, PUBLIC_ACCESS_BLOCK, check).await
}

pub(crate) async fn get_public_access_block(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let absence = S3ErrorCode::NoSuchPublicAccessBlockConfiguration;
    get::<PublicAccessBlock>(haul, request, PUBLIC_ACCESS_BLOCK, absence).await
}

pub(crate) async fn delete_public_access_block(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, PUBLIC_ACCESS_BLOCK).await
}

pub(crate) async fn put_bucket_website(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    put(haul, request, body, WEBSITE, |document, _settings| website::check(document)).await
}

pub(crate) async fn get_bucket_website(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let absence = S3ErrorCode::NoSuchWebsiteConfiguration;
    get::<WebsiteConfiguration>(haul, request, WEBSITE, absence).await
}

pub(crate) async fn delete_bucket_website(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, WEBSITE).await
}
