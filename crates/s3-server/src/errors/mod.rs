//! S3 errors, and the translation of store errors to them.

mod code;
mod s3_error;

use std::error::Error as StdError;

use haul_file_store::{Error, KEY_BYTES_MAX};
use tokio::task::JoinError;

pub(crate) use code::S3ErrorCode;
pub(crate) use s3_error::{S3Error, S3Result};

pub(crate) fn refuse(code: S3ErrorCode, message: impl Into<String>) -> S3Error {
    S3Error::new(code, message.into())
}

/// The message for a failure whose cause may name files on the server.
const FAILED: &str = "The server failed; its log has the cause, with the identifier of the request";

/// Returns the error for a failure that only a server bug can cause.
pub(crate) fn internal(error: impl StdError + Send + Sync + 'static) -> S3Error {
    refuse(S3ErrorCode::InternalError, FAILED).with_source(error)
}

/// Returns the error for a body that is shorter or longer than declared.
pub(crate) fn incomplete() -> S3Error {
    refuse(S3ErrorCode::IncompleteBody, "The length of the body differs from the declared length")
}

/// Returns the error for a body whose SHA-256 differs from `x-amz-content-sha256`.
pub(crate) fn sha256_mismatch() -> S3Error {
    let message = "The SHA-256 of the body differs from x-amz-content-sha256";
    refuse(S3ErrorCode::XAmzContentSha256Mismatch, message)
}

/// Returns the error for a default retention that is not a positive number, or too long.
pub(crate) fn invalid_retention_period() -> S3Error {
    let message = "Default retention period must be a positive integer, of at most 100 years";
    refuse(S3ErrorCode::InvalidRetentionPeriod, message)
}

/// Returns the error for an access key that is unknown, disabled or expired.
pub(crate) fn unknown_key(access_key: &str) -> S3Error {
    let message = "The access key does not exist, is disabled, or has expired";
    refuse(S3ErrorCode::InvalidAccessKeyId, message).with_field("AWSAccessKeyId", access_key)
}

pub(crate) fn invalid_argument(name: &str, value: &str, message: impl Into<String>) -> S3Error {
    refuse(S3ErrorCode::InvalidArgument, message)
        .with_field("ArgumentName", name)
        .with_field("ArgumentValue", value)
}

pub(crate) fn from_store(error: Error) -> S3Error {
    let code = match &error {
        Error::NoSuchBucket { .. } => S3ErrorCode::NoSuchBucket,
        Error::BucketExists { .. } => S3ErrorCode::BucketAlreadyOwnedByYou,
        Error::BucketNotEmpty { .. } => S3ErrorCode::BucketNotEmpty,
        Error::InvalidBucketName { .. } => S3ErrorCode::InvalidBucketName,
        Error::InvalidKey { .. } | Error::Invalid { .. } => S3ErrorCode::InvalidArgument,
        Error::NoSuchKey { .. } => S3ErrorCode::NoSuchKey,
        Error::NoSuchVersion { .. } => S3ErrorCode::NoSuchVersion,
        Error::IsDeleteMarker { .. } => S3ErrorCode::MethodNotAllowed,
        Error::Locked { .. } => S3ErrorCode::AccessDenied,
        Error::NoObjectLock { .. } => S3ErrorCode::InvalidRequest,
        Error::InvalidBucketState { .. } => S3ErrorCode::InvalidBucketState,
        Error::NoSuchUpload { .. } => S3ErrorCode::NoSuchUpload,
        Error::InvalidPart { .. } => S3ErrorCode::InvalidPart,
        Error::PreconditionFailed => S3ErrorCode::PreconditionFailed,
        Error::QuotaExceeded(_) => S3ErrorCode::QuotaExceeded,
        Error::Full { .. } => S3ErrorCode::StorageFull,
        // Unlike a full disk, this condition is temporary: clients retry after a 503 SlowDown.
        Error::Stalled { .. } => S3ErrorCode::SlowDown,
        // The replica may be unreachable for some time only: clients retry.
        Error::NotReplicated { .. } => S3ErrorCode::ServiceUnavailable,
        Error::ReadOnly => S3ErrorCode::AccessDenied,
        // After a failed sync, the store rejects all writes until it is reopened.
        Error::Log(_) | Error::Stopped { .. } => S3ErrorCode::ServiceUnavailable,
        // The file system may accept files again: clients retry.
        Error::Refused { .. } => S3ErrorCode::ServiceUnavailable,
        // The disk may respond again: clients retry later.
        Error::MemberStalled { .. } => S3ErrorCode::SlowDown,
        // Other disks serve their keys.
        Error::MemberMissing { .. } => S3ErrorCode::ServiceUnavailable,
        // The disk fails: it is not the request, and the disk may be replaced.
        Error::Disk(_) => S3ErrorCode::ServiceUnavailable,
        _ => S3ErrorCode::InternalError,
    };
    let message = match &error {
        Error::Full { .. } => "The disk of the server is full; nothing was stored".to_owned(),
        Error::Refused { .. } => {
            "The disk of the server refuses new files for now; nothing was stored".to_owned()
        }
        Error::Log(_) => {
            "The disk of the server failed; it accepts no changes until it is restarted".to_owned()
        }
        Error::MemberMissing { .. } => {
            "A disk of the server is missing, whose log has the reason; others serve their keys"
                .to_owned()
        }
        Error::MemberStalled { .. } => {
            "A disk of the server does not respond; others serve their keys".to_owned()
        }
        Error::Disk(_) => "The disk of the server failed, whose log has the reason".to_owned(),
        Error::Damaged { .. } => {
            "The data is damaged on the disk of the server, whose log has the place".to_owned()
        }
        _ if code == S3ErrorCode::InternalError => FAILED.to_owned(),
        _ => chain(&error),
    };
    let version = match &error {
        Error::NoSuchVersion { version, .. } => Some(version.to_string()),
        _ => None,
    };
    let refused = refuse(code, message).with_source(error);
    match version {
        Some(version) => refused.with_field("VersionId", version),
        None => refused,
    }
}

/// Returns the result of a call on a blocking thread. A panic becomes `InternalError`.
pub(crate) fn joined<T>(outcome: Result<S3Result<T>, JoinError>) -> S3Result<T> {
    outcome.unwrap_or_else(|error| {
        tracing::error!(%error, "a call of the store did not return");
        Err(refuse(S3ErrorCode::InternalError, "The call of the store did not return"))
    })
}

/// Rejects a key that no object can have.
pub(crate) fn check_key(key: &str) -> S3Result<()> {
    if key.len() > KEY_BYTES_MAX {
        let message = format!("The key has {} bytes; the maximum is {KEY_BYTES_MAX}", key.len());
        return Err(refuse(S3ErrorCode::KeyTooLongError, message));
    }
    if key.contains('\0') {
        // XML cannot represent the NUL character, so no listing could contain the object.
        return Err(refuse(S3ErrorCode::InvalidArgument, "A key cannot contain a NUL byte"));
    }
    Ok(())
}

/// Returns the messages of an error and all its sources, in one line.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    haul_disk::error_chain(error)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn store_errors_have_s3_codes_and_statuses() {
        let bucket = || "b".to_owned();
        let disk = || Error::Invalid { what: "x".into() };
        for (error, code, status) in [
            (Error::NoSuchBucket { bucket: bucket() }, "NoSuchBucket", 404),
            (Error::BucketExists { bucket: bucket() }, "BucketAlreadyOwnedByYou", 409),
            (Error::BucketNotEmpty { bucket: bucket() }, "BucketNotEmpty", 409),
            (Error::NoSuchKey { bucket: bucket(), key: "k".into() }, "NoSuchKey", 404),
            (Error::NoSuchUpload { id: "1".into() }, "NoSuchUpload", 404),
            (Error::ReadOnly, "AccessDenied", 403),
            (Error::NoObjectLock { bucket: bucket() }, "InvalidRequest", 400),
            (Error::InvalidBucketState { bucket: bucket(), why: "x" }, "InvalidBucketState", 409),
            (Error::Stopped { what: "x" }, "ServiceUnavailable", 503),
            (Error::PreconditionFailed, "PreconditionFailed", 412),
            (Error::InvalidKey { why: "x" }, "InvalidArgument", 400),
            (Error::Full { source: Box::new(disk()) }, "XHaulStorageFull", 507),
            (Error::Stalled { waited: std::time::Duration::from_secs(10) }, "SlowDown", 503),
            (Error::NotReplicated { what: "x".into() }, "ServiceUnavailable", 503),
            (
                Error::MemberMissing { dir: "/d2".into(), why: "x".into() },
                "ServiceUnavailable",
                503,
            ),
            (
                Error::MemberStalled {
                    dir: "/d2".into(),
                    calls: 16,
                    longest: std::time::Duration::from_secs(3),
                },
                "SlowDown",
                503,
            ),
        ] {
            let translated = from_store(error);
            assert_eq!(translated.code().as_str(), code);
            assert_eq!(translated.code().status().as_u16(), status, "{code}");
        }
    }

    #[test]
    fn files_of_the_server_are_named_in_its_log_only() {
        let failed =
            || haul_disk::Error::new(haul_disk::Op::Create, "/d/v1", io::Error::other("x"));
        for error in [
            Error::Damaged { file: "/d/v1".into(), offset: 4096, what: "checksum".into() },
            Error::Full { source: Box::new(failed()) },
            Error::Refused { source: Arc::new(failed()) },
            Error::Disk(failed()),
            Error::InUse { dir: "/d/v1".into(), holder: "another".into() },
        ] {
            let translated = from_store(error);
            assert!(!translated.message().contains("/d"), "{translated}");
            let cause = chain(StdError::source(&translated).unwrap());
            assert!(cause.contains("/d/v1"), "{cause}");
        }
    }

    #[test]
    fn unconfirmed_change_is_reported_as_durable_on_this_machine() {
        let translated = from_store(Error::NotReplicated { what: "the bucket is gone".into() });
        let message = translated.message();
        assert!(message.contains("durable on this machine"), "{message}");
        assert!(message.ends_with("the bucket is gone"), "{message}");
    }

    #[test]
    fn invalid_keys_are_refused() {
        assert!(check_key("a/../b").is_ok());
        assert_eq!(check_key(&"k".repeat(5000)).unwrap_err().code().as_str(), "KeyTooLongError");
        assert_eq!(check_key("a\0b").unwrap_err().code().as_str(), "InvalidArgument");
    }
}
