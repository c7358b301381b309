//! The encryption that a bucket applies to new objects by default.

use crate::answer::Answer;
use crate::body::Body;
use crate::buckets::documents::{delete, get, receive};
use crate::encryption::default::{DEFAULT, ServerSideEncryptionConfiguration, master_of_default};
use crate::errors::{S3ErrorCode, S3Result};
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::set;
use crate::xml::Document;

pub(crate) async fn put_bucket_encryption(
    haul: &Haul,
    request: &Request,
    body: Body,
) -> S3Result<Answer> {
    let document: ServerSideEncryptionConfiguration = receive(haul, request, body).await?;
    // If the key is missing, every PUT to the bucket would fail.
    master_of_default(haul.encryption().as_deref(), &document)?;
    let (bucket, text) = (request.name().bucket.clone(), document.text());
    haul.blocking(move |store| set(store, &bucket, DEFAULT, Some(&text))).await?;
    Ok(Answer::ok())
}

pub(crate) async fn get_bucket_encryption(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let absence = S3ErrorCode::ServerSideEncryptionConfigurationNotFoundError;
    get::<ServerSideEncryptionConfiguration>(haul, request, DEFAULT, absence).await
}

pub(crate) async fn delete_bucket_encryption(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    delete(haul, request, DEFAULT).await
}
