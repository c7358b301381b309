//! Operation names in access logs: `REST` or `WEBSITE`, the method and the resource kind. Pure.

use http::Method;

use crate::request::head::Head;
use crate::request::operation::Operation;

/// Bucket subresources and their kinds.
const BUCKET_KINDS: [(&str, &str); 23] = [
    ("accelerate", "ACCELERATE"),
    ("acl", "ACL"),
    ("cors", "CORS"),
    ("delete", "MULTI_OBJECT_DELETE"),
    ("encryption", "ENCRYPTION"),
    ("inventory", "INVENTORY"),
    ("lifecycle", "LIFECYCLE"),
    ("location", "LOCATION"),
    ("logging", "LOGGING_STATUS"),
    ("notification", "NOTIFICATION"),
    ("object-lock", "OBJECT_LOCK_CONFIGURATION"),
    ("ownershipControls", "OWNERSHIP_CONTROLS"),
    ("policy", "BUCKETPOLICY"),
    ("policyStatus", "POLICY_STATUS"),
    ("publicAccessBlock", "PUBLIC_ACCESS_BLOCK"),
    ("quota", "QUOTA"),
    ("replication", "REPLICATION"),
    ("requestPayment", "REQUEST_PAYMENT"),
    ("tagging", "TAGGING"),
    ("uploads", "UPLOADS"),
    ("versioning", "VERSIONING"),
    ("versions", "BUCKETVERSIONS"),
    ("website", "WEBSITE"),
];

/// Object subresources and their kinds.
const OBJECT_KINDS: [(&str, &str); 7] = [
    ("uploadId", "UPLOAD"),
    ("acl", "ACL"),
    ("attributes", "OBJECT_ATTRIBUTES"),
    ("legal-hold", "OBJECT_LOCK_LEGALHOLD"),
    ("retention", "OBJECT_LOCK_RETENTION"),
    ("tagging", "OBJECT_TAGGING"),
    ("uploads", "UPLOADS"),
];

/// The log name for the deletion of one key by a multi-object delete.
pub(super) const BATCH_DELETE: &str = "BATCH.DELETE.OBJECT";

/// Returns the log name of a request's operation. Unsupported operations have a name, too.
pub(super) fn log_name(head: &Head, operation: Option<Operation>) -> String {
    let find = |kinds: &[(&str, &'static str)]| {
        kinds.iter().find(|(name, _)| head.query.has(name)).map(|(_, kind)| *kind)
    };
    let kind = match operation {
        _ if head.method == Method::OPTIONS => "PREFLIGHT",
        Some(Operation::PostObject) => "OBJECT",
        Some(Operation::UploadPart | Operation::UploadPartCopy) => "PART",
        _ if head.is_website => "OBJECT",
        _ if head.name.key.is_empty() => find(&BUCKET_KINDS).unwrap_or("BUCKET"),
        _ => find(&OBJECT_KINDS).unwrap_or("OBJECT"),
    };
    let interface = if head.is_website { "WEBSITE" } else { "REST" };
    format!("{interface}.{}.{kind}", head.method)
}

/// Returns the log name for reading the source, if the operation is a copy.
pub(super) fn copy_log_name(operation: Option<Operation>) -> Option<&'static str> {
    match operation? {
        Operation::CopyObject => Some("REST.COPY.OBJECT_GET"),
        Operation::UploadPartCopy => Some("REST.COPY.PART_GET"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::domains::Domains;
    use crate::request::head::tests::head;
    use crate::request::operation::COPY_SOURCE;

    #[test]
    fn operations_have_the_names_of_s3() {
        for (line, name) in [
            ("GET /b/k", "REST.GET.OBJECT"),
            ("GET /b/k?versionId=1&x-id=GetObject", "REST.GET.OBJECT"),
            ("HEAD /b/k", "REST.HEAD.OBJECT"),
            ("PUT /b/k", "REST.PUT.OBJECT"),
            ("DELETE /b/k", "REST.DELETE.OBJECT"),
            ("PUT /b/k?acl", "REST.PUT.ACL"),
            ("PUT /b/k?tagging=", "REST.PUT.OBJECT_TAGGING"),
            ("POST /b/k?uploads", "REST.POST.UPLOADS"),
            ("PUT /b/k?partNumber=1&uploadId=2", "REST.PUT.PART"),
            ("POST /b/k?uploadId=2", "REST.POST.UPLOAD"),
            ("DELETE /b/k?uploadId=2", "REST.DELETE.UPLOAD"),
            ("GET /b", "REST.GET.BUCKET"),
            ("GET /b?list-type=2&prefix=acl", "REST.GET.BUCKET"),
            ("HEAD /b", "REST.HEAD.BUCKET"),
            ("GET /b?versioning", "REST.GET.VERSIONING"),
            ("GET /b?logging", "REST.GET.LOGGING_STATUS"),
            ("PUT /b?policy", "REST.PUT.BUCKETPOLICY"),
            ("PUT /b?website", "REST.PUT.WEBSITE"),
            ("POST /b?delete", "REST.POST.MULTI_OBJECT_DELETE"),
            ("FORM /b", "REST.POST.OBJECT"),
            ("OPTIONS /b/k", "REST.OPTIONS.PREFLIGHT"),
        ] {
            let form = [("content-type", "multipart/form-data; boundary=a")];
            let fields = if line.starts_with("FORM") { &form[..] } else { &[] };
            let head = head(&line.replace("FORM", "POST"), fields);
            assert_eq!(log_name(&head, Operation::from_request(&head).ok()), name, "{line}");
        }
    }

    #[test]
    fn website_requests_have_names_of_their_own() {
        for (line, name) in [
            ("GET /", "WEBSITE.GET.OBJECT"),
            ("HEAD /k?acl", "WEBSITE.HEAD.OBJECT"),
            ("OPTIONS /k", "WEBSITE.OPTIONS.PREFLIGHT"),
        ] {
            let head = head(line, &[]).into_visit(&Domains::default());
            assert_eq!(log_name(&head, None), name, "{line}");
        }
    }

    #[test]
    fn only_copies_read_a_source() {
        let source = [(COPY_SOURCE, "b/k")];
        for (line, fields, name) in [
            ("PUT /b/k", &source[..], Some("REST.COPY.OBJECT_GET")),
            ("PUT /b/k?partNumber=1&uploadId=2", &source, Some("REST.COPY.PART_GET")),
            ("PUT /b/k", &[], None),
        ] {
            let operation = Operation::from_request(&head(line, fields)).ok();
            assert_eq!(copy_log_name(operation), name, "{line}");
        }
    }
}
