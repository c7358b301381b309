//! Operations that read objects and their metadata.

use std::sync::Arc;

use haul_file_store::{Attributes, Etag, Object, ObjectInfo, Store, VersionId};
use haul_http1::Verdict;
use hyper::header::{ETAG, HeaderMap, HeaderValue, LAST_MODIFIED};
use s3s::dto::{
    self, ChecksumType, ETag, GetObjectInput, GetObjectOutput, HeadObjectInput, HeadObjectOutput,
    Range, StorageClass, Timestamp, TimestampFormat,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::access::caller::Caller;
use crate::body::checksum::{Checksum, FULL_OBJECT, TYPE_ATTRIBUTE, show_checksum};
use crate::body::part_checksums::PartChecksums;
use crate::body::send;
use crate::body::send::BodySlot;
use crate::buckets::lifecycle::operations::expiration;
use crate::encryption::request::{self, key_of_read};
use crate::errors::{check_key, refuse};
use crate::front::hot::HotObjects;
use crate::objects::attributes::{self, shown};
use crate::objects::conditions::Conditions;
use crate::objects::range::{Selected, check_part, select};
use crate::objects::{lock, versions};
use crate::output::Output;
use crate::service::Haul;

/// Takes the conditions out of the input of a read.
macro_rules! conditions {
    ($input:expr) => {
        Conditions {
            if_match: $input.if_match,
            if_none_match: $input.if_none_match,
            if_modified_since: $input.if_modified_since,
            if_unmodified_since: $input.if_unmodified_since,
        }
    };
}

pub(crate) async fn get_object(
    haul: &Haul,
    request: S3Request<GetObjectInput>,
) -> S3Result<Output<GetObjectOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    check_key(&input.key)?;
    let customer = key_of_read(&headers)?;
    let version = versions::parse(input.version_id.as_deref())?;
    let conditions = conditions!(input);
    let (bucket, key) = (input.bucket, input.key);
    // The content may not be needed, or not all of it.
    let reads_little = conditions.any() || is_short_range(input.range.as_ref());
    let open_bytes_max = match version {
        None => haul.store().open_bytes_max(&bucket, &key),
        Some(_) => haul.store().version_bytes_max(),
    };
    let mut memory = haul.reserve(extensions.get(), open_bytes_max).await?;
    let cached = cached(&haul.store(), &bucket, &key, version)?;
    let (of, caller) = ((bucket.clone(), key.clone()), Caller::of(&extensions));
    let (object, expiration) = match cached {
        Some(object) => with_expiration(&haul.store(), &bucket, object),
        None => {
            let hot = extensions.get::<Arc<HotObjects>>().cloned();
            haul.blocking(move |store| {
                if version.is_some() {
                    // Rules apply to current objects only.
                    return Ok((versions::get(store, &bucket, &key, version)?, None));
                }
                let object = match reads_little {
                    true => store.open_object(&bucket, &key),
                    false => get_and_cache(store, hot.as_deref(), &bucket, &key),
                };
                let object =
                    object.map_err(|error| versions::refused(store, &bucket, &key, error))?;
                Ok(with_expiration(store, &bucket, object))
            })
            .await?
        }
    };
    caller.confirm_read(&haul.store(), "GetObject", (&of.0, &of.1), &object.attributes)?;
    check_part_of(&object.info, input.part_number)?;
    let content = haul.content((&of.0, &of.1), object, customer.as_ref())?;
    let object = &content.object;
    let with_ranges = evaluate(&conditions, &object.info, &headers)?;

    let range = input.range.filter(|_| with_ranges);
    let selected = select(range.as_ref(), input.part_number, &content.part_bytes())?;
    let with_checksum = input.checksum_mode.is_some();
    let mut output = described(object, &selected, input.part_number, with_checksum);
    output.expiration = expiration;
    output.version_id = versions::shown(&haul.store(), &of.0, object.info.version_id);
    let output = request::described(output, content.master());

    let range = selected.bytes;
    if range.start == 0 && content.opened.is_none() {
        send::pin_if_hot(object);
    }
    let body = match send::pinned(&content, &range) {
        Some(body) => body,
        None => {
            if !content.is_in_memory() {
                drop(memory);
                let small_bytes_max = haul.limits().small_body_bytes_max;
                let bytes = send::memory_bytes(&content, small_bytes_max);
                memory = haul.reserve(extensions.get(), bytes).await?;
            }
            send::read(Arc::new(content), range, memory).await?
        }
    };
    if let Some(slot) = extensions.get::<BodySlot>() {
        slot.put(body);
    }
    Ok(output)
}

/// Returns the current object if it is in memory.
fn cached(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<Option<Object>> {
    match version {
        None => versions::cached(store, bucket, store.get_cached(bucket, key)),
        Some(_) => Ok(None),
    }
}

/// Reads an object, and caches it if it is long.
fn get_and_cache(
    store: &Store,
    hot: Option<&HotObjects>,
    bucket: &str,
    key: &str,
) -> haul_file_store::Result<Object> {
    let place = store.location(bucket, key);
    let object = store.get(bucket, key)?;
    if let (Some(hot), Some(place)) = (hot, place) {
        hot.insert_long(store, bucket, place, &object);
    }
    Ok(object)
}

/// Adds the value of `x-amz-expiration` to an object.
fn with_expiration(store: &Store, bucket: &str, object: Object) -> (Object, Option<String>) {
    let expiration = expiration(store, bucket, &object.info, &object.attributes);
    (object, expiration)
}

pub(crate) async fn head_object(
    haul: &Haul,
    request: S3Request<HeadObjectInput>,
) -> S3Result<Output<HeadObjectOutput>> {
    let S3Request { input, headers, extensions, .. } = request;
    check_key(&input.key)?;
    let customer = key_of_read(&headers)?;
    let version = versions::parse(input.version_id.as_deref())?;
    let conditions = conditions!(input);
    let (bucket, key) = (input.bucket, input.key);
    let cached = match version {
        None => {
            let store = haul.store();
            versions::cached(&store, &bucket, store.head_cached(&bucket, &key))?
        }
        Some(_) => None,
    };
    let (of, caller) = ((bucket.clone(), key.clone()), Caller::of(&extensions));
    let (object, expiration) = match cached {
        Some(object) => with_expiration(&haul.store(), &bucket, object),
        None => {
            haul.blocking(move |store| {
                let object = versions::head(store, &bucket, &key, version)?;
                let (object, expiration) = with_expiration(store, &bucket, object);
                Ok((object, expiration.filter(|_| version.is_none())))
            })
            .await?
        }
    };
    caller.confirm_read(&haul.store(), "HeadObject", (&of.0, &of.1), &object.attributes)?;
    check_part_of(&object.info, input.part_number)?;
    let content = haul.content((&of.0, &of.1), object, customer.as_ref())?;
    let object = &content.object;
    let with_ranges = evaluate(&conditions, &object.info, &headers)?;
    let range = input.range.filter(|_| with_ranges);
    let selected = select(range.as_ref(), input.part_number, &content.part_bytes())?;
    let with_checksum = input.checksum_mode.is_some();
    let got = described(object, &selected, input.part_number, with_checksum);
    let tag_count = got.tag_count.map(|count| count.to_string());
    let mut response = Output::from(HeadObjectOutput {
        accept_ranges: got.accept_ranges,
        cache_control: of_response(input.response_cache_control)?.or(got.cache_control),
        checksum_crc32: got.checksum_crc32,
        checksum_crc32c: got.checksum_crc32c,
        checksum_crc64nvme: got.checksum_crc64nvme,
        checksum_sha1: got.checksum_sha1,
        checksum_sha256: got.checksum_sha256,
        checksum_type: got.checksum_type,
        content_disposition: of_response(input.response_content_disposition)?
            .or(got.content_disposition),
        content_encoding: of_response(input.response_content_encoding)?.or(got.content_encoding),
        content_language: of_response(input.response_content_language)?.or(got.content_language),
        content_length: got.content_length,
        content_range: got.content_range,
        content_type: of_response(input.response_content_type)?.or(got.content_type),
        e_tag: got.e_tag,
        expiration,
        expires: input.response_expires.or(got.expires),
        last_modified: got.last_modified,
        metadata: got.metadata,
        object_lock_legal_hold_status: got.object_lock_legal_hold_status,
        object_lock_mode: got.object_lock_mode,
        object_lock_retain_until_date: got.object_lock_retain_until_date,
        parts_count: got.parts_count,
        version_id: versions::shown(&haul.store(), &of.0, object.info.version_id),
        website_redirect_location: got.website_redirect_location,
        ..HeadObjectOutput::default()
    });
    if let Some(count) = tag_count {
        response.add("x-amz-tagging-count", &count);
    }
    Ok(request::described(response, content.master()))
}

/// Fails if an object in parts has no part of this number, also without the key of an encrypted
/// object, as in S3: its ETag has the number of its parts.
fn check_part_of(info: &ObjectInfo, number: Option<i32>) -> S3Result<()> {
    match (number, usize::from(info.etag.part_count())) {
        (None, _) | (Some(_), 0) => Ok(()),
        (Some(number), parts) => check_part(number, parts).map(drop),
    }
}

/// Returns the value of a header that the query sets, or an error if no header can have it.
fn of_response(value: Option<String>) -> S3Result<Option<String>> {
    if value.as_deref().is_none_or(|value| HeaderValue::from_str(value).is_ok()) {
        return Ok(value);
    }
    Err(refuse(S3ErrorCode::InvalidArgument, "The value of a response-… parameter is invalid"))
}

/// The longest range for which only the blocks that it touches are read.
const SHORT_RANGE_BYTES: u64 = 256 << 10;

/// Returns `true` for a short range of an object of any length.
fn is_short_range(range: Option<&Range>) -> bool {
    let selected = range.and_then(|range| select(Some(range), None, &[u64::MAX / 2]).ok());
    selected.is_some_and(|selected| selected.bytes.end - selected.bytes.start <= SHORT_RANGE_BYTES)
}

/// Returns the response without its body.
fn described(
    object: &Object,
    selected: &Selected,
    part_number: Option<i32>,
    with_checksum: bool,
) -> GetObjectOutput {
    let Object { info, attributes, .. } = object;
    let mut output = GetObjectOutput {
        accept_ranges: Some("bytes".to_owned()),
        cache_control: shown(attributes, "cache-control"),
        content_disposition: shown(attributes, "content-disposition"),
        content_encoding: shown(attributes, "content-encoding"),
        content_language: shown(attributes, "content-language"),
        content_length: Some(length(selected.bytes.end - selected.bytes.start)),
        content_range: selected.content_range.clone(),
        content_type: Some(attributes::content_type(attributes, &info.key)),
        e_tag: Some(etag(info.etag)),
        expires: attributes::expires(attributes),
        last_modified: Some(Timestamp::from(info.modified)),
        metadata: attributes::metadata(attributes),
        website_redirect_location: shown(attributes, "x-amz-website-redirect-location"),
        ..GetObjectOutput::default()
    };
    let lock = lock::shown(attributes);
    output.object_lock_mode = lock.mode;
    output.object_lock_retain_until_date = lock.until;
    output.object_lock_legal_hold_status = lock.legal_hold;
    if part_number.is_some() && info.etag.part_count() > 0 {
        output.parts_count = Some(i32::from(info.etag.part_count()));
    }
    let tags = attributes.tags().len();
    if tags > 0 {
        output.tag_count = i32::try_from(tags).ok();
    }
    if with_checksum && let Some(checksum) = checksum_of_response(object, selected, part_number) {
        output.checksum_type = Some(checksum_type(attributes));
        show_checksum!(output, Some(checksum));
    }
    output
}

/// Returns the checksum of the bytes that a response contains: of the object, or of a part.
fn checksum_of_response(
    object: &Object,
    selected: &Selected,
    part_number: Option<i32>,
) -> Option<Checksum> {
    let attributes = &object.attributes;
    match part_number.filter(|_| object.info.etag.part_count() > 0) {
        Some(number) => {
            let index = usize::try_from(number).ok()?.checked_sub(1)?;
            PartChecksums::from_attributes(attributes)?.get(index)
        }
        None if selected.content_range.is_none() => Checksum::from_attributes(attributes),
        None => None,
    }
}

/// Returns the checksum that is stored with an object.
pub(super) fn checksum(attributes: &Attributes) -> Option<dto::Checksum> {
    let kept = Checksum::from_attributes(attributes)?;
    let checksum_type = Some(checksum_type(attributes));
    let mut shown = dto::Checksum { checksum_type, ..dto::Checksum::default() };
    show_checksum!(shown, Some(kept));
    Some(shown)
}

fn checksum_type(attributes: &Attributes) -> ChecksumType {
    ChecksumType::from(attributes.get(TYPE_ATTRIBUTE).unwrap_or(FULL_OBJECT).to_owned())
}

/// Evaluates the conditions of a request. Returns `true` if its `Range` applies, and the response
/// as an error if a condition fails.
fn evaluate(conditions: &Conditions, info: &ObjectInfo, headers: &HeaderMap) -> S3Result<bool> {
    match conditions.verdict(info, Some(headers)) {
        Verdict::Proceed { with_ranges } => Ok(with_ranges),
        Verdict::Failed => {
            let message = "At least one of the preconditions you specified failed";
            Err(refuse(S3ErrorCode::PreconditionFailed, message))
        }
        Verdict::NotModified => Err(not_modified(info)),
    }
}

fn not_modified(info: &ObjectInfo) -> S3Error {
    let mut headers = HeaderMap::new();
    let mut date = Vec::new();
    let modified = Timestamp::from(info.modified);
    if modified.format(TimestampFormat::HttpDate, &mut date).is_ok()
        && let Ok(value) = HeaderValue::from_bytes(&date)
    {
        headers.insert(LAST_MODIFIED, value);
    }
    if let Ok(value) = HeaderValue::try_from(format!("\"{}\"", info.etag)) {
        headers.insert(ETAG, value);
    }
    let mut error = refuse(S3ErrorCode::NotModified, "Not Modified");
    error.set_headers(headers);
    error
}

/// Converts an ETag to the type of `s3s`.
pub(crate) fn etag(etag: Etag) -> ETag {
    ETag::Strong(etag.to_string())
}

/// Converts a length to the type of `s3s`.
pub(crate) fn length(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

pub(super) fn standard() -> StorageClass {
    StorageClass::from_static(StorageClass::STANDARD)
}
