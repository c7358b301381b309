//! Measures a store of many small objects: memory and disk space for each object, opening after a
//! kill, and listing.
//!
//! A child process fills the store and is killed with `SIGKILL`; further children open it and are
//! killed, too. Thus the memory of one phase has no influence on the next.

mod child;
mod lines;
mod options;
mod process;
mod table;

use std::path::Path;

use haul_disk::{error_chain, probe};
use haul_measure::{Error, Result, Watcher};

use crate::host::Host;
use crate::log::{Failure, Scratch};
use crate::report::Report;
use crate::small_files::directory::{evict_below, space_below};
pub use child::run as run_child;
use lines::{Phase, Step};
pub use options::{Options, Role};
use process::Process;
use table::{BAR, COLUMNS, Results};

/// Runs the benchmark. All files are removed when this returns.
///
/// # Errors
/// Returns [`crate::Error::Cancelled`] if the watcher cancels, and an error if a child fails or the
/// store has lost an object.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let storage = probe(&options.dir)?;
    let name = format!("haul-bench-small-files-scale.{}", std::process::id());
    let scratch = Scratch::new(&options.dir, &name)?;
    let results = measure(options, scratch.path(), watcher).map_err(|failure| {
        if watcher.is_cancelled() {
            return Error::Cancelled;
        }
        Error::Missing(format!("cannot measure the store: {}", error_chain(&*failure)))
    })?;
    let host = Host::here().with_storage("", &storage);
    let mut report = Report::new("small-files-scale", host, COLUMNS, BAR);
    results.report(&mut report);
    report.notes.push(table::note(options));
    Ok(report)
}

fn measure(options: &Options, dir: &Path, watcher: &dyn Watcher) -> Result<Results, Failure> {
    let store = dir.join("store");
    let phases = options.steps + 3;
    let mut results = Results::default();
    let mut child = Process::start(options, Role::Fill, &store)?;
    for done in 0..options.steps {
        watcher.check()?;
        watcher.step(done, phases, "storing objects");
        results.steps.push(child.next_step(Phase::Fill)?);
    }
    child.kill()?;
    watcher.check()?;
    results.space = space_below(&store)?;

    watcher.step(options.steps, phases, "opening the store, not in the page cache");
    evict_below(&store)?;
    let mut child = Process::start(options, Role::Open, &store)?;
    results.cold_open = Some(opened(&mut child, options)?);
    child.kill()?;
    watcher.check()?;

    watcher.step(options.steps + 1, phases, "opening the store, in the page cache");
    let mut child = Process::start(options, Role::List, &store)?;
    results.warm_open = Some(opened(&mut child, options)?);
    watcher.check()?;
    watcher.step(options.steps + 2, phases, "listing the bucket");
    results.list = Some(child.next_step(Phase::List)?);
    results.pages = Some(child.next_step(Phase::Pages)?);
    child.kill()?;
    Ok(results)
}

/// Returns the step in which the child opened the store; fails unless all objects are there.
fn opened(child: &mut Process, options: &Options) -> Result<Step, Failure> {
    let step = child.next_step(Phase::Open)?;
    let expected = options.objects;
    if step.count == expected {
        return Ok(step);
    }
    Err(format!("{} of {expected} objects are in the store after a kill", step.count).into())
}
