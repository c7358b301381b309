//! The names of operations that change data, derived from method, path and query. Pure.

use haul_http_engine::RequestBody;
use hyper::{Method, Request};

use crate::front::forms::fields::is_form;

/// Subresources of buckets and objects that this server cannot change.
const UNSUPPORTED: [&str; 11] = [
    "accelerate",
    "analytics",
    "intelligent-tiering",
    "inventory",
    "metrics",
    "notification",
    "replication",
    "requestPayment",
    "restore",
    "select",
    "website",
];

/// Subresources of buckets, and the operations that replace and remove them.
const OF_BUCKETS: [(&str, &str, &str); 11] = [
    ("acl", "PutBucketAcl", OTHER),
    ("cors", "PutBucketCors", "DeleteBucketCors"),
    ("encryption", "PutBucketEncryption", "DeleteBucketEncryption"),
    ("lifecycle", "PutBucketLifecycleConfiguration", "DeleteBucketLifecycle"),
    ("logging", "PutBucketLogging", OTHER),
    ("object-lock", "PutObjectLockConfiguration", OTHER),
    ("ownershipControls", "PutBucketOwnershipControls", "DeleteBucketOwnershipControls"),
    ("policy", "PutBucketPolicy", "DeleteBucketPolicy"),
    ("publicAccessBlock", "PutPublicAccessBlock", "DeletePublicAccessBlock"),
    ("tagging", "PutBucketTagging", "DeleteBucketTagging"),
    ("versioning", "PutBucketVersioning", OTHER),
];

/// The name of operations that the server does not support.
const OTHER: &str = "Other";

/// The name of a PUT of an object.
pub(super) const PUT_OBJECT: &str = "PutObject";

/// Returns the name of the operation in the S3 reference; `None` if it only reads.
pub(super) fn operation(request: &Request<RequestBody>, has_key: bool) -> Option<&'static str> {
    if *request.method() == Method::POST && is_form(request.headers()) {
        return Some("PostObject");
    }
    let is_copy = request.headers().contains_key("x-amz-copy-source");
    of(request.method(), request.uri().query().unwrap_or_default(), has_key, is_copy)
}

fn of(method: &Method, query: &str, has_key: bool, is_copy: bool) -> Option<&'static str> {
    let names = || query.split('&').filter_map(|pair| pair.split('=').next());
    let has = |name: &str| names().any(|found| found == name);
    let is_unsupported = names().any(|name| UNSUPPORTED.contains(&name));
    let of_bucket = OF_BUCKETS.iter().find(|(subresource, ..)| !has_key && has(subresource));
    Some(match (method, has_key) {
        (&Method::GET | &Method::HEAD | &Method::OPTIONS, _) => return None,
        _ if is_unsupported => OTHER,
        (&Method::PUT, true) if has("uploadId") && is_copy => "UploadPartCopy",
        (&Method::PUT, true) if has("uploadId") => "UploadPart",
        (&Method::PUT, true) if has("tagging") => "PutObjectTagging",
        (&Method::PUT, true) if has("acl") => "PutObjectAcl",
        (&Method::PUT, true) if has("retention") => "PutObjectRetention",
        (&Method::PUT, true) if has("legal-hold") => "PutObjectLegalHold",
        (&Method::PUT, true) if is_copy => "CopyObject",
        (&Method::PUT, true) => PUT_OBJECT,
        (&Method::PUT, false) => of_bucket.map_or("CreateBucket", |(_, put, _)| put),
        (&Method::POST, true) if has("uploads") => "CreateMultipartUpload",
        (&Method::POST, true) if has("uploadId") => "CompleteMultipartUpload",
        (&Method::POST, false) if has("delete") => "DeleteObjects",
        (&Method::DELETE, true) if has("uploadId") => "AbortMultipartUpload",
        (&Method::DELETE, true) if has("tagging") => "DeleteObjectTagging",
        (&Method::DELETE, true) if has("retention") || has("legal-hold") => OTHER,
        (&Method::DELETE, true) => "DeleteObject",
        (&Method::DELETE, false) => of_bucket.map_or("DeleteBucket", |(_, _, delete)| delete),
        _ => OTHER,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_named_by_method_and_query() {
        for (line, name) in [
            ("GET k", None),
            ("HEAD b", None),
            ("PUT k", Some("PutObject")),
            ("PUT k x-id=PutObject&X-Amz-Signature=a", Some("PutObject")),
            ("COPY k", Some("CopyObject")),
            ("PUT k partNumber=1&uploadId=a", Some("UploadPart")),
            ("COPY k partNumber=1&uploadId=a", Some("UploadPartCopy")),
            ("PUT k tagging", Some("PutObjectTagging")),
            ("PUT k acl", Some("PutObjectAcl")),
            ("PUT k retention&versionId=a", Some("PutObjectRetention")),
            ("PUT k legal-hold", Some("PutObjectLegalHold")),
            ("PUT b object-lock", Some("PutObjectLockConfiguration")),
            ("PUT b", Some("CreateBucket")),
            ("PUT b lifecycle=", Some("PutBucketLifecycleConfiguration")),
            ("PUT b versioning", Some("PutBucketVersioning")),
            ("PUT b logging", Some("PutBucketLogging")),
            ("DELETE b logging", Some(OTHER)),
            ("PUT b policy", Some("PutBucketPolicy")),
            ("PUT b encryption=", Some("PutBucketEncryption")),
            ("DELETE b encryption", Some("DeleteBucketEncryption")),
            ("PUT b tagging", Some("PutBucketTagging")),
            ("PUT b acl", Some("PutBucketAcl")),
            ("DELETE b acl", Some(OTHER)),
            ("POST b delete", Some("DeleteObjects")),
            ("POST b", Some(OTHER)),
            ("POST k uploads", Some("CreateMultipartUpload")),
            ("POST k uploadId=a", Some("CompleteMultipartUpload")),
            ("DELETE k", Some("DeleteObject")),
            ("DELETE k tagging", Some("DeleteObjectTagging")),
            ("DELETE k uploadId=a", Some("AbortMultipartUpload")),
            ("DELETE b", Some("DeleteBucket")),
            ("DELETE b lifecycle", Some("DeleteBucketLifecycle")),
            ("DELETE b publicAccessBlock", Some("DeletePublicAccessBlock")),
            ("DELETE b website", Some(OTHER)),
        ] {
            let mut words = line.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let (method, is_copy) = if method == "COPY" { ("PUT", true) } else { (method, false) };
            let query = words.next().unwrap_or_default();
            let found = of(&method.parse().unwrap(), query, path == "k", is_copy);
            assert_eq!(found, name, "{line}");
        }
    }
}
