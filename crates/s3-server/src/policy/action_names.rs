//! The names of the actions of S3 in AWS, also of those that this server does not implement: policies
//! that name them are valid.

use crate::pattern;

const NAMES: &str = "
    AbortMultipartUpload AssociateAccessGrantsIdentityCenter BypassGovernanceRetention
    CreateAccessGrant CreateAccessGrantsInstance CreateAccessGrantsLocation CreateAccessPoint
    CreateAccessPointForObjectLambda CreateBucket CreateBucketMetadataTableConfiguration CreateJob
    CreateMultiRegionAccessPoint CreateStorageLensGroup
    DeleteAccessGrant DeleteAccessGrantsInstance DeleteAccessGrantsInstanceResourcePolicy
    DeleteAccessGrantsLocation DeleteAccessPoint DeleteAccessPointForObjectLambda
    DeleteAccessPointPolicy DeleteAccessPointPolicyForObjectLambda DeleteAccessPointScope
    DeleteBucket DeleteBucketMetadataTableConfiguration DeleteBucketPolicy DeleteBucketWebsite
    DeleteJobTagging DeleteMultiRegionAccessPoint DeleteObject DeleteObjectTagging
    DeleteObjectVersion DeleteObjectVersionTagging DeleteStorageLensConfiguration
    DeleteStorageLensConfigurationTagging DeleteStorageLensGroup DescribeJob
    DescribeMultiRegionAccessPointOperation DissociateAccessGrantsIdentityCenter
    GetAccelerateConfiguration GetAccessGrant GetAccessGrantsInstance
    GetAccessGrantsInstanceForPrefix GetAccessGrantsInstanceResourcePolicy GetAccessGrantsLocation
    GetAccessPoint GetAccessPointConfigurationForObjectLambda GetAccessPointForObjectLambda
    GetAccessPointPolicy GetAccessPointPolicyForObjectLambda GetAccessPointPolicyStatus
    GetAccessPointPolicyStatusForObjectLambda GetAccessPointScope GetAccountPublicAccessBlock
    GetAnalyticsConfiguration GetBucketAbac GetBucketAcl GetBucketCORS GetBucketLocation
    GetBucketLogging GetBucketMetadataTableConfiguration GetBucketNotification
    GetBucketObjectLockConfiguration GetBucketOwnershipControls GetBucketPolicy
    GetBucketPolicyStatus GetBucketPublicAccessBlock GetBucketRequestPayment GetBucketTagging
    GetBucketVersioning GetBucketWebsite GetDataAccess GetEncryptionConfiguration
    GetIntelligentTieringConfiguration GetInventoryConfiguration GetJobTagging
    GetLifecycleConfiguration GetMetricsConfiguration GetMultiRegionAccessPoint
    GetMultiRegionAccessPointPolicy GetMultiRegionAccessPointPolicyStatus
    GetMultiRegionAccessPointRoutes GetObject GetObjectAcl GetObjectAttributes GetObjectLegalHold
    GetObjectRetention GetObjectTagging GetObjectTorrent GetObjectVersion GetObjectVersionAcl
    GetObjectVersionAttributes GetObjectVersionForReplication GetObjectVersionTagging
    GetObjectVersionTorrent GetReplicationConfiguration GetStorageLensConfiguration
    GetStorageLensConfigurationTagging GetStorageLensDashboard GetStorageLensGroup
    InitiateReplication
    ListAccessGrants ListAccessGrantsInstances ListAccessGrantsLocations ListAccessPoints
    ListAccessPointsForDirectoryBuckets ListAccessPointsForObjectLambda ListAllMyBuckets ListBucket
    ListBucketMultipartUploads ListBucketVersions ListCallerAccessGrants ListJobs
    ListMultiRegionAccessPoints ListMultipartUploadParts ListStorageLensConfigurations
    ListStorageLensGroups ListTagsForResource
    ObjectOwnerOverrideToBucketOwner PauseReplication
    PutAccelerateConfiguration PutAccessGrantsInstanceResourcePolicy
    PutAccessPointConfigurationForObjectLambda PutAccessPointPolicy
    PutAccessPointPolicyForObjectLambda PutAccessPointPublicAccessBlock PutAccessPointScope
    PutAccountPublicAccessBlock PutAnalyticsConfiguration PutBucketAbac PutBucketAcl PutBucketCORS
    PutBucketLogging PutBucketNotification PutBucketObjectLockConfiguration
    PutBucketOwnershipControls PutBucketPolicy PutBucketPublicAccessBlock PutBucketRequestPayment
    PutBucketTagging PutBucketVersioning PutBucketWebsite PutEncryptionConfiguration
    PutIntelligentTieringConfiguration PutInventoryConfiguration PutJobTagging
    PutLifecycleConfiguration PutMetricsConfiguration PutMultiRegionAccessPointPolicy PutObject
    PutObjectAcl PutObjectLegalHold PutObjectRetention PutObjectTagging PutObjectVersionAcl
    PutObjectVersionTagging PutReplicationConfiguration PutStorageLensConfiguration
    PutStorageLensConfigurationTagging
    ReplicateDelete ReplicateObject ReplicateTags RestoreObject SubmitMultiRegionAccessPointRoutes
    TagResource UntagResource
    UpdateAccessGrantsLocation UpdateBucketMetadataInventoryTableConfiguration
    UpdateBucketMetadataJournalTableConfiguration UpdateJobPriority UpdateJobStatus
    UpdateObjectEncryption UpdateStorageLensGroup";

/// Returns `true` if a pattern of a policy, such as `s3:Get*`, matches the name of an action.
pub(super) fn names_an_action(pattern: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    let names = NAMES.split_ascii_whitespace().map(|name| format!("s3:{name}"));
    names.map(|name| name.to_ascii_lowercase()).any(|name| pattern::matches(&pattern, &name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::action::action_of;

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
    fn actions_of_all_operations_are_known() {
        let table = include_str!("../operations.rs").split_once("operations! {").unwrap().1;
        let names = table.lines().filter_map(|line| line.split_once(": ")?.1.split_once("Input"));
        let names: Vec<_> = names.map(|(name, _)| name).collect();
        assert!(names.len() > 40, "{names:?}");
        let actions = names.iter().flat_map(|name| [false, true].map(|it| action_of(name, it)));
        let unknown: Vec<_> = actions.filter(|action| !names_an_action(action)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
