//! Authorizes a request, once, before its operation is executed.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_file_store::{BucketId, Error};
use haul_store_pool::Pool;
use tokio::task::spawn_blocking;

use crate::access::action::{Action, action};
use crate::access::authorize::Principal;
use crate::access::bucket_policy::{has_policy, has_setting};
use crate::access::caller::Caller;
use crate::access::decision::{Basis, Decision};
use crate::access::expected_owner;
use crate::access::facts::{Connection, RequestFacts, RequestedLock, request_tags};
use crate::access::rights::Right;
use crate::errors::{S3ErrorCode, S3Result, from_store, joined, refuse};
use crate::policy::action::has_version;
use crate::request::copy_source::CopySource;
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::request::operation::Operation;
use crate::settings::ACL;

/// The operation whose body contains tags.
const TAGGING: &str = "PutObjectTagging";

/// The operations whose bodies policies compare: [`authorize_write`] authorizes them once their
/// bodies are parsed.
const WITH_BODIES: [Operation; 3] =
    [Operation::PutObjectTagging, Operation::PutObjectRetention, Operation::PutObjectLegalHold];

/// The inputs of a decision about a request.
pub(crate) struct Asked<'a> {
    pub(crate) principal: Principal,
    pub(crate) operation: Operation,
    pub(crate) head: &'a Arc<Head>,
    pub(crate) connection: Connection,
}

/// The client whose request may be executed. Only this module creates one, and no operation is
/// executed without it.
#[derive(Debug)]
pub(crate) struct Allowed {
    caller: Caller,
    source: Option<Caller>,
    /// The bucket for which this was decided; `None` if corruption may hide it, and for a new one.
    bucket: Option<BucketId>,
}

impl Allowed {
    /// Returns the client, with the reason why it may execute the operation.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the bucket for which this was decided.
    pub(crate) fn bucket(&self) -> Option<BucketId> {
        self.bucket
    }

    /// Returns the client as the reader of a copy's source.
    pub(crate) fn source(&self) -> Option<&Caller> {
        self.source.as_ref()
    }

    /// Returns the result of a decision that was made elsewhere.
    #[cfg(test)]
    pub(crate) fn decided(caller: Caller, source: Option<Caller>) -> Self {
        Self { caller, source, bucket: None }
    }
}

/// Returns the client that sent a request, if it may execute the operation.
///
/// # Errors
/// `AccessDenied`; `NoSuchBucket`, which every client may learn, as in S3; and an error if
/// corruption hides an input of the decision.
pub(crate) async fn authorize(store: &Arc<Pool>, asked: Asked<'_>) -> S3Result<Allowed> {
    let (operation, target) = (asked.operation, &asked.head.name);
    // Before anything is decided: the client may send its body long after that.
    let bucket = store.bucket_id(&target.bucket).ok();
    let mut caller = caller_of(store, &asked)?;
    if !target.key.is_empty() {
        caller = with_tags(store, caller, target).await?;
    }
    caller = check(store, caller, operation, target).await?;
    let is_copy = matches!(operation, Operation::CopyObject | Operation::UploadPartCopy);
    let source = match is_copy {
        true => Some(check_source(store, &caller, asked.head).await?),
        false => None,
    };
    Ok(Allowed { caller, source, bucket })
}

/// Returns the client that sent a read of an object, if the read is allowed and this can be decided
/// without I/O.
pub(crate) fn authorize_read(store: &Pool, asked: &Asked<'_>) -> Option<Allowed> {
    let ObjectName { bucket, key } = &asked.head.name;
    let caller = caller_of(store, asked).ok()?;
    if caller.compares_tags(store, bucket).unwrap_or(true) {
        return None;
    }
    let read = Action::Use(Right::Read);
    match caller.decide(store, asked.operation.name(), read, (bucket, key)) {
        Ok(Decision::Allowed(basis)) => {
            Some(Allowed { caller: caller.with_basis(basis), source: None, bucket: None })
        }
        _ => None,
    }
}

/// Returns the client that sent a request, with the properties that policies compare.
fn caller_of(store: &Pool, asked: &Asked<'_>) -> S3Result<Caller> {
    let Asked { principal, operation, head, connection } = asked;
    let (name, bucket) = (operation.name(), &head.name.bucket);
    let version = head.query.given("versionId").filter(|_| has_version(name));
    let facts = RequestFacts {
        connection: Some(*connection),
        version: version.map(str::to_owned),
        request_tags: request_tags(name, &head.fields),
        lock: RequestedLock::from_fields(&head.fields),
        head: Arc::clone(head),
        prefix: None,
        user: None,
        existing_tags: BTreeMap::new(),
    };
    if !bucket.is_empty() && *operation != Operation::CreateBucket {
        check_bucket(store, bucket)?;
        expected_owner::check(store, &head.fields, expected_owner::OF_BUCKET, bucket)?;
    }
    Ok(Caller::new(principal.clone()).with_facts(facts))
}

/// Checks the right to the operation. The returned client contains the reason why it is allowed.
async fn check(
    store: &Arc<Pool>,
    caller: Caller,
    operation: Operation,
    target: &ObjectName,
) -> S3Result<Caller> {
    let ObjectName { bucket, key } = target;
    let name = operation.name();
    // A policy or an ACL may allow the deletion of some keys only: each key is checked on its own.
    let checks_keys = operation == Operation::DeleteObjects
        && (caller.has_policies() || has_policy(store, bucket) || has_setting(store, bucket, ACL));
    let basis = match action(name) {
        None if caller.is_administrator() && !caller.has_policies() => Basis::Right,
        None => return Err(caller.access_denied(name, "the administrator", bucket, key)),
        // Without a policy, the body decides nothing.
        Some(_)
            if WITH_BODIES.contains(&operation)
                && (caller.has_policies() || has_policy(store, bucket)) =>
        {
            check_signed(&caller, operation, target)?;
            return Ok(caller);
        }
        Some(Action::UseBucket) if checks_keys => return Ok(caller),
        // Owners write the policies of their buckets, and could free themselves of quotas.
        Some(Action::Administer) => caller.check(store, name, Action::Administer, (bucket, ""))?,
        Some(Action::Use(Right::List)) => {
            let prefix = caller.prefix().unwrap_or_default();
            caller.check(store, name, Action::Use(Right::List), (bucket, prefix))?
        }
        Some(action) => {
            let basis = decide(store, &caller, (name, action), target).await?;
            // As in S3, policies and ACLs see several operations.
            if operation == Operation::GetObjectAttributes {
                decide(store, &caller, ("GetObject", action), target).await?;
            }
            if caller.gives_tags() {
                caller.check_without_acls(store, (TAGGING, action), (bucket, key))?;
            }
            basis
        }
    };
    check_owner(operation, basis)?;
    check_signed(&caller, operation, target)?;
    Ok(caller.with_basis(basis))
}

/// Rejects operations on a bucket's policy that only the policy itself allows: as in S3, they need
/// the owner's rights, because the owner could otherwise be locked out.
fn check_owner(operation: Operation, basis: Basis) -> S3Result<()> {
    use Operation::{DeleteBucketPolicy, GetBucketPolicy, PutBucketPolicy};

    let is_policy = matches!(operation, GetBucketPolicy | PutBucketPolicy | DeleteBucketPolicy);
    if !is_policy || basis == Basis::Right {
        return Ok(());
    }
    let message =
        "Only the owner of a bucket, and keys with the right admin to it, may use its policy";
    Err(refuse(S3ErrorCode::MethodNotAllowed, message))
}

/// Rejects requests that need a signature regardless of policies and ACLs: a client without a
/// signature changes no settings, owns nothing, and starts no uploads.
fn check_signed(caller: &Caller, operation: Operation, target: &ObjectName) -> S3Result<()> {
    use Operation as O;

    if !caller.is_anonymous() {
        return Ok(());
    }
    let name = operation.name();
    let is_change = name.starts_with("Put") || name.starts_with("Delete");
    let is_setting = is_change && action(name) == Some(Action::Use(Right::Admin));
    let needs_client = matches!(
        operation,
        O::CreateBucket
            | O::CopyObject
            | O::UploadPartCopy
            | O::CreateMultipartUpload
            | O::UploadPart
            | O::CompleteMultipartUpload
            | O::AbortMultipartUpload
            | O::ListParts
            | O::GetBucketOwnershipControls
            | O::ListenBucketNotification
            | O::PutObjectAcl
            | O::PutObjectRetention
            | O::PutObjectLegalHold
    );
    if !is_setting && !needs_client {
        return Ok(());
    }
    Err(caller.access_denied(name, "a signature", &target.bucket, &target.key))
}

/// Checks the right to an operation that changes an object and whose body is known.
pub(crate) async fn authorize_write(
    store: &Arc<Pool>,
    caller: Caller,
    operation: Operation,
    target: &ObjectName,
) -> S3Result<Caller> {
    let write = (operation.name(), Action::Use(Right::Write));
    let basis = decide(store, &caller, write, target).await?;
    check_signed(&caller, operation, target)?;
    Ok(caller.with_basis(basis))
}

/// Checks the right to read a copy's source.
async fn check_source(store: &Arc<Pool>, caller: &Caller, head: &Head) -> S3Result<Caller> {
    let CopySource { name, version } = CopySource::from_request(head)?;
    check_bucket(store, &name.bucket)?;
    expected_owner::check(store, &head.fields, expected_owner::OF_SOURCE, &name.bucket)?;
    let caller = with_tags(store, caller.with_version(version.as_deref()), &name).await?;
    // The source bucket's policy allows copies as it allows reads.
    let operation = if version.is_some() { "GetObjectVersion" } else { "GetObject" };
    let read = (operation, Action::Use(Right::Read));
    let basis = decide(store, &caller, read, &name).await?;
    Ok(caller.with_basis(basis))
}

/// Fails if the bucket does not exist. As in S3, every client may learn this.
fn check_bucket(store: &Pool, bucket: &str) -> S3Result<()> {
    match store.bucket(bucket) {
        Err(error @ Error::NoSuchBucket { .. }) => Err(from_store(error)),
        // The operation reports other errors.
        _ => Ok(()),
    }
}

/// Returns the client with an object's tags, if a policy compares them.
async fn with_tags(store: &Arc<Pool>, caller: Caller, name: &ObjectName) -> S3Result<Caller> {
    let is_bound = !caller.is_administrator() && has_policy(store, &name.bucket);
    if !is_bound && !caller.has_policies() {
        return Ok(caller);
    }
    let (store, name) = (Arc::clone(store), name.clone());
    let call = move || {
        let version = caller.version();
        caller.with_tags(&store, &name.bucket, (&name.key, version))
    };
    joined(spawn_blocking(call).await)
}

/// Decides about an operation. Reads the object's ACL if neither rights, nor the policy, nor the
/// bucket's ACL allow the operation.
async fn decide(
    store: &Arc<Pool>,
    caller: &Caller,
    (operation, action): (&str, Action),
    name: &ObjectName,
) -> S3Result<Basis> {
    let target = (&*name.bucket, &*name.key);
    let decision = caller.decide(store, operation, action, target)?;
    let permission = match decision {
        Decision::Allowed(basis) => return Ok(basis),
        Decision::Denied | Decision::DeniedBy(_) | Decision::OutsideSession => None,
        Decision::ByObjectAcl(permission) => Some(permission),
    };
    if let Some(permission) = permission {
        let (store, reader, name) = (Arc::clone(store), caller.clone(), name.clone());
        let call = move || {
            let object = (&*name.key, reader.version());
            reader.object_acl_allows(&store, &name.bucket, object, permission)
        };
        if joined(spawn_blocking(call).await)? {
            return Ok(Basis::Acl);
        }
    }
    Err(caller.decision_error(Some(decision), (operation, action), target))
}
