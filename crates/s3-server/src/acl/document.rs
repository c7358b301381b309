//! ACLs in S3's headers and XML.

use crate::acl::list::{Acl, Grant, Grantee, Permission};
use crate::acl::owner::owner_named;
use crate::errors::{S3Error, S3ErrorCode, S3Result, invalid_argument, refuse};
use crate::request::fields::Fields;
use crate::xml::reader::{Element, malformed};
use crate::xml::writer::Xml;

const ROOT: &str = "AccessControlPolicy";

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

/// The maximum number of grants in an ACL, as in S3.
const GRANTS_MAX: usize = 100;

/// A function that returns `true` if a user exists.
pub(crate) type IsUser<'a> = &'a dyn Fn(&str) -> bool;

/// The form in which a request names a grantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GranteeKind {
    User,
    Group,
    EMail,
}

impl GranteeKind {
    const ALL: [Self; 3] = [Self::User, Self::Group, Self::EMail];

    /// Returns the kind's key in a header, such as `id` in `id="ann"`.
    fn key(self) -> &'static str {
        match self {
            Self::User => "id",
            Self::Group => "uri",
            Self::EMail => "emailAddress",
        }
    }

    /// Returns the `xsi:type` of a `<Grantee>`.
    fn xml_type(self) -> &'static str {
        match self {
            Self::User => "CanonicalUser",
            Self::Group => "Group",
            Self::EMail => "AmazonCustomerByEmail",
        }
    }

    /// Returns the element that contains the grantee's name.
    fn element(self) -> &'static str {
        match self {
            Self::User => "ID",
            Self::Group => "URI",
            Self::EMail => "EmailAddress",
        }
    }

    /// Returns the grantee with this name.
    fn grantee(self, name: &str, is_user: IsUser<'_>) -> S3Result<Grantee> {
        match (self, name) {
            (Self::User, name) if is_user(name) => Ok(Grantee::User(name.to_owned())),
            (Self::User, _) => Err(invalid_id(name)),
            (Self::Group, EVERYONE) => Ok(Grantee::Everyone),
            (Self::Group, SIGNED_IN) => Ok(Grantee::SignedIn),
            (Self::Group, _) => {
                let message = format!("Invalid group uri: there is no group {name}");
                Err(invalid_argument("uri", name, message))
            }
            (Self::EMail, _) => Err(refuse(
                S3ErrorCode::UnresolvableGrantByEmailAddress,
                "Users have no e-mail addresses: use their IDs",
            )),
        }
    }
}

/// Returns the error for a user that does not exist.
pub(super) fn invalid_id(name: &str) -> S3Error {
    invalid_argument("CanonicalUser/ID", name, format!("Invalid id: {name}"))
}

/// The ACL in a request body. Its users need not exist.
#[derive(Debug)]
pub(crate) struct AccessControlPolicy {
    /// The owner's ID.
    pub(super) owner: String,
    grants: Vec<WrittenGrant>,
}

#[derive(Debug)]
struct WrittenGrant {
    kind: GranteeKind,
    name: String,
    permission: Permission,
}

impl AccessControlPolicy {
    /// Parses a request body; `None` if it is empty.
    ///
    /// # Errors
    /// Fails like [`Self::parse`].
    pub(crate) fn if_given(document: &[u8]) -> S3Result<Option<Self>> {
        (!document.is_empty()).then(|| Self::parse(document)).transpose()
    }

    /// Parses a request body.
    ///
    /// # Errors
    /// `MalformedXML` if it is not well-formed or has another root element, otherwise
    /// `MalformedACLError`.
    pub(super) fn parse(document: &[u8]) -> S3Result<Self> {
        let root = Element::document(document, ROOT)?;
        Self::read(&root).map_err(|error| refuse(S3ErrorCode::MalformedACLError, error.message()))
    }

    fn read(root: &Element) -> S3Result<Self> {
        root.only(&["Owner", "AccessControlList"])?;
        let owner = root.required("Owner")?.only(&["ID", "DisplayName"])?;
        let owner = named(owner.required("ID")?)?;
        let list = root.required("AccessControlList")?.only(&["Grant"])?;
        let grants = list.all("Grant").map(WrittenGrant::read).collect::<S3Result<Vec<_>>>()?;
        if grants.len() > GRANTS_MAX {
            return Err(too_many_grants());
        }
        Ok(Self { owner, grants })
    }

    /// Returns the ACL, after a check that its grantees exist.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown user or group, and `UnresolvableGrantByEmailAddress`,
    /// because users have no email addresses.
    pub(super) fn list(&self, is_user: IsUser<'_>) -> S3Result<Acl> {
        let grant = |WrittenGrant { kind, name, permission }: &WrittenGrant| {
            Ok(Grant { grantee: kind.grantee(name, is_user)?, permission: *permission })
        };
        checked(self.grants.iter().map(grant).collect::<S3Result<Vec<_>>>()?)
    }
}

impl WrittenGrant {
    fn read(grant: &Element) -> S3Result<Self> {
        grant.only(&["Grantee", "Permission"])?;
        let permission = grant.required("Permission")?.word()?;
        let permission = Permission::parse(permission)
            .ok_or_else(|| malformed(&format!("there is no Permission {permission:?}")))?;
        let grantee = grant.required("Grantee")?;
        let xml_type = grantee.attribute("type").unwrap_or_default();
        let kind = GranteeKind::ALL.into_iter().find(|kind| kind.xml_type() == xml_type);
        let kind = kind.ok_or_else(|| malformed(&format!("there is no xsi:type {xml_type:?}")))?;
        grantee.only(&[kind.element(), "DisplayName"])?;
        let name = named(grantee.required(kind.element())?)?;
        Ok(Self { kind, name, permission })
    }
}

/// Returns the name in an element. Fails if it is empty.
fn named(element: &Element) -> S3Result<String> {
    match element.word()? {
        "" => Err(malformed(&format!("<{}> is empty", element.name))),
        name => Ok(name.to_owned()),
    }
}

/// Returns `true` if a request has a header that grants a permission.
pub(super) fn has_grants(fields: &Fields) -> bool {
    GRANT_HEADERS.iter().any(|(_, name)| fields.has(name))
}

/// Parses the headers `x-amz-grant-PERMISSION`, each with grantees such as `id="…"` or `uri="…"`.
/// `None` if there are none.
///
/// # Errors
/// Fails like [`AccessControlPolicy::list`], and with `InvalidArgument` for a malformed grantee.
pub(super) fn in_fields(fields: &Fields, is_user: IsUser<'_>) -> S3Result<Option<Acl>> {
    if !has_grants(fields) {
        return Ok(None);
    }
    let mut grants = Vec::new();
    for (permission, header) in GRANT_HEADERS {
        for value in fields.all(header) {
            let value = String::from_utf8_lossy(value);
            for part in value.split(',') {
                let grantee = grantee(part.trim(), is_user).ok_or_else(|| {
                    invalid_argument(header, &value, "Argument format not recognized")
                })?;
                grants.push(Grant { grantee: grantee?, permission });
            }
        }
    }
    checked(grants).map(Some)
}

/// Parses a grantee such as `id="ann"`; `None` if it is malformed.
fn grantee(text: &str, is_user: IsUser<'_>) -> Option<S3Result<Grantee>> {
    let (key, name) = text.split_once('=')?;
    let is_meant = |kind: &GranteeKind| kind.key().eq_ignore_ascii_case(key.trim());
    let kind = GranteeKind::ALL.into_iter().find(is_meant)?;
    let name = name.trim();
    let bare = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    Some(kind.grantee(bare, is_user))
}

/// Returns the ACL with these grants. Grants to groups come first, as in canned ACLs. Fails if
/// there are too many.
fn checked(mut grants: Vec<Grant>) -> S3Result<Acl> {
    grants.sort_by_key(|grant| matches!(grant.grantee, Grantee::User(_)));
    if grants.len() > GRANTS_MAX {
        return Err(too_many_grants());
    }
    Ok(Acl { grants })
}

fn too_many_grants() -> S3Error {
    let message = format!("A list has at most {GRANTS_MAX} grants");
    refuse(S3ErrorCode::MalformedACLError, message)
}

/// Returns the XML document for the ACL of a bucket or object that `owner` owns.
pub(crate) fn text(owner: &str, acl: &Acl) -> String {
    Xml::document(ROOT, |xml| {
        owner_named(Some(owner)).write(xml, "Owner");
        xml.group("AccessControlList", |xml| {
            acl.grants.iter().for_each(|grant| write_grant(xml, grant));
        });
    })
}

fn write_grant(xml: &mut Xml, grant: &Grant) {
    let (kind, name) = match &grant.grantee {
        Grantee::User(name) => (GranteeKind::User, name.as_str()),
        Grantee::Everyone => (GranteeKind::Group, EVERYONE),
        Grantee::SignedIn => (GranteeKind::Group, SIGNED_IN),
    };
    let attributes = format!(
        "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"{}\"",
        kind.xml_type()
    );
    xml.group("Grant", |xml| {
        xml.group_with("Grantee", &attributes, |xml| {
            xml.element(kind.element(), name);
            if kind == GranteeKind::User {
                xml.element("DisplayName", name);
            }
        });
        xml.element("Permission", grant.permission.name());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::canned::canned;

    fn is_user(name: &str) -> bool {
        ["ann", "ben"].contains(&name)
    }

    fn code<T>(result: S3Result<T>) -> &'static str {
        result.err().map_or("", |error| error.code().as_str())
    }

    fn parse(content: &str) -> S3Result<Acl> {
        let document = format!("<{ROOT}>{content}</{ROOT}>");
        AccessControlPolicy::parse(document.as_bytes())?.list(&is_user)
    }

    fn grant(xml_type: &str, grantee: &str, permission: &str) -> String {
        format!(
            "<Owner><ID>ann</ID></Owner><AccessControlList><Grant>\
             <Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" \
             xsi:type=\"{xml_type}\">{grantee}</Grantee><Permission>{permission}</Permission>\
             </Grant></AccessControlList>"
        )
    }

    #[test]
    fn lists_round_trip_through_documents() {
        for name in ["private", "public-read-write", "authenticated-read", "bucket-owner-read"] {
            let acl = canned(name, "ann", "ben").unwrap();
            let policy = AccessControlPolicy::parse(text("ann", &acl).as_bytes()).unwrap();
            assert_eq!(policy.owner, "ann");
            assert_eq!(policy.list(&is_user).unwrap(), acl, "{name}");
        }
    }

    #[test]
    fn documents_are_read_with_white_space() {
        let content = "\n<Owner>\n <ID> ann\n</ID>\n <DisplayName/>\n</Owner>\n<AccessControlList>\n\
            <Grant>\n<Grantee xmlns:x=\"http://www.w3.org/2001/XMLSchema-instance\" \
            x:type=\"CanonicalUser\">\n<ID>\n ben </ID>\n</Grantee>\n<Permission> READ\n\
            </Permission>\n</Grant>\n</AccessControlList>\n";
        let acl = parse(content).unwrap();
        assert_eq!(acl.grants.len(), 1);
        assert!(acl.allows(Some("ben"), Permission::Read));
    }

    #[test]
    fn malformed_lists_are_refused() {
        let (owner, list) = ("<Owner><ID>ann</ID></Owner>", "<AccessControlList/>");
        assert_eq!(code(parse(&format!("{owner}{list}"))), "");
        let ann = "<ID>ann</ID>";
        for content in [
            list.to_owned(),
            owner.to_owned(),
            format!("<Owner/>{list}"),
            format!("<Owner><ID></ID></Owner>{list}"),
            format!("{owner}{list}<Other/>"),
            grant("CanonicalUser", ann, "ALL"),
            grant("CanonicalUser", "", "READ"),
            grant("CanonicalUser", "<ID/>", "READ"),
            grant("CanonicalUser", "<URI>ann</URI>", "READ"),
            grant("Person", ann, "READ"),
            grant("", ann, "READ"),
            grant("Group", ann, "READ"),
            grant("CanonicalUser", ann, "READ").replace("<Permission>READ</Permission>", ""),
        ] {
            assert_eq!(code(parse(&content)), "MalformedACLError", "{content}");
        }
        assert_eq!(code(AccessControlPolicy::parse(b"<AccessControl")), "MalformedXML");
        let one = Acl::private("ann").grants.remove(0);
        let many = text("ann", &Acl { grants: vec![one; 101] });
        assert_eq!(code(AccessControlPolicy::parse(many.as_bytes())), "MalformedACLError");
    }

    #[test]
    fn headers_grant_permissions() {
        let of = |fields: &[(&str, &str)]| in_fields(&fields.iter().copied().collect(), &is_user);
        let read = format!("id=\"ann\", uri=\"{EVERYONE}\"");
        let acl =
            of(&[("x-amz-grant-read", &read), ("x-amz-grant-write", "ID=ben")]).unwrap().unwrap();
        assert_eq!(acl.grants.len(), 3);
        assert_eq!(acl.grants[0].grantee, Grantee::Everyone);
        assert!(acl.allows(Some("ben"), Permission::Write));
        assert!(acl.allows(None, Permission::Read) && !acl.allows(None, Permission::Write));
        assert_eq!(of(&[("x-amz-acl", "private")]).unwrap(), None);
        let all = GRANT_HEADERS.map(|(_, name)| (name, "id=ann"));
        assert_eq!(of(&all).unwrap().unwrap().grants.len(), 5);
        let twice = [("x-amz-grant-read", "id=ann"), ("x-amz-grant-read", "id=ben")];
        assert_eq!(of(&twice).unwrap().unwrap().grants.len(), 2);
        let many = vec!["id=ann"; 101].join(",");
        assert_eq!(code(of(&[("x-amz-grant-read", &many)])), "MalformedACLError");
    }

    #[test]
    fn unknown_grantees_are_refused() {
        for (value, expected) in [
            ("id=carl", "InvalidArgument"),
            ("uri=http://example.org", "InvalidArgument"),
            ("emailAddress=a@example.org", "UnresolvableGrantByEmailAddress"),
            ("ann", "InvalidArgument"),
            ("name=ann", "InvalidArgument"),
            ("id=ann,", "InvalidArgument"),
            ("", "InvalidArgument"),
        ] {
            let fields = [("x-amz-grant-read", value)].into_iter().collect();
            assert_eq!(code(in_fields(&fields, &is_user)), expected, "{value}");
        }
        for (xml_type, grantee, expected) in [
            ("CanonicalUser", "<ID>carl</ID>", "InvalidArgument"),
            ("Group", "<URI>http://example.org</URI>", "InvalidArgument"),
            (
                "AmazonCustomerByEmail",
                "<EmailAddress>a@example.org</EmailAddress>",
                "UnresolvableGrantByEmailAddress",
            ),
        ] {
            assert_eq!(code(parse(&grant(xml_type, grantee, "READ"))), expected, "{grantee}");
        }
    }
}
