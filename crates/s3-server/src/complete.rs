//! The end of an upload in parts: they become one object.

use haul_file_store::{Attributes, Error, Etag, ObjectInfo, PART_NUMBER_MAX, PartInfo, Store};
use hyper::header::{HOST, HeaderMap};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::audit::Changes;
use crate::checksum::{
    COMPOSITE, Checksum, FULL_OBJECT, TYPE_ATTRIBUTE, given_checksum, show_checksum,
};
use crate::conditions::precondition;
use crate::errors::{from_store, refuse};
use crate::lifecycle::operations::expiration;
use crate::read::etag;
use crate::service::Haul;
use crate::write::{keep, unmet};

/// The fewest bytes of a part that is not the last: 5 MiB, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;

pub(crate) async fn complete_multipart_upload(
    haul: &Haul,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<CompleteMultipartUploadOutput> {
    let S3Request { input, headers, extensions, .. } = request;
    let location = location(&headers, &input.bucket, &input.key);
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let (stored, expiration, attributes) = haul
        .blocking(move |store| {
            let (stored, attributes) = complete(store, &input)?;
            let expiration = expiration(store, &input.bucket, &stored);
            Ok((stored, expiration, attributes))
        })
        .await?;
    if let Some(changes) = Changes::of(&extensions) {
        changes.stored(stored.bytes, stored.etag);
    }
    let kind = attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT).to_owned();
    let checksum = Checksum::kept(&attributes);
    let mut output = CompleteMultipartUploadOutput {
        bucket: Some(bucket),
        checksum_type: checksum.as_ref().map(|_| ChecksumType::from(kind)),
        e_tag: Some(etag(stored.etag)),
        expiration,
        key: Some(key),
        location: Some(location),
        ..CompleteMultipartUploadOutput::default()
    };
    show_checksum!(output, checksum);
    Ok(output)
}

/// Completes the upload; returns the object, and its attributes as far as they are about
/// checksums.
fn complete(
    store: &Store,
    input: &CompleteMultipartUploadInput,
) -> S3Result<(ObjectInfo, Attributes)> {
    let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = input;
    let named = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_deref());
    let named = named.unwrap_or_default();
    let parts = numbered(named);
    let precondition = precondition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let upload = match store.upload(bucket, key, upload_id) {
        Ok(upload) => upload,
        Err(gone @ Error::NoSuchUpload { .. }) => {
            // A client that did not hear of its success asks again. The object tells.
            let whole = parts.ok().and_then(|parts| whole(&parts));
            return match store.head(bucket, key) {
                Ok(done) if Some(done.info.etag) == whole => Ok((done.info, done.attributes)),
                _ => Err(from_store(gone)),
            };
        }
        Err(error) => return Err(from_store(error)),
    };
    let parts = parts?;
    let stored = store.parts(bucket, key, upload_id).map_err(from_store)?;
    let chosen = choose(&stored, &parts, named)?;
    if let Some(bytes) = input.mpu_object_size
        && u64::try_from(bytes).ok() != Some(chosen.iter().map(|part| part.bytes).sum())
    {
        let message = "The parts together are not as long as x-amz-mp-object-size says";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let mut extra = Attributes::new();
    let kind = upload.attributes.get(TYPE_ATTRIBUTE).unwrap_or(COMPOSITE);
    let checksum = whole_checksum(kind, &chosen, given_checksum!(input))?;
    keep(&mut extra, checksum.as_ref());
    if checksum.is_some() {
        extra.set(TYPE_ATTRIBUTE, kind);
    }
    let info = store
        .complete_upload(bucket, key, upload_id, &parts, &extra, &precondition)
        .map_err(|error| unmet(store, bucket, key, &precondition, error))?;
    Ok((info, extra))
}

/// The parts named to be put together, in rising order.
fn numbered(named: &[CompletedPart]) -> S3Result<Vec<(u16, Etag)>> {
    let mut parts: Vec<(u16, Etag)> = Vec::with_capacity(named.len());
    for part in named {
        let number = part.part_number.and_then(|number| u16::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)) else {
            let message = format!("Parts have numbers from 1 to {PART_NUMBER_MAX}");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        };
        if parts.last().is_some_and(|(before, _)| *before >= number) {
            let message = "The parts are not named in rising order";
            return Err(refuse(S3ErrorCode::InvalidPartOrder, message));
        }
        let etag = part.e_tag.as_ref().and_then(|etag| etag.value().parse().ok());
        let Some(etag) = etag else {
            let message = format!("The ETag of part {number} is missing or no ETag of a part");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        parts.push((number, etag));
    }
    if parts.is_empty() {
        return Err(refuse(S3ErrorCode::MalformedXML, "No part is named"));
    }
    Ok(parts)
}

/// The stored parts that were named, if they are long enough and what the client takes them for.
fn choose<'a>(
    stored: &'a [PartInfo],
    parts: &[(u16, Etag)],
    named: &[CompletedPart],
) -> S3Result<Vec<&'a PartInfo>> {
    let mut chosen = Vec::with_capacity(parts.len());
    for ((number, etag), named) in parts.iter().zip(named) {
        let part = stored.iter().find(|part| part.number == *number && part.etag == *etag);
        let Some(part) = part else {
            let message = format!("Part {number} was not uploaded, or has another ETag");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        let given = given_checksum!(named);
        if let (Some(given), Some(kept)) = (given, Checksum::kept(&part.attributes))
            && given != kept
        {
            let message = format!("Part {number} has another checksum");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        }
        chosen.push(part);
    }
    let all_but_last = chosen.split_last().map_or(&[][..], |(_, others)| others);
    if let Some(small) = all_but_last.iter().find(|part| part.bytes < PART_BYTES_MIN) {
        let (number, bytes) = (small.number, small.bytes);
        let message = format!(
            "Part {number} has {bytes} bytes; all parts but the last need {PART_BYTES_MIN}"
        );
        return Err(refuse(S3ErrorCode::EntityTooSmall, message));
    }
    Ok(chosen)
}

/// The checksum of the whole, where every part has one; compared with the one given.
fn whole_checksum(
    kind: &str,
    parts: &[&PartInfo],
    given: Option<Checksum>,
) -> S3Result<Option<Checksum>> {
    let of_part = |part: &&PartInfo| Some((part.bytes, Checksum::kept(&part.attributes)?));
    let parts: Option<Vec<_>> = parts.iter().map(of_part).collect();
    let parts = parts.unwrap_or_default();
    let alike = parts.windows(2).all(|pair| pair[0].1.algorithm == pair[1].1.algorithm);
    let computed = if alike { Checksum::of_parts(kind, &parts) } else { None };
    if let (Some(given), Some(computed)) = (&given, &computed) {
        // Some clients leave out the number of parts at the end of a composite checksum.
        let bare = computed.value.split('-').next().unwrap_or_default();
        let same = given.value == computed.value || given.value == bare;
        if given.algorithm != computed.algorithm || !same {
            let message = "The checksum you specified is not that of the parts together";
            return Err(refuse(S3ErrorCode::BadDigest, message));
        }
    }
    Ok(computed)
}

/// The ETag of the object that these parts make.
fn whole(parts: &[(u16, Etag)]) -> Option<Etag> {
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

    fn named(parts: &[(i32, &str)]) -> Vec<CompletedPart> {
        let part = |&(number, etag): &(i32, &str)| CompletedPart {
            e_tag: s3s::dto::ETag::parse_http_header(etag.as_bytes()).ok(),
            part_number: Some(number),
            ..CompletedPart::default()
        };
        parts.iter().map(part).collect()
    }

    const ETAG: &str = "\"d41d8cd98f00b204e9800998ecf8427e\"";

    #[test]
    fn parts_are_named_in_rising_order_with_their_etags() {
        assert_eq!(numbered(&named(&[(1, ETAG), (10_000, ETAG)])).unwrap().len(), 2);
        for (parts, code) in [
            (&[][..], "MalformedXML"),
            (&[(0, ETAG)], "InvalidArgument"),
            (&[(10_001, ETAG)], "InvalidArgument"),
            (&[(2, ETAG), (1, ETAG)], "InvalidPartOrder"),
            (&[(2, ETAG), (2, ETAG)], "InvalidPartOrder"),
            (&[(1, "\"x\"")], "InvalidPart"),
        ] {
            assert_eq!(numbered(&named(parts)).unwrap_err().code().as_str(), code, "{parts:?}");
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
            let named = named(&numbers.iter().map(|&n| (n, ETAG)).collect::<Vec<_>>());
            let outcome = choose(&stored, &numbered(&named).unwrap(), &named);
            let refused = outcome.err().map(|error| error.code().as_str().to_owned());
            assert_eq!(refused.as_deref(), code, "{numbers:?}");
        }
    }
}
