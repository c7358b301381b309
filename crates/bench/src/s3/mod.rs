//! Compares `haul serve` with other S3 servers: signed PUT and GET of small objects, and listings.
//!
//! Each server runs on one core, and the load generator on another, with the files of all servers
//! in the same file system. Servers are measured in interleaved rounds. `haul serve` is measured
//! twice in each round; the difference is noise. One response in 64 is compared byte by byte, and
//! each listing is checked to have all keys.

mod listing;
mod options;
mod run;
mod servers;
mod workload;

use haul_disk::probe;

use crate::contest::columns;
use crate::host::Host;
use crate::net::comparison::Comparison;
use crate::net::environment::Environment;
pub use crate::net::http::s3::SignatureKind;
use crate::report::Report;
use haul_measure::{Result, Watcher};
pub use options::{Options, Part, Rival};
use run::Bench;
use servers::Servers;
use workload::{BAR, FIELDS, ratios};

/// Measures the parts that the options select. When this returns, the servers are killed, and their
/// files removed. If this process is killed, the servers are killed, too, but the files remain.
///
/// # Errors
/// Returns [`crate::Error::Missing`] if there is only one core, and an error if `haul` fails, or
/// sends wrong bytes. A failure of a rival is shown in its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("s3", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    let program = options.program.as_deref();
    let congestion = options.congestion.as_deref();
    let environment = Environment::new(&options.dir, program, congestion, &mut report)?;
    let dir = environment.scratch.path();
    report.host = std::mem::take(&mut report.host).with_storage("", &probe(dir)?);
    let servers = Servers::find(options, environment.cores, dir);
    servers.describe(&mut report);
    let comparison = Comparison::new(FIELDS, servers.variants());
    let mut bench = Bench::new(options, watcher, &servers, comparison);
    bench.run()?;
    bench.comparison.report(&mut report);
    report.ratios = ratios(&bench.comparison, &bench.workloads);
    Ok(report)
}
