//! A request that may be executed.

use std::sync::Arc;

use haul_file_store::{BucketId, Error, ObjectLocation};
use haul_store_pool::Pool;

use crate::access::caller::Caller;
use crate::access::check::Allowed;
use crate::audit::Changes;
use crate::auth::canonical::push_encoded;
use crate::errors::{S3Result, from_store};
use crate::events::requester::Requester;
use crate::memory::PeerMemory;
use crate::request::copy_source::CopySource;
use crate::request::head::Head;
use crate::request::name::ObjectName;
use crate::request::operation::Operation;
use crate::request::trailer::Trailer;

/// A request that was parsed, verified and authorized. It is created once, and passed by reference.
pub(crate) struct Request {
    pub(crate) head: Arc<Head>,
    pub(crate) operation: Operation,
    /// The client, and the reason why it may execute the operation.
    pub(crate) allowed: Allowed,
    /// The memory for the peer's bodies.
    pub(crate) memory: Option<PeerMemory>,
    /// The list to which the operation adds its changes, if the request is audited or logged.
    pub(crate) changes: Option<Changes>,
    /// The body's SHA-256, if the client sends it.
    pub(crate) sha256: Option<[u8; 32]>,
    /// The trailer of a chunked body.
    pub(crate) trailer: Option<Trailer>,
    /// `true` if the client uses TLS.
    pub(crate) is_encrypted: bool,
    /// The location of the object that the request reads, if it was looked up and the object is not
    /// in memory.
    pub(crate) missed: Option<ObjectLocation>,
    /// The requester, as events name it.
    pub(crate) requester: Requester,
    /// `true` if the object to store is a file in a form.
    pub(crate) is_form: bool,
}

impl Request {
    pub(crate) fn name(&self) -> &ObjectName {
        &self.head.name
    }

    /// Returns the client, with the reason why it may execute the operation.
    pub(crate) fn caller(&self) -> &Caller {
        self.allowed.caller()
    }

    /// Returns the bucket for which the request was authorized.
    pub(crate) fn bucket(&self) -> Option<BucketId> {
        self.allowed.bucket()
    }

    /// Fails if another bucket has the name by now: a client can delay its body until its bucket is
    /// deleted and somebody else has created one with the name.
    pub(crate) fn check_bucket(&self, store: &Pool) -> S3Result<()> {
        let name = &self.name().bucket;
        match self.bucket().is_some_and(|id| store.bucket_id(name).ok() != Some(id)) {
            true => Err(from_store(Error::NoSuchBucket { bucket: name.clone() })),
            false => Ok(()),
        }
    }

    /// Returns the client as the reader of a copy's source.
    pub(crate) fn source(&self) -> Option<&Caller> {
        self.allowed.source()
    }

    /// Returns `true` if the client may not learn that the object, or its copy's source, is
    /// missing.
    pub(crate) fn hides_missing(&self, store: &Pool) -> bool {
        let ObjectName { bucket, key } = self.name();
        let hides_source = self.source().is_some_and(|reader| {
            let source = CopySource::from_request(&self.head).map(|source| source.name);
            source.is_ok_and(|name| reader.hides_missing(store, &name.bucket, &name.key))
        });
        !bucket.is_empty() && self.caller().hides_missing(store, bucket, key) || hides_source
    }

    /// Returns the object's URL, in the request's style: with the bucket in the path, or in the
    /// host.
    pub(crate) fn location(&self) -> String {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let host = self.head.host.as_deref().unwrap_or_default();
        let mut url = format!("{scheme}://{host}/");
        match self.head.names_bucket_in_host() {
            true => push_encoded(&mut url, &self.name().key),
            false => push_encoded(&mut url, &self.name().to_string()),
        }
        url
    }
}
