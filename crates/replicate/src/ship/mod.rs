//! Shipping: a thread copies the log's durable bytes, and commits them by the manifest.

mod age;
mod buffers;
mod checkpoint;
mod claim;
mod discarded;
mod garbage;
mod history;
mod merge;
pub(crate) mod merger;
mod round;
mod segments;
mod stored_files;
mod thread;
mod upload;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use haul_append_log::Lsn;
use haul_file_store::{Replication, ReplicationStatus};

use crate::error::Result;
use crate::lease::{Clock, SystemClock};
use crate::options::Options;
use crate::owner::OwnedManifest;
use crate::progress::Progress;
use crate::remote::Remote;
use crate::source::Source;

pub(crate) use claim::take_over;
pub(crate) use round::Shipper;

/// The longest time for which [`Replica::wait`] waits.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// A copy of a log in a remote object store, which a thread keeps up to date.
///
/// Dropping it ends the thread after a last attempt, but ignores its failure.
#[derive(Debug)]
pub struct Replica {
    progress: Arc<Progress>,
    remote: Remote,
    source: Arc<dyn LogEnd>,
    thread: Option<JoinHandle<()>>,
}

trait LogEnd: Send + Sync {
    fn synced(&self) -> Lsn;
}

impl std::fmt::Debug for dyn LogEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "log of {}", self.synced())
    }
}

impl<S: Source> LogEnd for S {
    fn synced(&self) -> Lsn {
        self.log().synced()
    }
}

impl Replica {
    /// Claims the copy for this log, or creates it, and starts to ship the log.
    ///
    /// # Errors
    /// [`crate::Error::Fenced`] if another process owns the copy, [`crate::Error::NotThisLog`] if
    /// the copy belongs to another log, [`crate::Error::Remote`] if the remote store cannot be
    /// reached, [`crate::Error::Invalid`] for options out of range.
    ///
    /// # Durability
    /// When this returns, no other process can change the copy without fencing this one.
    pub fn follow(source: impl Source, remote: &Remote, options: Options) -> Result<Self> {
        Self::follow_with(source, remote, options, Arc::new(Progress::new(WAIT_MAX)))
    }

    /// Claims the copy and starts to ship like [`Self::follow`], and publishes the copy's end in
    /// `progress`, for which a file store may wait. If it does not, and the remote store does not
    /// answer, the thread claims the copy later.
    ///
    /// # Errors
    /// Fails like [`Self::follow`]. Threads that wait for `progress` get the error, too.
    ///
    /// # Durability
    /// Like [`Self::follow`].
    pub fn follow_with(
        source: impl Source,
        remote: &Remote,
        options: Options,
        progress: Arc<Progress>,
    ) -> Result<Self> {
        progress.attach(remote);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        progress.set_lease(options.lease, &clock);
        let source = Arc::new(source);
        let started = options.check().and_then(|()| {
            thread::start(Arc::clone(&source), remote, options, Arc::clone(&progress))
        });
        Self::new(source, remote, progress, started)
    }

    /// Starts to ship a log whose copy this process owns.
    pub(crate) fn continue_owned(
        source: impl Source,
        remote: &Remote,
        options: Options,
        progress: Arc<Progress>,
        owned: OwnedManifest,
    ) -> Result<Self> {
        progress.attach(remote);
        let source = Arc::new(source);
        let shipper = Shipper::continue_owned(Arc::clone(&source), remote, options, owned);
        let started =
            shipper.and_then(|shipper| thread::start_owned(shipper, Arc::clone(&progress)));
        Self::new(source, remote, progress, started)
    }

    fn new(
        source: Arc<impl Source>,
        remote: &Remote,
        progress: Arc<Progress>,
        started: Result<JoinHandle<()>>,
    ) -> Result<Self> {
        let end: Arc<dyn LogEnd> = source;
        match started {
            Ok(thread) => {
                Ok(Self { progress, remote: remote.clone(), source: end, thread: Some(thread) })
            }
            Err(error) => {
                progress.end(haul_disk::error_chain(&error).to_string());
                Err(error)
            }
        }
    }

    /// Waits until the copy contains all records that are durable in the log now.
    ///
    /// # Errors
    /// A text if shipping has ended, or if the copy does not contain them within 30 s.
    ///
    /// # Durability
    /// When this returns `Ok`, the records survive the loss of this machine.
    pub fn wait(&self) -> std::result::Result<(), String> {
        self.progress.wait_for(self.source.synced(), WAIT_MAX)
    }

    /// Returns the state of shipping.
    #[must_use]
    pub fn status(&self) -> ReplicationStatus {
        self.progress.status()
    }

    /// Returns the remote store, with its counters.
    #[must_use]
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Ships what is durable in the log now, and ends the thread.
    ///
    /// # Errors
    /// [`crate::Error::Stopped`] if the last attempt failed. [`Self::status`] has its error.
    ///
    /// # Durability
    /// When this returns `Ok`, the copy contains all records that were durable before the call.
    pub fn stop(mut self) -> Result<()> {
        let end = self.source.synced();
        self.end_thread();
        self.progress.check(end)
    }

    fn end_thread(&mut self) {
        self.progress.request_stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.end_thread();
    }
}
