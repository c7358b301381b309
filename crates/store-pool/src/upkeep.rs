//! The thread that keeps up a pool: it moves keys between members, and records how far their logs
//! have come.

use std::sync::Arc;
use std::time::Duration;

use haul_disk::{Error as DiskError, Op};
use haul_file_store::Result;
use haul_sync::thread;

use crate::member::Member;
use crate::moves::run::move_keys;
use crate::shared::Shared;
use crate::stop::Stop;

/// The time between two records of the logs' positions, and between two attempts to move keys that
/// could not be moved. An older copy of a member is noticed if it is older than this.
const EVERY: Duration = Duration::from_secs(60);

/// The running thread.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: Arc<Stop>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Upkeep {
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn start(members: &Arc<Vec<Member>>, shared: &Arc<Shared>) -> Result<Self> {
        let stop = Arc::<Stop>::default();
        let (members, shared) = (Arc::clone(members), Arc::clone(shared));
        let stopped = Arc::clone(&stop);
        let work = move || {
            loop {
                // A failure is counted, and the keys stay where they are until the next attempt.
                drop(move_keys(&members, &shared, &stopped));
                if stopped.wait(EVERY) {
                    break;
                }
                // If a member cannot be written, its store reports that.
                drop(shared.record_log_ends(&members));
            }
        };
        let thread = thread::Builder::new().name("pool upkeep".to_owned()).spawn(work);
        let error = |source| DiskError::new(Op::Open, "a thread of the pool", source);
        Ok(Self { stop, thread: Some(thread.map_err(error)?) })
    }

    /// Stops the thread, and waits for it.
    pub(crate) fn stop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread leaves the members as they are.
            drop(thread.join());
        }
    }
}
