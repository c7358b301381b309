//! Creation and abortion of multipart uploads.

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumAlgorithm, ChecksumType,
    CreateMultipartUploadInput, CreateMultipartUploadOutput,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::access::caller::Caller;
use crate::acl::new_object::NewObjectList;
use crate::body::checksum::{
    ALGORITHM_ATTRIBUTE, Algorithm, COMPOSITE, FULL_OBJECT, TYPE_ATTRIBUTE,
};
use crate::encryption::envelope::Structure;
use crate::encryption::new_content::NewContent;
use crate::encryption::request::{Wanted, described};
use crate::errors::{check_key, from_store, refuse};
use crate::objects::attributes;
use crate::objects::headers::stored_headers;
use crate::objects::lock::lock_headers;
use crate::output::Output;
use crate::service::Haul;

pub(crate) async fn create_multipart_upload(
    haul: &Haul,
    request: S3Request<CreateMultipartUploadInput>,
) -> S3Result<Output<CreateMultipartUploadOutput>> {
    let S3Request { mut input, headers, extensions, .. } = request;
    let wanted = Wanted::of(&headers)?;
    check_key(&input.key)?;
    let master = haul.master_for(&input.bucket, wanted)?;
    let mut attributes = stored_headers!(input).into_attributes()?;
    let names = (&*input.bucket, &*input.key);
    NewObjectList::of(haul, (&headers, &extensions), names).await?.set(&mut attributes)?;
    let caller = Caller::of(&extensions);
    let names = (&*input.bucket, &*input.key);
    let lock = lock_headers!(input).into_lock(&haul.store(), &caller, names)?;
    lock.set_in(&mut attributes);
    let checksum = checksum_kind(
        input.checksum_algorithm.as_ref().map(ChecksumAlgorithm::as_str),
        input.checksum_type.as_ref().map(ChecksumType::as_str),
    )?;
    let mut output = CreateMultipartUploadOutput {
        bucket: Some(input.bucket.clone()),
        key: Some(input.key.clone()),
        ..CreateMultipartUploadOutput::default()
    };
    if let Some((algorithm, kind)) = checksum {
        attributes.set(ALGORITHM_ATTRIBUTE, algorithm.name());
        attributes.set(TYPE_ATTRIBUTE, kind);
        output.checksum_algorithm = Some(ChecksumAlgorithm::from_static(algorithm.name()));
        output.checksum_type = Some(ChecksumType::from_static(kind));
    }
    let (bucket, key) = (input.bucket, input.key);
    if let Some(master) = master.clone() {
        let new = NewContent::generate(master)?;
        new.envelope((&bucket, &key), Structure::Upload, 0)?.set(&mut attributes);
        attributes::check_encrypted(&attributes)?;
    }
    let id = haul
        .blocking(move |store| store.start_upload(&bucket, &key, &attributes).map_err(from_store))
        .await?;
    output.upload_id = Some(id);
    Ok(described(output, master.as_ref()))
}

pub(crate) async fn abort_multipart_upload(
    haul: &Haul,
    request: S3Request<AbortMultipartUploadInput>,
) -> S3Result<AbortMultipartUploadOutput> {
    let AbortMultipartUploadInput { bucket, key, upload_id, .. } = request.input;
    haul.blocking(move |store| store.abort_upload(&bucket, &key, &upload_id).map_err(from_store))
        .await?;
    Ok(AbortMultipartUploadOutput::default())
}

/// Returns the checksum algorithm and the checksum type of an upload.
fn checksum_kind(
    algorithm: Option<&str>,
    kind: Option<&str>,
) -> S3Result<Option<(Algorithm, &'static str)>> {
    let invalid = |message: &str| Err(refuse(S3ErrorCode::InvalidRequest, message));
    let Some(name) = algorithm else { return Ok(None) };
    let Some(algorithm) = Algorithm::from_name(name) else {
        return invalid(
            "x-amz-checksum-algorithm must be CRC32, CRC32C, CRC64NVME, SHA1 or SHA256",
        );
    };
    let kind = match (kind, algorithm) {
        (None, Algorithm::Crc64Nvme) => FULL_OBJECT,
        (None, _) => COMPOSITE,
        (Some(COMPOSITE), Algorithm::Crc64Nvme) => {
            return invalid("The checksum type of CRC64NVME must be FULL_OBJECT");
        }
        (Some(COMPOSITE), _) => COMPOSITE,
        (Some(FULL_OBJECT), algorithm) if algorithm.combines() => FULL_OBJECT,
        (Some(_), _) => return invalid("The algorithm does not support this checksum type"),
    };
    Ok(Some((algorithm, kind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_type_must_be_supported_by_the_algorithm() {
        for (algorithm, kind, expected) in [
            (Some("CRC32"), None, Some((Algorithm::Crc32, COMPOSITE))),
            (Some("CRC32"), Some(FULL_OBJECT), Some((Algorithm::Crc32, FULL_OBJECT))),
            (Some("CRC64NVME"), None, Some((Algorithm::Crc64Nvme, FULL_OBJECT))),
            (None, Some(COMPOSITE), None),
        ] {
            assert_eq!(checksum_kind(algorithm, kind).unwrap(), expected);
        }
        for (algorithm, kind) in
            [("SHA256", FULL_OBJECT), ("CRC64NVME", COMPOSITE), ("MD4", COMPOSITE)]
        {
            assert!(checksum_kind(Some(algorithm), Some(kind)).is_err(), "{algorithm} {kind}");
        }
    }
}
