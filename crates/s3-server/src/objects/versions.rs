//! The version IDs of objects in requests and responses.

use haul_file_store::{Error, Object, Store, VersionId, Versioning};
use hyper::header::{HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};
use s3s::dto::{Timestamp, TimestampFormat};
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::errors::{from_store, refuse};

pub(crate) const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");
const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");

/// Parses the version ID of a request; `None` for the current object.
pub(crate) fn parse(version: Option<&str>) -> S3Result<Option<VersionId>> {
    let Some(text) = version.filter(|text| !text.is_empty()) else { return Ok(None) };
    let malformed = |_why| refuse(S3ErrorCode::InvalidArgument, "Invalid version id specified");
    text.parse().map(Some).map_err(malformed)
}

/// Returns the version ID of an object as a response has it: none in a bucket without versions.
pub(crate) fn shown(store: &Store, bucket: &str, version: VersionId) -> Option<String> {
    (version != VersionId::Null || has_versions(store, bucket)).then(|| version.to_string())
}

/// Returns the version ID of a stored object as the response has it: none if the object is not
/// retained when it is replaced.
pub(crate) fn shown_of_new(version: VersionId) -> Option<String> {
    (version != VersionId::Null).then(|| version.to_string())
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

/// Returns the source of a copy, with its content. It cannot be a delete marker.
pub(crate) fn get_source(
    store: &Store,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<Object> {
    get(store, bucket, key, version).map_err(|error| match error.code() {
        S3ErrorCode::MethodNotAllowed => {
            refuse(S3ErrorCode::InvalidRequest, "The source of a copy cannot be a delete marker")
        }
        _ => error,
    })
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

/// Returns an object, or a version of it, without its content; `None` if it does not exist.
pub(crate) fn find(
    store: &Store,
    bucket: &str,
    (key, version): (&str, Option<&str>),
) -> S3Result<Option<Object>> {
    let found = match parse(version)? {
        Some(version) => store.head_version(bucket, key, version),
        None => store.head(bucket, key),
    };
    match found {
        Ok(object) => Ok(Some(object)),
        Err(
            Error::NoSuchKey { .. } | Error::NoSuchVersion { .. } | Error::IsDeleteMarker { .. },
        ) => Ok(None),
        Err(error) => Err(from_store(error)),
    }
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
