//! The thread that writes volume indexes, and lists new volumes in the manifest. Requests never
//! wait for it.

use std::sync::Arc;
use std::time::Instant;

use haul_sync::now;
use haul_sync::thread::JoinHandle;

use crate::checkpoint::write::{checkpoint_at_close, checkpoint_if_due};
use crate::error::Result;
use crate::failures::WorkKind;
use crate::inner::Inner;
use crate::volumes::nonempty_volumes;
use crate::worker::{Worker, spawn};

/// The number of writes after which the indexes are synced.
const SYNC_EVERY: u32 = 5;

#[derive(Debug)]
pub(crate) struct IndexThread {
    inner: Option<Arc<Inner>>,
    thread: Option<JoinHandle<()>>,
}

impl IndexThread {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let thread = spawn(&inner.dir, "store-index", {
            let inner = Arc::clone(inner);
            move || run(&inner)
        })?;
        Ok(Self { inner: Some(Arc::clone(inner)), thread: Some(thread) })
    }
}

impl Worker for IndexThread {
    /// Ends the thread, and marks the newest volume's end in its index. Nothing is appended any
    /// more.
    fn stop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        inner.volumes.indexes.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
        checkpoint_at_close(&inner);
        // An error is harmless: without the mark, opening the store detects less damage.
        drop(inner.volumes.close_index());
    }
}

impl Drop for IndexThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Runs the thread. A failure affects no object: needles that an index lacks are read from the
/// volume, and the next pass lists volumes that this pass did not list.
fn run(inner: &Inner) {
    let write_every = inner.options.index_write_every;
    let sync_every = write_every.saturating_mul(SYNC_EVERY);
    let mut unsynced_since: Option<Instant> = None;
    loop {
        let wait = match unsynced_since {
            Some(since) => sync_every.saturating_sub(now() - since).min(write_every),
            None => write_every,
        };
        let woken = inner.volumes.indexes.wait(wait, unsynced_since.is_some());
        if woken.has_new_volume {
            inner.maintenance.failures.note(WorkKind::Indexing, &inner.volumes.list_new_volumes());
        }
        if woken.is_stopping {
            return;
        }
        inner.volumes.indexes.write(&nonempty_volumes(&inner.volumes.log));
        checkpoint_if_due(inner);
        let since = *unsynced_since.get_or_insert_with(now);
        if now() - since >= sync_every {
            inner.maintenance.failures.note(WorkKind::Indexing, &inner.volumes.indexes.sync());
            unsynced_since = None;
        }
    }
}
