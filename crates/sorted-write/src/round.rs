//! Runs the writing thread, which executes rounds: it writes each file in ascending order, and
//! syncs the files at a barrier or for a page file.

use std::sync::Arc;
use std::thread::panicking;

use haul_sync::thread::{self, JoinHandle};

use crate::error::{Error, Result};
use crate::state::{Round, RoundHook, Shared};
use crate::stats::count;
use crate::sweep::Sweeper;

/// Starts the writing thread. The thread ends when the writer is closed, or at the first failure.
pub(crate) fn start(
    shared: &Arc<Shared>,
    hook: Option<Arc<dyn RoundHook>>,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name("sorted-write".to_owned()).spawn(move || {
        let _latch = LatchOnPanic(Arc::clone(&shared));
        let mut sweeper = Sweeper::default();
        while let Some(round) = shared.wait_for_round() {
            let result = run_round(&shared, &round, hook.as_deref(), &mut sweeper);
            shared.finish_round(round, result);
        }
    })
}

/// A guard that latches an error if the writing thread panics: waiting and later calls return this
/// error, so that no caller waits forever.
struct LatchOnPanic(Arc<Shared>);

impl Drop for LatchOnPanic {
    fn drop(&mut self) {
        if panicking() {
            self.0.latch(Error::Invalid("the writing thread panicked"));
        }
    }
}

/// Executes one round.
///
/// 1. [`RoundHook::before`] syncs a page file's write-ahead log up to the round's last record.
/// 2. Each file is swept once in ascending order. After a crash during this step, any part of the
///    round is in the files.
/// 3. At a barrier, or if there is a hook, all files written since their last sync are synced. The
///    round is now durable.
/// 4. [`RoundHook::after`] appends a checkpoint record to a page file's write-ahead log and removes
///    its obsolete segments.
fn run_round(
    shared: &Shared,
    round: &Round,
    hook: Option<&dyn RoundHook>,
    sweeper: &mut Sweeper,
) -> Result<()> {
    let options = &shared.options;
    if let Some(hook) = hook {
        hook.before(round.tag)?;
    }
    count(&shared.counters.rounds, u64::from(!round.batches.is_empty()));
    for (target, batch) in &round.batches {
        target.measure_kind();
        sweeper.sweep(target, batch, options, &shared.counters)?;
    }
    if round.barrier.is_some() || hook.is_some() {
        sync_all(shared)?;
    }
    hook.map_or(Ok(()), |hook| hook.after(round.tag))
}

fn sync_all(shared: &Shared) -> Result<()> {
    for target in shared.targets().iter().filter(|target| target.unsynced_bytes() > 0) {
        count(&shared.counters.syncs, 1);
        target.sync()?;
    }
    Ok(())
}
