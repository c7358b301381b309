//! The text of an ACL in bucket settings and in object attributes: a line for each grant, with the
//! permission and the grantee.

use crate::acl::list::{Acl, Grant, Grantee, Permission};

const EVERYONE: &str = "everyone";
const SIGNED_IN: &str = "signed-in";
const USER: &str = "user ";

/// Returns an ACL's text.
pub(crate) fn encode(acl: &Acl) -> String {
    let lines = acl.grants.iter().map(|grant| {
        let permission = grant.permission.name();
        match &grant.grantee {
            Grantee::User(name) => format!("{permission} {USER}{name}"),
            Grantee::Everyone => format!("{permission} {EVERYONE}"),
            Grantee::SignedIn => format!("{permission} {SIGNED_IN}"),
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Parses an ACL's text; `None` if it is malformed.
pub(crate) fn decode(text: &str) -> Option<Acl> {
    let grants = text.lines().map(|line| {
        let (permission, grantee) = line.split_once(' ')?;
        let grantee = match grantee {
            EVERYONE => Grantee::Everyone,
            SIGNED_IN => Grantee::SignedIn,
            _ => Grantee::User(grantee.strip_prefix(USER)?.to_owned()),
        };
        Some(Grant { grantee, permission: Permission::parse(permission)? })
    });
    Some(Acl { grants: grants.collect::<Option<_>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_round_trip() {
        let grantees = ["ann", "a b", "everyone"].map(|name| Grantee::User(name.to_owned()));
        let grantees = grantees.into_iter().chain([Grantee::Everyone, Grantee::SignedIn]);
        let grants = grantees.flat_map(|grantee| {
            Permission::ALL.map(|(permission, _)| Grant { grantee: grantee.clone(), permission })
        });
        let acl = Acl { grants: grants.collect() };
        assert_eq!(decode(&encode(&acl)), Some(acl));
        assert_eq!(decode(&encode(&Acl::default())), Some(Acl::default()));
    }

    #[test]
    fn malformed_text_is_no_list() {
        for text in ["READ", "READ none", "READ_ALL everyone", "READ everyone\n\nREAD everyone"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
