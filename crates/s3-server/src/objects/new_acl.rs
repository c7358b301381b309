//! The ACL and the owner of an object that a request stores.
//!
//! The bucket owner owns an object that the owner, or a key with a right to the bucket, stores. A
//! user owns an object that only the bucket policy or the bucket's ACL allows the user to store. A
//! client may set an ACL for an object that its user owns. For any other object, it needs the right
//! to replace the ACL.

use haul_file_store::Attributes;
use haul_store_pool::Pool;

use crate::access::action::Action;
use crate::access::caller::Caller;
use crate::access::decision::{Basis, Decision};
use crate::access::rights::Right;
use crate::acl::object_list::{self, ObjectAcl};
use crate::acl::requested::RequestedAcl;
use crate::acl::rules::AclRules;
use crate::errors::{S3Result, from_store};
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::OBJECT_LISTS;
use crate::stored::attributes::check;

/// A new object's ACL and owner.
pub(crate) struct NewObjectAcl {
    /// `None` for an object that the bucket owner owns, with a private ACL.
    list: Option<(ObjectAcl, String)>,
}

impl NewObjectAcl {
    /// Returns the ACL that a request sets for an object that it stores.
    ///
    /// # Errors
    /// If the ACL is invalid, if the bucket does not accept it, or if the client may not set it.
    pub(crate) async fn of(haul: &Haul, request: &Request) -> S3Result<Self> {
        let (caller, name) = (request.caller(), request.name());
        let bucket = &name.bucket;
        let requested =
            RequestedAcl::from_fields(&request.head.fields, &|name| haul.is_user(name))?;
        let writer = caller.user_name().filter(|_| caller.basis() != Basis::Right);
        if requested == RequestedAcl::Absent && writer.is_none() {
            return Ok(Self { list: None });
        }
        let settings = haul.store().bucket_settings(bucket).map_err(from_store)?;
        let rules = AclRules::of(&settings, bucket)?;
        let object = rules.acl_for_new_object(&requested, writer)?;
        if object == ObjectAcl::private(&rules.owner) {
            return Ok(Self { list: None });
        }
        if object != ObjectAcl::private(&object.owner) {
            let is_own = writer == Some(&*object.owner);
            check_right(caller, &haul.store(), is_own, name)?;
        }
        if settings.get(OBJECT_LISTS).is_none() {
            let bucket = bucket.clone();
            haul.blocking(move |store| announce(store, &bucket)).await?;
        }
        Ok(Self { list: Some((object, rules.owner)) })
    }

    /// Stores the ACL in the object's attributes; it replaces the ACL that a copy's source has.
    ///
    /// # Errors
    /// If the attributes become too large.
    pub(crate) fn set(&self, attributes: &mut Attributes) -> S3Result<()> {
        let Some((object, bucket_owner)) = &self.list else {
            object_list::remove(attributes);
            return Ok(());
        };
        object.set(attributes, bucket_owner);
        check(attributes)
    }
}

/// Fails if the client may not set the ACL of an object that it stores.
fn check_right(caller: &Caller, store: &Pool, is_own: bool, name: &ObjectName) -> S3Result<()> {
    let (operation, action) = ("PutObjectAcl", Action::Use(Right::Admin));
    let (bucket, key) = (&*name.bucket, &*name.key);
    match caller.decide_without_lists(store, operation, action, (bucket, key))? {
        Some(Decision::Allowed(_)) => Ok(()),
        None if is_own => Ok(()),
        other => Err(caller.decision_error(other, (operation, action), (bucket, key))),
    }
}

/// Sets the bucket setting that is required for reading any object's ACL.
pub(crate) fn announce(store: &Pool, bucket: &str) -> S3Result<()> {
    store.set_bucket_setting(bucket, OBJECT_LISTS, Some("1")).map_err(from_store)
}
