//! Defines the errors of a copy.

use std::error::Error as StdError;

/// The result of an operation of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

/// An error that ends a copy, or that concerns a single object or setting.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL of a server cannot be used. Name it as `http://HOST:PORT` or `https://HOST`.
    #[error("invalid URL {url}: {why}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The HTTP client or its threads cannot be started.
    #[error("cannot start the HTTP client")]
    Start(#[source] Box<dyn StdError + Send + Sync>),
    /// The server cannot be reached, or the connection ended. The request was repeated.
    #[error("no response to {request}")]
    Connection {
        /// The method and the URL.
        request: String,
        /// The cause.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The server rejected the request.
    #[error("{request}: {status} {code}{}{message}", if message.is_empty() { "" } else { ": " })]
    Rejected {
        /// The method and the URL.
        request: String,
        /// The status of HTTP.
        status: u16,
        /// The error code of S3; empty if the response has no document.
        code: String,
        /// The message of the server; may be empty.
        message: String,
    },
    /// The response to a request is not one of S3.
    #[error("{request}: unexpected response: {why}")]
    Response {
        /// The method and the URL.
        request: String,
        /// What is unexpected.
        why: String,
    },
    /// A value of the source cannot be sent to the target.
    #[error("{what} cannot be sent: {why}")]
    Value {
        /// The name of the value.
        what: String,
        /// The reason.
        why: String,
    },
    /// The content that arrived at the target is not that of the source. Copy it again.
    #[error("the copy differs: the source has the ETag {source_etag}, the target {target_etag}")]
    Mismatch {
        /// The ETag at the source.
        source_etag: String,
        /// The ETag at the target, or that of its parts.
        target_etag: String,
    },
}

impl Error {
    /// `true` if the same request may succeed later.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Connection { .. } => true,
            Self::Rejected { status, code, .. } => {
                matches!(status, 429 | 500 | 502..=504)
                    || matches!(&**code, "SlowDown" | "RequestTimeout" | "InternalError")
            }
            _ => false,
        }
    }

    /// Returns the status of a response that is an error.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Rejected { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the error code of S3.
    pub(crate) fn code(&self) -> &str {
        match self {
            Self::Rejected { code, .. } => code,
            _ => "",
        }
    }

    /// Returns what the user can do about the error, if that is known.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        Some(match (self, self.code()) {
            (Self::Connection { .. }, _) => "check that the server runs at this address",
            (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch") => "check the keys of this server",
            (_, "AccessDenied") => {
                "use keys that have this right, such as those of the administrator"
            }
            (_, "NoSuchBucket") => "name buckets that the source has",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_errors_are_those_of_load_and_network() {
        let rejected = |status: u16, code: &str| Error::Rejected {
            request: "GET x".to_owned(),
            status,
            code: code.to_owned(),
            message: String::new(),
        };
        for (status, code, expected) in [
            (503, "SlowDown", true),
            (500, "", true),
            (400, "RequestTimeout", true),
            (501, "NotImplemented", false),
            (404, "NoSuchKey", false),
        ] {
            assert_eq!(rejected(status, code).is_transient(), expected, "{status} {code}");
        }
        assert_eq!(rejected(404, "NoSuchKey").to_string(), "GET x: 404 NoSuchKey");
    }
}
