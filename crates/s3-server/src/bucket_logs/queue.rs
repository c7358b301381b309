//! The queue between the threads that add records and the task that delivers them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use time::Date;
use tokio::sync::Notify;

use crate::bucket_logs::batches::{Added, Batch, BatchLimits, Batches};
use crate::bucket_logs::target::{LogTarget, Source};
use crate::config::Limits;
use crate::metrics::Metrics;

/// The undelivered records, in bounded memory.
#[derive(Debug)]
pub(crate) struct LogQueue {
    batches: Mutex<Batches>,
    /// Wakes the delivery when the next batch's due time may have changed.
    changed: Notify,
    /// The time between two attempts to deliver a batch.
    retry_time: Duration,
    metrics: Arc<Metrics>,
}

/// The maximum time between two attempts to deliver a batch.
const RETRY_TIME_MAX: Duration = Duration::from_secs(10);

impl LogQueue {
    /// Creates a server's queue, with these limits.
    pub(crate) fn for_server(limits: &Limits, metrics: &Arc<Metrics>) -> Arc<Self> {
        let batches = Mutex::new(Batches::new(BatchLimits {
            time_max: limits.log_delivery_time,
            bytes_max: limits.log_object_bytes,
            memory_bytes_max: limits.log_memory_bytes_max,
        }));
        let retry_time = limits.log_delivery_time.min(RETRY_TIME_MAX);
        let (changed, metrics) = (Notify::new(), Arc::clone(metrics));
        Arc::new(Self { batches, changed, retry_time, metrics })
    }

    /// Adds the record of a request that arrived on this day, or counts it as dropped.
    pub(super) fn add(&self, of: (&Source, &LogTarget), line: &str, day: Date) {
        let added = self.change(|batches| batches.add(of, line, day, Instant::now()));
        match added {
            Added::Wakes => self.changed.notify_one(),
            Added::Quiet => {}
            Added::Dropped => self.metrics.logs.without_memory.add(1),
        }
    }

    /// Removes the batches that are due; with `all`, all of them.
    pub(super) fn take(&self, all: bool) -> Vec<Batch> {
        self.batches.lock().take(Instant::now(), all)
    }

    /// Waits until a batch may be due.
    pub(super) async fn due(&self) {
        let due = self.batches.lock().next_due();
        let changed = self.changed.notified();
        match due {
            None => changed.await,
            Some(due) => {
                // Ends at the due time, or earlier if the batches have changed.
                drop(tokio::time::timeout_at(due.into(), changed).await);
            }
        }
    }

    /// Keeps a batch for another attempt.
    pub(super) fn retry(&self, batch: Batch) {
        self.batches.lock().retry(batch, Instant::now() + self.retry_time);
    }

    /// Frees the memory of a batch that was taken.
    pub(super) fn end(&self, batch: &Batch) {
        self.change(|batches| batches.end(batch));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Batches) -> T) -> T {
        let mut batches = self.batches.lock();
        let changed = change(&mut batches);
        self.metrics.logs.pending_bytes.set(batches.memory_bytes() as u64);
        changed
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
    }
}
