//! The client that sent a request, and the checks of its rights.

use std::collections::BTreeMap;
use std::sync::Arc;

use haul_file_store::Error;
use haul_store_pool::Pool;

use crate::access::action::{Action, action};
use crate::access::authorize::{self, Principal, authorize};
use crate::access::bucket_policy::policy_of;
use crate::access::decision::{self, Basis, Decision, Sources};
use crate::access::facts::{RequestFacts, RequestedLock};
use crate::access::keys::key_ring::AllKeys;
use crate::access::keys::names::ANONYMOUS;
use crate::access::rights::Right;
use crate::access::stored_facts::StoredFacts;
use crate::acl::owner::{ADMINISTRATOR, Owner, owner_named};
use crate::errors::{S3Error, S3ErrorCode, S3Result, from_store, refuse};
use crate::policy::action::action_of;
use crate::policy::condition::Facts;
use crate::policy::evaluate::{Access, Client, Verdict};
use crate::policy::statement::Policy;
use crate::request::operation::Operation;
use crate::settings::OWNER;
use crate::settings::parsed::BucketPolicy;
use crate::stored::versions::find;
use crate::times::now_s;

/// The operations that a bucket policy never denies to the bucket owner, as in S3.
const OF_OWNERS: [&str; 3] = ["GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"];

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

    /// Returns this client with the tags of an object or version, if a policy compares them. May
    /// read from the disk.
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

    /// Returns this client with an object's tags, if a policy compares them.
    pub(crate) fn with_compared_tags(
        &self,
        store: &Pool,
        bucket: &str,
        tags: impl FnOnce() -> S3Result<BTreeMap<String, String>>,
    ) -> S3Result<Option<Self>> {
        let Some(facts) = &self.facts else { return Ok(None) };
        if !self.compares_tags(store, bucket)? {
            return Ok(None);
        }
        let existing_tags = tags()?;
        let facts = RequestFacts { existing_tags, ..RequestFacts::clone(facts) };
        Ok(Some(self.clone().with_facts(facts)))
    }

    /// Returns `true` if a policy of this client or of the bucket compares object tags.
    pub(super) fn compares_tags(&self, store: &Pool, bucket: &str) -> S3Result<bool> {
        let own = self.user_policies().iter().chain(self.session_policy());
        if own.into_iter().any(|policy| policy.uses_existing_tags()) {
            return Ok(true);
        }
        let uses_tags = |found: &BucketPolicy| found.policy.uses_existing_tags();
        Ok(!self.is_administrator() && policy_of(store, bucket)?.as_deref().is_some_and(uses_tags))
    }

    /// Returns `true` if policies of the user, its groups or the session apply to this client.
    pub(super) fn has_policies(&self) -> bool {
        !self.user_policies().is_empty() || self.session_policy().is_some()
    }

    /// Returns the policies of the user and its groups.
    fn user_policies(&self) -> &[Arc<Policy>] {
        match &self.principal {
            Principal::Key(key) => &key.policies,
            Principal::Open | Principal::Anonymous(_) => &[],
        }
    }

    /// Returns the policy that must allow each request of the session.
    fn session_policy(&self) -> Option<&Arc<Policy>> {
        match &self.principal {
            Principal::Key(key) => key.session.as_ref()?.policy.as_ref(),
            Principal::Open | Principal::Anonymous(_) => None,
        }
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

    /// Returns `true` for clients with all rights, which only the policy of a session restricts.
    pub(crate) fn is_administrator(&self) -> bool {
        match &self.principal {
            Principal::Open => true,
            Principal::Key(key) => key.user.is_none(),
            Principal::Anonymous(_) => false,
        }
    }

    /// Returns `true` if a grant of the client's key allows the action, or if its user owns the
    /// bucket.
    fn has_right(&self, store: &Pool, action: Action, bucket: &str, name: &str) -> S3Result<bool> {
        match authorize(&self.principal, action, bucket, name) {
            authorize::Decision::Allowed => Ok(true),
            authorize::Decision::Denied => Ok(false),
            authorize::Decision::IfOwner => self.owns(store, bucket),
        }
    }

    /// Returns `true` if a list of all buckets names the bucket: if the client has any right to it,
    /// or if a policy of its user allows to list all buckets, or to list or locate this one.
    ///
    /// # Errors
    /// If corruption hides the bucket owner, and the rights depend on it.
    pub(crate) fn sees_bucket(&self, store: &Pool, bucket: &str) -> S3Result<bool> {
        if self.has_right(store, Action::UseBucket, bucket, "")? {
            return Ok(true);
        }
        let (policies, Some(facts)) = (self.user_policies(), &self.facts) else { return Ok(false) };
        let mut requests =
            [("ListBuckets", ""), ("ListObjects", bucket), ("GetBucketLocation", bucket)]
                .into_iter();
        Ok(requests.any(|(operation, resource)| {
            let action = &action_of(operation, false);
            let client = Client::User(self.user_name());
            let access = Access { client, action, resource };
            evaluate_all(policies, &access, &**facts) == Verdict::Allowed
        }))
    }

    /// Decides about an operation: by the client's rights and all policies, and, if these neither
    /// allow nor deny the operation, by the bucket's ACL.
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

    /// Decides about an operation by the client's rights and all policies; `None` if none of them
    /// allows or denies it.
    pub(crate) fn decide_without_lists(
        &self,
        store: &Pool,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<Option<Decision>> {
        let is_administrator = self.is_administrator();
        let mut sources = Sources {
            is_administrator,
            has_right: self.has_right(store, action, bucket, name)?,
            can_policies_allow: action != Action::Administer,
            user: Verdict::Silent,
            session: None,
            bucket: Verdict::Silent,
        };
        // The policy of a bucket neither creates it nor changes its owner's limits.
        let is_in_bucket =
            !bucket.is_empty() && !matches!(action, Action::CreateBucket | Action::Administer);
        // An owner can replace a policy that denies everything, or that cannot be applied.
        let found = match is_in_bucket && !is_administrator {
            true if OF_OWNERS.contains(&operation) && self.owns(store, bucket)? => None,
            true => policy_of(store, bucket)?,
            false => None,
        };
        let (user, session) = (self.user_policies(), self.session_policy());
        if found.is_some() || session.is_some() || !user.is_empty() {
            let Some(facts) = &self.facts else { return Ok(Some(Decision::Denied)) };
            let is_object = !name.is_empty() && action != Action::Use(Right::List);
            let resource = if is_object { format!("{bucket}/{name}") } else { bucket.to_owned() };
            let access = Access {
                client: Client::User(self.user_name()),
                action: &action_of(operation, self.version().is_some()),
                resource: &resource,
            };
            let facts = StoredFacts { facts, store, operation, bucket };
            sources.user = evaluate_all(user, &access, &facts);
            sources.session = session.map(|policy| policy.evaluate(&access, &facts));
            sources.bucket = match found.as_deref() {
                None => Verdict::Silent,
                Some(BucketPolicy { policy, is_restricted }) => {
                    match policy.evaluate(&access, &facts) {
                        Verdict::Allowed if *is_restricted => Verdict::Silent,
                        verdict => verdict,
                    }
                }
            };
        }
        let decision = decision::decide(&sources);
        Ok(if is_in_bucket { decision } else { decision.or(Some(Decision::Denied)) })
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

    /// Returns `true` if the client's key is still valid, and still allows an operation in a bucket
    /// that takes long.
    pub(crate) fn is_still_allowed(
        &self,
        store: &Pool,
        keys: &AllKeys,
        operation: Operation,
        bucket: &str,
    ) -> bool {
        let Some(principal) = self.present_principal(keys) else { return false };
        let (present, name) = (Self { principal, ..self.clone() }, operation.name());
        action(name).is_some_and(|action| present.check(store, name, action, (bucket, "")).is_ok())
    }

    /// Returns the client with the present rights of its key; `None` if the key is disabled, has
    /// expired or is another one, and for a client without a key.
    fn present_principal(&self, keys: &AllKeys) -> Option<Principal> {
        match &self.principal {
            Principal::Open => Some(Principal::Open),
            Principal::Anonymous(_) => None,
            Principal::Key(key) => {
                let token = key.session.as_ref().map(|session| &*session.token);
                let present = keys.signer(&key.access_key, token, now_s()).ok()?;
                let is_same = present.secret_key == key.secret_key && present.user == key.user;
                is_same.then_some(Principal::Key(present))
            }
        }
    }

    /// Fails with `AccessDenied` unless a right of the client or a policy allows `operation`, one
    /// step of the executed operation.
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
        let why = Decision::reason(decision, action.needs());
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

/// Returns the verdict of several policies. A statement that denies prevails in all of them.
fn evaluate_all(policies: &[Arc<Policy>], access: &Access<'_>, facts: &dyn Facts) -> Verdict {
    let mut verdict = Verdict::Silent;
    for policy in policies {
        match policy.evaluate(access, facts) {
            Verdict::Denied => return Verdict::Denied,
            Verdict::Allowed => verdict = Verdict::Allowed,
            Verdict::Silent => {}
        }
    }
    verdict
}
