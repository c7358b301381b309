//! Maps each operation to the ACL permission that allows it.

use crate::acl::list::Permission;

/// A permission in a bucket's ACL or in an object's ACL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needed {
    OfBucket(Permission),
    OfObject(Permission),
}

/// Returns the permission that allows an operation; `None` if no ACL allows it. `has_version` is
/// `true` for a version in the query: ACLs do not allow the deletion of versions, as in S3.
pub(crate) fn needed(operation: &str, has_version: bool) -> Option<Needed> {
    use Needed::{OfBucket, OfObject};

    Some(match operation {
        "HeadBucket"
        | "ListObjects"
        | "ListObjectsV2"
        | "ListObjectVersions"
        | "ListMultipartUploads" => OfBucket(Permission::Read),
        "DeleteObject" if has_version => return None,
        "PutObject"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload"
        | "AbortMultipartUpload"
        | "ListParts"
        | "DeleteObject"
        | "DeleteObjects" => OfBucket(Permission::Write),
        "GetBucketAcl" => OfBucket(Permission::ReadAcl),
        "PutBucketAcl" => OfBucket(Permission::WriteAcl),
        "GetObject" | "GetObjectVersion" | "HeadObject" | "GetObjectAttributes" => {
            OfObject(Permission::Read)
        }
        "GetObjectAcl" => OfObject(Permission::ReadAcl),
        "PutObjectAcl" => OfObject(Permission::WriteAcl),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_need_the_permissions_of_s3() {
        for (operation, expected) in [
            ("ListObjectsV2", Some(Needed::OfBucket(Permission::Read))),
            ("PutObject", Some(Needed::OfBucket(Permission::Write))),
            ("DeleteObject", Some(Needed::OfBucket(Permission::Write))),
            ("PutBucketAcl", Some(Needed::OfBucket(Permission::WriteAcl))),
            ("GetObject", Some(Needed::OfObject(Permission::Read))),
            ("GetObjectAcl", Some(Needed::OfObject(Permission::ReadAcl))),
        ] {
            assert_eq!(needed(operation, false), expected, "{operation}");
        }
        for operation in [
            "ListBuckets",
            "CreateBucket",
            "DeleteBucket",
            "DeleteObjectVersion",
            "GetObjectTagging",
            "PutObjectTagging",
            "PutBucketPolicy",
            "PutPublicAccessBlock",
            "PutBucketOwnershipControls",
        ] {
            assert_eq!(needed(operation, false), None, "{operation}");
        }
        assert_eq!(needed("DeleteObject", true), None);
        assert_eq!(needed("GetObject", true), Some(Needed::OfObject(Permission::Read)));
    }
}
