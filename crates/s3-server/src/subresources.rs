//! The parameters of a query that select an operation or refine it.

use form_urlencoded::parse;
use hyper::Method;
use hyper::http::uri::Uri;
use s3s::{S3ErrorCode, S3Result};

use crate::errors::refuse;

/// The parameters with which the S3 service executes another operation than PutObject.
const PUT_OBJECT: &[&str] =
    &["acl", "legal-hold", "partNumber", "retention", "tagging", "uploadId", "versionId"];

/// The same for DeleteObject; `versionId` names what it deletes.
const DELETE_OBJECT: &[&str] = &["tagging", "uploadId", "versionId"];

const POST_OBJECT: &[&str] =
    &["restore", "select", "select-type", "uploadId", "uploads", "versionId"];

/// The same for CreateBucket.
const PUT_BUCKET: &[&str] = &[
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "encryption",
    "id",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "tagging",
    "versioning",
    "website",
];

/// The same for DeleteBucket.
const DELETE_BUCKET: &[&str] = &[
    "analytics",
    "cors",
    "encryption",
    "id",
    "intelligent-tiering",
    "inventory",
    "lifecycle",
    "metadataTable",
    "metrics",
    "ownershipControls",
    "policy",
    "publicAccessBlock",
    "replication",
    "tagging",
    "website",
];

const POST_BUCKET: &[&str] = &["delete", "metadataTable", "versionId"];

/// The parameters of a signature of version 2, in lower case. All others begin with `x-`.
const SIGNATURE: [&str; 3] = ["awsaccesskeyid", "expires", "signature"];

/// Parameters that replace headers of a response.
const RESPONSE: &str = "response-";

/// Refuses a change with a parameter that selects no operation of this method on an object or a
/// bucket: without the parameter, the request would replace or delete the object or the bucket
/// itself. The path is in the path style.
///
/// # Errors
/// `NotImplemented`, or `InvalidArgument` if the operation needs another parameter.
pub(crate) fn check_known(method: &Method, uri: &Uri) -> S3Result<()> {
    let known = match (method, key(uri).is_empty()) {
        (&Method::PUT, false) => PUT_OBJECT,
        (&Method::PUT, true) => PUT_BUCKET,
        (&Method::DELETE, false) => DELETE_OBJECT,
        (&Method::DELETE, true) => DELETE_BUCKET,
        (&Method::POST, false) => POST_OBJECT,
        (&Method::POST, true) => POST_BUCKET,
        _ => return Ok(()),
    };
    let is_known = |name: &str| {
        let lower = name.to_ascii_lowercase();
        name.is_empty()
            || known.contains(&name)
            || lower.starts_with("x-")
            || lower.starts_with(RESPONSE)
            || SIGNATURE.contains(&&*lower)
    };
    let mut names = parse(uri.query().unwrap_or_default().as_bytes()).map(|(name, _)| name);
    let Some(name) = names.find(|name| !is_known(name)) else { return check_part(method, uri) };
    let message = format!(
        "This server has no such operation with the parameter \"{name}\" of the query: nothing was \
         changed"
    );
    Err(refuse(S3ErrorCode::NotImplemented, message))
}

/// Refuses a PUT with only one of the two parameters of UploadPart: it would replace the object.
/// Other methods have operations with one of them alone.
fn check_part(method: &Method, uri: &Uri) -> S3Result<()> {
    let has = |name: &str| *method == Method::PUT && has_any(uri, &[name]);
    let (given, missing) = match (has("uploadId"), has("partNumber")) {
        (true, false) => ("uploadId", "partNumber"),
        (false, true) => ("partNumber", "uploadId"),
        _ => return Ok(()),
    };
    let message = format!(
        "The parameter \"{missing}\" of the query is missing: a PUT with \"{given}\" uploads a part, \
         which needs both. Nothing was changed"
    );
    Err(refuse(S3ErrorCode::InvalidArgument, message))
}

/// Returns `true` if the query has one of these parameters.
fn has_any(uri: &Uri, names: &[&str]) -> bool {
    let mut pairs = parse(uri.query().unwrap_or_default().as_bytes());
    pairs.any(|(name, _)| names.contains(&&*name))
}

/// Returns the key in a path; empty for a bucket.
fn key(uri: &Uri) -> &str {
    uri.path().trim_start_matches('/').split_once('/').map_or("", |(_, key)| key)
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
        let has = |names: &[&str]| has_any(uri, names);
        match *method {
            Method::PUT if has(&["uploadId"]) => Self::None,
            Method::PUT if key(uri).is_empty() => Self::WithChecksum,
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
    fn changes_with_parameters_of_no_operation_are_refused() {
        for (method, known) in [
            (Method::PUT, "/b/k"),
            (Method::PUT, "/b/k?"),
            (Method::PUT, "/b/k?x-id=PutObject"),
            (Method::PUT, "/b/k?partNumber=1&uploadId=a"),
            (Method::PUT, "/b/k?X-Amz-Algorithm=a&X-Amz-Signature=b&versionId=c&tagging"),
            (Method::PUT, "/b/k?AWSAccessKeyId=a&Expires=1&Signature=b"),
            (Method::PUT, "/b?publicAccessBlock"),
            (Method::DELETE, "/b/?lifecycle="),
            (Method::POST, "/b?delete"),
            (Method::GET, "/b/k?annotation"),
        ] {
            assert!(check_known(&method, &uri(known)).is_ok(), "{method} {known}");
        }
        for (method, unknown) in [
            (Method::PUT, "/b/k?annotation"),
            (Method::PUT, "/b/k?renameObject"),
            (Method::PUT, "/b/k?encryption"),
            (Method::PUT, "/b/k?ACL"),
            (Method::PUT, "/b?tagging&abac"),
            (Method::DELETE, "/b/k?acl"),
            (Method::DELETE, "/b?acl"),
            (Method::DELETE, "/b?versioning="),
            (Method::POST, "/b?uploads"),
        ] {
            let error = check_known(&method, &uri(unknown)).unwrap_err();
            assert_eq!(error.code().as_str(), "NotImplemented", "{method} {unknown}");
        }
    }

    #[test]
    fn part_needs_its_number_and_its_upload() {
        for (target, missing) in [
            ("/b/k?uploadId=a", "\"partNumber\""),
            ("/b/k?x-id=UploadPart&partNumber=1", "\"uploadId\""),
            ("/b/k?tagging&uploadId=", "\"partNumber\""),
        ] {
            let error = check_known(&Method::PUT, &uri(target)).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{target}");
            let message = error.message().unwrap_or_default();
            assert!(message.contains(&format!("{missing} of the query is missing")), "{message}");
        }
        for method in [Method::POST, Method::DELETE, Method::GET, Method::HEAD] {
            assert!(check_known(&method, &uri("/b/k?uploadId=a")).is_ok(), "{method}");
        }
        for method in [Method::GET, Method::HEAD] {
            assert!(check_known(&method, &uri("/b/k?partNumber=1")).is_ok(), "{method}");
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
