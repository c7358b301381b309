//! Compares the CPU time of `haul serve` per request with that of `haul files` and nginx, which
//! send the same bytes from files, and with calls of the store in one process.
//!
//! Each server runs on one core, and the load generator on another. On each of its persistent
//! connections, the load generator sends the next request as soon as the previous response has
//! arrived. Servers are measured in interleaved rounds. The first server is measured twice in each
//! round; the difference is noise. One response in 64 is compared byte by byte.

mod objects;
mod options;
mod run;
mod servers;
mod workload;

use haul_disk::probe;

use crate::contest::columns;
use crate::host::Host;
use crate::net::comparison::Comparison;
use crate::net::environment::Environment;
use crate::net::nginx::Nginx;
use crate::report::Report;
use haul_measure::{Result, Watcher};
pub use options::{Options, Part};
use run::Bench;
use servers::Servers;
use workload::{BAR, FIELDS, ratios};

/// Measures the parts that the options select. When this returns, the servers are killed, and the
/// files and stores removed. If this process is killed, the servers are killed, too, but the files
/// and stores remain.
///
/// # Errors
/// Returns [`crate::Error::Missing`] if there is only one core, and an error if the files or stores
/// cannot be created, `haul` fails, or a server sends wrong bytes. Any other failure of nginx is
/// shown in its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("serve", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    let program = options.program.as_deref();
    let congestion = options.congestion.as_deref();
    let environment = Environment::new(&options.dir, program, congestion, &mut report)?;
    let dir = environment.scratch.path();
    report.host = std::mem::take(&mut report.host).with_storage("", &probe(dir)?);
    let servers = Servers::find(options, environment.cores, dir);
    Nginx::describe(servers.nginx.as_ref(), &mut report);
    let comparison = Comparison::new(FIELDS, servers.variants());
    let mut bench = Bench::new(options, watcher, &servers, comparison)?;
    bench.run()?;
    bench.comparison.report(&mut report);
    report.ratios = ratios(&bench.comparison, &bench.workloads);
    Ok(report)
}
