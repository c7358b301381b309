//! Maps each S3 operation to the action that decides which right it needs. Pure.

use crate::access::rights::Right;

/// The kind of operation that an authorization decision concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// List the buckets; the response has those to which the caller has any right.
    ListBuckets,
    CreateBucket,
    /// Learn that a bucket exists, or read a setting that is the same for all buckets.
    UseBucket,
    /// Use a right to the keys that begin with the request's name.
    Use(Right),
    /// Change limits on bucket owners, or listen to the events of all buckets, regardless of the
    /// buckets' policies.
    Administer,
}

impl Action {
    /// Returns the required right, for `AccessDenied` messages.
    pub(crate) fn needs(self) -> &'static str {
        match self {
            Self::ListBuckets => "a key",
            Self::CreateBucket => "the right create-buckets, or admin of the bucket",
            Self::UseBucket => "any right to the bucket",
            Self::Use(Right::Read) => "the right read",
            Self::Use(Right::Write) => "the right write",
            Self::Use(Right::List) => "the right list",
            Self::Use(Right::Delete) => "the right delete",
            Self::Use(Right::Admin) => "the right admin",
            Self::Administer => "the administrator, or the right admin to all buckets",
        }
    }
}

/// The operations on a bucket, and on access lists, that require the right admin.
const SETTINGS: [&str; 34] = [
    "DeleteBucket",
    "GetBucketLifecycleConfiguration",
    "PutBucketLifecycleConfiguration",
    "DeleteBucketLifecycle",
    "GetBucketAcl",
    "PutBucketAcl",
    "PutObjectAcl",
    "PutBucketCors",
    "PutBucketEncryption",
    "GetBucketLogging",
    "PutBucketLogging",
    "ListenBucketNotification",
    "PutBucketNotificationConfiguration",
    "PutBucketPolicy",
    "PutBucketReplication",
    "PutBucketTagging",
    "PutBucketVersioning",
    "PutBucketWebsite",
    "DeleteBucketWebsite",
    "PutBucketOwnershipControls",
    "PutPublicAccessBlock",
    "PutObjectLockConfiguration",
    "DeleteBucketCors",
    "DeleteBucketEncryption",
    "DeleteBucketPolicy",
    "GetBucketPolicy",
    "DeleteBucketTagging",
    "GetBucketCors",
    "GetBucketTagging",
    "GetBucketOwnershipControls",
    "GetPublicAccessBlock",
    "DeleteBucketOwnershipControls",
    "DeletePublicAccessBlock",
    "GetBucketQuota",
];

/// Returns the action of an operation; `None` for operations that only the administrator may
/// execute.
pub(crate) fn action(operation: &str) -> Option<Action> {
    Some(match operation {
        "ListBuckets" => Action::ListBuckets,
        "CreateBucket" => Action::CreateBucket,
        // Each key that DeleteObjects names is checked on its own.
        "DeleteObjects"
        | "HeadBucket"
        | "GetBucketLocation"
        | "GetBucketVersioning"
        | "GetBucketRequestPayment"
        | "GetBucketNotificationConfiguration"
        | "GetBucketPolicyStatus"
        | "GetBucketEncryption"
        | "GetBucketWebsite"
        | "GetBucketReplication"
        | "GetObjectLockConfiguration" => Action::UseBucket,
        "ListObjects" | "ListObjectsV2" | "ListObjectVersions" | "ListMultipartUploads" => {
            Action::Use(Right::List)
        }
        "GetObject"
        | "HeadObject"
        | "GetObjectAttributes"
        | "GetObjectTagging"
        | "GetObjectAcl"
        | "GetObjectRetention"
        | "GetObjectLegalHold" => Action::Use(Right::Read),
        // Copies need the right to read their source, too.
        "PutObject"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload"
        | "AbortMultipartUpload"
        | "ListParts"
        | "PutObjectTagging"
        | "DeleteObjectTagging"
        | "PutObjectRetention"
        | "PutObjectLegalHold" => Action::Use(Right::Write),
        "DeleteObject" => Action::Use(Right::Delete),
        name if SETTINGS.contains(&name) => Action::Use(Right::Admin),
        "PutBucketQuota" | "DeleteBucketQuota" | "ListenNotification" => Action::Administer,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::operation::Operation;

    #[test]
    fn every_supported_operation_has_an_action() {
        for operation in Operation::ALL {
            let name = operation.name();
            assert!(action(name).is_some(), "{name} has no action");
        }
    }

    #[test]
    fn unknown_operation_has_no_action() {
        for name in ["", "GetObjects", "CreateSession", "PostObject", "WriteGetObjectResponse"] {
            assert_eq!(action(name), None, "{name}");
        }
    }
}
