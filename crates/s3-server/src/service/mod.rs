//! The context of S3 operations: the store, its limits, and blocking calls; and the request.

pub(crate) mod request;

use std::ops::Deref;
use std::sync::Arc;

use haul_file_store::{Event, Object};
use haul_store_pool::Pool;
use tokio::task::spawn_blocking;

use crate::access::keys::key_ring::AllKeys;
use crate::config::Limits;
use crate::encryption::content::Content;
use crate::encryption::customer::CustomerKey;
use crate::encryption::default::master_for;
use crate::encryption::master::Master;
use crate::encryption::operator::EncryptionKeys;
use crate::encryption::request::RequestedEncryption;
use crate::errors::{S3Result, joined};
use crate::events::new::event;
use crate::events::target::EventTargets;
use crate::hot::HotObjects;
use crate::memory::{BodyMemory, PeerMemory, Reserved};
use crate::metrics::Metrics;
use crate::oidc::provider::Providers;
use crate::served::ServedStore;
use crate::service::request::Request;
use crate::settings::notification::name::EventName;

/// The context; every operation has a reference to it.
#[derive(Clone)]
pub(crate) struct Haul {
    pub(crate) store: Arc<ServedStore>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) memory: Arc<BodyMemory>,
    pub(crate) hot: Arc<HotObjects>,
    pub(crate) keys: AllKeys,
    pub(crate) providers: Option<Arc<Providers>>,
    pub(crate) encryption: Option<Arc<EncryptionKeys>>,
    pub(crate) events: Option<Arc<EventTargets>>,
}

impl Haul {
    /// Returns `true` for the administrator's name, and for each user that has a key.
    pub(crate) fn is_user(&self, name: &str) -> bool {
        self.keys.is_user(name)
    }

    /// Returns the store, for calls that another thread makes.
    pub(crate) fn shared_store(&self) -> Arc<Pool> {
        self.store.get()
    }

    /// Returns the store, for calls that do no I/O.
    pub(crate) fn store(&self) -> impl Deref<Target = Pool> {
        self.store.load()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the keys with which the server itself encrypts objects.
    pub(crate) fn encryption(&self) -> Option<Arc<EncryptionKeys>> {
        self.encryption.clone()
    }

    /// Returns the content of an object with these names, as clients see it. A customer key is
    /// required for an object that was encrypted with it, and rejected for any other object.
    pub(crate) fn content(
        &self,
        names: (&str, &str),
        object: Object,
        customer: Option<&CustomerKey>,
    ) -> S3Result<Content> {
        Content::open(self.encryption.as_deref(), names, object, customer)
    }

    /// Returns the key for a new object in the bucket; `None` if the object is not encrypted.
    pub(crate) fn master_for(
        &self,
        bucket: &str,
        wanted: RequestedEncryption,
    ) -> S3Result<Option<Master>> {
        master_for(&self.store.load(), self.encryption.as_deref(), bucket, wanted)
    }

    /// Returns the event of a change that a request makes to a key; `None` if no rule of the bucket
    /// selects it.
    pub(crate) fn event(&self, request: &Request, name: EventName, key: &str) -> Option<Event> {
        let targets = self.events.as_ref()?;
        let bucket = &request.name().bucket;
        let settings = self.store.load().bucket_settings(bucket).ok()?;
        event(targets, bucket, &settings, name, key, Some(&request.requester))
    }

    /// Runs a store call on a thread that may block.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Pool) -> S3Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let store = self.store.get();
        joined(spawn_blocking(move || call(&store)).await)
    }

    /// Waits for memory for `bytes` bytes of a body from this peer.
    pub(crate) async fn reserve(
        &self,
        peer: Option<&PeerMemory>,
        bytes: u64,
    ) -> S3Result<Reserved> {
        self.memory.reserve(peer, bytes).await
    }
}
