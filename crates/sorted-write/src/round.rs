//! The thread that writes: a sweep over the bulk, a sweep over the index files, the syncs.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::carry::sweep;
use crate::error::{Error, Result};
use crate::options::Role;
use crate::state::{Gate, Round, Shared};
use crate::stats::count;
use crate::target::Target;

/// Starts it. It ends when the writer is closed, or at the first failure.
pub(crate) fn start(
    shared: &Arc<Shared>,
    gate: Option<Arc<dyn Gate>>,
) -> std::io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    thread::Builder::new().name("sorted-write".to_owned()).spawn(move || {
        let _told = Told(Arc::clone(&shared));
        while let Some(round) = shared.wait_for_round() {
            let outcome = carry_out(&shared, &round, gate.as_deref());
            shared.end_round(round, outcome);
        }
    })
}

/// Nobody waits for a thread that is gone.
struct Told(Arc<Shared>);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.latch(Error::Invalid("the writing thread ended early"));
        }
    }
}

/// One round.
///
/// 1. The gate is asked: whoever keeps a log makes sure that it has all of the round.
/// 2. Every file is swept once, upward: first the bulk, then the index files. From here on a crash
///    leaves any part of the round in the files.
/// 3. At a barrier, or where there is a gate, all files written since their last sync are synced.
///    From here on the round survives.
/// 4. The gate is told: the log may forget the round.
fn carry_out(shared: &Shared, round: &Round, gate: Option<&dyn Gate>) -> Result<()> {
    let options = &shared.options;
    if let Some(gate) = gate {
        gate.before(round.tag)?;
    }
    count(&shared.counters.rounds, u64::from(!round.batches.is_empty()));
    for role in [Role::Bulk, Role::Index] {
        for (target, batch) in round.batches.iter().filter(|(target, _)| target.role == role) {
            sweep(target, batch, options, &shared.counters)?;
        }
    }
    if round.barrier.is_some() || gate.is_some() {
        sync_all(shared)?;
    }
    gate.map_or(Ok(()), |gate| gate.after(round.tag))
}

fn sync_all(shared: &Shared) -> Result<()> {
    let targets: Vec<Arc<Target>> =
        shared.state.lock().queues.iter().map(|queue| Arc::clone(&queue.target)).collect();
    for target in targets.iter().filter(|target| target.unsynced_bytes() > 0) {
        count(&shared.counters.syncs, 1);
        target.sync()?;
    }
    Ok(())
}
