//! The bucket settings that apply to ACLs, and the decisions based on them.

use haul_file_store::Attributes;
use haul_store_pool::Pool;

use crate::acl::list::{Acl, Permission};
use crate::acl::object_list::ObjectAcl;
use crate::acl::owner::ADMINISTRATOR;
use crate::acl::requested::RequestedAcl;
use crate::acl::stored::decode;
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::settings::ownership_controls::OwnershipControls;
use crate::settings::public_access_block::PublicAccessBlock;
use crate::settings::{ACL, OWNER, OWNERSHIP, PUBLIC_ACCESS_BLOCK, parse};

/// The owner of an object that a client other than the bucket owner stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// The client. The mode for buckets without ownership controls.
    ObjectWriter,
    /// The client, unless it gives the bucket owner all permissions.
    BucketOwnerPreferred,
    /// The bucket owner; ACLs have no effect.
    BucketOwnerEnforced,
}

impl Ownership {
    pub(crate) fn parse(name: &str) -> S3Result<Self> {
        match name {
            "ObjectWriter" => Ok(Self::ObjectWriter),
            "BucketOwnerPreferred" => Ok(Self::BucketOwnerPreferred),
            "BucketOwnerEnforced" => Ok(Self::BucketOwnerEnforced),
            other => {
                let message = format!("Unknown ObjectOwnership: {other}");
                Err(refuse(S3ErrorCode::MalformedXML, message))
            }
        }
    }
}

/// Returns the bucket settings that apply to ACLs.
pub(crate) fn rules_of(store: &Pool, bucket: &str) -> S3Result<AclRules> {
    AclRules::of(&*store.bucket_settings(bucket).map_err(from_store)?, bucket)
}

/// Fails if the ownership controls are malformed, or would disable a bucket ACL that gives
/// permissions to other users than the owner.
pub(crate) fn check_ownership(document: &OwnershipControls, settings: &Attributes) -> S3Result<()> {
    check_bucket_acl(Ownership::parse(&document.object_ownership)?, settings.get(ACL).is_none())
}

/// Fails if ACLs have no effect in a bucket, and its own ACL is not private.
pub(crate) fn check_bucket_acl(ownership: Ownership, is_private: bool) -> S3Result<()> {
    if ownership == Ownership::BucketOwnerEnforced && !is_private {
        let message = "BucketOwnerEnforced needs a bucket whose access list is private";
        return Err(refuse(S3ErrorCode::InvalidBucketAclWithObjectOwnership, message));
    }
    Ok(())
}

/// The bucket settings that apply to ACLs.
#[derive(Debug)]
pub(crate) struct AclRules {
    /// The bucket owner's name.
    pub(crate) owner: String,
    pub(crate) ownership: Ownership,
    /// The bucket's ACL.
    list: Acl,
    /// `true` if ACLs that give permissions to groups are rejected.
    blocks_public: bool,
    /// `true` if grants to groups have no effect.
    ignores_public: bool,
}

impl AclRules {
    /// Returns the rules in a bucket's settings.
    ///
    /// # Errors
    /// If a setting is malformed.
    pub(crate) fn of(settings: &Attributes, bucket: &str) -> S3Result<Self> {
        let owner = settings.get(OWNER).unwrap_or(ADMINISTRATOR).to_owned();
        let controls: Option<OwnershipControls> = parse(settings, bucket, OWNERSHIP)?;
        let ownership =
            controls.map(|controls| Ownership::parse(&controls.object_ownership)).transpose()?;
        let block: Option<PublicAccessBlock> = parse(settings, bucket, PUBLIC_ACCESS_BLOCK)?;
        let block = block.unwrap_or_default();
        let list = settings.get(ACL).map(|text| decode(text).unwrap_or_default());
        Ok(Self {
            list: list.unwrap_or_else(|| Acl::private(&owner)),
            owner,
            ownership: ownership.unwrap_or(Ownership::ObjectWriter),
            blocks_public: block.block_public_acls,
            ignores_public: block.ignore_public_acls,
        })
    }

    fn are_in_effect(&self) -> bool {
        self.ownership != Ownership::BucketOwnerEnforced
    }

    /// Returns `true` if the bucket's ACL gives a permission to a group.
    pub(crate) fn is_public(&self) -> bool {
        !self.ignores_public && self.list().is_public()
    }

    /// Returns the bucket's ACL for responses.
    pub(crate) fn list(&self) -> Acl {
        if self.are_in_effect() { self.list.clone() } else { Acl::private(&self.owner) }
    }

    pub(crate) fn object(&self, attributes: &Attributes) -> ObjectAcl {
        match self.are_in_effect() {
            true => ObjectAcl::of(attributes, &self.owner),
            false => ObjectAcl::private(&self.owner),
        }
    }

    /// Returns `true` if the bucket's ACL gives a permission to a user, or to clients that do not
    /// sign their requests (`None`).
    pub(crate) fn allows(&self, user: Option<&str>, permission: Permission) -> bool {
        self.allows_by(&self.list(), user, permission)
    }

    /// Returns `true` if the object's ACL gives a permission to a user. The object's owner can
    /// always read and replace the ACL.
    pub(crate) fn object_allows(
        &self,
        object: &ObjectAcl,
        user: Option<&str>,
        permission: Permission,
    ) -> bool {
        let is_list_permission = matches!(permission, Permission::ReadAcl | Permission::WriteAcl);
        (is_list_permission && user == Some(&*object.owner))
            || self.allows_by(&object.list, user, permission)
    }

    fn allows_by(&self, list: &Acl, user: Option<&str>, permission: Permission) -> bool {
        match self.ignores_public {
            true => list.without_groups().allows(user, permission),
            false => list.allows(user, permission),
        }
    }

    /// Fails if the bucket accepts no ACLs.
    pub(crate) fn check_in_effect(&self) -> S3Result<()> {
        if self.are_in_effect() { Ok(()) } else { Err(not_supported()) }
    }

    /// Fails if the bucket accepts no ACLs, or not this one.
    pub(crate) fn check(&self, list: &Acl) -> S3Result<()> {
        self.check_in_effect()?;
        if self.blocks_public && list.is_public() {
            let message = "The public access block of the bucket refuses access lists that give \
                           permissions to everyone or to all users";
            return Err(refuse(S3ErrorCode::AccessDenied, message));
        }
        Ok(())
    }

    /// Returns ACL and owner for an object that a client stores. `writer` is the client's user if
    /// this user owns the object; without one, the bucket owner owns it.
    ///
    /// # Errors
    /// If the bucket does not accept the requested ACL.
    pub(crate) fn acl_for_new_object(
        &self,
        requested: &RequestedAcl,
        writer: Option<&str>,
    ) -> S3Result<ObjectAcl> {
        let is_for_bucket_owner = requested.is_for_bucket_owner();
        if !self.are_in_effect() {
            let is_accepted = is_for_bucket_owner || *requested == RequestedAcl::Absent;
            let object = is_accepted.then(|| ObjectAcl::private(&self.owner));
            return object.ok_or_else(not_supported);
        }
        let is_given = is_for_bucket_owner && self.ownership == Ownership::BucketOwnerPreferred;
        let owner = writer.filter(|_| !is_given).unwrap_or(&self.owner);
        let list = requested.resolve(owner, &self.owner)?;
        self.check(&list)?;
        Ok(ObjectAcl { owner: owner.to_owned(), list })
    }
}

fn not_supported() -> S3Error {
    let message = "The bucket does not allow access lists: its ObjectOwnership is \
                   BucketOwnerEnforced";
    refuse(S3ErrorCode::AccessControlListNotSupported, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::canned::canned;
    use crate::acl::stored::encode;
    use crate::xml::Document;

    /// Returns the rules of a bucket that `ben` owns, with this canned ACL.
    fn rules(list: &str, ownership: Option<&str>, block: Option<&str>) -> AclRules {
        let mut settings = Attributes::from_iter([(OWNER, "ben")]);
        settings.set(ACL, encode(&canned(list, "ben", "ben").unwrap()));
        if let Some(ownership) = ownership {
            settings.set(OWNERSHIP, controls(ownership).text());
        }
        let block = PublicAccessBlock {
            block_public_acls: block == Some("block"),
            ignore_public_acls: block == Some("ignore"),
            ..PublicAccessBlock::default()
        };
        settings.set(PUBLIC_ACCESS_BLOCK, block.text());
        AclRules::of(&settings, "bucket").unwrap()
    }

    fn controls(ownership: &str) -> OwnershipControls {
        OwnershipControls { object_ownership: ownership.to_owned() }
    }

    fn requested(name: &str) -> RequestedAcl {
        match name {
            "" => RequestedAcl::Absent,
            name => RequestedAcl::Canned(name.to_owned()),
        }
    }

    #[test]
    fn list_of_the_bucket_decides_unless_it_is_ignored() {
        for (ownership, block, expected) in [
            (None, None, true),
            (Some("ObjectWriter"), Some("block"), true),
            (Some("BucketOwnerPreferred"), None, true),
            (Some("BucketOwnerEnforced"), None, false),
            (None, Some("ignore"), false),
        ] {
            let rules = rules("public-read", ownership, block);
            for user in [None, Some("ann")] {
                assert_eq!(
                    rules.allows(user, Permission::Read),
                    expected,
                    "{ownership:?} {block:?}"
                );
                assert!(!rules.allows(user, Permission::Write));
            }
        }
    }

    #[test]
    fn owner_of_an_object_can_always_read_and_replace_its_list() {
        let rules = rules("private", None, None);
        let object = ObjectAcl { owner: "ann".to_owned(), list: Acl::default() };
        for (permission, expected) in [
            (Permission::ReadAcl, true),
            (Permission::WriteAcl, true),
            (Permission::Read, false),
            (Permission::Write, false),
        ] {
            assert_eq!(rules.object_allows(&object, Some("ann"), permission), expected);
            assert!(!rules.object_allows(&object, Some("ben"), permission));
            assert!(!rules.object_allows(&object, None, permission));
        }
    }

    #[test]
    fn ownership_decides_who_owns_a_new_object() {
        let given = "bucket-owner-full-control";
        for (ownership, list, writer, owner) in [
            ("ObjectWriter", "", Some("ann"), "ann"),
            ("ObjectWriter", given, Some("ann"), "ann"),
            ("ObjectWriter", "public-read", None, "ben"),
            ("BucketOwnerPreferred", "", Some("ann"), "ann"),
            ("BucketOwnerPreferred", "private", Some("ann"), "ann"),
            ("BucketOwnerPreferred", given, Some("ann"), "ben"),
            ("BucketOwnerEnforced", "", Some("ann"), "ben"),
            ("BucketOwnerEnforced", given, Some("ann"), "ben"),
        ] {
            let rules = rules("private", Some(ownership), None);
            let object = rules.acl_for_new_object(&requested(list), writer).unwrap();
            assert_eq!(object.owner, owner, "{ownership} {list}");
            let expected = canned(if list.is_empty() { "private" } else { list }, owner, "ben");
            let is_private = ownership == "BucketOwnerEnforced";
            let expected = if is_private { Acl::private("ben") } else { expected.unwrap() };
            assert_eq!(object.list, expected, "{ownership} {list}");
        }
    }

    #[test]
    fn lists_that_a_bucket_does_not_take_are_refused() {
        for (ownership, block, list, code) in [
            ("BucketOwnerEnforced", None, "private", "AccessControlListNotSupported"),
            ("BucketOwnerEnforced", None, "public-read", "AccessControlListNotSupported"),
            ("ObjectWriter", Some("block"), "public-read", "AccessDenied"),
            ("ObjectWriter", Some("block"), "authenticated-read", "AccessDenied"),
            ("ObjectWriter", Some("block"), "bucket-owner-read", ""),
            ("ObjectWriter", Some("ignore"), "public-read", ""),
            ("ObjectWriter", None, "log-delivery-write", "InvalidArgument"),
        ] {
            let rules = rules("private", Some(ownership), block);
            let refused = rules.acl_for_new_object(&requested(list), Some("ann")).err();
            let found = refused.as_ref().map_or("", |error| error.code().as_str());
            assert_eq!(found, code, "{ownership} {list}");
        }
    }

    #[test]
    fn ownership_controls_are_checked() {
        let (private, public) =
            (Attributes::new(), Attributes::from_iter([(ACL, "READ everyone")]));
        for (ownership, settings, code) in [
            ("ObjectWriter", &public, ""),
            ("BucketOwnerPreferred", &public, ""),
            ("BucketOwnerEnforced", &private, ""),
            ("BucketOwnerEnforced", &public, "InvalidBucketAclWithObjectOwnership"),
            ("Anyone", &private, "MalformedXML"),
        ] {
            let refused = check_ownership(&controls(ownership), settings).err();
            assert_eq!(refused.as_ref().map_or("", |error| error.code().as_str()), code);
        }
    }
}
