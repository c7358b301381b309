//! Creates and aborts multipart uploads.

use std::time::SystemTime;

use haul_store_pool::Pool;
use time::OffsetDateTime;

use crate::answer::Answer;
use crate::answer::encryption::described;
use crate::body::Body;
use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, COMPOSITE, FULL_OBJECT, TYPE_ATTRIBUTE, invalid_header,
};
use crate::encryption::envelope::Structure;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::RequestedEncryption;
use crate::errors::{S3ErrorCode, S3Result, check_key, from_store, refuse};
use crate::objects::conditions::parsed;
use crate::objects::headers::StoredHeaders;
use crate::objects::lock::LockHeaders;
use crate::objects::new_acl::NewObjectAcl;
use crate::request::fields::Fields;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::lifecycle::operations::{abortion, with_abortion};
use crate::stored::attributes;
use crate::times::parse_any;
use crate::uploads::name::UploadName;
use crate::xml::writer::Xml;

pub(crate) async fn create_multipart_upload(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let fields = &request.head.fields;
    let name = request.name();
    let wanted = RequestedEncryption::of(fields)?;
    check_key(&name.key)?;
    let master = haul.master_for(&name.bucket, wanted)?;
    let mut attributes = StoredHeaders::from_fields(fields)?.into_attributes()?;
    NewObjectAcl::of(haul, request).await?.set(&mut attributes)?;
    let lock = LockHeaders::from_fields(fields).into_lock(&haul.store(), request.caller(), name)?;
    lock.set_in(&mut attributes);
    let checksum = ChecksumKind::in_fields(fields)?;
    if let Some(ChecksumKind { algorithm, kind }) = checksum {
        attributes.set(ALGORITHM_ATTRIBUTE, algorithm.name());
        attributes.set(TYPE_ATTRIBUTE, kind);
    }
    let ObjectName { bucket, key } = name.clone();
    if let Some(master) = master.clone() {
        let new = NewContent::generate(master)?;
        new.envelope((&bucket, &key), Structure::Upload, 0)?.set(&mut attributes);
        attributes::check_encrypted(&attributes)?;
    }
    // An upload that can get no part, or cannot be completed, is rejected before its parts are
    // sent.
    let least = haul_file_store::Usage { bytes: 1, objects: 1 };
    haul.store().check_quota(&bucket, least).map_err(from_store)?;
    let start = move |store: &Pool| {
        let id = store.start_upload(&bucket, &key, &attributes).map_err(from_store)?;
        Ok((id, abortion(store, &bucket, &key, SystemTime::now())))
    };
    let (id, abortion) = haul.blocking(start).await?;
    let document = Xml::document("InitiateMultipartUploadResult", |xml| {
        xml.element("Bucket", &name.bucket);
        xml.element("Key", &name.key);
        xml.element("UploadId", id);
    });
    let answer = Answer::xml(document)
        .with_some(ALGORITHM_ATTRIBUTE, checksum.map(|checksum| checksum.algorithm.name()))
        .with_some(TYPE_ATTRIBUTE, checksum.map(|checksum| checksum.kind));
    Ok(described(with_abortion(answer, abortion), master.as_ref()))
}

pub(crate) async fn abort_multipart_upload(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let upload = UploadName::new(request);
    let fields = &request.head.fields;
    let started = parsed(fields, "x-amz-if-match-initiated-time", parse_any)?;
    haul.blocking(move |store| {
        // As in other conditions, a time in the future is ignored.
        if let Some(started) = started.filter(|time| *time <= OffsetDateTime::now_utc()) {
            // Headers have whole seconds.
            let found = OffsetDateTime::from(upload.find(store)?.started);
            if found.unix_timestamp() != started.unix_timestamp() {
                let message = "The upload was initiated at another time";
                return Err(refuse(S3ErrorCode::PreconditionFailed, message));
            }
        }
        let ObjectName { bucket, key } = &upload.object;
        store.abort_upload(bucket, key, &upload.id).map_err(|error| upload.map_error(error))
    })
    .await?;
    Ok(Answer::no_content())
}

/// The checksum algorithm and type that a client chooses for an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ChecksumKind {
    algorithm: Algorithm,
    kind: &'static str,
}

impl ChecksumKind {
    /// Reads a request's headers; `None` if the client chooses no checksum.
    ///
    /// # Errors
    /// If the algorithm or the type is unknown, or if the algorithm does not have the type.
    fn in_fields(fields: &Fields) -> S3Result<Option<Self>> {
        let algorithm = fields.given(ALGORITHM_ATTRIBUTE).map(Algorithm::parse).transpose()?;
        let kind = kind_in(fields)?;
        let Some(algorithm) = algorithm else {
            if kind.is_none() {
                return Ok(None);
            }
            let message = "The x-amz-checksum-type header can only be used with the \
                           x-amz-checksum-algorithm header.";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        };
        let default = if algorithm == Algorithm::Crc64Nvme { FULL_OBJECT } else { COMPOSITE };
        let kind = kind.unwrap_or(default);
        let is_supported = kind == default || kind == FULL_OBJECT && algorithm.combines();
        if !is_supported {
            let message = format!(
                "The {kind} checksum type cannot be used with the {} checksum algorithm.",
                algorithm.name().to_lowercase()
            );
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        Ok(Some(Self { algorithm, kind }))
    }
}

/// Returns the checksum type that a request names, ignoring case.
///
/// # Errors
/// `InvalidRequest` if it is unknown.
pub(super) fn kind_in(fields: &Fields) -> S3Result<Option<&'static str>> {
    let Some(text) = fields.given(TYPE_ATTRIBUTE) else { return Ok(None) };
    let found = [COMPOSITE, FULL_OBJECT].into_iter().find(|kind| kind.eq_ignore_ascii_case(text));
    found.map(Some).ok_or_else(|| invalid_header(TYPE_ATTRIBUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(algorithm: &str, kind: &str) -> S3Result<Option<ChecksumKind>> {
        let fields = [(ALGORITHM_ATTRIBUTE, algorithm), (TYPE_ATTRIBUTE, kind)];
        ChecksumKind::in_fields(&fields.into_iter().collect())
    }

    #[test]
    fn checksum_type_must_be_supported_by_the_algorithm() {
        assert_eq!(found("", "").unwrap(), None);
        for algorithm in Algorithm::ALL {
            let is_crc64 = algorithm == Algorithm::Crc64Nvme;
            let default = if is_crc64 { FULL_OBJECT } else { COMPOSITE };
            let name = algorithm.name().to_lowercase();
            let expected = |kind| Some(ChecksumKind { algorithm, kind });
            assert_eq!(found(&name, "").unwrap(), expected(default), "{name}");
            assert_eq!(found(&name, &default.to_lowercase()).unwrap(), expected(default), "{name}");
            assert_eq!(found(&name, FULL_OBJECT).is_ok(), algorithm.combines(), "{name}");
            assert_eq!(found(&name, COMPOSITE).is_ok(), !is_crc64, "{name}");
        }
    }

    #[test]
    fn unknown_checksums_are_refused() {
        for (algorithm, kind) in
            [("", COMPOSITE), ("", "x"), ("CRC32", "x"), ("MD4", ""), ("MD4", COMPOSITE)]
        {
            let error = found(algorithm, kind).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidRequest, "{algorithm} {kind}");
        }
    }
}
