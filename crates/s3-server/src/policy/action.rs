//! Policy actions: the names under which policies allow operations.

/// The operations that use a version ID in their query, which changes their action. Other
/// operations ignore the version ID, so it must not change the action that a policy denies.
const OF_VERSIONS: [&str; 9] = [
    "DeleteObject",
    "DeleteObjectTagging",
    "GetObject",
    "GetObjectAcl",
    "GetObjectAttributes",
    "GetObjectTagging",
    "HeadObject",
    "PutObjectAcl",
    "PutObjectTagging",
];

/// The operations that use a version ID in their query, which does not change their action.
const WITH_VERSIONS: [&str; 4] =
    ["GetObjectLegalHold", "GetObjectRetention", "PutObjectLegalHold", "PutObjectRetention"];

/// Returns `true` if an operation uses the version ID in its query.
pub(crate) fn has_version(operation: &str) -> bool {
    OF_VERSIONS.contains(&operation) || WITH_VERSIONS.contains(&operation)
}

/// Returns an S3 operation's action. One action may cover several operations, for example the steps
/// of an upload. Operations on versions have their own actions.
pub(crate) fn action_of(operation: &str, has_version: bool) -> String {
    let name = match operation {
        "ListBuckets" => "ListAllMyBuckets",
        "ListObjects" | "ListObjectsV2" | "HeadBucket" => "ListBucket",
        "ListObjectVersions" => "ListBucketVersions",
        "ListMultipartUploads" => "ListBucketMultipartUploads",
        "ListParts" => "ListMultipartUploadParts",
        "HeadObject" => "GetObject",
        "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload" => "PutObject",
        "DeleteObjects" => "DeleteObject",
        "GetBucketLifecycleConfiguration" => "GetLifecycleConfiguration",
        "PutBucketLifecycleConfiguration" | "DeleteBucketLifecycle" => "PutLifecycleConfiguration",
        "GetBucketCors" => "GetBucketCORS",
        "PutBucketCors" | "DeleteBucketCors" => "PutBucketCORS",
        "DeleteBucketTagging" => "PutBucketTagging",
        "DeleteBucketOwnershipControls" => "PutBucketOwnershipControls",
        "GetPublicAccessBlock" => "GetBucketPublicAccessBlock",
        "PutPublicAccessBlock" | "DeletePublicAccessBlock" => "PutBucketPublicAccessBlock",
        "GetBucketEncryption" => "GetEncryptionConfiguration",
        "PutBucketEncryption" | "DeleteBucketEncryption" => "PutEncryptionConfiguration",
        "GetBucketReplication" => "GetReplicationConfiguration",
        "GetBucketNotificationConfiguration" => "GetBucketNotification",
        "PutBucketNotificationConfiguration" => "PutBucketNotification",
        "GetObjectLockConfiguration" => "GetBucketObjectLockConfiguration",
        "PutObjectLockConfiguration" => "PutBucketObjectLockConfiguration",
        other => other,
    };
    if has_version && OF_VERSIONS.contains(&operation) {
        return format!("s3:{}", name.replacen("Object", "ObjectVersion", 1));
    }
    format!("s3:{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_the_actions_of_s3() {
        for (operation, action) in [
            ("GetObject", "s3:GetObject"),
            ("HeadObject", "s3:GetObject"),
            ("UploadPart", "s3:PutObject"),
            ("ListObjectsV2", "s3:ListBucket"),
            ("DeleteBucketCors", "s3:PutBucketCORS"),
            ("GetPublicAccessBlock", "s3:GetBucketPublicAccessBlock"),
        ] {
            assert_eq!(action_of(operation, false), action);
        }
        for (operation, action) in [
            ("GetObject", "s3:GetObjectVersion"),
            ("DeleteObject", "s3:DeleteObjectVersion"),
            ("PutObjectTagging", "s3:PutObjectVersionTagging"),
            ("HeadObject", "s3:GetObjectVersion"),
            ("PutObject", "s3:PutObject"),
            ("CopyObject", "s3:PutObject"),
            ("DeleteObjects", "s3:DeleteObject"),
            ("DeleteObjectVersion", "s3:DeleteObjectVersion"),
            ("PutObjectRetention", "s3:PutObjectRetention"),
            ("BypassGovernanceRetention", "s3:BypassGovernanceRetention"),
        ] {
            assert_eq!(action_of(operation, true), action);
        }
    }
}
