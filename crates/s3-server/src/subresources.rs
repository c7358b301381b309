//! The parameters of a query that select an operation or refine it.

use form_urlencoded::parse;
use hyper::Method;
use hyper::http::uri::Uri;
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The parameters that select an operation of the S3 service, in lower case.
const OPERATIONS: [&str; 39] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "id",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "list-type",
    "location",
    "logging",
    "metadatatable",
    "metrics",
    "notification",
    "object-lock",
    "ownershipcontrols",
    "partnumber",
    "policy",
    "policystatus",
    "publicaccessblock",
    "replication",
    "requestpayment",
    "restore",
    "retention",
    "select",
    "select-type",
    "session",
    "tagging",
    "torrent",
    "uploadid",
    "uploads",
    "versionid",
    "versioning",
    "versions",
    "website",
];

/// The parameters of a signature of version 2, in lower case. All others begin with `x-`.
const SIGNATURE: [&str; 3] = ["awsaccesskeyid", "expires", "signature"];

/// Parameters that replace headers of a response.
const RESPONSE: &str = "response-";

/// Refuses a change with a parameter that is not known. It would select another operation, and
/// without the parameter the request would replace or delete the object or the bucket itself.
///
/// # Errors
/// `NotImplemented`.
pub(crate) fn check_known(method: &Method, uri: &Uri) -> S3Result<()> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    let is_known = |name: &str| {
        let name = name.to_ascii_lowercase();
        [&OPERATIONS[..], &SIGNATURE].concat().contains(&&*name)
            || name.starts_with("x-")
            || name.starts_with(RESPONSE)
    };
    let mut names = parse(uri.query().unwrap_or_default().as_bytes()).map(|(name, _)| name);
    match names.find(|name| !name.is_empty() && !is_known(name)) {
        None => Ok(()),
        Some(name) => {
            let message = format!(
                "This server does not support operations with the parameter \"{name}\" of the \
                 query: nothing was changed"
            );
            Err(refuse(S3ErrorCode::NotImplemented, message))
        }
    }
}

/// Refuses a request without a signature that replaces headers of the response: a web page could
/// otherwise show an upload of another user as HTML.
///
/// # Errors
/// `InvalidRequest`.
pub(crate) fn check_unsigned(uri: &Uri) -> S3Result<()> {
    let mut names = parse(uri.query().unwrap_or_default().as_bytes()).map(|(name, _)| name);
    if !names.any(|name| name.to_ascii_lowercase().starts_with(RESPONSE)) {
        return Ok(());
    }
    let message = "Only signed requests may replace headers of the response";
    Err(refuse(S3ErrorCode::InvalidRequest, message))
}

/// The claims that a client may make about the document in the body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Document {
    /// The body is an object, a part or a form, or there is none.
    None,
    /// The checksum in the headers is that of the body.
    WithChecksum,
    /// The checksum in the headers is that of the completed object.
    WithMd5,
}

impl Document {
    /// Returns the kind of a request with this path, in the path style.
    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let has = |names: &[&str]| {
            let mut pairs = parse(uri.query().unwrap_or_default().as_bytes());
            pairs.any(|(name, _)| names.contains(&&*name))
        };
        let key = uri.path().trim_start_matches('/').split_once('/').map_or("", |(_, key)| key);
        match *method {
            Method::PUT if has(&["uploadId"]) => Self::None,
            Method::PUT if key.is_empty() => Self::WithChecksum,
            Method::PUT if has(&["acl", "legal-hold", "retention", "tagging"]) => {
                Self::WithChecksum
            }
            Method::POST if has(&["delete", "restore", "select"]) => Self::WithChecksum,
            Method::POST if has(&["uploadId"]) => Self::WithMd5,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn changes_with_unknown_parameters_are_refused() {
        for known in [
            "/b/k",
            "/b/k?",
            "/b/k?x-id=PutObject",
            "/b/k?partNumber=1&uploadId=a",
            "/b/k?X-Amz-Algorithm=a&X-Amz-Signature=b&versionId=c",
            "/b/k?AWSAccessKeyId=a&Expires=1&Signature=b",
            "/b?publicAccessBlock",
            "/b?lifecycle=",
        ] {
            assert!(check_known(&Method::PUT, &uri(known)).is_ok(), "{known}");
        }
        for unknown in ["/b/k?annotation", "/b/k?renameObject", "/b?abac=", "/b?tagging&abac"] {
            for method in [Method::PUT, Method::POST, Method::DELETE] {
                let error = check_known(&method, &uri(unknown)).unwrap_err();
                assert_eq!(error.code().as_str(), "NotImplemented", "{unknown}");
            }
            assert!(check_known(&Method::GET, &uri(unknown)).is_ok());
        }
    }

    #[test]
    fn documents_are_the_bodies_that_are_no_objects() {
        use Document as D;
        for (method, target, expected) in [
            (Method::PUT, "/b", D::WithChecksum),
            (Method::PUT, "/b/?policy", D::WithChecksum),
            (Method::PUT, "/b/k?tagging", D::WithChecksum),
            (Method::PUT, "/b/k?encryption", D::None),
            (Method::PUT, "/b/k", D::None),
            (Method::PUT, "/b/k?partNumber=1&uploadId=a", D::None),
            (Method::POST, "/b?delete", D::WithChecksum),
            (Method::POST, "/b/k?uploadId=a", D::WithMd5),
            (Method::POST, "/b/k?uploads", D::None),
            (Method::POST, "/b", D::None),
            (Method::GET, "/b?policy", D::None),
        ] {
            assert_eq!(D::of(&method, &uri(target)), expected, "{method} {target}");
        }
    }
}
