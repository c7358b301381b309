//! The operations on lists.

use haul_file_store::Attributes;
use s3s::dto::{
    GetBucketAclInput, GetBucketAclOutput, GetObjectAclInput, GetObjectAclOutput,
    PutBucketAclInput, PutBucketAclOutput, PutObjectAclInput, PutObjectAclOutput,
};
use s3s::{S3Request, S3Result};

use crate::access::caller::{Basis, Caller, owner_named};
use crate::acl::document::to_grants;
use crate::acl::list::{Acl, Permission};
use crate::acl::new_object::announce;
use crate::acl::object_list::ObjectList;
use crate::acl::requested::RequestedList;
use crate::acl::rules::{ListRules, rules_of};
use crate::acl::stored::encode;
use crate::buckets::settings::{ACL, OBJECT_LISTS, set};
use crate::errors::{check_key, from_store};
use crate::objects::update::update;
use crate::objects::versions;
use crate::service::Haul;

pub(crate) async fn get_bucket_acl(
    haul: &Haul,
    request: S3Request<GetBucketAclInput>,
) -> S3Result<GetBucketAclOutput> {
    let bucket = request.input.bucket;
    let rules = haul.blocking(move |store| rules_of(store, &bucket)).await?;
    let grants = Some(to_grants(&rules.list()));
    Ok(GetBucketAclOutput { grants, owner: Some(owner_named(Some(&rules.owner))) })
}

pub(crate) async fn put_bucket_acl(
    haul: &Haul,
    request: S3Request<PutBucketAclInput>,
) -> S3Result<PutBucketAclOutput> {
    let PutBucketAclInput { bucket, access_control_policy: document, .. } = request.input;
    let is_user = |name: &str| haul.is_user(name);
    let requested = RequestedList::of_request(&request.headers, document, &is_user)?;
    haul.blocking(move |store| {
        let rules = rules_of(store, &bucket)?;
        let list = requested.resolve(&rules.owner, &rules.owner)?;
        rules.check(&list)?;
        let is_private = list == Acl::private(&rules.owner);
        set(store, &bucket, ACL, (!is_private).then(|| encode(&list)).as_deref())
    })
    .await?;
    Ok(PutBucketAclOutput::default())
}

pub(crate) async fn get_object_acl(
    haul: &Haul,
    request: S3Request<GetObjectAclInput>,
) -> S3Result<GetObjectAclOutput> {
    let caller = Caller::of(&request.extensions);
    let GetObjectAclInput { bucket, key, version_id, .. } = request.input;
    check_key(&key)?;
    let version = versions::parse(version_id.as_deref())?;
    let list = haul.blocking(move |store| {
        let object = versions::head(store, &bucket, &key, version)?;
        let rules = rules_of(store, &bucket)?;
        let list = rules.object(&object.attributes);
        let uses = Use { operation: "GetObjectAcl", permission: Permission::ReadAcl };
        uses.check(&caller, &rules, &list, (&bucket, &key))?;
        Ok(list)
    });
    let ObjectList { owner, list } = list.await?;
    let (grants, owner) = (Some(to_grants(&list)), Some(owner_named(Some(&owner))));
    Ok(GetObjectAclOutput { grants, owner, ..GetObjectAclOutput::default() })
}

pub(crate) async fn put_object_acl(
    haul: &Haul,
    request: S3Request<PutObjectAclInput>,
) -> S3Result<PutObjectAclOutput> {
    let caller = Caller::of(&request.extensions);
    let PutObjectAclInput { bucket, key, version_id, access_control_policy: document, .. } =
        request.input;
    check_key(&key)?;
    let version = versions::parse(version_id.as_deref())?;
    let is_user = |name: &str| haul.is_user(name);
    let requested = RequestedList::of_request(&request.headers, document, &is_user)?;
    haul.blocking(move |store| {
        let rules = rules_of(store, &bucket)?;
        if store.bucket_settings(&bucket).map_err(from_store)?.get(OBJECT_LISTS).is_none() {
            announce(store, &bucket)?;
        }
        update(store, &bucket, &key, version, |attributes: &mut Attributes| {
            let object = rules.object(attributes);
            let uses = Use { operation: "PutObjectAcl", permission: Permission::WriteAcl };
            uses.check(&caller, &rules, &object, (&bucket, &key))?;
            let list = requested.resolve(&object.owner, &rules.owner)?;
            rules.check(&list)?;
            ObjectList { list, ..object }.set(attributes, &rules.owner);
            Ok(())
        })
    })
    .await?;
    Ok(PutObjectAclOutput::default())
}

/// A use of the list of an object.
struct Use {
    operation: &'static str,
    permission: Permission,
}

impl Use {
    /// Fails if the client may not use the list of this object. A right to the bucket is not enough
    /// for the list of an object that belongs to another user, which may have replaced the one for
    /// which the operation was allowed.
    fn check(
        &self,
        caller: &Caller,
        rules: &ListRules,
        object: &ObjectList,
        (bucket, key): (&str, &str),
    ) -> S3Result<()> {
        let by_list = || rules.object_allows(object, caller.user_name(), self.permission);
        let is_allowed = caller.is_administrator()
            || match caller.basis() {
                Basis::Policy => true,
                Basis::Right => object.owner == rules.owner || by_list(),
                Basis::List => by_list(),
            };
        if is_allowed {
            return Ok(());
        }
        let needs = "the permission of its access list, because it belongs to another user";
        Err(caller.refusal(self.operation, needs, bucket, key))
    }
}
