//! Runs one rival of Haul's append log or file store (another library that writes durable records)
//! under one workload, with the same loop that measures Haul's, and prints one line of JSON. `haul
//! bench log` and `haul bench small-files` start this program; `docs/log-bench.md` explains how to
//! build it. With `--relay`, as `haul bench relay` starts it, the program relays connections with
//! tokio until it is killed.

mod okaywal;
mod raft_engine;
mod relay;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod small_files;
mod sqlite;
mod variants;
mod walrus;
mod workload;

use std::env;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use haul_bench::log::{Failure, Load, Sample, drive};

use crate::workload::Workload;

/// Measure a rival of Haul's append log or file store and print the result as one line of JSON, or relay
/// connections with a rival of Haul's relay
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// List the logs compiled into this program
    #[arg(long)]
    list: bool,
    /// Log to measure, by its name in the output of --list
    #[arg(long, required_unless_present_any = ["list", "relay"])]
    log: Option<String>,
    /// Empty directory for the files of the log
    #[arg(long, required_unless_present_any = ["list", "relay"])]
    dir: Option<PathBuf>,
    /// Number of appending threads
    #[arg(long, default_value_t = 1)]
    writers: usize,
    /// Size of a record, in bytes
    #[arg(long, default_value_t = 4096)]
    record_bytes: usize,
    /// Duration of writing before the measurement begins, in milliseconds
    #[arg(long, default_value_t = 250)]
    settle_ms: u64,
    /// Duration of the measurement, in milliseconds
    #[arg(long, default_value_t = 1000)]
    measure_ms: u64,
    /// Relay connections with this library until killed: tokio
    #[arg(long, value_parser = ["tokio"], requires = "listen", requires = "to")]
    relay: Option<String>,
    /// With --relay: address to accept connections at
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// With --relay: address to relay connections to
    #[arg(long, value_name = "ADDRESS")]
    to: Option<SocketAddr>,
    /// With --relay: buffer size per direction, in bytes; 8192 is tokio's default
    #[arg(long, default_value_t = 8192)]
    buffer_bytes: usize,
}

/// The environment variables that set the directory of walrus and suppress its output.
const WALRUS: [&str; 2] = ["WALRUS_DATA_DIR", "WALRUS_QUIET"];

fn main() -> ExitCode {
    let output = match Cli::parse() {
        cli if cli.list => Ok(list()),
        cli if cli.relay.is_some() => relay(&cli).map(|()| String::new()),
        cli => measure(&cli).map(|sample| sample.to_json()),
    };
    let (written, code) = match output {
        Ok(text) => (writeln!(std::io::stdout(), "{text}"), ExitCode::SUCCESS),
        Err(failure) => (writeln!(std::io::stderr(), "{failure}"), ExitCode::FAILURE),
    };
    if written.is_ok() { code } else { ExitCode::FAILURE }
}

fn list() -> String {
    variants::all().map(|(name, _)| *name).collect::<Vec<_>>().join("\n")
}

fn relay(cli: &Cli) -> Result<(), Failure> {
    let (listen, to) = cli.listen.zip(cli.to).ok_or("give --listen and --to")?;
    relay::run(listen, to, cli.buffer_bytes)
}

fn measure(cli: &Cli) -> Result<Sample, Failure> {
    let (log, dir) = cli.log.as_deref().zip(cli.dir.as_deref()).ok_or("give --log and --dir")?;
    let (_, open) = variants::all()
        .find(|(name, _)| *name == log)
        .ok_or_else(|| format!("unknown log {log:?}; known are:\n{}", list()))?;
    if log.starts_with("walrus") && WALRUS.iter().any(|name| env::var_os(name).is_none()) {
        return Err(restart(dir));
    }
    let device = haul_disk::probe(dir)?.device;
    let workload = Workload { dir, writers: cli.writers };
    let contender = open(workload)?;
    contender.warm_up()?;
    // Writes back the dirty pages of the warm-up, so that the measurement does not include them.
    rustix::fs::sync();
    let load = Load {
        writers: cli.writers,
        record_bytes: cli.record_bytes,
        settle: Duration::from_millis(cli.settle_ms),
        measure: Duration::from_millis(cli.measure_ms),
    };
    drive(&*contender, &load, device.as_ref())
}

/// Executes this program again with the environment that walrus reads. Returns only if the
/// execution fails.
fn restart(dir: &Path) -> Failure {
    let Ok(program) = env::current_exe() else { return "cannot find this program".into() };
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(WALRUS[0], dir).env(WALRUS[1], "1");
    command.exec().into()
}
