//! Operations on object ACLs.

use haul_file_store::Attributes;

use crate::access::caller::Caller;
use crate::access::decision::Basis;
use crate::acl::document::{AccessControlPolicy, text};
use crate::acl::list::Permission;
use crate::acl::object_list::ObjectAcl;
use crate::acl::requested::RequestedAcl;
use crate::acl::rules::{AclRules, rules_of};
use crate::answer::Answer;
use crate::body::Body;
use crate::body::digests::Claims;
use crate::body::receive::Receiver;
use crate::errors::{S3Result, check_key, from_store};
use crate::objects::new_acl::announce;
use crate::objects::update::update;
use crate::request::name::ObjectName;
use crate::service::Haul;
use crate::service::request::Request;
use crate::settings::OBJECT_LISTS;
use crate::settings::notification::name::EventName;
use crate::stored::versions::{self, refused_change};

pub(crate) async fn get_object_acl(
    haul: &Haul,
    request: &Request,
    _body: Body,
) -> S3Result<Answer> {
    let (caller, name) = (request.caller().clone(), request.name().clone());
    check_key(&name.key)?;
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let list = haul.blocking(move |store| {
        let object = versions::head(store, &name.bucket, &name.key, version)?;
        let rules = rules_of(store, &name.bucket)?;
        let list = rules.object(&object.attributes);
        let uses = Use { operation: "GetObjectAcl", permission: Permission::ReadAcl };
        uses.check(&caller, &rules, &list, &name)?;
        Ok((list, versions::response_id(store, &name.bucket, object.info.version_id)))
    });
    let (ObjectAcl { owner, list }, version) = list.await?;
    Ok(Answer::xml(text(&owner, &list)).with_some(versions::VERSION_ID.as_str(), version))
}

pub(crate) async fn put_object_acl(haul: &Haul, request: &Request, body: Body) -> S3Result<Answer> {
    let (caller, name) = (request.caller().clone(), request.name().clone());
    check_key(&name.key)?;
    let version = versions::parse(request.head.query.get(versions::PARAMETER))?;
    let claims = Claims::for_document(request)?;
    let document = Receiver::document(haul, request, body, claims).await?;
    let document = AccessControlPolicy::if_given(&document)?;
    // An invalid ACL is an error only if the bucket takes ACLs, as in S3.
    let fields = &request.head.fields;
    let requested = RequestedAcl::from_request(fields, document, &|name| haul.is_user(name));
    let event = haul.event(request, EventName::AclPut, &name.key);
    let version = haul.blocking(move |store| {
        let rules = rules_of(store, &name.bucket)?;
        rules.check_in_effect()?;
        let requested = requested?;
        if store.bucket_settings(&name.bucket).map_err(from_store)?.get(OBJECT_LISTS).is_none() {
            announce(store, &name.bucket)?;
        }
        let updated = update(store, &name, version, event, |attributes: &mut Attributes| {
            let object = rules.object(attributes);
            let uses = Use { operation: "PutObjectAcl", permission: Permission::WriteAcl };
            uses.check(&caller, &rules, &object, &name)?;
            let list = requested.resolve(&object.owner, &rules.owner)?;
            rules.check(&list)?;
            ObjectAcl { list, ..object }.set(attributes, &rules.owner);
            Ok(())
        });
        let ObjectName { bucket, key } = &name;
        let updated = updated.map_err(|error| refused_change(store, bucket, key, error))?;
        Ok(versions::response_id(store, bucket, updated.version_id))
    });
    Ok(Answer::ok().with_some(versions::VERSION_ID.as_str(), version.await?))
}

/// The use of an object's ACL by an operation.
struct Use {
    operation: &'static str,
    permission: Permission,
}

impl Use {
    /// Fails if the client may not use this object's ACL. A right to the bucket is not enough for
    /// the ACL of an object that another user owns, because such an object may have replaced the
    /// authorized one.
    fn check(
        &self,
        caller: &Caller,
        rules: &AclRules,
        object: &ObjectAcl,
        name: &ObjectName,
    ) -> S3Result<()> {
        let by_list = || rules.object_allows(object, caller.user_name(), self.permission);
        let is_allowed = caller.is_administrator()
            || match caller.basis() {
                Basis::Policy => true,
                Basis::Right => object.owner == rules.owner || by_list(),
                Basis::Acl => by_list(),
            };
        if is_allowed {
            return Ok(());
        }
        let needs = "the permission of its access list, because it belongs to another user";
        Err(caller.access_denied(self.operation, needs, &name.bucket, &name.key))
    }
}
