//! The lists that S3 defines by name (`x-amz-acl`).

use crate::acl::list::{Acl, Grant, Grantee, Permission};

/// Returns the list with a name; `None` if the name is unknown. The owner comes last, as clients
/// that number the grants expect.
pub(crate) fn canned(name: &str, owner: &str, bucket_owner: &str) -> Option<Acl> {
    use Grantee::{Everyone, SignedIn};
    use Permission::{FullControl, Read, Write};

    let of_bucket_owner = || Grantee::User(bucket_owner.to_owned());
    let given = match name {
        "private" => vec![],
        "public-read" => vec![(Everyone, Read)],
        "public-read-write" => vec![(Everyone, Read), (Everyone, Write)],
        "authenticated-read" => vec![(SignedIn, Read)],
        "bucket-owner-read" => vec![(of_bucket_owner(), Read)],
        "bucket-owner-full-control" => vec![(of_bucket_owner(), FullControl)],
        _ => return None,
    };
    let is_others =
        |(grantee, _): &(Grantee, Permission)| *grantee != Grantee::User(owner.to_owned());
    let given = given.into_iter().filter(is_others);
    let mut grants: Vec<Grant> =
        given.map(|(grantee, permission)| Grant { grantee, permission }).collect();
    grants.extend(Acl::private(owner).grants);
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
            ("bucket-owner-read", "READ user ben\nFULL_CONTROL user ann"),
            ("bucket-owner-full-control", "FULL_CONTROL user ben\nFULL_CONTROL user ann"),
        ] {
            assert_eq!(encode(&canned(name, "ann", "ben").unwrap()), text, "{name}");
        }
        let own = canned("bucket-owner-read", "ann", "ann").unwrap();
        assert_eq!(own, Acl::private("ann"));
        assert_eq!(canned("public", "ann", "ben"), None);
    }
}
