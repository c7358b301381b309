//! The thread that sweeps buckets in the background.

use std::sync::Arc;
use std::time::Duration;

use haul_sync::mpsc;
use haul_sync::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::expiration::config::lifecycle_rules;
use crate::expiration::sweep::sweep;
use crate::expiration::sweep::{Pace, sleep};
use crate::inner::Inner;
use crate::lifecycle::schedule::Schedule;
use crate::worker::{Worker, spawn};

/// The maximum time from the opening of the store to the first check. A process that opens the
/// store briefly deletes nothing.
const FIRST_CHECK: Duration = Duration::from_secs(60);

/// The time between two looks at a closed gate.
const GATE_CHECK: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct LifecycleThread {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LifecycleThread {
    /// Starts the thread, unless the options disable it.
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let every = inner.options.lifecycle_check_every;
        if every.is_zero() {
            return Ok(Self { stop: None, thread: None });
        }
        let (stop, stopped) = mpsc::channel();
        let thread = spawn(&inner.dir, "store-lifecycle", {
            let inner = Arc::clone(inner);
            move || run(&inner, every, &stopped)
        })?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Worker for LifecycleThread {
    /// Ends the thread after its current page or batch.
    fn stop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for LifecycleThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks all buckets periodically until the store is closed, at least once a day.
fn run(inner: &Inner, every: Duration, stopped: &mpsc::Receiver<()>) {
    let day = inner.options.lifecycle_day;
    let every = every.min(day);
    let mut schedule = Schedule::new(day);
    let mut wait = every.min(FIRST_CHECK);
    while sleep(stopped, wait) {
        if !inner.options.lifecycle_gate.is_open() {
            wait = every.min(GATE_CHECK);
            continue;
        }
        let buckets: Vec<String> =
            inner.keyspace.index.read().named_buckets().map(|(name, _)| name.to_owned()).collect();
        for bucket in &buckets {
            if !check(inner, bucket, &mut schedule, stopped) {
                return;
            }
        }
        schedule.retain(|name| buckets.binary_search_by(|bucket| (**bucket).cmp(name)).is_ok());
        wait = every;
    }
}

/// Sweeps a bucket if it is due. Returns `false` if the store is being closed. After a failed
/// sweep, the bucket is due again at the next check.
fn check(
    inner: &Inner,
    bucket: &str,
    schedule: &mut Schedule,
    stopped: &mpsc::Receiver<()>,
) -> bool {
    let now_ms = inner.keyspace.clock.now_ms();
    let rules = match lifecycle_rules(inner, bucket) {
        Ok(rules) => rules,
        Err(Error::NoSuchBucket { .. }) => return true,
        Err(error) => {
            inner.maintenance.lifecycle.counters.failed(bucket, &haul_disk::error_chain(&error));
            return true;
        }
    };
    if rules.lifecycle.rules.is_empty() || !schedule.is_due(bucket, rules.revision, now_ms) {
        return true;
    }
    inner.maintenance.lifecycle.counters.set_sweeping(true);
    let swept = sweep(inner, bucket, &Pace::Background(stopped));
    inner.maintenance.lifecycle.counters.set_sweeping(false);
    match swept {
        Ok(Some(_)) => schedule.swept(bucket, rules.revision, now_ms),
        Ok(None) => return false,
        Err(Error::NoSuchBucket { .. }) => {}
        Err(error) => {
            inner.maintenance.lifecycle.counters.failed(bucket, &haul_disk::error_chain(&error))
        }
    }
    true
}
