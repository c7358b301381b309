//! The names of operations in access logs: `REST`, the method and the kind of the resource. Pure.

use hyper::Method;

/// The subresources of buckets with their kinds.
const OF_BUCKETS: [(&str, &str); 22] = [
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
    ("replication", "REPLICATION"),
    ("requestPayment", "REQUEST_PAYMENT"),
    ("tagging", "TAGGING"),
    ("uploads", "UPLOADS"),
    ("versioning", "VERSIONING"),
    ("versions", "BUCKETVERSIONS"),
    ("website", "WEBSITE"),
];

/// The subresources of objects with their kinds.
const OF_OBJECTS: [(&str, &str); 6] = [
    ("acl", "ACL"),
    ("attributes", "OBJECT_ATTRIBUTES"),
    ("legal-hold", "OBJECT_LOCK_LEGALHOLD"),
    ("retention", "OBJECT_LOCK_RETENTION"),
    ("tagging", "OBJECT_TAGGING"),
    ("uploads", "UPLOADS"),
];

/// The name of the deletion of one key by a multi-object delete.
pub(super) const BATCH_DELETE: &str = "BATCH.DELETE.OBJECT";

/// Returns the name of an operation, and that of its read of the source if it is a copy.
pub(super) fn operation(
    method: &Method,
    query: &str,
    has_key: bool,
    is_form: bool,
) -> (String, &'static str) {
    let names = || query.split('&').filter_map(|pair| pair.split('=').next());
    let has = |name: &str| names().any(|found| found == name);
    let find = |kinds: &[(&str, &'static str)]| {
        kinds.iter().find(|(name, _)| has(name)).map(|(_, kind)| *kind)
    };
    let is_part = has("uploadId") && *method == Method::PUT;
    let kind = match has_key {
        _ if *method == Method::OPTIONS => "PREFLIGHT",
        false if is_form => "OBJECT",
        false => find(&OF_BUCKETS).unwrap_or("BUCKET"),
        true if is_part => "PART",
        true if has("uploadId") => "UPLOAD",
        true => find(&OF_OBJECTS).unwrap_or("OBJECT"),
    };
    let copied = if is_part { "REST.COPY.PART_GET" } else { "REST.COPY.OBJECT_GET" };
    (format!("REST.{method}.{kind}"), copied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_names_of_s3() {
        for (line, name) in [
            ("GET k", "REST.GET.OBJECT"),
            ("GET k versionId=1&x-id=GetObject", "REST.GET.OBJECT"),
            ("HEAD k", "REST.HEAD.OBJECT"),
            ("PUT k", "REST.PUT.OBJECT"),
            ("DELETE k", "REST.DELETE.OBJECT"),
            ("PUT k acl", "REST.PUT.ACL"),
            ("PUT k tagging=", "REST.PUT.OBJECT_TAGGING"),
            ("POST k uploads", "REST.POST.UPLOADS"),
            ("PUT k partNumber=1&uploadId=2", "REST.PUT.PART"),
            ("POST k uploadId=2", "REST.POST.UPLOAD"),
            ("DELETE k uploadId=2", "REST.DELETE.UPLOAD"),
            ("GET b", "REST.GET.BUCKET"),
            ("GET b list-type=2&prefix=acl", "REST.GET.BUCKET"),
            ("HEAD b", "REST.HEAD.BUCKET"),
            ("GET b versioning", "REST.GET.VERSIONING"),
            ("GET b logging", "REST.GET.LOGGING_STATUS"),
            ("PUT b policy", "REST.PUT.BUCKETPOLICY"),
            ("POST b delete", "REST.POST.MULTI_OBJECT_DELETE"),
            ("FORM b", "REST.POST.OBJECT"),
            ("OPTIONS k", "REST.OPTIONS.PREFLIGHT"),
        ] {
            let mut words = line.split(' ');
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            let is_form = method == "FORM";
            let method = if is_form { "POST" } else { method }.parse().unwrap();
            let query = words.next().unwrap_or_default();
            assert_eq!(operation(&method, query, path == "k", is_form).0, name, "{line}");
        }
        for (query, copied) in
            [("", "REST.COPY.OBJECT_GET"), ("partNumber=1&uploadId=2", "REST.COPY.PART_GET")]
        {
            assert_eq!(operation(&Method::PUT, query, true, false).1, copied);
        }
    }
}
