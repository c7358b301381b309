//! ACLs in decisions about requests.

use haul_file_store::{Attributes, Error};
use haul_store_pool::Pool;

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::decision::{Basis, Decision};
use crate::access::rights::Right;
use crate::acl::list::Permission;
use crate::acl::permission::{Needed, needed};
use crate::acl::rules::{AclRules, rules_of};
use crate::errors::{S3Result, from_store};
use crate::settings::{ACL, OBJECT_LISTS};
use crate::stored::versions::find;

impl Caller {
    /// Decides by ACLs about an operation that neither a right nor a policy allows.
    pub(super) fn decide_by_lists(
        &self,
        store: &Pool,
        operation: &str,
        (bucket, name): (&str, &str),
    ) -> S3Result<Decision> {
        let Some(needed) = needed(operation, self.version().is_some()) else {
            return Ok(Decision::Denied);
        };
        let settings = match store.bucket_settings(bucket) {
            Err(Error::NoSuchBucket { .. }) => return Ok(Decision::Denied),
            settings => settings.map_err(from_store)?,
        };
        let has_list = settings.get(ACL).is_some();
        match needed {
            Needed::OfBucket(permission) if has_list => {
                let rules = AclRules::of(&settings, bucket)?;
                let is_allowed = rules.allows(self.user_name(), permission);
                Ok(if is_allowed { Decision::Allowed(Basis::Acl) } else { Decision::Denied })
            }
            Needed::OfObject(permission) if has_list || settings.get(OBJECT_LISTS).is_some() => {
                Ok(Decision::ByObjectAcl(permission))
            }
            // A client that may list the bucket learns that the object is missing.
            Needed::OfObject(Permission::Read) if !self.hides_missing(store, bucket, name) => {
                Ok(Decision::ByObjectAcl(Permission::Read))
            }
            Needed::OfBucket(_) | Needed::OfObject(_) => Ok(Decision::Denied),
        }
    }

    /// Returns `true` if the object's ACL gives the client a permission. Only a client that may
    /// list the bucket learns that the object is missing. May read from the disk.
    pub(crate) fn object_acl_allows(
        &self,
        store: &Pool,
        bucket: &str,
        (key, version): (&str, Option<&str>),
        permission: Permission,
    ) -> S3Result<bool> {
        match find(store, bucket, (key, version))? {
            Some(object) => self.attributes_allow(store, bucket, &object.attributes, permission),
            None if self.hides_missing(store, bucket, key) => Ok(false),
            // The operation reports the missing object. Another client may store it until then: the
            // operation confirms a read, and only a read.
            None if permission == Permission::Read => Ok(true),
            None => {
                let (bucket, key) = (bucket.to_owned(), key.to_owned());
                Err(from_store(Error::NoSuchKey { bucket, key }))
            }
        }
    }

    /// Decides again about a read of an object, if the decision depended on the object's ACL or
    /// tags: another client may have replaced the object since.
    pub(crate) fn confirm_read(
        &self,
        store: &Pool,
        operation: &str,
        (bucket, key): (&str, &str),
        attributes: &Attributes,
    ) -> S3Result<()> {
        let read = (operation, Action::Use(Right::Read));
        let decision = match self.with_compared_tags(store, bucket, || Ok(attributes.tags()))? {
            Some(reader) => reader.decide_without_lists(store, read.0, read.1, (bucket, key))?,
            None if self.basis() != Basis::Acl => return Ok(()),
            None => None,
        };
        let is_allowed = match decision {
            Some(decision) => matches!(decision, Decision::Allowed(_)),
            None => self.attributes_allow(store, bucket, attributes, Permission::Read)?,
        };
        match is_allowed {
            true => Ok(()),
            false => Err(self.decision_error(decision, read, (bucket, key))),
        }
    }

    fn attributes_allow(
        &self,
        store: &Pool,
        bucket: &str,
        attributes: &Attributes,
        permission: Permission,
    ) -> S3Result<bool> {
        let rules = rules_of(store, bucket)?;
        Ok(rules.object_allows(&rules.object(attributes), self.user_name(), permission))
    }
}
