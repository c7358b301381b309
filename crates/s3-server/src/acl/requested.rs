//! The ACL that a request sets.

use crate::acl::canned::canned;
use crate::acl::document::{AccessControlPolicy, IsUser, has_grants, in_fields, invalid_id};
use crate::acl::list::Acl;
use crate::errors::{S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::fields::Fields;

const CANNED: &str = "x-amz-acl";

/// The canned ACL that gives the bucket owner all permissions.
const BUCKET_OWNER_FULL_CONTROL: &str = "bucket-owner-full-control";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestedAcl {
    /// The request has no ACL, which means a private one.
    Absent,
    /// The name of a canned ACL.
    Canned(String),
    Grants {
        acl: Acl,
        /// The owner in the document, which cannot be changed.
        owner: Option<NamedOwner>,
    },
}

/// The owner that a document names.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NamedOwner {
    id: String,
    /// `true` if there is such a user.
    is_user: bool,
}

impl RequestedAcl {
    /// Returns the ACL in a request's headers.
    ///
    /// # Errors
    /// If a grant is invalid, or if the request has a canned ACL and grants.
    pub(crate) fn from_fields(fields: &Fields, is_user: IsUser<'_>) -> S3Result<Self> {
        let name = canned_name(fields);
        if name.is_some() && has_grants(fields) {
            let message = "Specifying both Canned ACLs and Header Grants is not allowed";
            return Err(refuse(S3ErrorCode::InvalidRequest, message));
        }
        Ok(match (name, in_fields(fields, is_user)?) {
            (Some(name), _) => Self::Canned(name),
            (None, Some(acl)) => Self::Grants { acl, owner: None },
            (None, None) => Self::Absent,
        })
    }

    /// Returns the ACL in the headers or in the body of a request that replaces an ACL.
    ///
    /// # Errors
    /// Fails like [`Self::from_fields`], and if the request does not have exactly one ACL.
    pub(crate) fn from_request(
        fields: &Fields,
        document: Option<AccessControlPolicy>,
        is_user: IsUser<'_>,
    ) -> S3Result<Self> {
        let Some(document) = document else {
            return match Self::from_fields(fields, is_user)? {
                Self::Absent => {
                    let message = "Your request was missing a required header: it needs \
                                   x-amz-acl, x-amz-grant-… or a document";
                    Err(refuse(S3ErrorCode::MissingSecurityHeader, message))
                }
                requested => Ok(requested),
            };
        };
        if canned_name(fields).is_some() || has_grants(fields) {
            let message = "This request does not support content: it has a list in its headers";
            return Err(refuse(S3ErrorCode::UnexpectedContent, message));
        }
        let acl = document.list(is_user)?;
        let owner = NamedOwner { is_user: is_user(&document.owner), id: document.owner };
        Ok(Self::Grants { acl, owner: Some(owner) })
    }

    /// Returns `true` for the canned ACL that gives the bucket owner all permissions.
    pub(crate) fn is_for_bucket_owner(&self) -> bool {
        matches!(self, Self::Canned(name) if name == BUCKET_OWNER_FULL_CONTROL)
    }

    /// Returns the ACL for a bucket or object with this owner.
    ///
    /// # Errors
    /// If no canned ACL has this name, or the document names another owner.
    pub(crate) fn resolve(&self, owner: &str, bucket_owner: &str) -> S3Result<Acl> {
        match self {
            Self::Absent => Ok(Acl::private(owner)),
            Self::Canned(name) => canned(name, owner, bucket_owner).ok_or_else(|| {
                invalid_argument(CANNED, name, format!("{CANNED}: {name} is not supported"))
            }),
            Self::Grants { owner: Some(named), .. } if named.id != owner => {
                if !named.is_user {
                    return Err(invalid_id(&named.id));
                }
                let message = format!("The owner {owner} cannot be replaced by {}", named.id);
                Err(refuse(S3ErrorCode::AccessDenied, message))
            }
            Self::Grants { acl, .. } => Ok(acl.clone()),
        }
    }
}

/// Returns the canned ACL's name; as in S3, an empty header means none.
fn canned_name(fields: &Fields) -> Option<String> {
    let name = fields.first(CANNED).filter(|name| !name.is_empty())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::document::text;

    fn requested(
        fields: &[(&str, &str)],
        document: Option<AccessControlPolicy>,
    ) -> S3Result<RequestedAcl> {
        let is_user = |name: &str| ["ann", "ben"].contains(&name);
        RequestedAcl::from_request(&fields.iter().copied().collect(), document, &is_user)
    }

    fn document(owner: &str) -> Option<AccessControlPolicy> {
        let text = text(owner, &Acl::private("ann"));
        Some(AccessControlPolicy::parse(text.as_bytes()).unwrap())
    }

    fn code<T>(result: S3Result<T>) -> &'static str {
        result.err().map_or("", |error| error.code().as_str())
    }

    #[test]
    fn request_has_one_list() {
        let (named, granted) = (("x-amz-acl", "public-read"), ("x-amz-grant-read", "id=ann"));
        let expected = RequestedAcl::Canned("public-read".to_owned());
        assert_eq!(requested(&[named], None).unwrap(), expected);
        assert!(requested(&[granted], None).is_ok());
        assert!(requested(&[], document("ann")).is_ok());
        assert!(requested(&[("x-amz-acl", "")], document("ann")).is_ok());
        // Whether the grants are valid does not matter.
        let malformed = ("x-amz-grant-full-control", "ann");
        for (fields, document, expected) in [
            (&[][..], None, "MissingSecurityHeader"),
            (&[("x-amz-acl", "")], None, "MissingSecurityHeader"),
            (&[named, granted], None, "InvalidRequest"),
            (&[named, malformed], None, "InvalidRequest"),
            (&[named], document("ann"), "UnexpectedContent"),
            (&[granted], document("ann"), "UnexpectedContent"),
            (&[malformed], document("ann"), "UnexpectedContent"),
            (&[malformed], None, "InvalidArgument"),
            (&[("x-amz-grant-read", "id=carl")], None, "InvalidArgument"),
        ] {
            assert_eq!(code(requested(fields, document)), expected, "{fields:?}");
        }
    }

    #[test]
    fn list_depends_on_the_owner() {
        let resolved = |list: &RequestedAcl| code(list.resolve("ann", "ben"));
        assert_eq!(RequestedAcl::Absent.resolve("ann", "ben").unwrap(), Acl::private("ann"));
        let for_owner = RequestedAcl::Canned(BUCKET_OWNER_FULL_CONTROL.to_owned());
        assert!(for_owner.is_for_bucket_owner());
        assert_eq!(for_owner.resolve("ann", "ben").unwrap().grants.len(), 2);
        assert_eq!(resolved(&RequestedAcl::Canned("public".to_owned())), "InvalidArgument");
        for (owner, expected) in [("ann", ""), ("ben", "AccessDenied"), ("carl", "InvalidArgument")]
        {
            assert_eq!(resolved(&requested(&[], document(owner)).unwrap()), expected, "{owner}");
        }
    }
}
