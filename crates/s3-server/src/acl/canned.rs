//! The canned ACLs of S3 (`x-amz-acl`).

use crate::acl::list::{Acl, Grant, Grantee, Permission};

/// Returns the canned ACL with a name; `None` if the name is unknown. As in S3, groups come before
/// users, and the owner before other users: some clients number the grants.
pub(crate) fn canned(name: &str, owner: &str, bucket_owner: &str) -> Option<Acl> {
    use Grantee::{Everyone, SignedIn};
    use Permission::{FullControl, Read, Write};

    let (groups, bucket_owner_permission) = match name {
        "private" => (vec![], None),
        "public-read" => (vec![(Everyone, Read)], None),
        "public-read-write" => (vec![(Everyone, Read), (Everyone, Write)], None),
        "authenticated-read" => (vec![(SignedIn, Read)], None),
        "bucket-owner-read" => (vec![], Some(Read)),
        "bucket-owner-full-control" => (vec![], Some(FullControl)),
        _ => return None,
    };
    let groups = groups.into_iter().map(|(grantee, permission)| Grant { grantee, permission });
    let mut grants: Vec<Grant> = groups.collect();
    grants.extend(Acl::private(owner).grants);
    if let Some(permission) = bucket_owner_permission.filter(|_| owner != bucket_owner) {
        grants.push(Grant { grantee: Grantee::User(bucket_owner.to_owned()), permission });
    }
    Some(Acl { grants })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::stored::encode;

    #[test]
    fn canned_lists_are_those_of_s3() {
        for (name, text) in [
            ("private", "FULL_CONTROL user ann"),
            ("public-read", "READ everyone\nFULL_CONTROL user ann"),
            ("public-read-write", "READ everyone\nWRITE everyone\nFULL_CONTROL user ann"),
            ("authenticated-read", "READ signed-in\nFULL_CONTROL user ann"),
            ("bucket-owner-read", "FULL_CONTROL user ann\nREAD user ben"),
            ("bucket-owner-full-control", "FULL_CONTROL user ann\nFULL_CONTROL user ben"),
        ] {
            assert_eq!(encode(&canned(name, "ann", "ben").unwrap()), text, "{name}");
        }
        let own = canned("bucket-owner-read", "ann", "ann").unwrap();
        assert_eq!(own, Acl::private("ann"));
        assert_eq!(canned("public", "ann", "ben"), None);
    }
}
