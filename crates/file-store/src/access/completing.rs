//! The completing thread waits for the log on behalf of all started puts, and applies a batch's
//! needles to the index in one step.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use haul_sync::thread::{self, JoinHandle};

use crate::counters::Counters;
use crate::error::{Error, Result};
use crate::failures::WorkKind;
use crate::index::entry::DurableRecord;
use crate::inner::Inner;
use crate::object::StoredObject;
use crate::pending_put::future::Wake;
use crate::pending_put::queue::{AppendedPut, WaitedPut};
use crate::worker::{Worker, spawn};

/// The maximum number of puts that are applied under one index lock, during which readers wait.
const APPLY_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct CompletingThread {
    inner: Option<Arc<Inner>>,
    thread: Option<JoinHandle<()>>,
}

impl CompletingThread {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let thread = spawn(&inner.dir, "store-complete", {
            let inner = Arc::clone(inner);
            move || complete_until_stopped(&inner)
        })?;
        Ok(Self { inner: Some(Arc::clone(inner)), thread: Some(thread) })
    }
}

impl Worker for CompletingThread {
    /// Completes all puts and ends the thread. No more puts are started.
    fn stop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        inner.keyspace.pending_puts.stop();
        let Some(thread) = self.thread.take() else { return };
        if thread.thread().id() == thread::current().id() {
            // A waker dropped the store on this thread, which cannot join itself.
            complete_until_stopped(&inner);
        } else {
            drop(thread.join());
        }
    }
}

impl Drop for CompletingThread {
    fn drop(&mut self) {
        self.stop();
    }
}

fn complete_until_stopped(inner: &Inner) {
    while let Some(puts) = inner.keyspace.pending_puts.take() {
        // After a panic, the puts that were being completed return an error. The thread continues,
        // because otherwise the remaining puts would hold their locks forever.
        drop(catch_unwind(AssertUnwindSafe(|| complete_durable(inner, puts))));
    }
}

/// Waits until the oldest put is durable, and completes all puts that are durable by then. The
/// other puts return to the queue; if a waker drops the store, they are completed from there.
///
/// 1. The log commits the oldest put's batch, on this thread unless another thread does so. After a
///    crash before the sync ends, the log may or may not have the batch's needles.
/// 2. Durable needles are applied to the index and become visible.
/// 3. The keys are unlocked.
/// 4. The futures resolve, and their wakers are called, without a lock.
///
/// If the write or the sync fails, all puts return the error, and nothing is applied.
fn complete_durable(inner: &Inner, mut puts: Vec<AppendedPut>) {
    // A caller appends and queues its put in two steps, so the orders may differ.
    puts.sort_unstable_by_key(|put| put.ticket.position().lsn);
    let oldest = puts.remove(0).wait();
    let synced = inner.volumes.log.synced();
    let count = match oldest.at {
        Ok(_) => puts.partition_point(|put| put.ticket.position().lsn < synced),
        // The log has failed, so waiting for a ticket does not block.
        Err(_) => puts.len(),
    };
    inner.keyspace.pending_puts.put_back(puts.split_off(count));
    let (mut chunk, mut wakes) = (vec![oldest], Vec::with_capacity(count + 1));
    for put in puts {
        if chunk.len() == APPLY_MAX {
            complete(inner, std::mem::take(&mut chunk), &mut wakes);
        }
        chunk.push(put.wait());
    }
    complete(inner, chunk, &mut wakes);
    (inner.options.wake_all)(&mut || wakes.clear());
}

/// Executes steps 2 to 4 of [`complete_durable`], but adds the wakers to `wakes` instead of calling
/// them.
fn complete(inner: &Inner, puts: Vec<WaitedPut>, wakes: &mut Vec<Wake>) {
    let (mut records, mut locks) = (Vec::with_capacity(puts.len()), Vec::new());
    let mut outcomes = Vec::with_capacity(puts.len());
    for WaitedPut { at, change, others, info, locks: held, resolver } in puts {
        let outcome = at.map(|at| {
            records.push(DurableRecord { at, change, others });
            Counters::count(&inner.counters.local().puts);
            StoredObject { info, location: inner.location(at) }
        });
        locks.push(held);
        outcomes.push((resolver, outcome));
    }
    if !records.is_empty() {
        inner.maintenance.failures.succeeded(WorkKind::Changes);
    }
    inner.apply_records(records);
    drop(locks);
    let refused = inner.options.replication.as_ref().and_then(|copy| copy.check_now().err());
    wakes.extend(outcomes.into_iter().map(|(resolver, outcome)| {
        let outcome = match &refused {
            Some(what) => outcome.and(Err(Error::NotReplicated { what: what.clone() })),
            None => outcome,
        };
        resolver.resolve(outcome)
    }));
}
