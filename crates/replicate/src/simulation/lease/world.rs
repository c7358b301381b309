//! A simulation's world: its time, its remote store, and the order in which processes run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use haul_testing::Random;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use parking_lot::{Condvar, Mutex};

use crate::lease::Clock;

pub(super) const PROCESSES: usize = 4;

/// The number of turns that all processes take together.
const TURNS: usize = 3000;

/// A put that is executed later, although its sender has got an error.
pub(super) type LatePut = (Duration, Path, PutPayload, PutOptions);

pub(super) struct State {
    pub(super) random: Random,
    /// The true time.
    pub(super) now: Duration,
    pub(super) turns: usize,
    pub(super) running: usize,
    pub(super) is_over: bool,
    /// The time until which each process's requests fail.
    pub(super) partitioned: [Duration; PROCESSES],
    pub(super) late: Vec<LatePut>,
    /// The owner's epoch at each acknowledgement, and the record if it is in the copy.
    pub(super) acknowledged: Vec<(u64, Option<u32>)>,
    pub(super) takeovers: usize,
    pub(super) next_record: u32,
}

pub(super) struct World {
    pub(super) state: Mutex<State>,
    pub(super) turn: Condvar,
    pub(super) objects: InMemory,
    pub(super) is_over: AtomicBool,
}

impl World {
    /// Lets some process run, and returns when this one may run again.
    pub(super) fn pass(&self, process: usize) {
        let mut state = self.state.lock();
        state.turns += 1;
        let step = match state.random.below(40) {
            0 => state.random.below(2500),
            _ => state.random.below(60),
        };
        state.now += Duration::from_millis(step);
        if state.random.below(150) == 0 {
            let other = usize::try_from(state.random.below(PROCESSES as u64)).unwrap();
            let until = state.now + Duration::from_millis(state.random.below(9000));
            state.partitioned[other] = until;
        }
        if state.turns > TURNS {
            state.is_over = true;
            self.is_over.store(true, Ordering::SeqCst);
            self.turn.notify_all();
            return;
        }
        state.running = usize::try_from(state.random.below(PROCESSES as u64)).unwrap();
        self.turn.notify_all();
        self.await_turn(process, &mut state);
    }

    pub(super) fn await_turn(
        &self,
        process: usize,
        state: &mut parking_lot::MutexGuard<'_, State>,
    ) {
        while state.running != process && !state.is_over {
            self.turn.wait(state);
        }
    }

    pub(super) fn chance(&self, of: u64) -> bool {
        self.state.lock().random.below(of) == 0
    }

    pub(super) fn number(&self, below: u64) -> u64 {
        self.state.lock().random.below(below)
    }

    fn is_partitioned(&self, process: usize) -> bool {
        let state = self.state.lock();
        state.partitioned[process] > state.now
    }

    /// Executes the puts that are late enough.
    async fn execute_late(&self) {
        let due: Vec<LatePut> = {
            let mut state = self.state.lock();
            let now = state.now;
            state.late.extract_if(.., |late| late.0 <= now).collect()
        };
        for (_, path, payload, options) in due {
            // Its condition may not hold any more.
            drop(self.objects.put_opts(&path, payload, options).await);
        }
    }
}

/// A process's connection to the remote store.
pub(super) struct Connection {
    pub(super) world: Arc<World>,
    pub(super) process: usize,
}

impl Connection {
    fn failed() -> StoreError {
        StoreError::Generic { store: "simulated", source: "no answer".into() }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection of process {}", self.process)
    }
}

impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection of process {}", self.process)
    }
}

#[async_trait]
impl ObjectStore for Connection {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        let world = &self.world;
        world.pass(self.process);
        world.execute_late().await;
        if world.is_partitioned(self.process) {
            if world.chance(4) {
                let delay = Duration::from_millis(world.number(8000));
                let mut state = world.state.lock();
                let at = state.now + delay;
                state.late.push((at, location.clone(), payload, options));
            }
            return Err(Self::failed());
        }
        let stored = world.objects.put_opts(location, payload, options).await;
        world.pass(self.process);
        if world.chance(12) { Err(Self::failed()) } else { stored }
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.world.pass(self.process);
        self.world.execute_late().await;
        if self.world.is_partitioned(self.process) {
            return Err(Self::failed());
        }
        let found = self.world.objects.get_opts(location, options).await;
        self.world.pass(self.process);
        found
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        Err(Self::failed())
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        locations
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.world.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.world.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        _from: &Path,
        _to: &Path,
        _options: CopyOptions,
    ) -> object_store::Result<()> {
        Err(Self::failed())
    }
}

/// A clock with its own offset and rate.
pub(super) struct SkewedClock {
    pub(super) world: Arc<World>,
    pub(super) offset: Duration,
    pub(super) rate: f64,
}

impl fmt::Debug for SkewedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clock of rate {}", self.rate)
    }
}

impl Clock for SkewedClock {
    fn now(&self) -> Duration {
        self.offset + self.world.state.lock().now.mul_f64(self.rate)
    }
}
