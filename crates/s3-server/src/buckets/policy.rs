//! Operations on a bucket policy, which is stored as received.

use haul_store_pool::Pool;
use http::header::CONTENT_TYPE;

use crate::acl::rules::AclRules;
use crate::answer::{Answer, Content};
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::buckets::documents::{absent, delete};
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::policy::statement::Policy;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::public_access_block::PublicAccessBlock;
use crate::settings::{POLICY, PUBLIC_ACCESS_BLOCK, load};
use crate::xml::writer::Xml;

pub(crate) async fn put_bucket_policy(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let claims = Claims::for_document(request)?;
    let text = Receiver::document(haul, request, body, claims).await?;
    let bucket = request.name().bucket.clone();
    let malformed = |reason| refuse(S3ErrorCode::MalformedPolicy, reason);
    let text =
        str::from_utf8(&text).map_err(|_not_utf8| malformed("the text is not UTF-8".into()))?;
    let policy = Policy::parse(text, &bucket).map_err(malformed)?;
    policy.check_new(|name| haul.is_user(name)).map_err(malformed)?;
    let text = text.to_owned();
    let put = move |store: &Pool| {
        let block: Option<PublicAccessBlock> = load(store, &bucket, PUBLIC_ACCESS_BLOCK)?;
        let is_blocked = block.is_some_and(|block| block.block_public_policy);
        if is_blocked && policy.is_public() {
            let message = "The public access block of the bucket refuses public policies";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
        store.set_bucket_setting(&bucket, POLICY, Some(&text)).map_err(from_store)
    };
    haul.blocking(put).await?;
    Ok(Answer::no_content())
}

pub(crate) async fn get_bucket_policy(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let settings =
        haul.blocking(move |store| store.bucket_settings(&bucket).map_err(from_store)).await?;
    let policy =
        settings.get(POLICY).ok_or_else(|| absent(S3ErrorCode::NoSuchBucketPolicy))?.to_owned();
    let answer = Answer { content: Content::Bytes(policy.into()), ..Answer::ok() };
    Ok(answer.with(CONTENT_TYPE.as_str(), "application/json"))
}

pub(crate) async fn delete_bucket_policy(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, POLICY).await
}

pub(crate) async fn get_bucket_policy_status(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let bucket = request.name().bucket.clone();
    let get = move |store: &Pool| {
        let settings = store.bucket_settings(&bucket).map_err(from_store)?;
        let policy = settings.get(POLICY).map(|text| Policy::parse(text, &bucket));
        let is_public = policy.is_some_and(|policy| policy.is_ok_and(|one| one.is_public()));
        Ok(is_public || AclRules::of(&settings, &bucket)?.is_public())
    };
    let is_public = haul.blocking(get).await?;
    Ok(Answer::xml(Xml::document("PolicyStatus", |xml| xml.element("IsPublic", is_public))))
}
