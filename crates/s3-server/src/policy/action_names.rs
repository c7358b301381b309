//! The names of AWS's S3 actions, including actions that this server does not implement: policies
//! that name them are valid. MinIO has `ListenNotification` and `ListenBucketNotification`.

use crate::pattern;

/// Actions on objects.
const OBJECTS: &str = "
    AbortMultipartUpload BypassGovernanceRetention DeleteObject DeleteObjectTagging
    DeleteObjectVersion DeleteObjectVersionTagging GetObject GetObjectAcl GetObjectAttributes
    GetObjectLegalHold GetObjectRetention GetObjectTagging GetObjectTorrent GetObjectVersion
    GetObjectVersionAcl GetObjectVersionAttributes GetObjectVersionForReplication
    GetObjectVersionTagging GetObjectVersionTorrent InitiateReplication ListMultipartUploadParts
    ObjectOwnerOverrideToBucketOwner PutObject PutObjectAcl PutObjectLegalHold
    PutObjectRetention PutObjectTagging PutObjectVersionAcl PutObjectVersionTagging
    ReplicateDelete ReplicateObject ReplicateTags RestoreObject UpdateObjectEncryption";

/// Actions on buckets.
const BUCKETS: &str = "
    CreateBucket CreateBucketMetadataTableConfiguration DeleteBucket
    DeleteBucketMetadataTableConfiguration DeleteBucketPolicy DeleteBucketWebsite
    GetAccelerateConfiguration GetAnalyticsConfiguration GetBucketAbac GetBucketAcl
    GetBucketCORS GetBucketLocation GetBucketLogging GetBucketMetadataTableConfiguration
    GetBucketNotification GetBucketObjectLockConfiguration GetBucketOwnershipControls
    GetBucketPolicy GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment
    GetBucketTagging GetBucketVersioning GetBucketWebsite GetEncryptionConfiguration
    GetIntelligentTieringConfiguration GetInventoryConfiguration GetLifecycleConfiguration
    GetMetricsConfiguration GetReplicationConfiguration ListBucket ListBucketMultipartUploads
    ListBucketVersions ListTagsForResource ListenBucketNotification PauseReplication PutAccelerateConfiguration
    PutAnalyticsConfiguration PutBucketAbac PutBucketAcl PutBucketCORS PutBucketLogging
    PutBucketNotification PutBucketObjectLockConfiguration PutBucketOwnershipControls
    PutBucketPolicy PutBucketPublicAccessBlock PutBucketRequestPayment PutBucketTagging
    PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
    PutIntelligentTieringConfiguration PutInventoryConfiguration PutLifecycleConfiguration
    PutMetricsConfiguration PutReplicationConfiguration TagResource UntagResource
    UpdateBucketMetadataInventoryTableConfiguration
    UpdateBucketMetadataJournalTableConfiguration";

/// Other actions, such as actions on access points.
const OTHERS: &str = "
    AssociateAccessGrantsIdentityCenter CreateAccessGrant CreateAccessGrantsInstance
    CreateAccessGrantsLocation CreateAccessPoint CreateAccessPointForObjectLambda CreateJob
    CreateMultiRegionAccessPoint CreateStorageLensGroup DeleteAccessGrant
    DeleteAccessGrantsInstance DeleteAccessGrantsInstanceResourcePolicy
    DeleteAccessGrantsLocation DeleteAccessPoint DeleteAccessPointForObjectLambda
    DeleteAccessPointPolicy DeleteAccessPointPolicyForObjectLambda DeleteAccessPointScope
    DeleteJobTagging DeleteMultiRegionAccessPoint DeleteStorageLensConfiguration
    DeleteStorageLensConfigurationTagging DeleteStorageLensGroup DescribeJob
    DescribeMultiRegionAccessPointOperation DissociateAccessGrantsIdentityCenter GetAccessGrant
    GetAccessGrantsInstance GetAccessGrantsInstanceForPrefix
    GetAccessGrantsInstanceResourcePolicy GetAccessGrantsLocation GetAccessPoint
    GetAccessPointConfigurationForObjectLambda GetAccessPointForObjectLambda
    GetAccessPointPolicy GetAccessPointPolicyForObjectLambda GetAccessPointPolicyStatus
    GetAccessPointPolicyStatusForObjectLambda GetAccessPointScope GetAccountPublicAccessBlock
    GetDataAccess GetJobTagging GetMultiRegionAccessPoint GetMultiRegionAccessPointPolicy
    GetMultiRegionAccessPointPolicyStatus GetMultiRegionAccessPointRoutes
    GetStorageLensConfiguration GetStorageLensConfigurationTagging GetStorageLensDashboard
    GetStorageLensGroup ListAccessGrants ListAccessGrantsInstances ListAccessGrantsLocations
    ListAccessPoints ListAccessPointsForDirectoryBuckets ListAccessPointsForObjectLambda
    ListAllMyBuckets ListCallerAccessGrants ListenNotification ListJobs ListMultiRegionAccessPoints
    ListStorageLensConfigurations ListStorageLensGroups PutAccessGrantsInstanceResourcePolicy
    PutAccessPointConfigurationForObjectLambda PutAccessPointPolicy
    PutAccessPointPolicyForObjectLambda PutAccessPointPublicAccessBlock PutAccessPointScope
    PutAccountPublicAccessBlock PutJobTagging PutMultiRegionAccessPointPolicy
    PutStorageLensConfiguration PutStorageLensConfigurationTagging
    SubmitMultiRegionAccessPointRoutes UpdateAccessGrantsLocation UpdateJobPriority
    UpdateJobStatus UpdateStorageLensGroup";

/// The kinds of actions that a policy's pattern, such as `s3:Get*`, matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ActionKinds {
    pub(super) objects: bool,
    pub(super) buckets: bool,
    pub(super) others: bool,
}

impl ActionKinds {
    /// Returns the kinds of the actions whose names match a pattern.
    pub(super) fn matching(pattern: &str) -> Self {
        let pattern = pattern.to_ascii_lowercase();
        let has_match = |names: &str| {
            let names = names.split_ascii_whitespace().map(str::to_ascii_lowercase);
            names.map(|name| format!("s3:{name}")).any(|name| pattern::matches(&pattern, &name))
        };
        Self { objects: has_match(OBJECTS), buckets: has_match(BUCKETS), others: has_match(OTHERS) }
    }
}

/// Returns `true` if a policy's pattern matches the name of an action.
pub(super) fn names_an_action(pattern: &str) -> bool {
    let ActionKinds { objects, buckets, others } = ActionKinds::matching(pattern);
    objects || buckets || others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::action::action_of;
    use crate::request::operation::Operation;

    #[test]
    fn patterns_match_actions_of_aws_without_regard_to_case() {
        for known in ["*", "s3:*", "s3:getobject", "S3:Get*", "s3:*Tagging", "s3:Put?bject"] {
            assert!(names_an_action(known), "{known}");
        }
        for known in ["s3:ListAllMyBuckets", "s3:PutAnalyticsConfiguration", "s3:ReplicateTags"] {
            assert!(names_an_action(known), "{known}");
        }
        for unknown in ["s3:", "s3:FooBar", "s3:GetObjects", "s3:ListObjectsV2", "s3:x*", "s3"] {
            assert!(!names_an_action(unknown), "{unknown}");
        }
    }

    #[test]
    fn actions_are_those_on_buckets_or_objects() {
        for (pattern, objects, buckets, others) in [
            ("*", true, true, true),
            ("s3:Get*", true, true, true),
            ("s3:GetObjec?", true, false, false),
            ("s3:abort*", true, false, false),
            ("s3:*Multipart*", true, true, false),
            ("s3:GetBucket*", false, true, false),
            ("s3:???BucketVersioning", false, true, false),
            ("s3:PutLifecycleConfiguration", false, true, false),
            ("s3:ListAllMyBuckets", false, false, true),
            ("s3:FooBar", false, false, false),
        ] {
            let expected = ActionKinds { objects, buckets, others };
            assert_eq!(ActionKinds::matching(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn actions_of_all_operations_are_known() {
        // AWS has no quotas: no policy can name these operations, and none allows to change one.
        let is_aws = |name: &&str| !name.ends_with("BucketQuota");
        let names = Operation::ALL.iter().map(|operation| operation.name()).filter(is_aws);
        let actions = names.flat_map(|name| [false, true].map(|it| action_of(name, it)));
        let unknown: Vec<_> = actions.filter(|action| !names_an_action(action)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
