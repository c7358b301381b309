//! The remote object store: blocking calls with retries, on their own runtime.

mod upload;

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
};
use tokio::runtime::{Builder, Runtime};

use crate::error::{Error, Result};
use crate::provider;

/// Objects below a prefix of a remote object store. Clones share it.
#[derive(Clone)]
pub struct Remote {
    inner: Arc<Inner>,
    prefix: Path,
    counters: Arc<Counters>,
    /// The time after which this handle's requests fail.
    timeout: Option<Duration>,
}

struct Inner {
    store: Arc<dyn ObjectStore>,
    /// `None` only while the value is dropped.
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Counters {
    requests: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
}

/// A conditional read's result.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// The object still has the known version.
    Unchanged,
    /// The object does not exist.
    Missing,
    /// The object's bytes and version.
    Object(Bytes, UpdateVersion),
}

/// A conditional put's result.
#[derive(Debug)]
pub(crate) enum Replaced {
    /// The object was stored, and has this version.
    Stored(UpdateVersion),
    /// The object does not have the expected version.
    Conflict,
}

impl Remote {
    /// Opens the remote store at a URL such as `s3://bucket/prefix`, `gs://bucket/prefix` or
    /// `az://container/prefix`. The options have the names that the crate `object_store` uses, for
    /// example `aws_endpoint` and `aws_access_key_id`, in any case. `options` override
    /// `environment`, which may contain unknown names, such as other environment variables; they
    /// are ignored. Makes no request.
    ///
    /// Sets the process's default TLS provider, unless it has one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the URL or an option is invalid, or an option is unknown.
    pub fn open(
        url: &str,
        environment: &[(String, String)],
        options: &[(String, String)],
    ) -> Result<Self> {
        let invalid = |what: String| Error::Invalid(format!("the remote URL {url}: {what}"));
        let parsed = url::Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        // An error means that another thread has set a provider, which serves as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        let (store, prefix) = provider::build(&parsed, environment, options)
            .map_err(|error| invalid(haul_disk::error_chain(&error).to_string()))?;
        Self::with_store(store, prefix)
    }

    /// Returns the objects below `prefix` in any object store, such as one in memory.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix is invalid or no thread can be started.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self> {
        let prefix = Path::parse(prefix).map_err(|error| Error::Invalid(error.to_string()))?;
        Self::with_store(store, prefix)
    }

    fn with_store(store: Arc<dyn ObjectStore>, prefix: Path) -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("replicate-http")
            .enable_all()
            .build()
            .map_err(|error| Error::Invalid(format!("cannot start a thread: {error}")))?;
        let inner = Arc::new(Inner { store, runtime: Some(runtime) });
        Ok(Self { inner, prefix, counters: Arc::default(), timeout: None })
    }

    /// Returns the objects below this prefix and `name`, such as for another copy. It uses the same
    /// connections, and has counters of its own.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self { prefix: self.path(name), counters: Arc::default(), ..self.clone() }
    }

    /// Returns a handle whose requests fail after `timeout`. It is then unknown whether they had an
    /// effect, or will have one.
    pub(crate) fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// Returns the number of requests made so far. A part of an upload and a retry by this crate
    /// are requests; a retry within the HTTP client is not.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counters.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of object bytes sent so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.counters.sent_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of object bytes received so far, without manifests.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.counters.received_bytes.load(Ordering::Relaxed)
    }

    /// Returns an object's full name, for messages.
    pub(crate) fn full_name(&self, name: &str) -> String {
        self.path(name).to_string()
    }

    fn path(&self, name: &str) -> Path {
        name.split('/')
            .filter(|part| !part.is_empty())
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        self.inner.runtime.as_ref().map(|runtime| runtime.block_on(future))
    }

    /// Executes a request and counts it.
    fn request<T>(
        &self,
        what: &'static str,
        name: &str,
        future: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T> {
        self.count(1, 0);
        let limited = async {
            let Some(timeout) = self.timeout else { return future.await };
            tokio::time::timeout(timeout, future).await.unwrap_or_else(|elapsed| {
                Err(StoreError::Generic { store: "remote store", source: Box::new(elapsed) })
            })
        };
        let result = self.block_on(limited);
        let result =
            result.ok_or_else(|| Error::Invalid("the remote store is closed".to_owned()))?;
        result.map_err(|source| self.request_error(what, name, source))
    }

    /// Returns the error for a conditional request that was rejected although its condition held.
    pub(crate) fn condition_error(&self, what: &'static str, name: &str) -> Error {
        let source = "it reported a conflict, and the object is unchanged".into();
        self.request_error(what, name, StoreError::Generic { store: "remote", source })
    }

    fn request_error(&self, what: &'static str, name: &str, source: StoreError) -> Error {
        Error::Remote { what, name: self.full_name(name), source: Box::new(source) }
    }

    fn count(&self, requests: usize, sent_bytes: usize) {
        self.counters.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.counters.sent_bytes.fetch_add(sent_bytes as u64, Ordering::Relaxed);
    }

    /// Returns an object's bytes and version; `None` if it does not exist.
    pub(crate) fn get(&self, name: &str) -> Result<Option<(Bytes, UpdateVersion)>> {
        Ok(match self.get_unless(name, None)? {
            Fetched::Object(bytes, version) => Some((bytes, version)),
            Fetched::Missing | Fetched::Unchanged => None,
        })
    }

    /// Reads an object unless it has the ETag `known` (`If-None-Match`).
    pub(crate) fn get_unless(&self, name: &str, known: Option<&str>) -> Result<Fetched> {
        let path = self.path(name);
        let options =
            GetOptions { if_none_match: known.map(str::to_owned), ..GetOptions::default() };
        let read = async {
            let found = match self.inner.store.get_opts(&path, options).await {
                Err(StoreError::NotFound { .. }) => return Ok(Fetched::Missing),
                Err(StoreError::NotModified { .. }) => return Ok(Fetched::Unchanged),
                found => found?,
            };
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            Ok(Fetched::Object(found.bytes().await?, version))
        };
        self.request("read", name, read)
    }

    /// Returns a range of an object, which must not end after it; `None` if the object does not
    /// exist.
    pub(crate) fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let path = self.path(name);
        let read = async {
            match self.inner.store.get_range(&path, range).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?)),
            }
        };
        let found = self.request("read", name, read)?;
        let bytes = found.as_ref().map_or(0, Bytes::len);
        self.counters.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(found)
    }

    /// Reads an object in pieces, and passes each with its offset to `each`. Returns the object's
    /// length; `None` if it does not exist.
    pub(crate) fn get_pieces(
        &self,
        name: &str,
        each: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Option<u64>> {
        let path = self.path(name);
        let open = async {
            match self.inner.store.get(&path).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?.into_stream())),
            }
        };
        let Some(mut pieces) = self.request("read", name, open)? else { return Ok(None) };
        let mut at = 0;
        while let Some(piece) = self.block_on(pieces.next()).flatten() {
            let piece = piece.map_err(|source| self.request_error("read", name, source))?;
            self.counters.received_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            each(at, &piece)?;
            at += piece.len() as u64;
        }
        Ok(Some(at))
    }

    /// Stores an object if it has the version `expected`, or if it does not exist for `None`.
    pub(crate) fn replace(
        &self,
        name: &str,
        bytes: Bytes,
        expected: Option<&UpdateVersion>,
    ) -> Result<Replaced> {
        self.count(0, bytes.len());
        let mode = expected.cloned().map_or(PutMode::Create, PutMode::Update);
        let options = PutOptions { mode, ..PutOptions::default() };
        let path = self.path(name);
        let put = async {
            match self.inner.store.put_opts(&path, PutPayload::from(bytes), options).await {
                Ok(stored) => Ok(Replaced::Stored(stored.into())),
                Err(
                    StoreError::Precondition { .. }
                    | StoreError::AlreadyExists { .. }
                    | StoreError::NotModified { .. },
                ) => Ok(Replaced::Conflict),
                Err(error) => Err(error),
            }
        };
        self.request("replace", name, put)
    }

    /// Returns an object's length; `None` if it does not exist.
    pub(crate) fn length(&self, name: &str) -> Result<Option<u64>> {
        let path = self.path(name);
        let head = async {
            match self.inner.store.head(&path).await {
                Err(StoreError::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?.size)),
            }
        };
        self.request("find", name, head)
    }

    /// Returns the names of the objects in a folder, as far as the remote store lists them.
    pub(crate) fn list(&self, folder: &str) -> Result<Vec<String>> {
        let path = self.path(folder);
        let prefix = self.prefix.to_string();
        let name = |path: &Path| {
            let full = path.as_ref();
            let name = full.strip_prefix(&prefix).unwrap_or(full);
            name.strip_prefix('/').unwrap_or(name).to_owned()
        };
        let list = self.inner.store.list(Some(&path));
        let names = list.map_ok(|meta| name(&meta.location)).try_collect();
        self.request("list", folder, names)
    }

    /// Returns the names of the folders directly below the prefix, such as of several copies, as far
    /// as the remote store lists them.
    ///
    /// # Errors
    /// [`Error::Remote`].
    pub fn folders(&self) -> Result<Vec<String>> {
        let list = self.inner.store.list_with_delimiter(Some(&self.prefix));
        let found = self.request("list", "", list)?;
        let last = |path: &Path| path.filename().map(str::to_owned);
        Ok(found.common_prefixes.iter().filter_map(last).collect())
    }

    /// Deletes objects. A missing object is no error.
    pub(crate) fn delete_all(&self, names: &[String]) -> Result<()> {
        if names.is_empty() {
            return Ok(());
        }
        let paths: Vec<_> = names.iter().map(|name| Ok(self.path(name))).collect();
        let deletions = self.inner.store.delete_stream(stream::iter(paths).boxed());
        let each = deletions.filter_map(async |deleted| match deleted {
            Ok(_) | Err(StoreError::NotFound { .. }) => None,
            Err(error) => Some(error),
        });
        let first = async { std::pin::pin!(each).next().await.map_or(Ok(()), Err) };
        self.request("delete", &names[0], first)
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Unlike dropping it, this is permitted on a thread of another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
