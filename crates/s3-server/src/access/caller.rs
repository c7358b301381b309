//! The client of a request, and the checks of its rights.

use std::sync::Arc;

use haul_file_store::{Error, Store};
use hyper::http::Extensions;
use s3s::dto::Owner;
use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::access::action::Action;
use crate::access::authorize::{Decision, Principal, authorize};
use crate::access::key::{ADMINISTRATOR, ANONYMOUS};
use crate::access::rights::Right;
use crate::errors::{from_store, refuse};

/// The setting of a bucket that has the user that owns it; without it, the administrator owns it.
pub(crate) const OWNER: &str = "owner";

/// The client of a request. An extension of each request of the S3 service.
#[derive(Debug, Clone)]
pub(crate) struct Caller(pub(crate) Principal);

impl Caller {
    /// Returns the client of a request that was authorized. Without one, nothing is allowed.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or(Self(Principal::Anonymous(None)))
    }

    /// Returns the access key, for the logs.
    pub(crate) fn access_key(&self) -> Option<Arc<str>> {
        match &self.0 {
            Principal::Key(key) => Some(Arc::clone(&key.access_key)),
            Principal::Open | Principal::Anonymous(_) => None,
        }
    }

    /// Returns the user that owns the buckets that this client creates; `None` for the
    /// administrator.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        match &self.0 {
            Principal::Key(key) => key.user.as_ref(),
            Principal::Open | Principal::Anonymous(_) => None,
        }
    }

    /// Returns `true` if the client may execute the action.
    ///
    /// # Errors
    /// If damage hides the owner of the bucket, and the rights depend on it.
    pub(crate) fn may(
        &self,
        store: &Store,
        action: Action,
        bucket: &str,
        name: &str,
    ) -> S3Result<bool> {
        match authorize(&self.0, action, bucket, name) {
            Decision::Allowed => Ok(true),
            Decision::Denied => Ok(false),
            Decision::IfOwner => match store.bucket_settings(bucket) {
                Ok(settings) => {
                    let owner = settings.get(OWNER);
                    Ok(owner.is_some() && owner == self.user().map(|user| &**user))
                }
                Err(Error::NoSuchBucket { .. }) => Ok(false),
                Err(error) => Err(from_store(error)),
            },
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
        if self.may(store, action, bucket, name)? {
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
        let who = match (&self.0, self.user()) {
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
        !self.may(store, Action::Use(Right::List), bucket, name).unwrap_or(false)
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
