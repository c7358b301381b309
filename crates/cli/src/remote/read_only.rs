//! `haul serve --read-only`: serves the newest state of a copy that another server extends.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use haul_disk::{Disk, OsDisk, error_chain};
use haul_file_store::{Error as StoreError, Options, Store};
use haul_replicate::{CopyReader, CopyState, Error};
use haul_s3_server::ServedStore;
use haul_store_pool::Pool;

use crate::handover::Predecessor;
use crate::open_store::recovery_lines;
use crate::remote::Copy;
use crate::report::{Exit, Failure, OrFail, Result, print_message};

/// The size of the cache of blocks, unless `--local-space` sets it.
const CACHE_BYTES: u64 = 1 << 30;

/// The pause after a refresh, as a multiple of its time, so that a store of many objects is not opened
/// all the time; at most [`PAUSE_MAX`].
const PAUSES: u32 = 10;

/// The owner of the copy keeps discarded objects for a minute by default.
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// The number of earlier states that downloads in progress may keep open.
const EARLIER_STATES_MAX: usize = 8;

/// The newest state of a copy, which a thread replaces by later ones.
pub(crate) struct ReadOnlyStore {
    served: Arc<ServedStore>,
    stop: mpsc::Sender<()>,
    thread: JoinHandle<States>,
}

/// The states of the copy that are open.
struct States {
    reader: CopyReader,
    options: Options,
    /// The newest one is the last one.
    open: Vec<OpenState>,
}

struct OpenState {
    /// `None` once no request uses it. Objects that are being sent may still use the state.
    store: Option<Arc<Pool>>,
    state: CopyState,
}

impl ReadOnlyStore {
    /// Opens the newest state in a directory, and starts the thread that looks for later ones every
    /// `refresh`.
    pub(crate) fn open(
        copy: &Copy,
        dir: &Path,
        options: Options,
        refresh: Duration,
        predecessor: &Predecessor,
    ) -> Result<Self> {
        let cannot = || format!("cannot serve the copy in {}", dir.display());
        let disk: Arc<dyn Disk> = Arc::new(OsDisk::open_or_create(dir).or_fail(cannot)?);
        let cache_bytes = copy.local_space.unwrap_or(CACHE_BYTES);
        let is_in_use = |error: &Error| matches!(error, Error::Store(StoreError::InUse { .. }));
        let opened = predecessor
            .retry(is_in_use, || CopyReader::open(&copy.remote, Arc::clone(&disk), cache_bytes));
        let opened = opened.and_then(|reader| States::open(reader, options));
        let (states, first) = opened.map_err(|error| {
            let failure = Failure::new(cannot()).exit(Exit::NotStarted);
            let failure = match error {
                Error::NoCopy { .. } => failure.advise(
                    "\"haul serve --remote\" without --read-only creates the copy of its store",
                ),
                _ => failure,
            };
            failure.because(error)
        })?;
        let served = Arc::new(ServedStore::new(first));
        let (stop, stopped) = mpsc::channel();
        let run = {
            let served = Arc::clone(&served);
            move || refresh_until_stopped(states, &served, refresh, &stopped)
        };
        let thread = Builder::new().name("read-only".to_owned()).spawn(run);
        let thread = thread.or_fail(|| "cannot start a thread".to_owned())?;
        Ok(Self { served, stop, thread })
    }

    /// Returns the store that is always the newest one.
    pub(crate) fn served(&self) -> Arc<ServedStore> {
        Arc::clone(&self.served)
    }

    /// Ends the thread, and removes the states, which a later start does not need.
    pub(crate) fn close(self) {
        let Self { served, stop, thread } = self;
        drop((served, stop));
        match thread.join() {
            Ok(mut states) => states.remove(0),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Replaces the served store by later states. Prints each error once.
fn refresh_until_stopped(
    mut states: States,
    served: &ServedStore,
    refresh: Duration,
    stopped: &mpsc::Receiver<()>,
) -> States {
    let mut pause = refresh;
    let mut last_error = None;
    while stopped.recv_timeout(pause) == Err(mpsc::RecvTimeoutError::Timeout) {
        states.remove(1);
        let start = Instant::now();
        let next = states.open_next();
        let took = start.elapsed();
        pause = refresh;
        let error = match next {
            Ok(Some(store)) => {
                drop(served.replace(store));
                pause = refresh.max((took * PAUSES).min(PAUSE_MAX));
                None
            }
            Ok(None) => None,
            Err(error) => Some(error_chain(&error)),
        };
        if let Some(error) = error.as_ref().filter(|_| error != last_error) {
            print_message(&format!("still serving an earlier state of the copy: {error}"));
        }
        last_error = error;
    }
    states
}

impl States {
    /// Opens the first state, and returns its store, too.
    fn open(reader: CopyReader, options: Options) -> haul_replicate::Result<(Self, Arc<Pool>)> {
        let replication = Some(reader.progress() as _);
        let options = Options { replication, ..options };
        let mut states = Self { reader, options, open: Vec::new() };
        loop {
            // There is none only after a failed call.
            if let Some(first) = states.open_next()? {
                return Ok((states, first));
            }
        }
    }

    /// Opens the newest state, unless it is open.
    fn open_next(&mut self) -> haul_replicate::Result<Option<Arc<Pool>>> {
        if self.open.len() > EARLIER_STATES_MAX {
            let what = format!("downloads in progress use {EARLIER_STATES_MAX} earlier states");
            return Err(Error::Invalid(what));
        }
        let in_use: Vec<&str> = self.open.iter().map(|open| open.state.name()).collect();
        let options = &self.options;
        let open = |disk| Store::open_on(disk, options.clone());
        let Some(((store, report), state)) = self.reader.open_next(&in_use, open)? else {
            return Ok(None);
        };
        recovery_lines(&report).iter().for_each(|line| print_message(line));
        let store = Arc::new(Pool::from(Arc::new(store)));
        self.open.push(OpenState { store: Some(Arc::clone(&store)), state });
        Ok(Some(store))
    }

    /// Closes and removes all but the `newest` states, unless a call or a download in progress uses
    /// them.
    fn remove(&mut self, newest: usize) {
        let earlier = self.open.len().saturating_sub(newest);
        for open in &mut self.open[..earlier] {
            open.store.take_if(|store| Arc::strong_count(store) == 1);
        }
        let is_unused = |open: &mut OpenState| open.store.is_none() && open.state.is_unused();
        for OpenState { state, .. } in self.open.extract_if(..earlier, is_unused) {
            // Otherwise the next start removes the files.
            drop(state.remove());
        }
    }
}
