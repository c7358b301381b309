//! Versions of objects: their IDs in requests and responses, and their listing.

use haul_file_store::{
    Error, ListVersionsRequest, Object, Store, VersionId, VersionInfo, VersionListEntry,
    VersionListPage, Versioning,
};
use hyper::header::{HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};
use s3s::dto::{
    DeleteMarkerEntry, ListObjectVersionsInput, ListObjectVersionsOutput, ObjectVersion,
    ObjectVersionStorageClass, Timestamp, TimestampFormat,
};
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};

use crate::buckets::bucket::owner;
use crate::errors::{from_store, refuse};
use crate::objects::listing::{NameEncoding, page_limit};
use crate::objects::read::{etag, length};
use crate::service::Haul;

pub(crate) const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");
const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");

/// Parses the version ID of a request; `None` for the current object.
pub(crate) fn parse(version: Option<&str>) -> S3Result<Option<VersionId>> {
    let Some(text) = version.filter(|text| !text.is_empty()) else { return Ok(None) };
    let unknown = |_malformed| refuse(S3ErrorCode::NoSuchVersion, "The version does not exist");
    text.parse().map(Some).map_err(unknown)
}

/// Returns the version ID of an object as a response has it: none in a bucket without versions.
pub(crate) fn shown(store: &Store, bucket: &str, version: VersionId) -> Option<String> {
    (version != VersionId::Null || has_versions(store, bucket)).then(|| version.to_string())
}

/// Returns `true` if versioning is enabled or suspended in a bucket.
pub(crate) fn has_versions(store: &Store, bucket: &str) -> bool {
    store.versioning(bucket).is_ok_and(|versioning| versioning != Versioning::Off)
}

/// Returns an object, or a version of it, with its content.
pub(crate) fn get(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<Object> {
    let found = match version {
        Some(version) => store.get_version(bucket, key, version),
        None => store.get(bucket, key),
    };
    found.map_err(|error| refused(store, bucket, key, error))
}

/// Returns an object, or a version of it, without its content.
pub(crate) fn head(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<Object> {
    let found = match version {
        Some(version) => store.head_version(bucket, key, version),
        None => store.head(bucket, key),
    };
    found.map_err(|error| refused(store, bucket, key, error))
}

/// Returns the outcome of a read that does not block. The error for a missing key in a bucket with
/// versions depends on a read that may block.
pub(crate) fn cached<T>(
    store: &Store,
    bucket: &str,
    found: haul_file_store::Result<Option<T>>,
) -> S3Result<Option<T>> {
    match found {
        Err(Error::NoSuchKey { .. }) if has_versions(store, bucket) => Ok(None),
        found => found.map_err(from_store),
    }
}

/// Translates the error of a read. If the newest version is a delete marker, the response has its
/// ID.
pub(crate) fn refused(store: &Store, bucket: &str, key: &str, error: Error) -> S3Error {
    let (marker, mut error) = match error {
        Error::IsDeleteMarker { version, created, .. } => {
            let message = "The version is a delete marker";
            let mut headers = marker_headers(version);
            let mut date = Vec::new();
            if Timestamp::from(created).format(TimestampFormat::HttpDate, &mut date).is_ok()
                && let Ok(value) = HeaderValue::from_bytes(&date)
            {
                headers.insert(LAST_MODIFIED, value);
            }
            (Some(headers), refuse(S3ErrorCode::MethodNotAllowed, message))
        }
        error @ Error::NoSuchKey { .. } => {
            let marker = store.delete_marker(bucket, key).ok().flatten();
            let headers = marker.map(|marker| marker_headers(marker.info.version_id));
            (headers, from_store(error))
        }
        error => (None, from_store(error)),
    };
    if let Some(headers) = marker {
        error.set_headers(headers);
    }
    error
}

fn marker_headers(version: VersionId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(DELETE_MARKER, HeaderValue::from_static("true"));
    if let Ok(value) = HeaderValue::try_from(version.to_string()) {
        headers.insert(VERSION_ID, value);
    }
    headers
}

pub(crate) async fn list_object_versions(
    haul: &Haul,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<ListObjectVersionsOutput> {
    let input = request.input;
    let names = NameEncoding::parse(input.encoding_type)?;
    let (max_keys, limit) = page_limit(input.max_keys, "max-keys")?;
    let after = input.key_marker.clone().filter(|after| !after.is_empty());
    let after_version = parse(input.version_id_marker.as_deref())?;
    if after_version.is_some() && after.is_none() {
        let message = "A version-id marker cannot be specified without a key marker";
        return Err(refuse(S3ErrorCode::InvalidArgument, message));
    }
    let delimiter = input.delimiter.filter(|delimiter| !delimiter.is_empty());
    let (bucket, prefix) = (input.bucket.clone(), input.prefix.unwrap_or_default());
    let (page, prefix, delimiter) = haul
        .blocking(move |store| {
            let request = ListVersionsRequest {
                prefix: &prefix,
                delimiter: delimiter.as_deref(),
                after: after.as_deref(),
                after_version,
                limit,
            };
            let page = store.list_versions(&bucket, &request).map_err(from_store)?;
            Ok((page, prefix, delimiter))
        })
        .await?;
    let (next_key_marker, next_version_id_marker) = next_markers(&page, &names);
    let mut output = ListObjectVersionsOutput {
        delimiter: delimiter.as_deref().map(|delimiter| names.encode(delimiter)),
        encoding_type: names.encoding_type(),
        is_truncated: Some(page.more),
        key_marker: Some(names.encode(input.key_marker.as_deref().unwrap_or_default())),
        max_keys: Some(max_keys),
        name: Some(input.bucket),
        next_key_marker,
        next_version_id_marker,
        prefix: Some(names.encode(&prefix)),
        version_id_marker: input.version_id_marker,
        ..ListObjectVersionsOutput::default()
    };
    let (mut versions, mut markers, mut prefixes) = (Vec::new(), Vec::new(), Vec::new());
    for entry in page.entries {
        match entry {
            VersionListEntry::Version(marker) if marker.is_delete_marker => {
                markers.push(delete_marker(&names, &marker));
            }
            VersionListEntry::Version(found) => versions.push(version(&names, &found)),
            VersionListEntry::Prefix(prefix) => prefixes.push(prefix),
        }
    }
    output.common_prefixes = Some(names.prefixes(prefixes));
    (output.versions, output.delete_markers) = (Some(versions), Some(markers));
    Ok(output)
}

/// Returns the markers after which the next page starts, if the listing is truncated.
fn next_markers(page: &VersionListPage, names: &NameEncoding) -> (Option<String>, Option<String>) {
    match page.entries.last().filter(|_| page.more) {
        Some(VersionListEntry::Version(last)) => {
            (Some(names.encode(&last.info.key)), Some(last.info.version_id.to_string()))
        }
        Some(VersionListEntry::Prefix(prefix)) => (Some(names.encode(prefix)), None),
        None => (None, None),
    }
}

fn version(names: &NameEncoding, found: &VersionInfo) -> ObjectVersion {
    let info = &found.info;
    let class = ObjectVersionStorageClass::from_static(ObjectVersionStorageClass::STANDARD);
    ObjectVersion {
        e_tag: Some(etag(info.etag)),
        is_latest: Some(found.is_latest),
        key: Some(names.encode(&info.key)),
        last_modified: Some(Timestamp::from(info.modified)),
        owner: Some(owner()),
        size: Some(length(info.bytes)),
        storage_class: Some(class),
        version_id: Some(info.version_id.to_string()),
        ..ObjectVersion::default()
    }
}

fn delete_marker(names: &NameEncoding, marker: &VersionInfo) -> DeleteMarkerEntry {
    DeleteMarkerEntry {
        is_latest: Some(marker.is_latest),
        key: Some(names.encode(&marker.info.key)),
        last_modified: Some(Timestamp::from(marker.info.modified)),
        owner: Some(owner()),
        version_id: Some(marker.info.version_id.to_string()),
    }
}
