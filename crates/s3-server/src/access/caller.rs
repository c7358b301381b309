//! The client that sent a request, and the checks of its rights.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_file_store::Error;
use haul_store_pool::Pool;

use crate::access::action::Action;
use crate::access::authorize::{self, Principal, authorize};
use crate::access::bucket_policy::policy_of;
use crate::access::facts::{RequestFacts, RequestedLock};
use crate::access::keys::key::ANONYMOUS;
use crate::access::rights::Right;
use crate::access::stored_facts::StoredFacts;
use crate::acl::list::Permission;
use crate::acl::owner::{ADMINISTRATOR, Owner, owner_named};
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::policy::action::action_of;
use crate::policy::evaluate::{Access, Client, Verdict};
use crate::settings::OWNER;
use crate::settings::parsed::BucketPolicy;
use crate::stored::versions::find;

/// The operations that a bucket policy never denies to the bucket owner, as in S3.
const OF_OWNERS: [&str; 3] = ["GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"];

/// The reason why a client may execute an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// A right of its key, or its user owns the bucket.
    Right,
    /// The bucket policy allows it.
    Policy,
    /// The bucket's ACL or the object's ACL allows it.
    Acl,
}

/// The decision about an operation before any object ACL is read, which needs the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed(Basis),
    Denied,
    /// A policy statement denies it, which prevails.
    DeniedByPolicy,
    /// Allowed if the object's ACL gives the permission.
    ByObjectAcl(Permission),
}

/// The client that sent a request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// The request properties that policies compare.
    facts: Option<Arc<RequestFacts>>,
    /// The reason why the client may execute the operation, once decided.
    basis: Basis,
}

impl Caller {
    pub(crate) fn new(principal: Principal) -> Self {
        Self { principal, facts: None, basis: Basis::Right }
    }

    /// Returns this client with its request's properties.
    pub(crate) fn with_facts(self, facts: RequestFacts) -> Self {
        let facts = RequestFacts { user: self.user().cloned(), ..facts };
        Self { facts: Some(Arc::new(facts)), ..self }
    }

    /// Returns `true` for a client without a signature, of a server with keys.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self.principal, Principal::Anonymous(_))
    }

    /// Returns a listing's prefix, from the query.
    pub(crate) fn prefix(&self) -> Option<&str> {
        self.facts.as_ref()?.head.query.get("prefix")
    }

    /// Returns this client with the reason why it may execute its operation.
    pub(crate) fn with_basis(self, basis: Basis) -> Self {
        Self { basis, ..self }
    }

    pub(crate) fn basis(&self) -> Basis {
        self.basis
    }

    /// Returns the version ID in the request.
    pub(crate) fn version(&self) -> Option<&str> {
        self.facts.as_ref()?.version.as_deref()
    }

    /// Returns this client with another version ID in its request; `None` for the current object.
    pub(crate) fn with_version(&self, version: Option<&str>) -> Self {
        let version = version.filter(|version| !version.is_empty());
        match &self.facts {
            Some(facts) if facts.version.as_deref() != version => {
                let version = version.map(str::to_owned);
                self.clone().with_facts(RequestFacts { version, ..RequestFacts::clone(facts) })
            }
            _ => self.clone(),
        }
    }

    /// Returns `true` if the request sets tags on an object.
    pub(crate) fn gives_tags(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| !facts.request_tags.is_empty())
    }

    /// Returns this client with these tags in its request.
    pub(crate) fn with_request_tags(&self, request_tags: Vec<(String, String)>) -> Self {
        match &self.facts {
            Some(facts) => {
                self.clone().with_facts(RequestFacts { request_tags, ..RequestFacts::clone(facts) })
            }
            None => self.clone(),
        }
    }

    /// Returns this client with this lock in its request.
    pub(crate) fn with_requested_lock(&self, lock: RequestedLock) -> Self {
        match &self.facts {
            Some(facts) => {
                self.clone().with_facts(RequestFacts { lock, ..RequestFacts::clone(facts) })
            }
            None => self.clone(),
        }
    }

    /// Returns this client with the tags of an object or version, if the bucket policy compares
    /// them. May read from the disk.
    pub(crate) fn with_tags(
        &self,
        store: &Pool,
        bucket: &str,
        (key, version): (&str, Option<&str>),
    ) -> S3Result<Self> {
        let found = || find(store, bucket, (key, version));
        let tags = || Ok(found()?.map(|object| object.attributes.tags()).unwrap_or_default());
        Ok(self.with_compared_tags(store, bucket, tags)?.unwrap_or_else(|| self.clone()))
    }

    /// Returns this client with an object's tags, if the bucket policy compares them.
    pub(crate) fn with_compared_tags(
        &self,
        store: &Pool,
        bucket: &str,
        tags: impl FnOnce() -> S3Result<BTreeMap<String, String>>,
    ) -> S3Result<Option<Self>> {
        let Some(facts) = self.facts.as_ref().filter(|_| !self.is_administrator()) else {
            return Ok(None);
        };
        let uses_tags = |found: &BucketPolicy| found.policy.uses_existing_tags();
        if !policy_of(store, bucket)?.as_deref().is_some_and(uses_tags) {
            return Ok(None);
        }
        let existing_tags = tags()?;
        let facts = RequestFacts { existing_tags, ..RequestFacts::clone(facts) };
        Ok(Some(self.clone().with_facts(facts)))
    }

    /// Returns the access key, for the logs.
    pub(crate) fn access_key(&self) -> Option<Arc<str>> {
        self.principal.access_key()
    }

    /// Returns the user that owns the buckets that this client creates; `None` for the
    /// administrator.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match &self.principal {
            Principal::Key(key) => key.user.as_ref(),
            Principal::Open | Principal::Anonymous(_) => None,
        }
    }

    pub(crate) fn user_name(&self) -> Option<&str> {
        self.user().map(|user| &**user)
    }

    /// Returns `true` for clients with all rights, which no policy restricts.
    pub(crate) fn is_administrator(&self) -> bool {
        match &self.principal {
            Principal::Open => true,
            Principal::Key(key) => key.user.is_none(),
            Principal::Anonymous(_) => false,
        }
    }

    /// Returns `true` if the client has the right to the action by its key or as the owner of the
    /// bucket.
    ///
    /// # Errors
    /// If corruption hides the bucket owner, and the rights depend on it.
    pub(crate) fn has_right(
        &self,
        store: &Pool,
        action: Action,
        bucket: &str,
        name: &str,
    ) -> S3Result<bool> {
        match authorize(&self.principal, action, bucket, name) {
            authorize::Decision::Allowed => Ok(true),
            authorize::Decision::Denied => Ok(false),
            authorize::Decision::IfOwner => self.owns(store, bucket),
        }
    }

    /// Decides about an operation: by the client's rights, then by the bucket policy, and, unless
    /// the policy denies the operation, by the bucket's ACL.
    ///
    /// # Errors
    /// If corruption hides the bucket owner or the policy, and the rights depend on it.
    pub(crate) fn decide(
        &self,
        store: &Pool,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<Decision> {
        match self.decide_without_lists(store, operation, action, (bucket, name))? {
            Some(decision) => Ok(decision),
            None => self.decide_by_lists(store, operation, (bucket, name)),
        }
    }

    /// Decides about an operation by the client's rights and the bucket policy; `None` if neither
    /// allows or denies it.
    pub(crate) fn decide_without_lists(
        &self,
        store: &Pool,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<Option<Decision>> {
        let has_right = self.has_right(store, action, bucket, name)?;
        let by_right = has_right.then_some(Decision::Allowed(Basis::Right));
        let is_in_bucket = !bucket.is_empty() && action != Action::CreateBucket;
        if self.is_administrator() || !is_in_bucket {
            return Ok(by_right.or(Some(Decision::Denied)));
        }
        // An owner can replace a policy that denies everything, or that cannot be applied.
        if OF_OWNERS.contains(&operation) && self.owns(store, bucket)? {
            return Ok(Some(Decision::Allowed(Basis::Right)));
        }
        let Some(found) = policy_of(store, bucket)? else { return Ok(by_right) };
        let BucketPolicy { policy, is_restricted } = &*found;
        let Some(facts) = &self.facts else { return Ok(Some(Decision::Denied)) };
        let is_object = !name.is_empty() && action != Action::Use(Right::List);
        let resource = if is_object { format!("{bucket}/{name}") } else { bucket.to_owned() };
        let access = Access {
            client: Client::User(self.user_name()),
            action: &action_of(operation, self.version().is_some()),
            resource: &resource,
        };
        let facts = StoredFacts { facts, store, operation, bucket };
        Ok(match policy.evaluate(&access, &facts) {
            Verdict::Denied => Some(Decision::DeniedByPolicy),
            Verdict::Allowed if !is_restricted && !has_right => {
                Some(Decision::Allowed(Basis::Policy))
            }
            Verdict::Allowed | Verdict::Silent => by_right,
        })
    }

    /// Returns `true` if this client's user owns the bucket.
    fn owns(&self, store: &Pool, bucket: &str) -> S3Result<bool> {
        let Some(user) = self.user() else { return Ok(false) };
        match store.bucket_settings(bucket) {
            Ok(settings) => Ok(settings.get(OWNER) == Some(&**user)),
            Err(Error::NoSuchBucket { .. }) => Ok(false),
            Err(error) => Err(from_store(error)),
        }
    }

    /// Checks an operation that no object ACL can allow, and returns the basis on which it is
    /// allowed. Fails with `AccessDenied` if it is not.
    pub(crate) fn check(
        &self,
        store: &Pool,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<Basis> {
        match self.decide(store, operation, action, (bucket, name))? {
            Decision::Allowed(basis) => Ok(basis),
            other => Err(self.decision_error(Some(other), (operation, action), (bucket, name))),
        }
    }

    /// Fails with `AccessDenied` unless a right of the client or the bucket policy allows
    /// `operation`, one step of the executed operation.
    pub(crate) fn check_without_acls(
        &self,
        store: &Pool,
        (operation, action): (&str, Action),
        (bucket, key): (&str, &str),
    ) -> S3Result<()> {
        match self.decide_without_lists(store, operation, action, (bucket, key))? {
            Some(Decision::Allowed(_)) => Ok(()),
            other => Err(self.decision_error(other, (operation, action), (bucket, key))),
        }
    }

    /// Returns the error for an operation that a decision, or the lack of one, does not allow.
    pub(crate) fn decision_error(
        &self,
        decision: Option<Decision>,
        (operation, action): (&str, Action),
        names: (&str, &str),
    ) -> S3Error {
        let why = match decision {
            Some(Decision::DeniedByPolicy) => "the policy of the bucket denies it".to_owned(),
            _ => format!("it needs {}", action.needs()),
        };
        self.refusal_because(&why, operation, names)
    }

    /// Returns the error for an operation for which the client lacks the right in `needs`.
    pub(crate) fn access_denied(
        &self,
        operation: &str,
        needs: &str,
        bucket: &str,
        name: &str,
    ) -> S3Error {
        self.refusal_because(&format!("it needs {needs}"), operation, (bucket, name))
    }

    fn refusal_because(&self, why: &str, operation: &str, (bucket, name): (&str, &str)) -> S3Error {
        let resource = match (bucket, name) {
            ("", _) => "this server".to_owned(),
            (bucket, "") => bucket.to_owned(),
            (bucket, name) => format!("{bucket}/{name}"),
        };
        let who = match (&self.principal, self.user()) {
            (Principal::Anonymous(_), _) => ANONYMOUS,
            (_, Some(user)) => user,
            (_, None) => ADMINISTRATOR,
        };
        let message =
            format!("User {who} is not authorized to perform {operation} on {resource}: {why}");
        refuse(S3ErrorCode::AccessDenied, message)
    }

    /// Returns `true` if the client may not learn that this name is missing, because it may not
    /// list it. If corruption hides the bucket owner, returns `true`, too.
    pub(crate) fn hides_missing(&self, store: &Pool, bucket: &str, name: &str) -> bool {
        let list = Action::Use(Right::List);
        let decision = self.listing(name).decide(store, "ListObjects", list, (bucket, name));
        !decision.is_ok_and(|decision| matches!(decision, Decision::Allowed(_)))
    }

    /// Returns this client as if it listed the names with this prefix, for policy conditions.
    fn listing(&self, prefix: &str) -> Self {
        let Some(facts) = self.facts.as_ref().filter(|_| !prefix.is_empty()) else {
            return self.clone();
        };
        let prefix = Some(prefix.to_owned());
        self.clone().with_facts(RequestFacts { prefix, ..RequestFacts::clone(facts) })
    }

    /// Returns this client as a bucket owner.
    pub(crate) fn owner(&self) -> Owner {
        owner_named(self.user_name())
    }
}
