//! Drives one log that is not ours under one load, with the very loop ours is driven with, and
//! prints one line of JSON. `haul bench log` starts it; how to build it: `docs/log-bench.md`. For
//! `haul bench relay` it relays connections as tokio does, until it is killed.

mod forms;
mod lmdb_pages;
mod okaywal;
mod raft_engine;
mod relay;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;
mod sqlite_pages;
mod walrus;

use std::env;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use haul_bench::log::{Failure, Load, Sample, drive};

use crate::forms::{Cell, FORMS};

/// Drives a log that is not Haul's and prints what came out, as one line of JSON; or relays
/// connections with a library that is not Haul's
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// Print the logs this program was built with, and end
    #[arg(long)]
    list: bool,
    /// Which log, in which form
    #[arg(long, required_unless_present_any = ["list", "relay"])]
    log: Option<String>,
    /// An empty directory
    #[arg(long, required_unless_present_any = ["list", "relay"])]
    dir: Option<PathBuf>,
    /// Threads that append
    #[arg(long, default_value_t = 1)]
    writers: usize,
    /// The length of a record
    #[arg(long, default_value_t = 4096)]
    record_bytes: usize,
    /// How many pages there are, for those that change pages
    #[arg(long, default_value_t = 65_536)]
    pages: u64,
    /// How long they write before anything counts
    #[arg(long, default_value_t = 250)]
    settle_ms: u64,
    /// How long is measured
    #[arg(long, default_value_t = 1000)]
    measure_ms: u64,
    /// Relay connections until this is killed, with this library: tokio
    #[arg(long, value_parser = ["tokio"], requires = "listen", requires = "to")]
    relay: Option<String>,
    /// Where connections are accepted
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where they go
    #[arg(long, value_name = "ADDRESS")]
    to: Option<SocketAddr>,
    /// The buffer for each direction; tokio's own default is 8192
    #[arg(long, default_value_t = 8192)]
    buffer_bytes: usize,
}

/// What walrus is told where to write by, and to be quiet.
const WALRUS: [&str; 2] = ["WALRUS_DATA_DIR", "WALRUS_QUIET"];

fn main() -> ExitCode {
    let told = match Cli::parse() {
        cli if cli.list => Ok(list()),
        cli if cli.relay.is_some() => relay(&cli).map(|()| String::new()),
        cli => measure(&cli).map(|sample| sample.to_json()),
    };
    let (told, code) = match told {
        Ok(text) => (writeln!(std::io::stdout(), "{text}"), ExitCode::SUCCESS),
        Err(failure) => (writeln!(std::io::stderr(), "{failure}"), ExitCode::FAILURE),
    };
    if told.is_ok() { code } else { ExitCode::FAILURE }
}

fn list() -> String {
    FORMS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join("\n")
}

fn relay(cli: &Cli) -> Result<(), Failure> {
    let (listen, to) = cli.listen.zip(cli.to).ok_or("give --listen and --to")?;
    relay::run(listen, to, cli.buffer_bytes)
}

fn measure(cli: &Cli) -> Result<Sample, Failure> {
    let (log, dir) = cli.log.as_deref().zip(cli.dir.as_deref()).ok_or("give --log and --dir")?;
    let (_, open) = FORMS
        .iter()
        .find(|(name, _)| *name == log)
        .ok_or_else(|| format!("there is no log {log:?}; there are:\n{}", list()))?;
    if log.starts_with("walrus") && WALRUS.iter().any(|name| env::var_os(name).is_none()) {
        return Err(again(dir));
    }
    let device = haul_disk::probe(dir)?.device;
    let cell = Cell { dir, writers: cli.writers, pages: cli.pages };
    let contender = open(cell)?;
    contender.warm_up()?;
    // What the warm-up left in the page cache is not written during the measurement.
    rustix::fs::sync();
    let load = Load {
        writers: cli.writers,
        record_bytes: cli.record_bytes,
        settle: Duration::from_millis(cli.settle_ms),
        measure: Duration::from_millis(cli.measure_ms),
    };
    drive(&*contender, &load, device.as_ref())
}

/// Becomes this program anew, with the environment walrus looks at. Returns only if that failed.
fn again(dir: &Path) -> Failure {
    let Ok(program) = env::current_exe() else { return "cannot find this program".into() };
    let mut command = Command::new(program);
    command.args(env::args_os().skip(1)).env(WALRUS[0], dir).env(WALRUS[1], "1");
    command.exec().into()
}
