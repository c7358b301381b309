//! The model of an ACL.

/// The grants for a bucket or an object, in addition to the owner's rights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Acl {
    pub(crate) grants: Vec<Grant>,
}

/// A permission that a user or a group has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) grantee: Grantee,
    pub(crate) permission: Permission,
}

impl Grant {
    fn is_public(&self) -> bool {
        !matches!(self.grantee, Grantee::User(_))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Grantee {
    User(String),
    /// All clients, including clients that do not sign their requests.
    Everyone,
    /// All clients that sign their requests.
    SignedIn,
}

/// A permission. For a bucket, `Read` means listing objects, and `Write` creating, replacing and
/// deleting them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    Read,
    Write,
    ReadAcl,
    WriteAcl,
    FullControl,
}

impl Permission {
    /// All permissions and their S3 names.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Read, "READ"),
        (Self::Write, "WRITE"),
        (Self::ReadAcl, "READ_ACP"),
        (Self::WriteAcl, "WRITE_ACP"),
        (Self::FullControl, "FULL_CONTROL"),
    ];

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, known)| *known == name).map(|(permission, _)| permission)
    }

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(one, _)| *one == self).map_or("", |(_, name)| name)
    }
}

impl Acl {
    /// Returns the private ACL, the default for new objects and buckets: all permissions for the
    /// owner.
    pub(crate) fn private(owner: &str) -> Self {
        let grantee = Grantee::User(owner.to_owned());
        Self { grants: vec![Grant { grantee, permission: Permission::FullControl }] }
    }

    /// Returns `true` if the ACL gives a permission to a user, or to clients that do not sign their
    /// requests (`None`).
    pub(crate) fn allows(&self, user: Option<&str>, permission: Permission) -> bool {
        self.grants.iter().any(|grant| {
            let is_meant = match &grant.grantee {
                Grantee::User(name) => user == Some(name),
                Grantee::Everyone => true,
                Grantee::SignedIn => user.is_some(),
            };
            is_meant
                && (grant.permission == permission || grant.permission == Permission::FullControl)
        })
    }

    /// Returns `true` if the ACL gives a permission to a group.
    pub(crate) fn is_public(&self) -> bool {
        self.grants.iter().any(Grant::is_public)
    }

    /// Returns the ACL without the grants to groups.
    pub(crate) fn without_groups(&self) -> Self {
        let grants = self.grants.iter().filter(|grant| !grant.is_public());
        Self { grants: grants.cloned().collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(grants: &[(Grantee, Permission)]) -> Acl {
        let grants = grants.iter().cloned();
        Acl { grants: grants.map(|(grantee, permission)| Grant { grantee, permission }).collect() }
    }

    #[test]
    fn permission_is_given_to_users_and_groups() {
        let ann = || Grantee::User("ann".to_owned());
        let (read, write) = (Permission::Read, Permission::Write);
        for (grants, user, permission, expected) in [
            (vec![(ann(), read)], Some("ann"), read, true),
            (vec![(ann(), read)], Some("ann"), write, false),
            (vec![(ann(), read)], Some("ben"), read, false),
            (vec![(ann(), read)], None, read, false),
            (vec![(ann(), Permission::FullControl)], Some("ann"), Permission::WriteAcl, true),
            (vec![(Grantee::Everyone, read)], None, read, true),
            (vec![(Grantee::Everyone, read)], Some("ben"), read, true),
            (vec![(Grantee::SignedIn, read)], Some("ben"), read, true),
            (vec![(Grantee::SignedIn, read)], None, read, false),
            (vec![], Some("ann"), read, false),
        ] {
            assert_eq!(list(&grants).allows(user, permission), expected, "{grants:?} {user:?}");
        }
    }

    #[test]
    fn lists_with_groups_are_public() {
        assert!(!Acl::private("ann").is_public());
        assert!(list(&[(Grantee::Everyone, Permission::ReadAcl)]).is_public());
        assert!(list(&[(Grantee::SignedIn, Permission::Read)]).is_public());
        let ann = (Grantee::User("ann".to_owned()), Permission::Read);
        let both = list(&[(Grantee::Everyone, Permission::Read), ann.clone()]);
        assert_eq!(both.without_groups(), list(&[ann]));
    }
}
