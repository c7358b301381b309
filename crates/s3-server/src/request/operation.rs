//! S3 operations, and the requests that ask for them.

use haul_file_store::PART_NUMBER_MAX;
use http::Method;

use crate::errors::{S3Error, S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::head::Head;

/// The header that makes a PUT a copy.
pub(crate) const COPY_SOURCE: &str = "x-amz-copy-source";

/// The kind of resource that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The list of buckets.
    Root,
    Bucket,
    Object,
}

impl Level {
    /// Returns the resource type in S3 errors.
    fn resource_type(self) -> &'static str {
        match self {
            Self::Root => "SERVICE",
            Self::Bucket => "BUCKET",
            Self::Object => "OBJECT",
        }
    }
}

/// Defines the operations: each operation's method and resource, and the query parameters that
/// select it. If a request has the parameters for several operations, the first operation is
/// selected.
macro_rules! operations {
    ($($name:ident: $method:ident $level:ident $([$parameter:literal])*;)*) => {
        /// An S3 operation that this server has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Operation {
            $($name,)*
            /// An upload with an HTML form.
            PostObject,
        }

        impl Operation {
            /// All operations that a method and a query select.
            #[cfg(test)]
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the operation's name in the S3 reference.
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
    ListenNotification: GET Root ["events"];
    ListBuckets: GET Root;

    HeadBucket: HEAD Bucket;
    GetBucketAcl: GET Bucket ["acl"];
    GetBucketCors: GET Bucket ["cors"];
    GetBucketEncryption: GET Bucket ["encryption"];
    ListenBucketNotification: GET Bucket ["events"];
    GetBucketLifecycleConfiguration: GET Bucket ["lifecycle"];
    GetBucketLocation: GET Bucket ["location"];
    GetBucketLogging: GET Bucket ["logging"];
    GetBucketNotificationConfiguration: GET Bucket ["notification"];
    GetObjectLockConfiguration: GET Bucket ["object-lock"];
    GetBucketOwnershipControls: GET Bucket ["ownershipControls"];
    GetBucketPolicy: GET Bucket ["policy"];
    GetBucketPolicyStatus: GET Bucket ["policyStatus"];
    GetPublicAccessBlock: GET Bucket ["publicAccessBlock"];
    GetBucketQuota: GET Bucket ["quota"];
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
    PutBucketNotificationConfiguration: PUT Bucket ["notification"];
    PutObjectLockConfiguration: PUT Bucket ["object-lock"];
    PutBucketOwnershipControls: PUT Bucket ["ownershipControls"];
    PutBucketPolicy: PUT Bucket ["policy"];
    PutPublicAccessBlock: PUT Bucket ["publicAccessBlock"];
    PutBucketQuota: PUT Bucket ["quota"];
    PutBucketTagging: PUT Bucket ["tagging"];
    PutBucketVersioning: PUT Bucket ["versioning"];
    PutBucketWebsite: PUT Bucket ["website"];
    CreateBucket: PUT Bucket;

    DeleteBucketCors: DELETE Bucket ["cors"];
    DeleteBucketEncryption: DELETE Bucket ["encryption"];
    DeleteBucketLifecycle: DELETE Bucket ["lifecycle"];
    DeleteBucketOwnershipControls: DELETE Bucket ["ownershipControls"];
    DeleteBucketPolicy: DELETE Bucket ["policy"];
    DeletePublicAccessBlock: DELETE Bucket ["publicAccessBlock"];
    DeleteBucketQuota: DELETE Bucket ["quota"];
    DeleteBucketTagging: DELETE Bucket ["tagging"];
    DeleteBucketWebsite: DELETE Bucket ["website"];
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

/// Query parameters that select unsupported S3 operations.
const UNSUPPORTED: [&str; 22] = [
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
    "renameObject",
    "replication",
    "requestPayment",
    "restore",
    "select",
    "select-type",
    "session",
    "storageClassAnalysis",
    "torrent",
    "x-amz-object-rename",
];

/// The query parameter with a part number.
pub(crate) const PART_NUMBER: &str = "partNumber";

/// Query parameters that refine a change, in addition to those that select one.
const REFINING: [&str; 4] = ["id", "versionId", "partNumber", "uploadId"];

/// The prefix of query parameters that replace response headers.
pub(crate) const RESPONSE: &str = "response-";

impl Operation {
    /// Returns the operation that a request asks for.
    ///
    /// # Errors
    /// If this server has no such operation. A change with an unknown parameter is rejected:
    /// without the parameter, it would replace or delete the object or the bucket itself.
    pub(crate) fn from_request(head: &Head) -> S3Result<Self> {
        let level = match (head.name.bucket.is_empty(), head.name.key.is_empty()) {
            (true, _) => Level::Root,
            (false, true) => Level::Bucket,
            (false, false) => Level::Object,
        };
        if head.is_form() {
            return Ok(Self::PostObject);
        }
        check_place(head, level)?;
        let is_copy = head.fields.has(COPY_SOURCE);
        let is_meant = |route: &&Route| {
            route.method == head.method
                && route.level == level
                && route.parameters.iter().all(|name| head.query.has(name))
                && match route.operation {
                    Self::UploadPartCopy | Self::CopyObject => is_copy,
                    // With any other value, the request is a ListObjects (version 1).
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
                check_version(head, route.operation)?;
                Ok(route.operation)
            }
        }
    }
}

impl Operation {
    /// Returns `true` if the operation reads the body of its request.
    pub(crate) fn reads_body(self) -> bool {
        self.name().starts_with("Put")
            || matches!(
                self,
                Self::PostObject
                    | Self::UploadPart
                    | Self::CompleteMultipartUpload
                    | Self::CreateBucket
                    | Self::DeleteObjects
            )
    }
}

/// Rejects a version ID in a change that creates a new object: it would replace the current object.
fn check_version(head: &Head, operation: Operation) -> S3Result<()> {
    use Operation::{
        AbortMultipartUpload, CompleteMultipartUpload, CopyObject, CreateMultipartUpload,
        PutObject, UploadPart, UploadPartCopy,
    };
    let makes_an_object = matches!(
        operation,
        PutObject
            | CopyObject
            | CreateMultipartUpload
            | UploadPart
            | UploadPartCopy
            | CompleteMultipartUpload
            | AbortMultipartUpload
    );
    match head.query.get("versionId") {
        Some(version) if makes_an_object => {
            let message = "This operation does not accept a version-id.";
            Err(invalid_argument("versionId", version, message))
        }
        _ => Ok(()),
    }
}

/// Returns `true` for a parameter in a change that selects no other operation.
fn is_refining(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    name.is_empty()
        || REFINING.contains(&name)
        || lower.starts_with("x-")
        || lower.starts_with(RESPONSE)
        || ["awsaccesskeyid", "expires", "signature", "content-type", "content-md5"]
            .contains(&lower.as_str())
}

/// Returns the error for a request that is no S3 operation.
fn unknown(head: &Head, level: Level) -> S3Error {
    let is_form_expected = level == Level::Bucket && head.method == Method::POST;
    if is_form_expected {
        let message = "Bucket POST must be of the enclosure-type multipart/form-data";
        return refuse(S3ErrorCode::PreconditionFailed, message);
    }
    not_allowed(head, level.resource_type())
}

/// Returns the error for a method that a resource does not have.
fn not_allowed(head: &Head, resource_type: &'static str) -> S3Error {
    let message = "The specified method is not allowed against this resource.";
    refuse(S3ErrorCode::MethodNotAllowed, message)
        .with_field("Method", head.method.as_str())
        .with_field("ResourceType", resource_type)
}

/// Rejects a PUT with only one of the two UploadPart parameters, which would replace the object, or
/// with an invalid part number. Other methods have operations with one parameter alone.
fn check_part(head: &Head) -> S3Result<()> {
    if head.method != Method::PUT {
        return Ok(());
    }
    match (head.query.get("uploadId"), head.query.get(PART_NUMBER)) {
        (None, None) => Ok(()),
        (Some(_), Some(number)) => part_number(number).map(drop),
        (Some(_), None) => Err(not_allowed(head, "UPLOAD")),
        (None, Some(number)) => {
            let message = "The parameter \"uploadId\" of the query is missing beside \
                           \"partNumber\": nothing was changed";
            Err(invalid_argument(PART_NUMBER, number, message))
        }
    }
}

/// Parses a part number.
///
/// # Errors
/// `InvalidArgument` if no part can have it.
pub(crate) fn part_number(text: &str) -> S3Result<u16> {
    let number = text.parse().ok().filter(|number| (1..=PART_NUMBER_MAX).contains(number));
    number.ok_or_else(|| {
        let message = format!("Part number must be an integer between 1 and {PART_NUMBER_MAX}");
        invalid_argument(PART_NUMBER, text, message)
    })
}

/// Rejects requests that S3 has only for another method or resource.
fn check_place(head: &Head, level: Level) -> S3Result<()> {
    let source = head.fields.text(COPY_SOURCE).filter(|_| head.method != Method::PUT);
    if let Some(source) = source {
        let message = "You can only specify a copy source header for copy requests.";
        return Err(invalid_argument(COPY_SOURCE, source, message));
    }
    if !head.is_read() {
        return Ok(());
    }
    match (level, head.query.iter().find(|(name, _)| is_elsewhere(name, level, &head.method))) {
        (_, None) | (Level::Root, _) => Ok(()),
        (Level::Bucket, Some(_)) => Err(not_allowed(head, level.resource_type())),
        (Level::Object, Some((name, _))) => {
            let message = format!("There is no such thing as the ?{name} sub-resource for a key");
            Err(refuse(S3ErrorCode::InvalidRequest, message))
        }
    }
}

/// Returns `true` for a parameter that selects an operation on objects in a request to a bucket, or
/// vice versa. Without it, the request would list the bucket, or read the object.
fn is_elsewhere(name: &str, level: Level, method: &Method) -> bool {
    // Listings of earlier clients have other values, and a part has its number in a read, too.
    if ["list-type", "uploadId", PART_NUMBER].contains(&name) {
        return false;
    }
    let selects = |route: &Route| route.parameters.contains(&name);
    let is_here = |route: &&Route| route.level == level && route.method == *method;
    // HEAD has no subresources: it ignores those that GET has.
    let is_read_here = ROUTES
        .iter()
        .any(|route| route.level == level && route.method == Method::GET && selects(route));
    !is_read_here && !ROUTES.iter().filter(is_here).any(selects) && ROUTES.iter().any(selects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::head::tests::head;

    fn route(line: &str, fields: &[(&str, &str)]) -> Result<&'static str, String> {
        let operation = Operation::from_request(&head(line, fields)).map(Operation::name);
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
            let value = |name: &&str| match *name {
                "list-type" => "list-type=2".to_owned(),
                PART_NUMBER => "partNumber=1".to_owned(),
                name => format!("{name}="),
            };
            let query: Vec<_> = route.parameters.iter().map(value).collect();
            let line = format!("{} {path}?{}", route.method, query.join("&"));
            let is_copy =
                matches!(route.operation, Operation::CopyObject | Operation::UploadPartCopy);
            let fields = [(COPY_SOURCE, "/b/k")];
            let fields = if is_copy { &fields[..] } else { &[] };
            let operation = Operation::from_request(&head(&line, fields)).unwrap();
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
        ] {
            assert_eq!(route(line, &[]), Err("NotImplemented".to_owned()), "{line}");
        }
    }

    #[test]
    fn resources_without_the_method_are_named() {
        for (line, resource_type) in [
            ("PATCH /b/k", "OBJECT"),
            ("POST /b/k", "OBJECT"),
            ("PUT /b/k?uploadId=a", "UPLOAD"),
            ("PUT /b/k?tagging&uploadId=", "UPLOAD"),
            ("PATCH /b", "BUCKET"),
            ("POST /", "SERVICE"),
            ("DELETE /", "SERVICE"),
        ] {
            let error = Operation::from_request(&head(line, &[])).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::MethodNotAllowed, "{line}");
            assert_eq!(error.field("ResourceType"), Some(resource_type), "{line}");
        }
        let source = [(COPY_SOURCE, "/b/k")];
        for (line, fields, code) in [
            ("POST /b", &[][..], "PreconditionFailed"),
            ("GET /b/k?uploads", &[], "InvalidRequest"),
            ("HEAD /b/k?versions", &[], "InvalidRequest"),
            ("GET /b/k?policy", &[], "InvalidRequest"),
            ("GET /b/k?delete", &[], "InvalidRequest"),
            ("HEAD /b/k?lifecycle", &[], "InvalidRequest"),
            ("GET /b?retention", &[], "MethodNotAllowed"),
            ("GET /b?attributes", &[], "MethodNotAllowed"),
            ("HEAD /b?legal-hold", &[], "MethodNotAllowed"),
            ("GET /b/k", &source, "InvalidArgument"),
            ("DELETE /b/k", &source, "InvalidArgument"),
            ("POST /b/k?uploadId=a", &source, "InvalidArgument"),
        ] {
            assert_eq!(route(line, fields), Err(code.to_owned()), "{line}");
        }
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
            ("GET /b/k?list-type=2", "GetObject"),
            ("HEAD /b/k?tagging", "HeadObject"),
            ("HEAD /b?versioning", "HeadBucket"),
            ("GET /b?uploadId=a", "ListObjects"),
            ("GET /?tagging", "ListBuckets"),
            ("GET /b?notification", "GetBucketNotificationConfiguration"),
            ("PUT /b?notification", "PutBucketNotificationConfiguration"),
        ] {
            assert_eq!(route(line, &[]), Ok(operation), "{line}");
        }
    }

    #[test]
    fn part_needs_its_number_and_its_upload() {
        for target in
            ["/b/k?x-id=UploadPart&partNumber=1", "/b/k?partNumber=0&uploadId=a", "/b/k?partNumber"]
        {
            let error = Operation::from_request(&head(&format!("PUT {target}"), &[])).unwrap_err();
            assert_eq!(error.code(), S3ErrorCode::InvalidArgument, "{target}");
            assert_eq!(error.field("ArgumentName"), Some(PART_NUMBER), "{target}");
        }
        for (text, number) in [("1", 1), ("10000", 10_000)] {
            assert_eq!(part_number(text).unwrap(), number);
        }
        for text in ["", "0", "10001", "-1", "x", "99999999999999999999"] {
            assert!(part_number(text).is_err(), "{text}");
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
