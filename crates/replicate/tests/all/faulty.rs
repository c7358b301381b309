//! An object store in memory whose requests fail as planned, and which records its states.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use parking_lot::Mutex;

/// The outcome of a request that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It succeeds.
    None,
    /// It fails and has no effect.
    Refused,
    /// It has its effect, but the answer is lost.
    AnswerLost,
}

/// Decides the fault of the n-th request that changes something.
type Plan = Box<dyn Fn(usize) -> Fault + Send + Sync>;

#[derive(Clone)]
pub(crate) struct FaultyStore {
    inner: Arc<InMemory>,
    state: Arc<State>,
}

struct State {
    plan: Mutex<Plan>,
    /// `true` if reads fail.
    refuses_reads: AtomicBool,
    changes: Mutex<usize>,
    /// The names of the objects that were read.
    reads: Mutex<Vec<String>>,
    /// `true` if reads fail, too.
    is_down: AtomicBool,
    /// The states after each change, if they are recorded.
    snapshots: Mutex<Option<Vec<InMemory>>>,
}

impl FaultyStore {
    pub(crate) fn new() -> Self {
        let plan: Plan = Box::new(|_| Fault::None);
        let state = Arc::new(State {
            plan: Mutex::new(plan),
            changes: Mutex::new(0),
            reads: Mutex::default(),
            is_down: AtomicBool::new(false),
            refuses_reads: AtomicBool::new(false),
            snapshots: Mutex::new(None),
        });
        Self { inner: Arc::default(), state }
    }

    /// Returns a copy of all objects.
    pub(crate) fn fork(&self) -> InMemory {
        self.inner.fork()
    }

    /// Returns a store with these objects.
    pub(crate) fn of(objects: InMemory) -> Self {
        Self { inner: Arc::new(objects), ..Self::new() }
    }

    /// Returns a connection of another machine to the same objects, with a plan of its own.
    pub(crate) fn connect(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), ..Self::new() }
    }

    /// Makes all requests of this connection fail, or succeed again.
    pub(crate) fn set_down(&self, is_down: bool) {
        self.state.is_down.store(is_down, Ordering::SeqCst);
    }

    /// Returns the names of the objects that were read.
    pub(crate) fn reads(&self) -> Vec<String> {
        self.state.reads.lock().clone()
    }

    pub(crate) fn set_plan(&self, plan: impl Fn(usize) -> Fault + Send + Sync + 'static) {
        *self.state.plan.lock() = Box::new(plan);
    }

    /// Lets all reads fail, or succeed again.
    pub(crate) fn refuse_reads(&self, refuses: bool) {
        self.state.refuses_reads.store(refuses, Ordering::SeqCst);
    }

    /// Records the state after each change from now on.
    pub(crate) fn record(&self) {
        *self.state.snapshots.lock() = Some(Vec::new());
    }

    pub(crate) fn snapshots(&self) -> Vec<Arc<dyn ObjectStore>> {
        let snapshots = self.state.snapshots.lock();
        let shared = |snapshot: &InMemory| Arc::new(snapshot.fork()) as Arc<dyn ObjectStore>;
        snapshots.iter().flatten().map(shared).collect()
    }

    pub(crate) fn changes(&self) -> usize {
        *self.state.changes.lock()
    }

    /// Fails if the remote store cannot be reached.
    fn check(&self) -> Result<()> {
        match self.state.is_down.load(Ordering::SeqCst) {
            true => Err(failed("no route to host")),
            false => Ok(()),
        }
    }

    /// Executes a change with the fault of the plan.
    async fn change<T>(&self, change: impl Future<Output = Result<T>>) -> Result<T> {
        let number = {
            let mut changes = self.state.changes.lock();
            *changes += 1;
            *changes
        };
        let fault = (self.state.plan.lock())(number);
        self.check()?;
        if fault == Fault::Refused {
            return Err(failed("503 Slow Down"));
        }
        let result = change.await;
        if let Some(snapshots) = &mut *self.state.snapshots.lock() {
            snapshots.push(self.inner.fork());
        }
        if fault == Fault::AnswerLost {
            return Err(failed("the connection was closed"));
        }
        result
    }
}

fn failed(what: &'static str) -> Error {
    Error::Generic { store: "faulty", source: what.into() }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.change(self.inner.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(FaultyUpload { upload, store: self.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.state.refuses_reads.load(Ordering::SeqCst) {
            return Err(Error::Generic { store: "faulty", source: "503 Slow Down".into() });
        }
        self.check()?;
        self.state.reads.lock().push(location.to_string());
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        locations
            .then(move |path| {
                let store = store.clone();
                async move {
                    let path = path?;
                    let one = futures_util::stream::iter([Ok(path.clone())]).boxed();
                    let delete =
                        async { store.inner.delete_stream(one).next().await.transpose().map(drop) };
                    store.change(delete).await.map(|()| path)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct FaultyUpload {
    upload: Box<dyn MultipartUpload>,
    store: FaultyStore,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.upload.put_part(data)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let store = self.store.clone();
        store.change(self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}
