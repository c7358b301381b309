//! Defines [`Log`], the public interface for appending to and reading a log.

mod append;
mod batch;
mod close;
mod exchange;
mod locked;
mod open;
mod pinned;
mod read;
mod reader;
mod segment_bytes;
mod space;
mod truncate;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use haul_disk::Lock;
use haul_sync::Mutex;
use haul_sync::thread::JoinHandle;

use crate::append::appender::Appender;
use crate::append::commit::Shared;
use crate::append::prepare::Preparer;
use crate::error::{Error, Result};
use crate::lsn::Lsn;
use crate::replay::SegmentInfo;
use crate::segments::Segment;
use crate::segments::pool::Pool;
use crate::stats::Stats;
use crate::strategy::WriteStrategy;

pub use batch::BatchReader;
pub use locked::LockedBytes;
pub use pinned::PinnedRecord;
pub use reader::Reader;
pub use segment_bytes::SegmentBytes;
pub use space::Space;

/// An append log that is open for writing. Each log has a separate directory.
///
/// All methods may be called from several threads at once.
#[derive(Debug)]
pub struct Log {
    appender: Appender,
    shared: Arc<Shared>,
    pool: Arc<Pool>,
    strategy: WriteStrategy,
    preparer: Preparer,
    committer: Option<JoinHandle<()>>,
    removes_in_order: bool,
    /// Held while a segment is removed, or its file exchanged.
    removal: Mutex<()>,
    /// The directory lock. It is released after `Drop` has waited for the threads to end.
    _lock: Lock,
}

impl Log {
    /// Returns the write strategy chosen for this storage, with the reasons for it.
    #[must_use]
    pub fn strategy(&self) -> &WriteStrategy {
        &self.strategy
    }

    fn segment(&self, number: u32) -> Result<Arc<Segment>> {
        let segments = self.shared.segments.read();
        segments.get(&number).cloned().ok_or(Error::Invalid("no segment has this number"))
    }

    /// Returns the LSN before which all records are durable: the end of the last synced batch.
    #[must_use]
    pub fn synced(&self) -> Lsn {
        self.shared.state.lock().synced
    }

    /// Waits until all records that any thread appended before this call are durable.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] if a write or sync failed.
    ///
    /// # Durability
    /// When this returns `Ok`, all records appended before this call survive a power cut.
    pub fn sync(&self) -> Result<()> {
        self.shared.wait_for_all(&mut self.shared.state.lock())
    }

    /// Waits until all records appended before this call are durable. Then writes a watermark, a
    /// record that proves this to recovery, unless a later record already proves it or another
    /// thread is appending. An idle log does the same after [`crate::Options::idle_watermark_ms`].
    /// Call this function if that option is 0, or when no appends are expected for some time.
    ///
    /// # Errors
    /// Returns [`Error::Latched`] if a write or sync failed.
    ///
    /// # Durability
    /// When this returns `Ok`, all records appended before this call survive a power cut.
    pub fn write_watermark(&self) -> Result<()> {
        self.shared.write_watermark()
    }

    /// Returns the log's segments by ascending number. The last one is being written.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentInfo> {
        self.shared.segments.read().values().map(|segment| segment.info()).collect()
    }

    /// Returns the counters since the log was opened.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.counters.snapshot()
    }

    /// Returns the reason why the last attempt to create a segment failed, if the reason was not
    /// space; `None` if the attempt succeeded. Appends that need another segment are rejected.
    #[must_use]
    pub fn segment_failure(&self) -> Option<Arc<haul_disk::Error>> {
        self.shared.state.lock().creation_failure()
    }

    /// Returns `true` if an earlier write or sync failed, so that nothing more can be appended.
    #[must_use]
    pub fn is_latched(&self) -> bool {
        self.shared.is_latched.load(Ordering::SeqCst)
    }
}
