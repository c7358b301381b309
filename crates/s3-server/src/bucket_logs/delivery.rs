//! Stores due batches as objects in their target buckets.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haul_file_store::{Attributes, Precondition};
use haul_store_pool::Pool;
use time::OffsetDateTime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::body::receive::Receiver;
use crate::bucket_logs::batches::Batch;
use crate::bucket_logs::names::key;
use crate::bucket_logs::queue::LogQueue;
use crate::bucket_logs::rights::may_deliver;
use crate::encryption::request::RequestedEncryption;
use crate::errors::{S3ErrorCode, S3Result, from_store};
use crate::objects::write::Put;
use crate::request::ids::RequestIds;
use crate::request::name::ObjectName;
use crate::service::Haul;

/// The maximum number of attempts to store a batch.
const ATTEMPTS_MAX: u32 = 3;

/// The minimum time for the last deliveries, even if the drain time has passed.
const FINISH_TIME_MIN: Duration = Duration::from_secs(1);

const REFUSED: &str = "the policy of the target bucket does not allow their delivery";

/// Delivers a server's records.
pub(crate) struct Delivery {
    haul: Haul,
    queue: Arc<LogQueue>,
    ids: RequestIds,
}

/// The handle of a running delivery task.
pub(crate) struct RunningDelivery {
    stop: oneshot::Sender<Instant>,
    task: JoinHandle<()>,
}

impl RunningDelivery {
    /// Delivers all records until the deadline, or for at least a second. All requests must have
    /// ended.
    pub(crate) async fn finish(self, deadline: Instant) {
        let deadline = deadline.max(Instant::now() + FINISH_TIME_MIN);
        // After a panic in the task, nothing receives the deadline.
        self.stop.send(deadline).unwrap_or_default();
        // An attempt that began before has no deadline of its own.
        let ended = tokio::time::timeout_at((deadline + FINISH_TIME_MIN).into(), self.task);
        if !matches!(ended.await, Ok(Ok(()))) {
            tracing::error!("access log records are lost: their delivery did not end");
        }
    }
}

/// The outcome of an attempt to deliver a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The batch is stored, or none of it may be stored.
    Done,
    Failed,
}

impl Delivery {
    /// Starts to deliver batches. Must be called in a Tokio runtime with time.
    pub(crate) fn start(haul: &Haul, queue: &Arc<LogQueue>) -> RunningDelivery {
        let (haul, queue) = (haul.clone(), Arc::clone(queue));
        let (stop, stopped) = oneshot::channel();
        let delivery = Self { haul, queue, ids: RequestIds::new() };
        RunningDelivery { stop, task: tokio::spawn(delivery.run(stopped)) }
    }

    /// Delivers batches as they become due, until `stop` completes. Then delivers all others until
    /// the deadline that `stop` returns; a batch that fails then is lost.
    async fn run(self, stop: oneshot::Receiver<Instant>) {
        let mut stop = pin!(stop);
        let deadline = loop {
            tokio::select! {
                () = self.queue.due() => {}
                deadline = &mut stop => break deadline.unwrap_or_else(|_dropped| Instant::now()),
            }
            for mut batch in self.queue.take(false) {
                match self.deliver(&mut batch).await {
                    Outcome::Failed if batch.failures + 1 < ATTEMPTS_MAX => {
                        self.queue.retry(batch);
                    }
                    outcome => self.end(&batch, outcome),
                }
            }
        };
        for mut batch in self.queue.take(true) {
            let delivered =
                tokio::time::timeout_at(deadline.into(), self.deliver(&mut batch)).await;
            self.end(&batch, delivered.unwrap_or(Outcome::Failed));
        }
    }

    fn end(&self, batch: &Batch, outcome: Outcome) {
        if outcome == Outcome::Failed {
            let (bucket, records) = (&*batch.target.bucket, batch.records());
            tracing::error!(bucket, records, "access log records are lost: not delivered");
            self.queue.metrics().logs.failed.add(records);
        }
        self.queue.end(batch);
    }

    /// Stores a batch without the records from sources that the target bucket does not accept.
    async fn deliver(&self, batch: &mut Batch) -> Outcome {
        let counts = &self.queue.metrics().logs;
        let bucket = batch.target.bucket.clone();
        match self.store(batch).await {
            Ok(0) => Outcome::Done,
            Ok(records) => {
                counts.delivered.add(records);
                counts.objects.add(1);
                Outcome::Done
            }
            Err(error) if error.code() == S3ErrorCode::NoSuchBucket => {
                tracing::warn!(bucket, "access log records are dropped: no such bucket");
                counts.refused.add(batch.records());
                Outcome::Done
            }
            Err(error) => {
                tracing::warn!(bucket, %error, "access log records were not delivered");
                counts.errors.add(1);
                Outcome::Failed
            }
        }
    }

    /// Stores a batch's accepted records, and returns their number.
    async fn store(&self, batch: &mut Batch) -> S3Result<u64> {
        let id = self.ids.next();
        let unique = str::from_utf8(&id).unwrap_or_default();
        let Some(first) = batch.parts.first() else { return Ok(0) };
        let now = OffsetDateTime::now_utc();
        let name = key(&batch.target, &first.source, batch.day, now, unique);
        self.remove_refused(batch, &name).await?;
        let records = batch.records();
        if records == 0 {
            return Ok(0);
        }
        let lines: String = batch.parts.iter().map(|part| &*part.lines).collect();
        let bucket = batch.target.bucket.clone();
        let master = self.haul.master_for(&bucket, RequestedEncryption::Default)?;
        let is_encrypted = master.is_some();
        let mut attributes = Attributes::new();
        attributes.set("content-type", "text/plain");
        let (name, precondition) = (ObjectName::new(bucket, name), Precondition::Absent);
        let event = None;
        let put = Put { name, bucket: None, attributes, precondition, master, event };
        let receiver = Receiver::from_bytes(&self.haul, lines.into());
        match receiver.is_small() && !is_encrypted {
            true => put.small(&self.haul, receiver).await?,
            false => put.big(&self.haul, receiver).await?,
        };
        Ok(records)
    }

    /// Removes the records from sources that the target bucket does not accept.
    async fn remove_refused(&self, batch: &mut Batch, name: &str) -> S3Result<()> {
        let (target, name) = (batch.target.clone(), name.to_owned());
        let sources: Vec<_> = batch.parts.iter().map(|part| part.source.clone()).collect();
        // Blocks: the first delivery to a bucket may read its settings.
        let read = move |store: &Pool| {
            // Fails if the bucket was deleted.
            store.bucket(&target.bucket).map_err(from_store)?;
            let allowed = |source| may_deliver(store, &target, source, &name);
            sources.iter().map(allowed).collect::<S3Result<Vec<_>>>()
        };
        let mut allowed = self.haul.blocking(read).await?.into_iter();
        batch.parts.retain(|part| {
            let is_allowed = allowed.next().unwrap_or(false);
            if !is_allowed {
                let (source, target) = (&*part.source.bucket, &*batch.target.bucket);
                let records = part.records;
                tracing::warn!(
                    source,
                    target,
                    records,
                    "access log records are dropped: {REFUSED}"
                );
                self.queue.metrics().logs.refused.add(part.records);
            }
            is_allowed
        });
        Ok(())
    }
}
