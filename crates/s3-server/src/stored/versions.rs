//! Version IDs in requests and responses.

use std::time::SystemTime;

use haul_file_store::{Error, Object, VersionId, Versioning};
use haul_store_pool::Pool;
use http::header::{ALLOW, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};

use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, invalid_argument, refuse};
use crate::times::header_time;

pub(crate) const VERSION_ID: HeaderName = HeaderName::from_static("x-amz-version-id");
pub(crate) const DELETE_MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");

/// The query parameter with a version ID.
pub(crate) const PARAMETER: &str = "versionId";

/// A version ID that no object has, because IDs are times.
const NO_VERSION: VersionId = VersionId::Id(0);

/// The minimum length of other servers' version IDs: a ULID has 26 characters, S3's have 32, a UUID
/// has 36.
const FOREIGN_ID_BYTES_MIN: usize = 20;

/// Parses a request's version ID; `None` for the current object. Another server's version ID is
/// well-formed, but no object has it.
pub(crate) fn parse(version: Option<&str>) -> S3Result<Option<VersionId>> {
    match version {
        Some("") => Err(invalid_argument(PARAMETER, "", "Version id cannot be the empty string")),
        Some(text) if is_foreign(text) => Ok(Some(NO_VERSION)),
        _ => parse_parameter(PARAMETER, version),
    }
}

/// Returns `true` for an ID in the form that S3, MinIO and others use.
fn is_foreign(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let has_digit = text.bytes().any(|byte| byte.is_ascii_digit());
    text.len() >= FOREIGN_ID_BYTES_MIN && has_digit && text.bytes().all(is_allowed)
}

/// Parses a query parameter with a version ID.
pub(crate) fn parse_parameter(name: &str, version: Option<&str>) -> S3Result<Option<VersionId>> {
    let Some(text) = version.filter(|text| !text.is_empty()) else { return Ok(None) };
    let malformed = |_why| invalid_argument(name, text, "Invalid version id specified");
    text.parse().map(Some).map_err(malformed)
}

/// Returns an object's version ID for a response; `None` in a bucket without versions.
pub(crate) fn response_id(store: &Pool, bucket: &str, version: VersionId) -> Option<String> {
    (version != VersionId::Null || has_versions(store, bucket)).then(|| version.to_string())
}

/// Returns a stored object's version ID for the response; `None` if the object is not retained when
/// it is replaced.
pub(crate) fn response_id_of_new(version: VersionId) -> Option<String> {
    (version != VersionId::Null).then(|| version.to_string())
}

/// Returns `true` if versioning is enabled or suspended in a bucket.
pub(crate) fn has_versions(store: &Pool, bucket: &str) -> bool {
    store.versioning(bucket).is_ok_and(|versioning| versioning != Versioning::Off)
}

/// Returns an object, or a version of it, with its content.
pub(crate) fn get(
    store: &Pool,
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

/// Returns a copy's source, with its content. It cannot be a delete marker.
pub(crate) fn get_source(
    store: &Pool,
    bucket: &str,
    key: &str,
    version: Option<VersionId>,
) -> S3Result<Object> {
    get(store, bucket, key, version).map_err(|error| {
        let error = match error.code() {
            S3ErrorCode::MethodNotAllowed => {
                let message = "The source of a copy cannot be a delete marker";
                refuse(S3ErrorCode::InvalidRequest, message)
            }
            _ => error,
        };
        error.with_field("BucketName", bucket).with_field("Key", key)
    })
}

/// Returns an object, or a version of it, without its content.
pub(crate) fn head(
    store: &Pool,
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
    store: &Pool,
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

/// Returns the outcome of a read that does not block. `None` also for a missing key in a bucket
/// with versions: the error depends on a read that may block.
pub(crate) fn cached<T>(
    store: &Pool,
    bucket: &str,
    found: haul_file_store::Result<Option<T>>,
) -> S3Result<Option<T>> {
    match found {
        Err(Error::NoSuchKey { .. }) if has_versions(store, bucket) => Ok(None),
        found => found.map_err(from_store),
    }
}

/// Returns the error for a failed change of the current object. If it is a delete marker, the error
/// is the same as for a change of the marker itself.
pub(crate) fn refused_change(store: &Pool, bucket: &str, key: &str, error: S3Error) -> S3Error {
    let marker = match error.code() {
        S3ErrorCode::NoSuchKey => store.delete_marker(bucket, key).ok().flatten(),
        _ => None,
    };
    match marker {
        Some(marker) => {
            let (version, created) = (marker.info.version_id, marker.info.modified);
            is_marker(version, created)
        }
        None => error,
    }
}

fn is_marker(version: VersionId, created: SystemTime) -> S3Error {
    let mut headers = marker_headers(version);
    // A delete marker can only be deleted.
    headers.insert(ALLOW, HeaderValue::from_static("DELETE"));
    if let Ok(value) = HeaderValue::try_from(header_time(created)) {
        headers.insert(LAST_MODIFIED, value);
    }
    refuse(S3ErrorCode::MethodNotAllowed, "The version is a delete marker")
        .with_field("ResourceType", "DeleteMarker")
        .with_headers(headers)
}

/// Translates a read's error. If the newest version is a delete marker, the response has the
/// marker's ID.
pub(crate) fn refused(store: &Pool, bucket: &str, key: &str, error: Error) -> S3Error {
    match error {
        Error::IsDeleteMarker { version, created, .. } => is_marker(version, created),
        error @ Error::NoSuchKey { .. } => {
            let marker = store.delete_marker(bucket, key).ok().flatten();
            let headers = marker.map(|marker| marker_headers(marker.info.version_id));
            from_store(error).with_headers(headers.unwrap_or_default())
        }
        error => from_store(error),
    }
}

fn marker_headers(version: VersionId) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(DELETE_MARKER, HeaderValue::from_static("true"));
    if let Ok(value) = HeaderValue::try_from(version.to_string()) {
        headers.insert(VERSION_ID, value);
    }
    headers
}

#[cfg(test)]
mod tests {
    use haul_file_store::{Attributes, Deletion, Options, Precondition};

    use super::*;

    #[test]
    fn malformed_version_id_is_an_invalid_argument() {
        assert_eq!(parse(None).unwrap(), None);
        assert_eq!(parse(Some("")).unwrap_err().code(), S3ErrorCode::InvalidArgument);
        assert_eq!(parse(Some("null")).unwrap(), Some(VersionId::Null));
        let refused = parse(Some("x")).unwrap_err();
        assert_eq!(refused.code(), S3ErrorCode::InvalidArgument);
        assert_eq!(refused.field("ArgumentName"), Some(PARAMETER));
        assert_eq!(refused.field("ArgumentValue"), Some("x"));
    }

    #[test]
    fn ids_of_other_servers_are_those_of_no_version() {
        for (text, is_foreign) in [
            ("01G65Z755AFWAKHE12NY0CQ9FH", true),
            ("QUpfdndhfd8438MNFDN93jdnJFkdmqnh893", true),
            ("3sL4kqtJlcpXroDTDmJ.rmSpXd3dIbrHY-MTRCxf3vjVBH40Nrjfkd", true),
            ("7a0b6d3e-0c41-4a7e-9d0e-2f6c0f1a8b55", true),
            ("01G65Z755AFWAKHE12N", false),
            ("no_id_of_any_kind_of_server", false),
            ("7a0b6d3e/0c41/4a7e/9d0e", false),
        ] {
            let expected = is_foreign.then_some(Some(NO_VERSION));
            assert_eq!(parse(Some(text)).ok(), expected, "{text}");
        }
        assert!(parse_parameter("version-id-marker", Some(&"a".repeat(32))).is_err());
    }

    #[test]
    fn errors_for_delete_markers_have_their_headers() {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Pool::open(&[dir.path().into()], &Options::default()).unwrap();
        store.create_bucket("bucket").unwrap();
        store.set_versioning("bucket", Versioning::Enabled).unwrap();
        store.put("bucket", "key", b"x", &Attributes::new(), &Precondition::None).unwrap();
        let deleted = store.delete_objects("bucket", &[Deletion::of("key")]).remove(0).unwrap();
        let marker = deleted.version_id.unwrap();
        let header = |error: &S3Error, name: &str| {
            error.headers().get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        for (version, code) in
            [(None, S3ErrorCode::NoSuchKey), (Some(marker), S3ErrorCode::MethodNotAllowed)]
        {
            let error = head(&store, "bucket", "key", version).unwrap_err();
            assert_eq!(error.code(), code);
            assert_eq!(header(&error, "x-amz-delete-marker").as_deref(), Some("true"));
            assert_eq!(header(&error, "x-amz-version-id"), Some(marker.to_string()));
            let allow = version.map(|_marker| "DELETE".to_owned());
            assert_eq!(header(&error, "allow"), allow);
            assert_eq!(header(&error, "last-modified").is_some(), version.is_some());
        }
        let missing = head(&store, "bucket", "other", None).unwrap_err();
        assert!(missing.headers().is_empty());
    }
}
