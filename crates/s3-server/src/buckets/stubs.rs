//! Responses for bucket features that are not implemented. They equal S3's responses for a bucket
//! without the feature, so that clients that query the feature continue to work.

use crate::answer::Answer;
use crate::body::Body;
use crate::errors::{S3ErrorCode, S3Result, from_store, refuse};
use crate::service::Haul;
use crate::service::request::Request;
use crate::xml::writer::Xml;

pub(crate) async fn get_bucket_replication(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    haul.store().bucket(&request.name().bucket).map_err(from_store)?;
    let code = S3ErrorCode::ReplicationConfigurationNotFoundError;
    Err(refuse(code, "The feature is not configured and is not supported"))
}

pub(crate) async fn get_bucket_request_payment(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    haul.store().bucket(&request.name().bucket).map_err(from_store)?;
    let document =
        Xml::document("RequestPaymentConfiguration", |xml| xml.element("Payer", "BucketOwner"));
    Ok(Answer::xml(document))
}
