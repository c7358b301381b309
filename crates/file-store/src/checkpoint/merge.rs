//! The thread that merges runs.

use std::sync::Arc;
use std::time::Duration;

use haul_sync::thread::{self, JoinHandle};
use haul_sync::{elapsed, now};

use crate::catalog::files::choose_runs;
use crate::error::Result;
use crate::index::runs::run::Run;
use crate::inner::Inner;
use crate::worker::{Worker, spawn};

/// The longest pause after each write of a merge.
const PAUSE_MAX: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct MergeThread {
    inner: Option<Arc<Inner>>,
    thread: Option<JoinHandle<()>>,
}

impl MergeThread {
    pub(crate) fn start(inner: &Arc<Inner>) -> Result<Self> {
        let thread = spawn(&inner.dir, "store-merge", {
            let inner = Arc::clone(inner);
            move || run(&inner)
        })?;
        Ok(Self { inner: Some(Arc::clone(inner)), thread: Some(thread) })
    }
}

impl Worker for MergeThread {
    /// Makes the thread end at its next write.
    fn stop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        inner.keyspace.merges.stop();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for MergeThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Merges runs whenever there is a new run. A failed merge changes nothing and is repeated after
/// the next checkpoint.
fn run(inner: &Inner) {
    loop {
        while !inner.keyspace.merges.is_stopping() && merge_next(inner).unwrap_or(false) {}
        if inner.keyspace.merges.is_stopping() {
            return;
        }
        inner.keyspace.merges.wait();
    }
}

/// Merges the runs that the plan selects; `false` if there are none.
///
/// 1. Writes and syncs the merged run. After a crash, no catalog lists its file.
/// 2. Publishes a catalog that lists it instead of its inputs.
/// 3. Switches readers to it, and removes the files of its inputs.
///
/// # Errors
/// [`Error::Damaged`] if a run is damaged: the catalog is then discarded, and the next opening of
/// the store rebuilds the index. A failed system call.
fn merge_next(inner: &Inner) -> Result<bool> {
    let (runs, objects, may_publish) = {
        let index = inner.keyspace.index.read();
        let may_publish = index.hidden.any().is_none() && !inner.keyspace.index_files.is_damaged();
        (index.keys.runs().to_vec(), index.objects(), may_publish)
    };
    // The catalog lists all runs only if checkpoints may be published.
    let Some((inputs, with_oldest)) = choose_runs(&runs, objects).filter(|_| may_publish) else {
        return Ok(false);
    };
    let bytes = inputs.iter().map(|run| run.info().bytes).sum();
    if !inner.has_space_for_index(bytes)? {
        return Ok(false);
    }
    let mut last = now();
    let mut pace = |_written| {
        thread::sleep(elapsed(last).min(PAUSE_MAX));
        last = now();
        !inner.keyspace.merges.is_stopping()
    };
    let merged = inner.keyspace.index_files.merge(&inputs, with_oldest, &mut pace);
    let Some(run) = merged.map_err(|error| inner.note_index_damage(error))? else {
        return Ok(false);
    };
    replace_runs(inner, &inputs, run)?;
    Ok(true)
}

fn replace_runs(inner: &Inner, inputs: &[Arc<Run>], run: Arc<Run>) -> Result<()> {
    let mut current = inner.keyspace.index_files.catalog.lock();
    let Some(mut catalog) = current.clone() else { return Ok(()) };
    let is_input = |number: &u64| inputs.iter().any(|input| input.info().id == *number);
    let Some(at) = catalog.runs.iter().position(is_input) else { return Ok(()) };
    let before = catalog.runs.len();
    catalog.runs.retain(|number| !is_input(number));
    debug_assert_eq!(catalog.runs.len() + inputs.len(), before, "all inputs are listed");
    catalog.runs.insert(at, run.info().id);
    catalog.last_file = inner.keyspace.index_files.last_number();
    inner.keyspace.index_files.publish(&mut current, catalog)?;
    inner.keyspace.index.write().keys.replace_runs(inputs, run);
    Ok(())
}
