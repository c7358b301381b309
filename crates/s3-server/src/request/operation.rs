//! The operations of S3, and the requests that ask for them.

use http::Method;

use crate::errors::{S3ErrorCode, S3Result, refuse};
use crate::request::head::Head;

/// The header that makes a PUT a copy.
pub(crate) const COPY_SOURCE: &str = "x-amz-copy-source";

/// The kind of the resource that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The list of buckets.
    Root,
    Bucket,
    Object,
}

/// Defines the operations: the method and the resource of each, and the parameters of the query that
/// select it. Of those whose parameters are all there, the first one is meant.
macro_rules! operations {
    ($($name:ident: $method:ident $level:ident $([$parameter:literal])*;)*) => {
        /// An operation of S3 that this server has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Operation {
            $($name,)*
            /// An upload by a form.
            PostObject,
        }

        impl Operation {
            /// All operations that a method and a query select.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the name in the S3 reference.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::PostObject => "PostObject",
                }
            }
        }

        const ROUTES: &[Route] = &[$(Route {
            method: Method::$method,
            level: Level::$level,
            parameters: &[$($parameter),*],
            operation: Operation::$name,
        }),*];
    };
}

/// The requests that ask for an operation.
struct Route {
    method: Method,
    level: Level,
    parameters: &'static [&'static str],
    operation: Operation,
}

operations! {
    ListBuckets: GET Root;

    HeadBucket: HEAD Bucket;
    GetBucketAcl: GET Bucket ["acl"];
    GetBucketCors: GET Bucket ["cors"];
    GetBucketEncryption: GET Bucket ["encryption"];
    GetBucketLifecycleConfiguration: GET Bucket ["lifecycle"];
    GetBucketLocation: GET Bucket ["location"];
    GetBucketLogging: GET Bucket ["logging"];
    GetBucketNotificationConfiguration: GET Bucket ["notification"];
    GetObjectLockConfiguration: GET Bucket ["object-lock"];
    GetBucketOwnershipControls: GET Bucket ["ownershipControls"];
    GetBucketPolicy: GET Bucket ["policy"];
    GetBucketPolicyStatus: GET Bucket ["policyStatus"];
    GetPublicAccessBlock: GET Bucket ["publicAccessBlock"];
    GetBucketReplication: GET Bucket ["replication"];
    GetBucketRequestPayment: GET Bucket ["requestPayment"];
    GetBucketTagging: GET Bucket ["tagging"];
    ListMultipartUploads: GET Bucket ["uploads"];
    GetBucketVersioning: GET Bucket ["versioning"];
    ListObjectVersions: GET Bucket ["versions"];
    GetBucketWebsite: GET Bucket ["website"];
    ListObjectsV2: GET Bucket ["list-type"];
    ListObjects: GET Bucket;

    PutBucketAcl: PUT Bucket ["acl"];
    PutBucketCors: PUT Bucket ["cors"];
    PutBucketEncryption: PUT Bucket ["encryption"];
    PutBucketLifecycleConfiguration: PUT Bucket ["lifecycle"];
    PutBucketLogging: PUT Bucket ["logging"];
    PutObjectLockConfiguration: PUT Bucket ["object-lock"];
    PutBucketOwnershipControls: PUT Bucket ["ownershipControls"];
    PutBucketPolicy: PUT Bucket ["policy"];
    PutPublicAccessBlock: PUT Bucket ["publicAccessBlock"];
    PutBucketTagging: PUT Bucket ["tagging"];
    PutBucketVersioning: PUT Bucket ["versioning"];
    CreateBucket: PUT Bucket;

    DeleteBucketCors: DELETE Bucket ["cors"];
    DeleteBucketEncryption: DELETE Bucket ["encryption"];
    DeleteBucketLifecycle: DELETE Bucket ["lifecycle"];
    DeleteBucketOwnershipControls: DELETE Bucket ["ownershipControls"];
    DeleteBucketPolicy: DELETE Bucket ["policy"];
    DeletePublicAccessBlock: DELETE Bucket ["publicAccessBlock"];
    DeleteBucketTagging: DELETE Bucket ["tagging"];
    DeleteBucket: DELETE Bucket;

    DeleteObjects: POST Bucket ["delete"];

    HeadObject: HEAD Object;
    GetObjectAcl: GET Object ["acl"];
    GetObjectAttributes: GET Object ["attributes"];
    GetObjectLegalHold: GET Object ["legal-hold"];
    GetObjectRetention: GET Object ["retention"];
    GetObjectTagging: GET Object ["tagging"];
    ListParts: GET Object ["uploadId"];
    GetObject: GET Object;

    PutObjectAcl: PUT Object ["acl"];
    PutObjectLegalHold: PUT Object ["legal-hold"];
    PutObjectRetention: PUT Object ["retention"];
    PutObjectTagging: PUT Object ["tagging"];
    UploadPartCopy: PUT Object ["partNumber"] ["uploadId"];
    UploadPart: PUT Object ["partNumber"] ["uploadId"];
    CopyObject: PUT Object;
    PutObject: PUT Object;

    CreateMultipartUpload: POST Object ["uploads"];
    CompleteMultipartUpload: POST Object ["uploadId"];

    DeleteObjectTagging: DELETE Object ["tagging"];
    AbortMultipartUpload: DELETE Object ["uploadId"];
    DeleteObject: DELETE Object;
}

/// Parameters that select operations of S3 that this server does not have.
const UNSUPPORTED: [&str; 24] = [
    "abac",
    "accelerate",
    "analytics",
    "annotation",
    "intelligent-tiering",
    "inventory",
    "metadataAnnotationTable",
    "metadataConfiguration",
    "metadataInventoryTable",
    "metadataJournalTable",
    "metadataTable",
    "metrics",
    "notification",
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "select",
    "select-type",
    "session",
    "storageClassAnalysis",
    "torrent",
    "website",
    "x-amz-object-rename",
];

/// Parameters that refine a change, beside those that select one.
const REFINING: [&str; 4] = ["id", "versionId", "partNumber", "uploadId"];

/// The beginning of parameters that replace headers of a response.
pub(crate) const RESPONSE: &str = "response-";

impl Operation {
    /// Returns the operation that a request asks for.
    ///
    /// # Errors
    /// If this server has no such operation. A change with a parameter that selects none is refused:
    /// without the parameter, it would replace or delete the object or the bucket itself.
    pub(crate) fn of_request(head: &Head) -> S3Result<Self> {
        let level = match (head.name.bucket.is_empty(), head.name.key.is_empty()) {
            (true, _) => Level::Root,
            (false, true) => Level::Bucket,
            (false, false) => Level::Object,
        };
        if head.is_form() {
            return Ok(Self::PostObject);
        }
        let is_copy = head.fields.has(COPY_SOURCE);
        let is_meant = |route: &&Route| {
            route.method == head.method
                && route.level == level
                && route.parameters.iter().all(|name| head.query.has(name))
                && match route.operation {
                    Self::UploadPartCopy | Self::CopyObject => is_copy,
                    // Other values of the parameter are those of the first form of listings.
                    Self::ListObjectsV2 => head.query.get("list-type") == Some("2"),
                    _ => true,
                }
        };
        let found = ROUTES.iter().find(is_meant);
        let selected = found.map_or(&[][..], |route| route.parameters);
        let unsupported = head.query.iter().map(|(name, _)| name).find(|name| {
            !selected.contains(name)
                && if head.is_read() { UNSUPPORTED.contains(name) } else { !is_refining(name) }
        });
        match (found, unsupported) {
            (_, Some(name)) => {
                let change = if head.is_read() { "" } else { ": nothing was changed" };
                let message = format!(
                    "This server has no such operation with the parameter \"{name}\" of the \
                     query{change}"
                );
                Err(refuse(S3ErrorCode::NotImplemented, message))
            }
            (None, None) => Err(unknown(head, level)),
            (Some(route), None) => {
                check_part(head)?;
                Ok(route.operation)
            }
        }
    }
}

/// Returns `true` for a parameter of a change that selects no other operation.
fn is_refining(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.is_empty()
        || REFINING.contains(&name)
        || lower.starts_with("x-")
        || lower.starts_with(RESPONSE)
        || ["awsaccesskeyid", "expires", "signature", "content-type", "content-md5"]
            .contains(&lower.as_str())
}

fn unknown(head: &Head, level: Level) -> crate::errors::S3Error {
    let is_method = matches!(
        head.method,
        Method::GET | Method::HEAD | Method::PUT | Method::POST | Method::DELETE
    );
    if !is_method {
        let message = format!("The method {} is not one of S3", head.method);
        return refuse(S3ErrorCode::MethodNotAllowed, message);
    }
    let resource = match level {
        Level::Root => "the list of buckets",
        Level::Bucket => "a bucket",
        Level::Object => "an object",
    };
    let message = format!("This server has no such operation: {} of {resource}", head.method);
    refuse(S3ErrorCode::NotImplemented, message)
}

/// Refuses a PUT with only one of the two parameters of UploadPart: it would replace the object.
/// Other methods have operations with one of them alone.
fn check_part(head: &Head) -> S3Result<()> {
    let has = |name: &str| head.method == Method::PUT && head.query.has(name);
    let (given, missing) = match (has("uploadId"), has("partNumber")) {
        (true, false) => ("uploadId", "partNumber"),
        (false, true) => ("partNumber", "uploadId"),
        _ => return Ok(()),
    };
    let message = format!(
        "The parameter \"{missing}\" of the query is missing beside \"{given}\": nothing was changed"
    );
    Err(refuse(S3ErrorCode::InvalidArgument, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    fn route(line: &str, fields: &[(&str, &str)]) -> Result<&'static str, String> {
        let operation = Operation::of_request(&head(line, fields)).map(Operation::name);
        operation.map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn each_operation_is_found_by_its_route() {
        let mut found = Vec::new();
        for route in ROUTES {
            let path = match route.level {
                Level::Root => "/",
                Level::Bucket => "/bucket",
                Level::Object => "/bucket/key",
            };
            let value = |name: &&str| {
                if *name == "list-type" { "list-type=2".into() } else { format!("{name}=") }
            };
            let query: Vec<_> = route.parameters.iter().map(value).collect();
            let line = format!("{} {path}?{}", route.method, query.join("&"));
            let is_copy =
                matches!(route.operation, Operation::CopyObject | Operation::UploadPartCopy);
            let fields = [(COPY_SOURCE, "/b/k")];
            let fields = if is_copy { &fields[..] } else { &[] };
            let operation = Operation::of_request(&head(&line, fields)).unwrap();
            assert_eq!(operation, route.operation, "{line}");
            found.push(operation);
        }
        assert_eq!(found, Operation::ALL);
        let form = [("content-type", "multipart/form-data; boundary=a")];
        assert_eq!(route("POST /bucket", &form), Ok("PostObject"));
    }

    #[test]
    fn parameters_of_other_operations_are_refused() {
        for line in [
            "PUT /b/k?annotation",
            "PUT /b/k?renameObject",
            "PUT /b/k?encryption",
            "PUT /b/k?ACL",
            "PUT /b?tagging&abac",
            "PUT /b?notification",
            "DELETE /b/k?acl",
            "DELETE /b?acl",
            "DELETE /b?versioning=",
            "POST /b?uploads",
            "POST /b/k?select&select-type=2",
            "POST /b/k?restore",
            "GET /b?metadataConfiguration",
            "GET /b?accelerate",
            "GET /b?metrics&id=a",
            "GET /b/k?torrent",
            "POST /b",
            "POST /",
        ] {
            assert_eq!(route(line, &[]), Err("NotImplemented".to_owned()), "{line}");
        }
        assert_eq!(route("PATCH /b/k", &[]), Err("MethodNotAllowed".to_owned()));
    }

    #[test]
    fn parameters_that_refine_are_permitted() {
        for (line, operation) in [
            ("PUT /b/k?", "PutObject"),
            ("PUT /b/k?x-id=PutObject", "PutObject"),
            (
                "PUT /b/k?X-Amz-Algorithm=a&X-Amz-Signature=b&versionId=c&tagging",
                "PutObjectTagging",
            ),
            ("PUT /b/k?AWSAccessKeyId=a&Expires=1&Signature=b&content-type=c", "PutObject"),
            ("DELETE /b/?lifecycle=", "DeleteBucketLifecycle"),
            ("GET /b?list-type=1", "ListObjects"),
            ("GET /b?prefix=a&unknown", "ListObjects"),
            ("GET /b/k?response-content-type=a", "GetObject"),
            ("GET /b?notification", "GetBucketNotificationConfiguration"),
        ] {
            assert_eq!(route(line, &[]), Ok(operation), "{line}");
        }
    }

    #[test]
    fn part_needs_its_number_and_its_upload() {
        for (target, missing) in [
            ("/b/k?uploadId=a", "\"partNumber\""),
            ("/b/k?x-id=UploadPart&partNumber=1", "\"uploadId\""),
            ("/b/k?tagging&uploadId=", "\"partNumber\""),
        ] {
            let error = Operation::of_request(&head(&format!("PUT {target}"), &[])).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{target}");
            let message = error.message().to_owned();
            assert!(message.contains(&format!("{missing} of the query is missing")), "{message}");
        }
        for (line, operation) in [
            ("POST /b/k?uploadId=a", "CompleteMultipartUpload"),
            ("DELETE /b/k?uploadId=a", "AbortMultipartUpload"),
            ("GET /b/k?uploadId=a", "ListParts"),
            ("HEAD /b/k?uploadId=a", "HeadObject"),
            ("GET /b/k?partNumber=1", "GetObject"),
            ("HEAD /b/k?partNumber=1", "HeadObject"),
        ] {
            assert_eq!(route(line, &[]), Ok(operation), "{line}");
        }
    }
}
