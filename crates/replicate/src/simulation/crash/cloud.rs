//! A simulation's remote store. Requests fail, lose their responses, are executed late, or are
//! their machine's last ones.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::{BoxStream, iter};
use futures_util::{StreamExt, TryStreamExt};
use haul_disk_sim::MemoryDisk;
use haul_testing::Random;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use parking_lot::Mutex;

/// The maximum number of requests after which a late change is executed.
const LATE_MAX: u64 = 40;

/// The state of the remote store, and of the network to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weather {
    /// All requests succeed.
    Calm,
    /// One of so many requests fails.
    Flaky(u64),
    /// All requests fail.
    Down,
}

/// The remote store.
pub(super) struct Cloud {
    objects: InMemory,
    state: Mutex<State>,
}

struct State {
    random: Random,
    weather: Weather,
    requests: u64,
    /// Changes whose senders have got an error, each with the request number before which it is
    /// executed.
    late: Vec<(u64, Change)>,
}

enum Change {
    Put(Path, PutPayload, PutOptions),
    Complete(Box<dyn MultipartUpload>),
    Delete(Path),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Executed,
    /// It has no effect, and fails.
    Refused,
    /// It has its effect, and fails.
    AnswerLost,
    /// It fails, and has its effect later.
    Late,
}

impl Cloud {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let (random, weather) = (Random(seed), Weather::Calm);
        let state = State { random, weather, requests: 0, late: Vec::new() };
        Arc::new(Self { objects: InMemory::new(), state: Mutex::new(state) })
    }

    pub(super) fn set_weather(&self, weather: Weather) {
        self.state.lock().weather = weather;
    }

    /// Calls `call` while all requests succeed.
    pub(super) fn calmly<T>(&self, call: impl FnOnce() -> T) -> T {
        let weather = std::mem::replace(&mut self.state.lock().weather, Weather::Calm);
        let outcome = call();
        self.set_weather(weather);
        outcome
    }

    /// Returns a copy of all objects.
    pub(super) fn fork(&self) -> InMemory {
        self.objects.fork()
    }

    /// Executes the late changes that are due, and decides a request's fate.
    async fn begin(&self, line: &Line) -> Fate {
        let (due, fate) = {
            let mut state = self.state.lock();
            state.requests += 1;
            let now = state.requests;
            let due: Vec<_> = state.late.extract_if(.., |(at, _)| *at <= now).collect();
            (due, state.fate(line))
        };
        for (_, change) in due {
            self.execute(change).await;
        }
        fate
    }

    pub(super) fn execute_late(&self) {
        let late = std::mem::take(&mut self.state.lock().late);
        let all = async {
            for (_, change) in late {
                self.execute(change).await;
            }
        };
        futures_util::FutureExt::now_or_never(all).unwrap();
    }

    async fn execute(&self, change: Change) {
        // A put's condition may not hold any more, and an object may have been deleted.
        match change {
            Change::Put(path, payload, options) => {
                drop(self.objects.put_opts(&path, payload, options).await);
            }
            Change::Complete(mut upload) => drop(upload.complete().await),
            Change::Delete(path) => drop(self.delete(path).await),
        }
    }

    async fn delete(&self, path: Path) -> Result<()> {
        let one = iter([Ok(path)]).boxed();
        self.objects.delete_stream(one).next().await.transpose().map(drop)
    }

    fn postpone(&self, change: Change) {
        let mut state = self.state.lock();
        let at = state.requests + 1 + state.random.below(LATE_MAX);
        state.late.push((at, change));
    }
}

impl State {
    fn fate(&mut self, line: &Line) -> Fate {
        if line.machine.is_off() {
            return Fate::Refused;
        }
        let fates = [Fate::Refused, Fate::AnswerLost, Fate::Late];
        if line.is_last() {
            line.machine.cut_power_after(0);
            return *self.random.pick(&fates);
        }
        let fails = match self.weather {
            Weather::Calm => false,
            Weather::Flaky(one_in) => self.random.below(one_in) == 0,
            Weather::Down => return Fate::Refused,
        };
        if fails { *self.random.pick(&fates) } else { Fate::Executed }
    }
}

/// A machine's connection to the remote store.
pub(super) struct Line {
    cloud: Arc<Cloud>,
    machine: MemoryDisk,
    /// The number of requests until the machine's power fails.
    left: Mutex<Option<u64>>,
}

impl Line {
    pub(super) fn new(cloud: &Arc<Cloud>, machine: &MemoryDisk) -> Arc<Self> {
        let (cloud, machine) = (Arc::clone(cloud), machine.clone());
        Arc::new(Self { cloud, machine, left: Mutex::new(None) })
    }

    /// Cuts the machine's power during the request after `count` others.
    pub(super) fn cut_power_after(&self, count: u64) {
        *self.left.lock() = Some(count);
    }

    /// Cancels a power cut that has not happened yet.
    pub(super) fn keep_power(&self) {
        *self.left.lock() = None;
    }

    fn is_last(&self) -> bool {
        match &mut *self.left.lock() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    fn answer<T>(fate: Fate, answer: Result<T>) -> Result<T> {
        if fate == Fate::Executed { answer } else { Err(failed()) }
    }
}

fn failed() -> Error {
    Error::Generic { store: "simulated", source: "no answer".into() }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Line")
    }
}

/// A connection as an object store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Connection(pub(super) Arc<Line>);

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

#[async_trait]
impl ObjectStore for Connection {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let cloud = &self.0.cloud;
        let fate = cloud.begin(&self.0).await;
        match fate {
            Fate::Executed | Fate::AnswerLost => {
                Line::answer(fate, cloud.objects.put_opts(location, payload, options).await)
            }
            Fate::Refused => Err(failed()),
            Fate::Late => {
                cloud.postpone(Change::Put(location.clone(), payload, options));
                Err(failed())
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let cloud = &self.0.cloud;
        let fate = cloud.begin(&self.0).await;
        let upload = Line::answer(fate, cloud.objects.put_multipart_opts(location, options).await)?;
        Ok(Box::new(Upload { upload: Some(upload), line: Arc::clone(&self.0) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let cloud = &self.0.cloud;
        let fate = cloud.begin(&self.0).await;
        let is_head = options.head;
        let found = cloud.objects.get_opts(location, options).await;
        if fate != Fate::AnswerLost || is_head {
            return Line::answer(fate, found);
        }
        // The connection is closed in the middle of the object.
        let mut found = found?;
        let GetResultPayload::Stream(pieces) = found.payload;
        let half = pieces.map_ok(|bytes| bytes.slice(..bytes.len() / 2));
        found.payload = GetResultPayload::Stream(half.chain(iter([Err(failed())])).boxed());
        Ok(found)
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let line = Arc::clone(&self.0);
        let delete = move |path: Result<Path>| {
            let line = Arc::clone(&line);
            async move {
                let path = path?;
                let fate = line.cloud.begin(&line).await;
                match fate {
                    Fate::Executed | Fate::AnswerLost => {
                        let deleted = line.cloud.delete(path.clone()).await;
                        Line::answer(fate, deleted.map(|()| path))
                    }
                    Fate::Refused => Err(failed()),
                    Fate::Late => {
                        line.cloud.postpone(Change::Delete(path));
                        Err(failed())
                    }
                }
            }
        };
        locations.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (line, listed) = (Arc::clone(&self.0), self.0.cloud.objects.list(prefix));
        let checked = async move {
            match line.cloud.begin(&line).await {
                Fate::Executed => listed,
                _ => iter([Err(failed())]).boxed(),
            }
        };
        futures_util::stream::once(checked).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.cloud.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> Result<()> {
        Err(failed())
    }
}

/// An upload in parts, which may be interrupted after each part.
#[derive(Debug)]
struct Upload {
    /// `None` after it was completed.
    upload: Option<Box<dyn MultipartUpload>>,
    line: Arc<Line>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let fate = self.line.cloud.state.lock().fate(&self.line);
        match &mut self.upload {
            Some(upload) if fate == Fate::Executed => upload.put_part(data),
            _ => Box::pin(async { Err(failed()) }),
        }
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let cloud = Arc::clone(&self.line.cloud);
        let fate = cloud.begin(&self.line).await;
        let Some(mut upload) = self.upload.take() else { return Err(failed()) };
        match fate {
            Fate::Executed | Fate::AnswerLost => Line::answer(fate, upload.complete().await),
            Fate::Refused => Err(failed()),
            Fate::Late => {
                cloud.postpone(Change::Complete(upload));
                Err(failed())
            }
        }
    }

    async fn abort(&mut self) -> Result<()> {
        match &mut self.upload {
            Some(upload) => upload.abort().await,
            None => Ok(()),
        }
    }
}
