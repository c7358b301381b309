//! The program `haul`. Each subcommand has a module; the logic is in the libraries.

mod admin_client;
mod advice;
mod args;
mod bench;
mod cache;
mod clock;
mod config;
mod descriptors;
mod digest_cache;
mod doctor;
mod dups;
mod event_targets;
mod events;
mod files;
mod handover;
mod health;
mod import_s3;
mod inherited;
mod json;
mod keys;
mod listen;
mod location;
mod log;
mod logs;
mod notify;
mod open_store;
mod patch;
mod probe;
mod ready;
mod relay;
mod reload;
mod remote;
mod secrets;
mod serve;
mod store;
mod sum;
mod tls;
mod tune;
mod wal;

use std::env;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::process::ExitCode;

use clap::FromArgMatches;
use haul_cli_common::{console, generate, output, progress, report, signals};
use haul_units as units;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command};
use crate::config::Parsed;
use crate::output::Output;
use crate::report::{Exit, Result};

fn main() -> ExitCode {
    haul_disk::replace_unusable_streams();
    let arguments: Vec<_> = env::args_os().collect();
    log::catch_early(&arguments);
    let mut command = args::command();
    let parsed = match config::parse(&mut command, arguments) {
        Ok(Parsed::Matches(matches)) => {
            Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
        }
        Ok(Parsed::File(text)) => return report::exit_code(print(&text)),
        Ok(Parsed::Message(message)) => Err(message),
        Err(failure) => return report::exit_code(Err(failure)),
    };
    match parsed {
        Ok(cli) => report::exit_code(advice::with_advice(run(cli))),
        Err(message) => print_parsed(&message),
    }
}

/// Runs the command of the command line.
fn run(cli: Cli) -> Result {
    log_to_stderr(cli.verbose);
    match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Files(args) => files::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Keys(args) => keys::run(&args),
        Command::Health(args) => health::run(&args),
        Command::Events(args) => events::run(&args),
        Command::ImportS3(args) => import_s3::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Wal(args) => wal::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Dups(args) => dups::run(&args),
        Command::Patch(args) => patch::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Sum(args) => sum::run(&args, cli.verbose),
        Command::Completions { shell } => generate::completions(&mut args::command(), shell),
        Command::Man { dir } => generate::man(args::command(), dir.as_deref()),
    }
}

fn print(text: &str) -> Result {
    let mut output = Output::new();
    output.bytes(text.as_bytes())?;
    output.finish()
}

/// Prints the help or the version, or the reason why the command line is invalid.
fn print_parsed(message: &clap::Error) -> ExitCode {
    let printed = message.print().and_then(|()| stdout().flush());
    match printed {
        _ if message.use_stderr() => Exit::Usage.into(),
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::exit_code(Err(output::unwritten(error))),
    }
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_filter(level);
    tracing_subscriber::registry().with(lines).init();
}
