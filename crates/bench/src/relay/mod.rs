//! Compares TCP relays: `haul relay` and its rivals.
//!
//! Each relay runs on one core. Clients and backend share another core and are part of this
//! program, so all relays carry the same bytes. Relays are measured in interleaved rounds. The
//! first relay is measured twice in each round; the difference is noise. The benchmark counts bytes
//! at both ends, and compares one message in 64 byte by byte.

mod bulk;
mod costs;
mod exchange;
mod options;
mod peer;
mod relays;
mod run;
mod workload;

use crate::contest::columns;
use crate::host::Host;
use crate::net::comparison::Comparison;
use crate::net::environment::Environment;
use crate::report::Report;
use haul_measure::{Result, Watcher};
pub use options::{Options, Part};
use relays::Relays;
use run::Bench;
use workload::{BAR, FIELDS, ratios};

/// Measures the parts that the options select. The relays are killed when this returns, and also if
/// the process is killed; after a kill, their configuration files remain.
///
/// # Errors
/// Returns [`crate::Error::Missing`] if there is only one core, and an error if `haul` fails or a
/// relay delivers wrong bytes. Any other failure of a rival is shown in its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("relay", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    let program = options.program.as_deref();
    let congestion = options.congestion.as_deref();
    let environment = Environment::new(&options.dir, program, congestion, &mut report)?;
    let dir = environment.scratch.path();
    watcher.step(0, 1, "starting the relays");
    let relays = Relays::find(options, environment.cores, dir)?;
    report.host.versions.extend(relays.versions());
    let missing = relays.missing();
    if !missing.is_empty() {
        report.notes.push(format!(
            "Not measured, because not installed or not selected: {}.",
            missing.join(", ")
        ));
    }
    let comparison = Comparison::new(FIELDS, relays.variants());
    let mut bench = Bench::new(options, watcher, &relays, comparison, dir)?;
    let loads = options.workloads();
    for load in &loads {
        bench.measure(*load)?;
    }
    bench.comparison.report(&mut report);
    report.ratios = ratios(&bench.comparison, &loads);
    if options.parts.contains(&Part::Pipes) {
        bench.measure_costs(&mut report)?;
    }
    Ok(report)
}
