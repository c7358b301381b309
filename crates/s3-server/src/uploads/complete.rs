//! Completion of a multipart upload: its parts become one object.

use haul_file_store::{Attributes, Error, Etag, ObjectInfo, PART_NUMBER_MAX, PartInfo, Store};
use hyper::header::{HOST, HeaderMap};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::audit::Changes;
use crate::body::checksum::{
    COMPOSITE, Checksum, FULL_OBJECT, TYPE_ATTRIBUTE, given_checksum, show_checksum,
};
use crate::buckets::lifecycle::operations::expiration;
use crate::errors::{from_store, refuse};
use crate::objects::conditions::precondition;
use crate::objects::read::etag;
use crate::objects::versions;
use crate::objects::write::{keep, unmet};
use crate::service::Haul;

/// The minimum size of a part that is not the last one: 5 MiB, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;

pub(crate) async fn complete_multipart_upload(
    haul: &Haul,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<CompleteMultipartUploadOutput> {
    let S3Request { input, headers, extensions, .. } = request;
    let location = location(&headers, &input.bucket, &input.key);
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let (stored, (expiration, version_id), attributes) = haul
        .blocking(move |store| {
            let (stored, attributes) = complete(store, &input)?;
            let expiration = expiration(store, &input.bucket, &stored);
            let version_id = versions::shown(store, &input.bucket, stored.version_id);
            Ok((stored, (expiration, version_id), attributes))
        })
        .await?;
    if let Some(changes) = Changes::of(&extensions) {
        changes.stored(stored.bytes, stored.etag);
    }
    let kind = attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT).to_owned();
    let checksum = Checksum::from_attributes(&attributes);
    let mut output = CompleteMultipartUploadOutput {
        bucket: Some(bucket),
        checksum_type: checksum.as_ref().map(|_| ChecksumType::from(kind)),
        e_tag: Some(etag(stored.etag)),
        expiration,
        key: Some(key),
        location: Some(location),
        version_id,
        ..CompleteMultipartUploadOutput::default()
    };
    show_checksum!(output, checksum);
    Ok(output)
}

/// Completes the upload. Returns the object and its checksum attributes.
fn complete(
    store: &Store,
    input: &CompleteMultipartUploadInput,
) -> S3Result<(ObjectInfo, Attributes)> {
    let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = input;
    let listed = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_deref());
    let listed = listed.unwrap_or_default();
    let parts = parse_parts(listed);
    let precondition = precondition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let upload = match store.upload(bucket, key, upload_id) {
        Ok(upload) => upload,
        Err(error @ Error::NoSuchUpload { .. }) => {
            // A client that did not receive the first response repeats the request. The request
            // succeeds if the object has the ETag that the listed parts result in, and is confirmed
            // in the copy of the store.
            let etag = parts.ok().and_then(|parts| multipart_etag(&parts));
            return match store.head(bucket, key) {
                Ok(done) if Some(done.info.etag) == etag => {
                    store.confirm().map_err(from_store)?;
                    Ok((done.info, done.attributes))
                }
                _ => Err(from_store(error)),
            };
        }
        Err(error) => return Err(from_store(error)),
    };
    let parts = parts?;
    let stored = store.parts(bucket, key, upload_id).map_err(from_store)?;
    let chosen = select_parts(&stored, &parts, listed)?;
    if let Some(bytes) = input.mpu_object_size
        && u64::try_from(bytes).ok() != Some(chosen.iter().map(|part| part.bytes).sum())
    {
        let message = "The total size of the parts differs from x-amz-mp-object-size";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let mut extra = Attributes::new();
    let kind = upload.attributes.get(TYPE_ATTRIBUTE).unwrap_or(COMPOSITE);
    let checksum = object_checksum(kind, &chosen, given_checksum!(input))?;
    keep(&mut extra, checksum.as_ref());
    if checksum.is_some() {
        extra.set(TYPE_ATTRIBUTE, kind);
    }
    let info = store
        .complete_upload(bucket, key, upload_id, &parts, &extra, &precondition)
        .map_err(|error| unmet(store, bucket, key, &precondition, error))?;
    Ok((info, extra))
}

/// Parses the list of parts in a request, which must be in ascending order.
fn parse_parts(listed: &[CompletedPart]) -> S3Result<Vec<(u16, Etag)>> {
    let mut parts: Vec<(u16, Etag)> = Vec::with_capacity(listed.len());
    for part in listed {
        let number = part.part_number.and_then(|number| u16::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)) else {
            let message = format!("Part numbers must be between 1 and {PART_NUMBER_MAX}");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        };
        if parts.last().is_some_and(|(before, _)| *before >= number) {
            let message = "The list of parts is not in ascending order";
            return Err(refuse(S3ErrorCode::InvalidPartOrder, message));
        }
        let etag = part.e_tag.as_ref().and_then(|etag| etag.value().parse().ok());
        let Some(etag) = etag else {
            let message = format!("The ETag of part {number} is missing or malformed");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        parts.push((number, etag));
    }
    if parts.is_empty() {
        return Err(refuse(S3ErrorCode::MalformedXML, "The list of parts is empty"));
    }
    Ok(parts)
}

/// Returns the stored parts of the list. Fails if one is too small or differs from its entry in the
/// list.
fn select_parts<'a>(
    stored: &'a [PartInfo],
    parts: &[(u16, Etag)],
    listed: &[CompletedPart],
) -> S3Result<Vec<&'a PartInfo>> {
    let mut chosen = Vec::with_capacity(parts.len());
    for ((number, etag), listed) in parts.iter().zip(listed) {
        let part = stored.iter().find(|part| part.number == *number && part.etag == *etag);
        let Some(part) = part else {
            let message = format!("Part {number} was not uploaded, or has a different ETag");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        let given = given_checksum!(listed);
        if let (Some(given), Some(kept)) = (given, Checksum::from_attributes(&part.attributes))
            && given != kept
        {
            let message = format!("Part {number} has a different checksum");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        }
        chosen.push(part);
    }
    let all_but_last = chosen.split_last().map_or(&[][..], |(_, others)| others);
    if let Some(small) = all_but_last.iter().find(|part| part.bytes < PART_BYTES_MIN) {
        let (number, bytes) = (small.number, small.bytes);
        let message = format!(
            "Part {number} has {bytes} bytes; each part except the last needs {PART_BYTES_MIN}"
        );
        return Err(refuse(S3ErrorCode::EntityTooSmall, message));
    }
    Ok(chosen)
}

/// Returns the checksum of the object, if every part has one, and compares it with `given`.
fn object_checksum(
    kind: &str,
    parts: &[&PartInfo],
    given: Option<Checksum>,
) -> S3Result<Option<Checksum>> {
    let of_part =
        |part: &&PartInfo| Some((part.bytes, Checksum::from_attributes(&part.attributes)?));
    let parts: Option<Vec<_>> = parts.iter().map(of_part).collect();
    let parts = parts.unwrap_or_default();
    let alike = parts.windows(2).all(|pair| pair[0].1.algorithm == pair[1].1.algorithm);
    let computed = if alike { Checksum::of_parts(kind, &parts) } else { None };
    if let (Some(given), Some(computed)) = (&given, &computed) {
        // Some clients omit the number of parts at the end of a composite checksum.
        let bare = computed.value.split('-').next().unwrap_or_default();
        let same = given.value == computed.value || given.value == bare;
        if given.algorithm != computed.algorithm || !same {
            let message = "The checksum in the request differs from the checksum of the object";
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
    }
    Ok(computed)
}

/// Returns the ETag of the object that consists of these parts.
fn multipart_etag(parts: &[(u16, Etag)]) -> Option<Etag> {
    let mut md5 = Md5::new();
    for (_, etag) in parts {
        md5.update(&etag.md5);
    }
    Some(Etag { md5: md5.finalize(), parts: u16::try_from(parts.len()).ok()? })
}

fn location(headers: &HeaderMap, bucket: &str, key: &str) -> String {
    match headers.get(HOST).and_then(|host| host.to_str().ok()) {
        Some(host) => format!("http://{host}/{bucket}/{key}"),
        None => format!("/{bucket}/{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(parts: &[(i32, &str)]) -> Vec<CompletedPart> {
        let part = |&(number, etag): &(i32, &str)| CompletedPart {
            e_tag: s3s::dto::ETag::parse_http_header(etag.as_bytes()).ok(),
            part_number: Some(number),
            ..CompletedPart::default()
        };
        parts.iter().map(part).collect()
    }

    const ETAG: &str = "\"d41d8cd98f00b204e9800998ecf8427e\"";

    #[test]
    fn listed_parts_need_ascending_numbers_and_etags() {
        assert_eq!(parse_parts(&listed(&[(1, ETAG), (10_000, ETAG)])).unwrap().len(), 2);
        for (parts, code) in [
            (&[][..], "MalformedXML"),
            (&[(0, ETAG)], "InvalidArgument"),
            (&[(10_001, ETAG)], "InvalidArgument"),
            (&[(2, ETAG), (1, ETAG)], "InvalidPartOrder"),
            (&[(2, ETAG), (2, ETAG)], "InvalidPartOrder"),
            (&[(1, "\"x\"")], "InvalidPart"),
        ] {
            assert_eq!(parse_parts(&listed(parts)).unwrap_err().code().as_str(), code, "{parts:?}");
        }
    }

    #[test]
    fn small_and_unknown_parts_are_refused() {
        let part = |number, bytes| PartInfo {
            number,
            bytes,
            modified: std::time::SystemTime::UNIX_EPOCH,
            etag: ETAG.trim_matches('"').parse().unwrap(),
            attributes: Attributes::new(),
        };
        let stored = [part(1, PART_BYTES_MIN), part(2, 7), part(3, 0)];
        for (numbers, code) in [
            (&[1][..], None),
            (&[2], None),
            (&[1, 2], None),
            (&[1, 3], None),
            (&[1, 2, 3], Some("EntityTooSmall")),
            (&[1, 4], Some("InvalidPart")),
        ] {
            let listed = listed(&numbers.iter().map(|&n| (n, ETAG)).collect::<Vec<_>>());
            let outcome = select_parts(&stored, &parse_parts(&listed).unwrap(), &listed);
            let refused = outcome.err().map(|error| error.code().as_str().to_owned());
            assert_eq!(refused.as_deref(), code, "{numbers:?}");
        }
    }
}
