//! Completion of a multipart upload: its parts become one object.

use haul_file_store::{Attributes, Error, Etag, ObjectInfo, PART_NUMBER_MAX, PartInfo, Store};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{
    ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CompletedPart,
};
use s3s::{S3ErrorCode, S3Request, S3Result};

use crate::audit::Changes;
use crate::body::checksum::{
    COMPOSITE, Checksum, FULL_OBJECT, TYPE_ATTRIBUTE, given_checksum, show_checksum,
};
use crate::body::part_checksums;
use crate::buckets::lifecycle::operations::expiration;
use crate::encryption::content::listed_bytes;
use crate::encryption::customer::CustomerKey;
use crate::encryption::envelope::Structure;
use crate::encryption::master::Master;
use crate::encryption::new_content::NewContent;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::{customer_key, described};
use crate::errors::{from_store, refuse};
use crate::hosts::rewrite::base_host;
use crate::objects::attributes::fit;
use crate::objects::conditions::precondition;
use crate::objects::read::etag;
use crate::objects::versions;
use crate::objects::write::{keep, unmet};
use crate::output::Output;
use crate::service::Haul;
use crate::uploads::parts::part_bytes;

/// The minimum size of a part that is not the last one: 5 MiB, as in S3.
const PART_BYTES_MIN: u64 = 5 << 20;

pub(crate) async fn complete_multipart_upload(
    haul: &Haul,
    request: S3Request<CompleteMultipartUploadInput>,
) -> S3Result<Output<CompleteMultipartUploadOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    let customer = customer_key(&headers)?;
    let keys = haul.encryption();
    let location = location(base_host(&extensions, &headers), &input.bucket, &input.key);
    let (bucket, key) = (input.bucket.clone(), input.key.clone());
    let (completed, expiration, version_id) = haul
        .blocking(move |store| {
            let completed = complete(store, &input, keys.as_deref(), customer.as_ref())?;
            let expiration =
                expiration(store, &input.bucket, &completed.stored, &completed.attributes);
            let version_id = versions::shown_of_new(completed.stored.version_id);
            Ok((completed, expiration, version_id))
        })
        .await?;
    let Completed { stored, bytes, attributes, master } = completed;
    if let Some(changes) = Changes::of(&extensions) {
        changes.stored(bytes, stored.etag);
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
    Ok(described(output, master.as_ref()))
}

/// A completed upload.
struct Completed {
    stored: ObjectInfo,
    /// The length of the object as clients see it.
    bytes: u64,
    attributes: Attributes,
    /// The key with which the object is encrypted.
    master: Option<Master>,
}

/// Completes the upload. Of an encrypted one, seals the numbers of the parts and their length.
fn complete(
    store: &Store,
    input: &CompleteMultipartUploadInput,
    keys: Option<&EncryptionKeys>,
    customer: Option<&CustomerKey>,
) -> S3Result<Completed> {
    let CompleteMultipartUploadInput { bucket, key, upload_id, .. } = input;
    let listed = input.multipart_upload.as_ref().and_then(|upload| upload.parts.as_deref());
    let listed = parse_parts(listed.unwrap_or_default());
    let precondition = precondition(input.if_match.as_ref(), input.if_none_match.as_ref())?;
    let upload = match store.upload(bucket, key, upload_id) {
        Ok(upload) => upload,
        Err(error @ Error::NoSuchUpload { .. }) => {
            // A client that did not receive the first response repeats the request. The request
            // succeeds if the object has the ETag that the listed parts result in, and is confirmed
            // in the copy of the store.
            let etag = listed.ok().and_then(|parts| multipart_etag(&parts));
            return match store.head(bucket, key) {
                Ok(done) if etag.is_some_and(|etag| etag.has_text_of(&done.info.etag)) => {
                    store.confirm().map_err(from_store)?;
                    let bytes = listed_bytes(store, bucket, &done.info, None)?;
                    let (stored, attributes) = (done.info, done.attributes);
                    Ok(Completed { stored, bytes, attributes, master: None })
                }
                _ => Err(from_store(error)),
            };
        }
        Err(error) => return Err(from_store(error)),
    };
    let listed = listed?;
    let new = NewContent::of_upload(keys, (bucket, key), &upload.attributes, customer)?;
    let stored = store.parts(bucket, key, upload_id).map_err(from_store)?;
    let chosen = select_parts(&stored, &listed)?;
    let bytes = chosen.iter().map(|part| part_bytes(part)).sum();
    if let Some(given) = input.mpu_object_size
        && u64::try_from(given).ok() != Some(bytes)
    {
        let message = "The total size of the parts differs from x-amz-mp-object-size";
        return Err(refuse(S3ErrorCode::InvalidRequest, message));
    }
    let mut attributes = upload.attributes;
    if let Some(new) = &new {
        let structure = Structure::Parts(chosen.iter().map(|part| part.number).collect());
        let stored_bytes = chosen.iter().map(|part| part.bytes).sum();
        new.envelope((bucket, key), structure, stored_bytes)?.set(&mut attributes);
    }
    let attributes = object_attributes(attributes, &chosen, given_checksum!(input))?;
    let parts: Vec<_> = listed.iter().map(|part| (part.number, part.etag)).collect();
    let stored = store
        .complete_upload(bucket, key, upload_id, &parts, &attributes, &precondition)
        .map_err(|error| unmet(store, bucket, key, &precondition, error))?;
    Ok(Completed { stored, bytes, attributes, master: new.map(|new| new.master) })
}

/// A part in the list of a request.
#[derive(Debug)]
struct ListedPart {
    number: u16,
    etag: Etag,
    checksum: Option<Checksum>,
}

/// Parses the list of parts in a request, which must be in ascending order. The last entry of a
/// repeated part counts.
fn parse_parts(listed: &[CompletedPart]) -> S3Result<Vec<ListedPart>> {
    let mut parts: Vec<ListedPart> = Vec::with_capacity(listed.len());
    for part in listed {
        let number = part.part_number.and_then(|number| u16::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=PART_NUMBER_MAX).contains(number)) else {
            let message = format!("Part numbers must be between 1 and {PART_NUMBER_MAX}");
            return Err(refuse(S3ErrorCode::InvalidArgument, message));
        };
        let etag = part.e_tag.as_ref().and_then(|etag| etag.value().parse().ok());
        let Some(etag) = etag else {
            let message = format!("The ETag of part {number} is missing or malformed");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        if parts.last().is_some_and(|before| before.number > number) {
            let message = "The list of parts is not in ascending order";
            return Err(refuse(S3ErrorCode::InvalidPartOrder, message));
        }
        parts.pop_if(|before| before.number == number);
        parts.push(ListedPart { number, etag, checksum: given_checksum!(part) });
    }
    if parts.is_empty() {
        return Err(refuse(S3ErrorCode::MalformedXML, "The list of parts is empty"));
    }
    Ok(parts)
}

/// Returns the stored parts of the list. Fails if one is too small or differs from its entry in the
/// list.
fn select_parts<'a>(stored: &'a [PartInfo], listed: &[ListedPart]) -> S3Result<Vec<&'a PartInfo>> {
    let mut chosen = Vec::with_capacity(listed.len());
    for ListedPart { number, etag, checksum } in listed {
        let part = stored.iter().find(|part| part.number == *number && part.etag.has_text_of(etag));
        let Some(part) = part else {
            let message = format!("Part {number} was not uploaded, or has a different ETag");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        };
        if let (Some(given), Some(stored)) = (checksum, Checksum::from_attributes(&part.attributes))
            && *given != stored
        {
            let message = format!("Part {number} has a different checksum");
            return Err(refuse(S3ErrorCode::InvalidPart, message));
        }
        chosen.push(part);
    }
    let all_but_last = chosen.split_last().map_or(&[][..], |(_, others)| others);
    if let Some(small) = all_but_last.iter().find(|part| part_bytes(part) < PART_BYTES_MIN) {
        let (number, bytes) = (small.number, part_bytes(small));
        let message = format!(
            "Part {number} has {bytes} bytes; each part except the last needs {PART_BYTES_MIN}"
        );
        return Err(refuse(S3ErrorCode::EntityTooSmall, message));
    }
    Ok(chosen)
}

/// Returns the attributes of the object: those of its upload, and the checksums of the object and
/// of its parts. Fails if the object has another checksum than `given`.
fn object_attributes(
    mut attributes: Attributes,
    parts: &[&PartInfo],
    given: Option<Checksum>,
) -> S3Result<Attributes> {
    let checksums = checksums_of(parts);
    let kind = attributes.get(TYPE_ATTRIBUTE).unwrap_or(COMPOSITE).to_owned();
    let checksum = object_checksum(&kind, &checksums, given)?;
    keep(&mut attributes, checksum.as_ref());
    if checksum.is_some() {
        attributes.set(TYPE_ATTRIBUTE, kind);
        part_checksums::set(&mut attributes, &checksums);
        fit(&mut attributes);
    }
    Ok(attributes)
}

/// Returns the lengths and checksums of the parts, if every part has a checksum and all are of the
/// same algorithm; otherwise nothing.
fn checksums_of(parts: &[&PartInfo]) -> Vec<(u64, Checksum)> {
    let of_part =
        |part: &&PartInfo| Some((part_bytes(part), Checksum::from_attributes(&part.attributes)?));
    let checksums: Option<Vec<_>> = parts.iter().map(of_part).collect();
    let checksums = checksums.unwrap_or_default();
    let alike = checksums.windows(2).all(|pair| pair[0].1.algorithm == pair[1].1.algorithm);
    if alike { checksums } else { Vec::new() }
}

/// Returns the checksum of the object that consists of these parts, and compares it with `given`.
fn object_checksum(
    kind: &str,
    parts: &[(u64, Checksum)],
    given: Option<Checksum>,
) -> S3Result<Option<Checksum>> {
    let computed = Checksum::of_parts(kind, parts);
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
fn multipart_etag(parts: &[ListedPart]) -> Option<Etag> {
    let mut md5 = Md5::new();
    for part in parts {
        md5.update(&part.etag.md5);
    }
    Some(Etag { md5: md5.finalize(), parts: u16::try_from(parts.len()).ok()? })
}

fn location(host: Option<&str>, bucket: &str, key: &str) -> String {
    match host {
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
            (&[(1, ETAG), (2, ETAG), (1, ETAG)], "InvalidPartOrder"),
            (&[(1, "\"x\"")], "InvalidPart"),
        ] {
            assert_eq!(parse_parts(&listed(parts)).unwrap_err().code().as_str(), code, "{parts:?}");
        }
    }

    #[test]
    fn last_entry_of_a_repeated_part_counts() {
        let other = "\"00000000000000000000000000000001\"";
        let parts = parse_parts(&listed(&[(1, ETAG), (2, ETAG), (2, other), (3, ETAG)])).unwrap();
        assert_eq!(parts.iter().map(|part| part.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(parts[1].etag.to_string(), other.trim_matches('"'));
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
            let outcome = select_parts(&stored, &parse_parts(&listed).unwrap());
            let refused = outcome.err().map(|error| error.code().as_str().to_owned());
            assert_eq!(refused.as_deref(), code, "{numbers:?}");
        }
    }
}
