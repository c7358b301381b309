//! The client of a request, and the checks of its rights.

use std::borrow::Cow;
use std::sync::Arc;

use haul_file_store::{Error, Store};
use hyper::http::Extensions;
use s3s::dto::Owner;
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::access::action::Action;
use crate::access::authorize::{Decision, Principal, authorize};
use crate::access::bucket_policy::{BucketPolicy, has_policy, policy_of};
use crate::access::facts::RequestFacts;
use crate::access::key::{ADMINISTRATOR, ANONYMOUS};
use crate::access::rights::Right;
use crate::errors::{from_store, refuse};
use crate::objects::{tagging, versions};
use crate::policy::action::action_of;
use crate::policy::condition::{Facts, Key};
use crate::policy::evaluate::{Access, Verdict};

/// The operations that no policy denies to the owner of the bucket, as in S3.
const OF_OWNERS: [&str; 3] = ["GetBucketPolicy", "PutBucketPolicy", "DeleteBucketPolicy"];

/// The setting of a bucket that has the user that owns it; without it, the administrator owns it.
pub(crate) const OWNER: &str = "owner";

/// The client of a request. An extension of each request of the S3 service.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    /// The properties that policies compare; `None` on the short paths, which leave buckets with
    /// policies to the S3 service.
    facts: Option<Arc<RequestFacts>>,
}

impl Caller {
    /// Returns the client of a request that was authorized. Without one, nothing is allowed.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Self::new(Principal::Anonymous(None)))
    }

    pub(crate) fn new(principal: Principal) -> Self {
        Self { principal, facts: None }
    }

    /// Returns this client with the properties of its request.
    pub(crate) fn with_facts(self, facts: RequestFacts) -> Self {
        Self { facts: Some(Arc::new(facts)), ..self }
    }

    /// Returns the version ID that the query of the request has.
    pub(crate) fn version(&self) -> Option<Cow<'_, str>> {
        self.facts.as_ref()?.value(&Key::Query("versionId")).filter(|version| !version.is_empty())
    }

    /// Returns this client with the tags of an object or version, if the policy of the bucket
    /// compares them. May read from the disk.
    pub(crate) fn with_tags(
        &self,
        store: &Store,
        bucket: &str,
        (key, version): (&str, Option<&str>),
    ) -> S3Result<Self> {
        if self.is_administrator() {
            return Ok(self.clone());
        }
        let uses_tags = |found: &BucketPolicy| found.policy.uses_existing_tags();
        let (true, Some(facts)) =
            (policy_of(store, bucket)?.as_ref().is_some_and(uses_tags), &self.facts)
        else {
            return Ok(self.clone());
        };
        let found = match versions::parse(version)? {
            Some(version) => store.head_version(bucket, key, version),
            None => store.head(bucket, key),
        };
        let existing_tags = match found {
            Ok(object) => tagging::from_attributes(&object.attributes),
            Err(
                Error::NoSuchKey { .. }
                | Error::NoSuchVersion { .. }
                | Error::IsDeleteMarker { .. },
            ) => tagging::Tags::new(),
            Err(error) => return Err(from_store(error)),
        };
        Ok(self.clone().with_facts(RequestFacts { existing_tags, ..RequestFacts::clone(facts) }))
    }

    /// Returns the access key, for the logs.
    pub(crate) fn access_key(&self) -> Option<Arc<str>> {
        match &self.principal {
            Principal::Key(key) => Some(Arc::clone(&key.access_key)),
            Principal::Open | Principal::Anonymous(_) => None,
        }
    }

    /// Returns the user that owns the buckets that this client creates; `None` for the
    /// administrator.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match &self.principal {
            Principal::Key(key) => key.user.as_ref(),
            Principal::Open | Principal::Anonymous(_) => None,
        }
    }

    /// Returns `true` for clients with all rights, whom no policy restricts.
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
    /// If damage hides the owner of the bucket, and the rights depend on it.
    pub(crate) fn has_right(
        &self,
        store: &Store,
        action: Action,
        bucket: &str,
        name: &str,
    ) -> S3Result<bool> {
        match authorize(&self.principal, action, bucket, name) {
            Decision::Allowed => Ok(true),
            Decision::Denied => Ok(false),
            Decision::IfOwner => self.owns(store, bucket),
        }
    }

    /// Returns `true` if the client has the right to an action on an object, and if there is no
    /// policy that could decide otherwise.
    pub(crate) fn may_without_policy(
        &self,
        store: &Store,
        right: Right,
        bucket: &str,
        key: &str,
    ) -> bool {
        (self.is_administrator() || !has_policy(store, bucket))
            && self.has_right(store, Action::Use(right), bucket, key).unwrap_or(false)
    }

    /// Returns `true` if the client may execute an operation: by its rights or by the policy of the
    /// bucket, if the policy does not deny it.
    ///
    /// # Errors
    /// If damage hides the owner or the policy of the bucket, and the rights depend on it.
    pub(crate) fn may(
        &self,
        store: &Store,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<bool> {
        let has_right = self.has_right(store, action, bucket, name)?;
        let is_of_bucket = !bucket.is_empty() && action != Action::CreateBucket;
        if self.is_administrator() || !is_of_bucket {
            return Ok(has_right);
        }
        let Some(BucketPolicy { policy, is_restricted }) = policy_of(store, bucket)? else {
            return Ok(has_right);
        };
        // An owner can replace a policy that denies everything.
        if OF_OWNERS.contains(&operation) && self.owns(store, bucket)? {
            return Ok(true);
        }
        let Some(facts) = &self.facts else { return Ok(false) };
        let is_object = !name.is_empty() && action != Action::Use(Right::List);
        let resource = if is_object { format!("{bucket}/{name}") } else { bucket.to_owned() };
        let user = self.user().map(|user| &**user);
        let access = Access {
            user,
            action: &action_of(operation, self.version().is_some()),
            resource: &resource,
        };
        Ok(match policy.evaluate(&access, &**facts) {
            Verdict::Denied => false,
            Verdict::Allowed if !is_restricted => true,
            Verdict::Allowed | Verdict::Silent => has_right,
        })
    }

    /// Returns `true` if the user of this client owns the bucket.
    fn owns(&self, store: &Store, bucket: &str) -> S3Result<bool> {
        let Some(user) = self.user() else { return Ok(false) };
        match store.bucket_settings(bucket) {
            Ok(settings) => Ok(settings.get(OWNER) == Some(&**user)),
            Err(Error::NoSuchBucket { .. }) => Ok(false),
            Err(error) => Err(from_store(error)),
        }
    }

    /// Fails with `AccessDenied` if the client may not execute the operation.
    pub(crate) fn check(
        &self,
        store: &Store,
        operation: &str,
        action: Action,
        (bucket, name): (&str, &str),
    ) -> S3Result<()> {
        if self.may(store, operation, action, (bucket, name))? {
            return Ok(());
        }
        Err(self.refusal(operation, action.needs(), bucket, name))
    }

    /// Returns the error for an operation that the client may not execute.
    pub(crate) fn refusal(
        &self,
        operation: &str,
        needs: &str,
        bucket: &str,
        name: &str,
    ) -> S3Error {
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
        let message = format!(
            "User {who} is not authorized to perform {operation} on {resource}: it needs {needs}"
        );
        refuse(S3ErrorCode::AccessDenied, message)
    }

    /// Returns `true` if the client may not learn that this name is missing, because it may not
    /// list it. Damage that hides the owner of the bucket hides the name, too, and is no error.
    pub(crate) fn hides_missing(&self, store: &Store, bucket: &str, name: &str) -> bool {
        let list = Action::Use(Right::List);
        !self.may(store, "ListObjects", list, (bucket, name)).unwrap_or(false)
    }

    /// Returns this client as the owner of buckets.
    pub(crate) fn owner(&self) -> Owner {
        owner_named(self.user().map(|user| &**user))
    }
}

/// Returns the owner of a bucket and its objects, for responses. An owner that is hidden by damage
/// does not prevent a response: the administrator takes its place.
pub(crate) fn owner_of(store: &Store, bucket: &str) -> Owner {
    owner_named(store.bucket_settings(bucket).ok().as_deref().and_then(|all| all.get(OWNER)))
}

fn owner_named(user: Option<&str>) -> Owner {
    let name = Some(user.unwrap_or(ADMINISTRATOR).to_owned());
    Owner { display_name: name.clone(), id: name }
}
