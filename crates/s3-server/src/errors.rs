//! Errors of the store as S3 tells them.

use haul_file_store::{Error, KEY_BYTES_MAX};
use hyper::StatusCode;
use s3s::{S3Error, S3ErrorCode, S3Result};

/// The code S3 has no word for. Clients do not retry on 507, which is right: only freeing space
/// helps.
const STORAGE_FULL: &str = "XHaulStorageFull";

/// What S3 calls the failure of a body to match the hash that was signed.
const SHA256_MISMATCH: &str = "XAmzContentSHA256Mismatch";

/// An error of S3 with a message of ours.
pub(crate) fn refuse(code: S3ErrorCode, message: impl Into<String>) -> S3Error {
    S3Error::with_message(code, message.into())
}

/// The error for a body that is shorter, or longer, than it was declared.
pub(crate) fn incomplete() -> S3Error {
    refuse(S3ErrorCode::IncompleteBody, "The body is not as long as it was declared to be")
}

/// The error for a body whose SHA-256 is not the one in `x-amz-content-sha256`.
pub(crate) fn sha256_mismatch() -> S3Error {
    custom(
        SHA256_MISMATCH,
        StatusCode::BAD_REQUEST,
        "The SHA-256 of the body is not the one in x-amz-content-sha256".to_owned(),
    )
}

/// An error of the store, as S3 tells it.
pub(crate) fn from_store(error: Error) -> S3Error {
    let message = chain(&error);
    let code = match &error {
        Error::NoSuchBucket { .. } => S3ErrorCode::NoSuchBucket,
        Error::BucketExists { .. } => S3ErrorCode::BucketAlreadyOwnedByYou,
        Error::BucketNotEmpty { .. } => S3ErrorCode::BucketNotEmpty,
        Error::InvalidBucketName { .. } => S3ErrorCode::InvalidBucketName,
        Error::InvalidKey { .. } | Error::Invalid { .. } => S3ErrorCode::InvalidArgument,
        Error::NoSuchKey { .. } => S3ErrorCode::NoSuchKey,
        Error::NoSuchUpload { .. } => S3ErrorCode::NoSuchUpload,
        Error::InvalidPart { .. } => S3ErrorCode::InvalidPart,
        Error::PreconditionFailed => S3ErrorCode::PreconditionFailed,
        Error::Full { .. } => {
            return custom(STORAGE_FULL, StatusCode::INSUFFICIENT_STORAGE, message);
        }
        // Unlike a full disk, this passes: clients wait and repeat the request on a 503 SlowDown.
        Error::Stalled { .. } => S3ErrorCode::SlowDown,
        // After a failed sync every write is refused until the store is opened again.
        Error::Log(_) => S3ErrorCode::ServiceUnavailable,
        _ => S3ErrorCode::InternalError,
    };
    let mut told = refuse(code, message);
    told.set_source(Box::new(error));
    told
}

/// Refuses a key that no object can have.
pub(crate) fn check_key(key: &str) -> S3Result<()> {
    if key.len() > KEY_BYTES_MAX {
        let message = format!("The key is {} bytes long; at most {KEY_BYTES_MAX} go", key.len());
        return Err(refuse(S3ErrorCode::KeyTooLongError, message));
    }
    if key.contains('\0') {
        // No XML can carry it, so no listing could ever name the object.
        return Err(refuse(S3ErrorCode::InvalidArgument, "A key cannot contain a NUL byte"));
    }
    Ok(())
}

/// Refuses every version but the only one there is.
pub(crate) fn check_version(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some("" | "null") => Ok(()),
        Some(_) => Err(refuse(S3ErrorCode::NoSuchVersion, "Only the version \"null\" is kept")),
    }
}

fn custom(code: &'static str, status: StatusCode, message: String) -> S3Error {
    let mut error = refuse(S3ErrorCode::Custom(code.into()), message);
    error.set_status_code(status);
    error
}

/// The error and all its sources, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    haul_disk::error_chain(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_store_keep_their_meaning_and_status() {
        let bucket = || "b".to_owned();
        let disk = || Error::Invalid { what: "x".into() };
        for (error, code, status) in [
            (Error::NoSuchBucket { bucket: bucket() }, "NoSuchBucket", 404),
            (Error::BucketExists { bucket: bucket() }, "BucketAlreadyOwnedByYou", 409),
            (Error::BucketNotEmpty { bucket: bucket() }, "BucketNotEmpty", 409),
            (Error::NoSuchKey { bucket: bucket(), key: "k".into() }, "NoSuchKey", 404),
            (Error::NoSuchUpload { id: "1".into() }, "NoSuchUpload", 404),
            (Error::PreconditionFailed, "PreconditionFailed", 412),
            (Error::InvalidKey { why: "x" }, "InvalidArgument", 400),
            (Error::Full { source: Box::new(disk()) }, STORAGE_FULL, 507),
            (Error::Stalled { waited: std::time::Duration::from_secs(10) }, "SlowDown", 503),
        ] {
            let told = from_store(error);
            assert_eq!(told.code().as_str(), code);
            assert_eq!(told.status_code().unwrap().as_u16(), status, "{code}");
        }
    }

    #[test]
    fn damage_is_told_with_file_and_offset() {
        let error = Error::Damaged { file: "/d/v1".into(), offset: 4096, what: "checksum".into() };
        let told = from_store(error);
        assert_eq!(told.status_code().unwrap().as_u16(), 500);
        let message = told.message().unwrap();
        assert!(message.contains("/d/v1") && message.contains("4096"), "{message}");
    }

    #[test]
    fn keys_and_versions_nobody_can_have_are_refused() {
        assert!(check_key("a/../b").is_ok());
        assert_eq!(check_key(&"k".repeat(5000)).unwrap_err().code().as_str(), "KeyTooLongError");
        assert_eq!(check_key("a\0b").unwrap_err().code().as_str(), "InvalidArgument");
        assert!(check_version(Some("null")).is_ok());
        assert_eq!(check_version(Some("7")).unwrap_err().code().as_str(), "NoSuchVersion");
    }
}
