//! The keys and the rights for the S3 service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_file_store::Error;
use hyper::header::HeaderMap;
use hyper::http::Extensions;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::dto::{
    CopyObjectInput, CopySource, ListMultipartUploadsInput, ListObjectVersionsInput,
    ListObjectsInput, ListObjectsV2Input, PutObjectLegalHoldInput, PutObjectRetentionInput,
    PutObjectTaggingInput, UploadPartCopyInput,
};
use s3s::path::S3Path;
use s3s::{S3Error, S3ErrorCode, S3Request, S3Result};
use tokio::task::spawn_blocking;

use crate::access::action::{Action, action};
use crate::access::authorize::Principal;
use crate::access::bucket_policy::{has_policy, has_setting};
use crate::access::caller::{Basis, Caller, Decision};
use crate::access::expected_owner;
use crate::access::facts::{RequestFacts, RequestedLock, request_tags};
use crate::access::keys::key_ring::AllKeys;
use crate::access::rights::Right;
use crate::access::verified::VerifiedClient;
use crate::buckets::settings::ACL;
use crate::errors::{from_store, refuse};
use crate::policy::action::has_version;
use crate::served::ServedStore;
use crate::service::joined;

/// Set if the client of a request may not learn that an object or a bucket is missing. An extension
/// of the request.
#[derive(Debug, Clone, Default)]
pub(crate) struct HidesMissing(Arc<AtomicBool>);

impl HidesMissing {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(extensions: &Extensions) {
        if let Some(Self(hides)) = extensions.get() {
            hides.store(true, Ordering::Relaxed);
        }
    }
}

/// The client that reads the source of a copy. An extension of the request.
#[derive(Clone)]
pub(crate) struct SourceReader(pub(crate) Caller);

/// Returns the error for an access key that is unknown, disabled or expired.
pub(crate) fn unknown_key() -> S3Error {
    let message = "The access key does not exist, is disabled, or has expired";
    refuse(S3ErrorCode::InvalidAccessKeyId, message)
}

/// The operation whose tags are in its body.
const TAGGING: &str = "PutObjectTagging";

/// The operations that are checked once their bodies are parsed, because policies compare these.
const WITH_BODIES: [&str; 3] = [TAGGING, "PutObjectRetention", "PutObjectLegalHold"];

/// Returns the version ID in the query of an operation, if the operation uses one.
fn version_of(operation: &str, query: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes()).filter(|_| has_version(operation));
    let version = pairs.find(|(name, _)| name == "versionId").map(|(_, value)| value.into_owned());
    version.filter(|version| !version.is_empty())
}

/// The keys of a server as the authentication of the S3 service.
pub(crate) struct Authentication(pub(crate) AllKeys);

#[async_trait::async_trait]
impl S3Auth for Authentication {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let key = self.0.find(access_key).ok_or_else(unknown_key)?;
        Ok(SecretKey::from(key.secret_key.as_str()))
    }
}

/// The rights of keys as the access control of the S3 service.
pub(crate) struct AccessControl {
    pub(crate) keys: AllKeys,
    pub(crate) store: Arc<ServedStore>,
}

impl AccessControl {
    /// Returns the client of a request: the one that was verified before, or the one of the
    /// signature that the service verified.
    fn caller(&self, context: &mut S3AccessContext<'_>, operation: &str) -> S3Result<Caller> {
        let caller = match context.extensions_mut().get::<Caller>() {
            Some(caller) => caller.clone(),
            None => self.signer(context)?,
        };
        let headers = context.headers().clone();
        let query = context.uri().query().unwrap_or_default().to_owned();
        let facts = RequestFacts {
            connection: context.extensions_mut().get().copied(),
            version: version_of(operation, &query),
            request_tags: request_tags(operation, &headers),
            lock: RequestedLock::of_headers(&headers),
            headers,
            query,
            user: caller.user().cloned(),
            existing_tags: BTreeMap::new(),
        };
        Ok(caller.with_facts(facts))
    }

    fn signer(&self, context: &S3AccessContext<'_>) -> S3Result<Caller> {
        let principal = match context.credentials() {
            // The key may have been removed since its signature was verified.
            Some(signed) => {
                Principal::Key(self.keys.find(&signed.access_key).ok_or_else(unknown_key)?)
            }
            None => Principal::Anonymous(self.keys.of_file()),
        };
        Ok(Caller::new(principal))
    }

    /// Checks the right to a listing, whose prefix is known once the request is parsed.
    fn check_list(
        &self,
        extensions: &Extensions,
        operation: &str,
        bucket: &str,
        prefix: Option<&str>,
    ) -> S3Result<()> {
        let names = (bucket, prefix.unwrap_or_default());
        let list = Action::Use(Right::List);
        let basis = Caller::of(extensions).check(&self.store.load(), operation, list, names)?;
        VerifiedClient::note_basis(extensions, basis);
        Ok(())
    }

    /// Fails if the bucket does not exist. As in S3, every client learns that.
    fn check_bucket(&self, bucket: &str) -> S3Result<()> {
        match self.store.load().bucket(bucket) {
            Err(error @ Error::NoSuchBucket { .. }) => Err(from_store(error)),
            // The operation reports other errors.
            _ => Ok(()),
        }
    }

    /// Returns the client with the tags of an object, if the policy of the bucket compares them.
    async fn with_tags(
        &self,
        caller: Caller,
        bucket: &str,
        (key, version): (&str, Option<&str>),
    ) -> S3Result<Caller> {
        if caller.is_administrator() || !has_policy(&self.store.load(), bucket) {
            return Ok(caller);
        }
        let (store, bucket, key) = (self.store.get(), bucket.to_owned(), key.to_owned());
        let version = version.map(str::to_owned);
        let call = move || caller.with_tags(&store, &bucket, (&key, version.as_deref()));
        joined(spawn_blocking(call).await)
    }

    /// Decides about an operation. Reads the list of the object if rights, policy and the list of
    /// the bucket do not allow the operation.
    async fn authorize(
        &self,
        caller: &Caller,
        (operation, action): (&str, Action),
        (bucket, name): (&str, &str),
        version: Option<&str>,
    ) -> S3Result<Basis> {
        let decision = caller.decide(&self.store.load(), operation, action, (bucket, name))?;
        let permission = match decision {
            Decision::Allowed(basis) => return Ok(basis),
            Decision::Denied | Decision::DeniedByPolicy => None,
            Decision::ByObjectList(permission) => Some(permission),
        };
        if let Some(permission) = permission {
            let (store, caller) = (self.store.get(), caller.clone());
            let (bucket, key) = (bucket.to_owned(), name.to_owned());
            let version = version.map(str::to_owned);
            let call = move || {
                let object = (&*key, version.as_deref());
                caller.object_list_allows(&store, &bucket, object, permission)
            };
            if joined(spawn_blocking(call).await)? {
                return Ok(Basis::List);
            }
        }
        Err(caller.refused(Some(decision), (operation, action), (bucket, name)))
    }

    /// Checks the right to an operation that changes an object and whose body is known.
    async fn authorize_write(
        &self,
        extensions: &mut Extensions,
        caller: Caller,
        operation: &str,
        (of, version): ((&str, &str), Option<&str>),
    ) -> S3Result<()> {
        let write = (operation, Action::Use(Right::Write));
        let basis = self.authorize(&caller, write, of, version).await?;
        VerifiedClient::note_basis(extensions, basis);
        extensions.insert(caller.with_basis(basis));
        Ok(())
    }

    /// Checks the right to read the source of a copy.
    async fn check_source(
        &self,
        extensions: &mut Extensions,
        headers: &HeaderMap,
        source: &CopySource,
    ) -> S3Result<()> {
        // The operation refuses the other kinds of sources.
        let CopySource::Bucket { bucket, key, version_id } = source else { return Ok(()) };
        self.check_bucket(bucket)?;
        expected_owner::check(&self.store.load(), headers, expected_owner::OF_SOURCE, bucket)?;
        // As in other requests, an empty ID is none.
        let version = version_id.as_deref().filter(|id| !id.is_empty());
        let caller = Caller::of(extensions).with_version(version);
        let caller = self.with_tags(caller, bucket, (key, version)).await?;
        // The policy of the source allows copies as it allows reads.
        let operation = if version.is_some() { "GetObjectVersion" } else { "GetObject" };
        let read = (operation, Action::Use(Right::Read));
        let basis = self.authorize(&caller, read, (bucket, key), version).await?;
        if caller.hides_missing(&self.store.load(), bucket, key) {
            HidesMissing::set(extensions);
        }
        extensions.insert(SourceReader(caller.with_basis(basis)));
        Ok(())
    }
}

#[async_trait::async_trait]
impl S3Access for AccessControl {
    async fn check(&self, context: &mut S3AccessContext<'_>) -> S3Result<()> {
        let operation = context.s3_op().name().to_owned();
        let mut caller = self.caller(context, &operation)?;
        VerifiedClient::note(context.extensions_mut(), &caller);
        let (bucket, name) = match context.s3_path() {
            S3Path::Root => ("", ""),
            S3Path::Bucket { bucket } => (&**bucket, ""),
            S3Path::Object { bucket, key } => (&**bucket, &**key),
        };
        if !bucket.is_empty() && operation != "CreateBucket" {
            self.check_bucket(bucket)?;
            let (store, headers) = (self.store.load(), context.headers());
            expected_owner::check(&store, headers, expected_owner::OF_BUCKET, bucket)?;
        }
        if !name.is_empty() {
            let version = caller.version().map(str::to_owned);
            caller = self.with_tags(caller, bucket, (name, version.as_deref())).await?;
        }
        // A policy or a list may allow the deletion of some of the keys.
        let checks_keys = operation == "DeleteObjects" && {
            let store = self.store.load();
            has_policy(&store, bucket) || has_setting(&store, bucket, ACL)
        };
        match action(&operation) {
            // Checked once the prefix, or the body, is known.
            Some(Action::Use(Right::List)) => {}
            Some(_) if WITH_BODIES.contains(&&*operation) => {}
            Some(Action::UseBucket) if checks_keys => {}
            Some(action) => {
                let version = caller.version().map(str::to_owned);
                let of = (bucket, name);
                let version = version.as_deref();
                let basis = self.authorize(&caller, (&operation, action), of, version).await?;
                // As in S3, these are several operations for policies and lists.
                if operation == "GetObjectAttributes" {
                    self.authorize(&caller, ("GetObject", action), of, version).await?;
                }
                if caller.gives_tags() {
                    caller.check_without_lists(&self.store.load(), (TAGGING, action), of)?;
                }
                caller = caller.with_basis(basis);
            }
            None if caller.is_administrator() => {}
            None => return Err(caller.refusal(&operation, "the administrator", bucket, name)),
        }
        let hides = !bucket.is_empty() && caller.hides_missing(&self.store.load(), bucket, name);
        let extensions = context.extensions_mut();
        if hides {
            HidesMissing::set(extensions);
        }
        VerifiedClient::note_basis(extensions, caller.basis());
        extensions.insert(caller);
        Ok(())
    }

    async fn list_objects(&self, request: &mut S3Request<ListObjectsInput>) -> S3Result<()> {
        let input = &request.input;
        let prefix = input.prefix.as_deref();
        self.check_list(&request.extensions, "ListObjects", &input.bucket, prefix)
    }

    async fn list_objects_v2(&self, request: &mut S3Request<ListObjectsV2Input>) -> S3Result<()> {
        let input = &request.input;
        let prefix = input.prefix.as_deref();
        self.check_list(&request.extensions, "ListObjectsV2", &input.bucket, prefix)
    }

    async fn list_object_versions(
        &self,
        request: &mut S3Request<ListObjectVersionsInput>,
    ) -> S3Result<()> {
        let input = &request.input;
        let prefix = input.prefix.as_deref();
        self.check_list(&request.extensions, "ListObjectVersions", &input.bucket, prefix)
    }

    async fn list_multipart_uploads(
        &self,
        request: &mut S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<()> {
        let input = &request.input;
        let prefix = input.prefix.as_deref();
        self.check_list(&request.extensions, "ListMultipartUploads", &input.bucket, prefix)
    }

    async fn put_object_tagging(
        &self,
        request: &mut S3Request<PutObjectTaggingInput>,
    ) -> S3Result<()> {
        let input = &request.input;
        let tags = input.tagging.tag_set.iter().map(|tag| (tag.key.clone(), tag.value.clone()));
        let tags = tags.map(|(key, value)| (key.unwrap_or_default(), value.unwrap_or_default()));
        let caller = Caller::of(&request.extensions).with_request_tags(tags.collect());
        let (of, version) = ((&*input.bucket, &*input.key), input.version_id.as_deref());
        self.authorize_write(&mut request.extensions, caller, TAGGING, (of, version)).await
    }

    async fn put_object_retention(
        &self,
        request: &mut S3Request<PutObjectRetentionInput>,
    ) -> S3Result<()> {
        let input = &request.input;
        let lock = RequestedLock::of_retention(input.retention.as_ref());
        let caller = Caller::of(&request.extensions).with_requested_lock(lock);
        let (of, version) = ((&*input.bucket, &*input.key), input.version_id.as_deref());
        let operation = "PutObjectRetention";
        self.authorize_write(&mut request.extensions, caller, operation, (of, version)).await
    }

    async fn put_object_legal_hold(
        &self,
        request: &mut S3Request<PutObjectLegalHoldInput>,
    ) -> S3Result<()> {
        let input = &request.input;
        let lock = RequestedLock::of_legal_hold(input.legal_hold.as_ref());
        let caller = Caller::of(&request.extensions).with_requested_lock(lock);
        let (of, version) = ((&*input.bucket, &*input.key), input.version_id.as_deref());
        let operation = "PutObjectLegalHold";
        self.authorize_write(&mut request.extensions, caller, operation, (of, version)).await
    }

    async fn copy_object(&self, request: &mut S3Request<CopyObjectInput>) -> S3Result<()> {
        let S3Request { input, headers, extensions, .. } = request;
        self.check_source(extensions, headers, &input.copy_source).await
    }

    async fn upload_part_copy(&self, request: &mut S3Request<UploadPartCopyInput>) -> S3Result<()> {
        let S3Request { input, headers, extensions, .. } = request;
        self.check_source(extensions, headers, &input.copy_source).await
    }
}
