//! The thread that moves store parts between the local disk and the copy.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use haul_append_log::{SegmentInfo, segment_name};
use haul_disk::{Disk, Open, resident};
use haul_file_store::Store;
use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::follow::fetch_file;
use crate::manifest::names::{BIG_FILES, VOLUMES};
use crate::tier::disk::{TieredDisk, remove_marker};

/// The interval at which the local disk is checked.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(10);

/// The state of a store's parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TierStatus {
    /// The bytes that volumes and big objects take on the local disk.
    pub local_bytes: u64,
    /// The number of volumes that are only in the copy.
    pub remote_volumes: u64,
    /// The number of big objects that are only in the copy.
    pub remote_objects: u64,
    /// The error of the last attempt to move a part; `None` after a success.
    pub last_error: Option<String>,
}

/// Keeps a store's cold parts only in its copy, or fetches all of them. Dropping it ends the
/// thread.
#[derive(Debug)]
pub struct Tier {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the thread shares with its owner.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_stopping: bool,
    status: TierStatus,
}

impl Tier {
    /// Starts the thread for a store that was opened on `disk`. With `local_bytes_max`, it drops
    /// the files that were read least recently when volumes and big objects exceed it; otherwise it
    /// fetches everything that is only in the copy, the newest volumes first.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        store: Arc<Store>,
        disk: Arc<TieredDisk>,
        local_bytes_max: Option<u64>,
    ) -> Result<Self> {
        let shared = Arc::new(Shared::default());
        let mover = Mover { store, disk, local_bytes_max };
        let run = {
            let shared = Arc::clone(&shared);
            move || run(&mover, &shared)
        };
        let cannot = |error| Error::Invalid(format!("cannot start a thread: {error}"));
        let thread = Builder::new().name("replicate-tier".to_owned()).spawn(run).map_err(cannot)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Returns the state at the last check.
    #[must_use]
    pub fn status(&self) -> TierStatus {
        self.shared.state.lock().status.clone()
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.shared.state.lock().is_stopping = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Returns `false` if the thread is to end.
    fn pause(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.is_stopping {
            self.stopped.wait_for(&mut state, time);
        }
        !state.is_stopping
    }
}

fn run(mover: &Mover, shared: &Shared) {
    let mut pause = Duration::ZERO;
    while shared.pause(pause) {
        let outcome = mover.move_parts(shared);
        let error = outcome.as_ref().err().map(|error| haul_disk::error_chain(error).to_string());
        shared.state.lock().status.last_error = error;
        pause = match outcome {
            Ok(true) => return,
            Ok(false) => CHECK_EVERY,
            Err(_) => PAUSE,
        };
    }
}

/// A store part on the local disk.
struct LocalPart {
    part: Part,
    bytes: u64,
    /// The share of the part's pages that are in the page cache, in eighths. A part that is read
    /// has its pages there.
    warmth: u64,
}

enum Part {
    Segment(SegmentInfo),
    Object(String),
}

/// A store's parts, except for the volume that is being written.
#[derive(Default)]
struct Parts {
    local: Vec<LocalPart>,
    remote_segments: Vec<SegmentInfo>,
    remote_objects: Vec<String>,
    local_bytes: u64,
}

pub(crate) struct Mover {
    pub(crate) store: Arc<Store>,
    pub(crate) disk: Arc<TieredDisk>,
    pub(crate) local_bytes_max: Option<u64>,
}

impl Mover {
    /// Moves parts until none is left to move. Returns `true` if there will never be any again.
    pub(crate) fn move_parts(&self, shared: &Shared) -> Result<bool> {
        let parts = self.parts()?;
        let mut status = TierStatus {
            local_bytes: parts.local_bytes,
            remote_volumes: parts.remote_segments.len() as u64,
            remote_objects: parts.remote_objects.len() as u64,
            last_error: None,
        };
        shared.state.lock().status = status.clone();
        let Some(most) = self.local_bytes_max else {
            for segment in parts.remote_segments.iter().rev() {
                if shared.is_stopping() {
                    return Ok(false);
                }
                self.disk.fetch_segment(self.store.log(), *segment)?;
            }
            for name in &parts.remote_objects {
                if shared.is_stopping() {
                    return Ok(false);
                }
                // An object that was deleted meanwhile does not exist.
                fetch_file(self.disk.catalog.remote(), &*self.disk.local, name, &mut || Ok(()))?;
            }
            let is_complete = parts.remote_segments.is_empty() && parts.remote_objects.is_empty();
            if is_complete {
                remove_marker(&*self.disk.local)?;
            }
            return Ok(is_complete);
        };
        if parts.local_bytes > most {
            self.disk.catalog.refresh()?;
        }
        for part in parts.local {
            if status.local_bytes <= most || shared.is_stopping() {
                break;
            }
            if self.drop_part(&part.part)? {
                status.local_bytes -= part.bytes;
                match part.part {
                    Part::Segment(_) => status.remote_volumes += 1,
                    Part::Object(_) => status.remote_objects += 1,
                }
                shared.state.lock().status = status.clone();
            }
        }
        Ok(false)
    }

    fn drop_part(&self, part: &Part) -> Result<bool> {
        match part {
            Part::Segment(segment) => match self.disk.drop_segment(self.store.log(), *segment) {
                // Compaction has removed the segment meanwhile.
                Err(Error::Log(haul_append_log::Error::Invalid(_))) => Ok(false),
                dropped => dropped,
            },
            Part::Object(name) => match self.disk.drop_object(name) {
                // The object was deleted meanwhile.
                Err(Error::Disk(error)) if error.is_not_found() => Ok(false),
                dropped => dropped,
            },
        }
    }

    /// Returns the store's parts; the local ones in the order in which to drop them.
    fn parts(&self) -> Result<Parts> {
        let mut parts = Parts::default();
        let mut segments = self.store.log().segments();
        parts.local_bytes += segments.pop().map_or(0, |current| u64::from(current.bytes));
        for segment in segments {
            if segment.is_local {
                let name = format!("{VOLUMES}/{}", segment_name(segment.number));
                parts.add_local(&*self.disk.local, &name, Part::Segment(segment))?;
            } else {
                parts.remote_segments.push(segment);
            }
        }
        let local: HashSet<String> = self.disk.local.list(BIG_FILES)?.into_iter().collect();
        for name in self.store.big_files() {
            if name.rsplit('/').next().is_some_and(|id| local.contains(id)) {
                parts.add_local(&*self.disk.local, &name, Part::Object(name.clone()))?;
            } else {
                parts.remote_objects.push(name);
            }
        }
        // The sort is stable: among equally warm parts, the older volume is first.
        parts.local.sort_by_key(|part| part.warmth);
        Ok(parts)
    }
}

impl Parts {
    fn add_local(&mut self, disk: &dyn Disk, name: &str, part: Part) -> Result<()> {
        let file = match disk.open(name, Open { read_only: true, ..Open::default() }) {
            Err(error) if error.is_not_found() => return Ok(()),
            opened => opened?,
        };
        let bytes = file.bytes()?;
        // Unknown on a simulated disk.
        let cached = resident(&*file, 0, u64::MAX).map_or(0, |found| found.resident_bytes);
        self.local_bytes += bytes;
        self.local.push(LocalPart { part, bytes, warmth: 8 * cached / bytes.max(1) });
        Ok(())
    }
}
