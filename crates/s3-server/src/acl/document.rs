//! Lists in the headers and the XML of S3.

use hyper::header::HeaderMap;
use s3s::dto;
use s3s::{S3ErrorCode, S3Result};

use crate::acl::list::{Acl, Grant, Grantee, Permission};
use crate::errors::refuse;

const EVERYONE: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
const SIGNED_IN: &str = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";

/// The headers that give a permission.
const GRANT_HEADERS: [(Permission, &str); 5] = [
    (Permission::Read, "x-amz-grant-read"),
    (Permission::Write, "x-amz-grant-write"),
    (Permission::ReadAcl, "x-amz-grant-read-acp"),
    (Permission::WriteAcl, "x-amz-grant-write-acp"),
    (Permission::FullControl, "x-amz-grant-full-control"),
];

/// The maximum number of grants, as in S3.
const GRANTS_MAX: usize = 100;

/// Returns `true` if a user exists.
pub(crate) type IsUser<'a> = &'a dyn Fn(&str) -> bool;

/// Parses the grants of a list in XML.
///
/// # Errors
/// `MalformedACLError`, `InvalidArgument` for an unknown user, and
/// `UnresolvableGrantByEmailAddress`, because users have no addresses.
pub(crate) fn from_grants(grants: Vec<dto::Grant>, is_user: IsUser<'_>) -> S3Result<Acl> {
    let malformed = || refuse(S3ErrorCode::MalformedACLError, "A grant is malformed");
    let grants = grants.into_iter().map(|grant| {
        let permission = grant.permission.ok_or_else(malformed)?;
        let permission = Permission::parse(permission.as_str()).ok_or_else(malformed)?;
        let dto::Grantee { id, uri, email_address, .. } = grant.grantee.ok_or_else(malformed)?;
        let grantee = match (id, uri, email_address) {
            (Some(id), _, _) => grantee("id", &id, is_user),
            (_, Some(uri), _) => grantee("uri", &uri, is_user),
            (_, _, Some(address)) => grantee("emailAddress", &address, is_user),
            _ => Err(malformed()),
        };
        Ok(Grant { grantee: grantee?, permission })
    });
    checked(grants.collect::<S3Result<Vec<Grant>>>()?)
}

/// Parses the headers `x-amz-grant-PERMISSION`, each with grantees such as `id="…"` or `uri="…"`.
/// `None` if there are none.
///
/// # Errors
/// Like [`from_grants`].
pub(crate) fn from_headers(headers: &HeaderMap, is_user: IsUser<'_>) -> S3Result<Option<Acl>> {
    let mut grants = Vec::new();
    let malformed = || refuse(S3ErrorCode::InvalidArgument, "A grant header is malformed");
    for (permission, name) in GRANT_HEADERS {
        for value in headers.get_all(name) {
            let value = value.to_str().ok().ok_or_else(malformed)?;
            for part in value.split(',') {
                let (kind, name) = part.split_once('=').ok_or_else(malformed)?;
                let grantee = grantee(kind.trim(), name.trim().trim_matches('"'), is_user)?;
                grants.push(Grant { grantee, permission });
            }
        }
    }
    if grants.is_empty() { Ok(None) } else { checked(grants).map(Some) }
}

/// Returns the list of these grants: first those to groups, as in the lists that S3 defines by name.
fn checked(mut grants: Vec<Grant>) -> S3Result<Acl> {
    grants.sort_by_key(|grant| matches!(grant.grantee, Grantee::User(_)));
    if grants.len() > GRANTS_MAX {
        let message = format!("A list has at most {GRANTS_MAX} grants");
        return Err(refuse(S3ErrorCode::MalformedACLError, message));
    }
    Ok(Acl { grants })
}

fn grantee(kind: &str, name: &str, is_user: IsUser<'_>) -> S3Result<Grantee> {
    match (kind, name) {
        ("id", name) if is_user(name) => Ok(Grantee::User(name.to_owned())),
        ("id", _) => Err(refuse(S3ErrorCode::InvalidArgument, format!("Invalid id: {name}"))),
        ("uri", EVERYONE) => Ok(Grantee::Everyone),
        ("uri", SIGNED_IN) => Ok(Grantee::SignedIn),
        ("uri", _) => {
            Err(refuse(S3ErrorCode::InvalidArgument, format!("The group {name} does not exist")))
        }
        ("emailAddress", _) => Err(refuse(
            S3ErrorCode::UnresolvableGrantByEmailAddress,
            "Users have no e-mail addresses: use their IDs",
        )),
        _ => Err(refuse(S3ErrorCode::InvalidArgument, format!("Unknown kind of grantee: {kind}"))),
    }
}

/// Returns the grants of a list for XML.
pub(crate) fn to_grants(acl: &Acl) -> Vec<dto::Grant> {
    acl.grants.iter().map(to_grant).collect()
}

fn to_grant(grant: &Grant) -> dto::Grant {
    let (kind, user, uri) = match &grant.grantee {
        Grantee::User(name) => (dto::Type::CANONICAL_USER, Some(name.clone()), None),
        Grantee::Everyone => (dto::Type::GROUP, None, Some(EVERYONE.to_owned())),
        Grantee::SignedIn => (dto::Type::GROUP, None, Some(SIGNED_IN.to_owned())),
    };
    let grantee = dto::Grantee {
        display_name: user.clone(),
        email_address: None,
        id: user,
        type_: dto::Type::from_static(kind),
        uri,
    };
    let permission = Some(dto::Permission::from_static(grant.permission.name()));
    dto::Grant { grantee: Some(grantee), permission }
}

#[cfg(test)]
mod tests {
    use s3s::S3Error;

    use super::*;
    use crate::acl::canned::canned;

    fn is_user(name: &str) -> bool {
        ["ann", "ben"].contains(&name)
    }

    fn code<T>(result: Result<T, S3Error>) -> String {
        result.err().map(|error| error.code().as_str().to_owned()).unwrap_or_default()
    }

    #[test]
    fn lists_round_trip_through_grants() {
        for name in ["private", "public-read-write", "authenticated-read", "bucket-owner-read"] {
            let acl = canned(name, "ann", "ben").unwrap();
            assert_eq!(from_grants(to_grants(&acl), &is_user).unwrap(), acl, "{name}");
        }
    }

    /// Returns request headers.
    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn headers_grant_permissions() {
        let read = format!("id=\"ann\", uri=\"{EVERYONE}\"");
        let pairs = [("x-amz-grant-read", read.as_str()), ("x-amz-grant-write", "id=ben")];
        let acl = from_headers(&headers(&pairs), &is_user).unwrap().unwrap();
        assert_eq!(acl.grants.len(), 3);
        assert_eq!(acl.grants[0].grantee, Grantee::Everyone);
        assert!(acl.allows(Some("ben"), Permission::Write));
        assert!(acl.allows(None, Permission::Read) && !acl.allows(None, Permission::Write));
        let other = headers(&[("x-amz-acl", "private")]);
        assert_eq!(from_headers(&other, &is_user).unwrap(), None);
        let all = GRANT_HEADERS.map(|(_, name)| (name, "id=ann"));
        assert_eq!(from_headers(&headers(&all), &is_user).unwrap().unwrap().grants.len(), 5);
    }

    #[test]
    fn unknown_grantees_are_refused() {
        for (value, expected) in [
            ("id=carl", "InvalidArgument"),
            ("uri=http://example.org", "InvalidArgument"),
            ("emailAddress=a@example.org", "UnresolvableGrantByEmailAddress"),
            ("ann", "InvalidArgument"),
            ("name=ann", "InvalidArgument"),
            ("", "InvalidArgument"),
        ] {
            let headers = headers(&[("x-amz-grant-read", value)]);
            assert_eq!(code(from_headers(&headers, &is_user)), expected, "{value}");
        }
        let without = dto::Grant { grantee: None, permission: None };
        assert_eq!(code(from_grants(vec![without], &is_user)), "MalformedACLError");
        let many = to_grants(&Acl { grants: vec![Acl::private("ann").grants[0].clone(); 101] });
        assert_eq!(code(from_grants(many, &is_user)), "MalformedACLError");
    }
}
