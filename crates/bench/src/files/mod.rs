//! Compares HTTP file servers: `haul`, nginx and others.
//!
//! Each server runs on one core, and the load generator on another. On each of its persistent
//! connections, the load generator requests the next file as soon as the previous file has arrived;
//! to measure latency, it requests files at a fixed rate. Servers are measured in interleaved
//! rounds. The first server is measured twice in each round; the difference is noise. One response
//! in 64 is compared byte by byte.
//!
//! # Sources
//! \[HdrHistogram\] on counting latencies from the time at which a request was due.

mod hyper_server;
mod options;
mod others;
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
pub use hyper_server::serve as serve_with_hyper;
pub use options::{Options, Part};
use run::Bench;
use servers::Servers;
use workload::{BAR, FIELDS, ratios};

/// Measures the parts that the options select. When this returns, the servers are killed and the
/// files removed. If this process is killed, the servers are killed, too, but the files remain.
///
/// # Errors
/// Returns [`crate::Error::Missing`] if there is only one core, and an error if the files cannot be
/// created, `haul` fails, or a server sends wrong bytes. Any other failure of a rival is shown in
/// its rows.
pub fn run(options: &Options, watcher: &dyn Watcher) -> Result<Report> {
    let mut report = Report::new("files", Host::here(), columns(FIELDS), BAR);
    report.notes.push(options.note());
    let program = options.program.as_deref();
    let congestion = options.congestion.as_deref();
    let environment = Environment::new(&options.dir, program, congestion, &mut report)?;
    let dir = environment.scratch.path();
    report.host = std::mem::take(&mut report.host).with_storage("", &probe(dir)?);
    let servers = Servers::find(options, environment.cores, dir)?;
    Nginx::describe(servers.nginx.as_ref(), &mut report);
    let is_found = |name: &&str| servers.others.iter().any(|(found, _)| found == name);
    let missing = others::wanted(&options.parts).filter(|name| !is_found(name));
    let note = |name| format!("{name} is not installed, so it was not measured.");
    report.notes.extend(missing.map(note));
    report.host.versions.extend(servers.versions.iter().cloned());
    let comparison = Comparison::new(FIELDS, servers.variants());
    let mut bench = Bench::new(options, watcher, &servers, comparison, dir)?;
    bench.run(&mut report.notes)?;
    bench.comparison.report(&mut report);
    report.ratios = ratios(&bench.comparison, &bench.workloads);
    Ok(report)
}
