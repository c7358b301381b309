//! The list that a request sets.

use hyper::header::HeaderMap;
use s3s::dto::AccessControlPolicy;
use s3s::{S3ErrorCode, S3Result};

use crate::acl::canned::canned;
use crate::acl::document::{IsUser, from_grants, from_headers};
use crate::acl::list::Acl;
use crate::errors::refuse;

const CANNED: &str = "x-amz-acl";

/// The canned list that gives all permissions to the owner of the bucket.
const BUCKET_OWNER_FULL_CONTROL: &str = "bucket-owner-full-control";

/// The list of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RequestedList {
    /// The request has no list, which means a private one.
    Absent,
    /// A list that S3 defines by name.
    Canned(String),
    Grants {
        acl: Acl,
        /// The owner that the document names, who cannot change.
        owner: Option<String>,
    },
}

impl RequestedList {
    /// Returns the list in the headers of a request.
    ///
    /// # Errors
    /// If a grant is invalid, or if the request has a name and grants.
    pub(crate) fn of_headers(headers: &HeaderMap, is_user: IsUser<'_>) -> S3Result<Self> {
        let name = headers.get(CANNED).filter(|name| !name.is_empty());
        let grants = from_headers(headers, is_user)?;
        Ok(match (name, grants) {
            (None, None) => Self::Absent,
            (None, Some(acl)) => Self::Grants { acl, owner: None },
            (Some(name), None) => Self::Canned(String::from_utf8_lossy(name.as_bytes()).into()),
            (Some(_), Some(_)) => return Err(ambiguous()),
        })
    }

    /// Returns the list in the headers or in the body of a request that replaces a list.
    ///
    /// # Errors
    /// Those of [`Self::of_headers`], and if the request has no list or two.
    pub(crate) fn of_request(
        headers: &HeaderMap,
        document: Option<AccessControlPolicy>,
        is_user: IsUser<'_>,
    ) -> S3Result<Self> {
        match (Self::of_headers(headers, is_user)?, document) {
            (Self::Absent, None) => {
                let message = "The request has no access list: it needs x-amz-acl, x-amz-grant-… \
                               or a document";
                Err(refuse(S3ErrorCode::MissingSecurityHeader, message))
            }
            (Self::Absent, Some(AccessControlPolicy { grants, owner })) => {
                let acl = from_grants(grants.unwrap_or_default(), is_user)?;
                Ok(Self::Grants { acl, owner: owner.and_then(|owner| owner.id) })
            }
            (of_headers, None) => Ok(of_headers),
            (_, Some(_)) => Err(ambiguous()),
        }
    }

    /// Returns `true` for a list that gives all permissions to the owner of the bucket by name.
    pub(crate) fn is_for_bucket_owner(&self) -> bool {
        matches!(self, Self::Canned(name) if name == BUCKET_OWNER_FULL_CONTROL)
    }

    /// Returns the list of a bucket or object with this owner.
    ///
    /// # Errors
    /// If there is no list with this name, or the document names another owner.
    pub(crate) fn resolve(&self, owner: &str, bucket_owner: &str) -> S3Result<Acl> {
        match self {
            Self::Absent => Ok(Acl::private(owner)),
            Self::Canned(name) => canned(name, owner, bucket_owner).ok_or_else(|| {
                let message = format!("{CANNED}: {name} is not supported");
                refuse(S3ErrorCode::InvalidArgument, message)
            }),
            Self::Grants { owner: Some(named), .. } if named != owner => {
                let message = format!("The owner {owner} cannot be replaced by {named}");
                Err(refuse(S3ErrorCode::AccessDenied, message))
            }
            Self::Grants { acl, .. } => Ok(acl.clone()),
        }
    }
}

fn ambiguous() -> s3s::S3Error {
    let message = "A request can have an x-amz-acl, or x-amz-grant-… headers, or a document: only \
                   one of these";
    refuse(S3ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use s3s::dto::Owner;

    use super::*;
    use crate::acl::document::to_grants;

    fn requested(
        pairs: &[(&'static str, &'static str)],
        document: Option<AccessControlPolicy>,
    ) -> Result<RequestedList, String> {
        let pairs = pairs.iter();
        let headers =
            pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        RequestedList::of_request(&headers, document, &|name| name == "ann")
            .map_err(|error| error.code().as_str().to_owned())
    }

    fn document(owner: &str) -> AccessControlPolicy {
        let owner = Owner { id: Some(owner.to_owned()), display_name: None };
        AccessControlPolicy { grants: Some(to_grants(&Acl::private("ann"))), owner: Some(owner) }
    }

    #[test]
    fn request_has_one_list() {
        let code = |result: Result<RequestedList, String>| result.err().unwrap_or_default();
        let (named, granted) = (("x-amz-acl", "public-read"), ("x-amz-grant-read", "id=ann"));
        assert_eq!(requested(&[named], None), Ok(RequestedList::Canned("public-read".to_owned())));
        assert!(requested(&[granted], None).is_ok());
        assert!(requested(&[], Some(document("ann"))).is_ok());
        assert_eq!(code(requested(&[], None)), "MissingSecurityHeader");
        assert_eq!(code(requested(&[named, granted], None)), "InvalidRequest");
        assert_eq!(code(requested(&[named], Some(document("ann")))), "InvalidRequest");
        assert_eq!(code(requested(&[granted], Some(document("ann")))), "InvalidRequest");
        assert_eq!(code(requested(&[("x-amz-grant-read", "id=ben")], None)), "InvalidArgument");
    }

    #[test]
    fn list_depends_on_the_owner() {
        let code = |list: RequestedList| {
            let refused = list.resolve("ann", "ben").err();
            refused.map(|error| error.code().as_str().to_owned()).unwrap_or_default()
        };
        assert_eq!(RequestedList::Absent.resolve("ann", "ben").unwrap(), Acl::private("ann"));
        let for_owner = RequestedList::Canned(BUCKET_OWNER_FULL_CONTROL.to_owned());
        assert!(for_owner.is_for_bucket_owner());
        assert_eq!(for_owner.resolve("ann", "ben").unwrap().grants.len(), 2);
        assert_eq!(code(RequestedList::Canned("public".to_owned())), "InvalidArgument");
        assert_eq!(code(requested(&[], Some(document("ben"))).unwrap()), "AccessDenied");
        assert_eq!(code(requested(&[], Some(document("ann"))).unwrap()), "");
    }
}
