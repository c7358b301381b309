//! The program `haul`: one file for each subcommand, no logic a library should have.

mod args;
mod bench;
mod cache;
mod clock;
mod console;
mod credentials;
mod descriptors;
mod dups;
mod files;
mod generate;
mod log;
mod opening;
mod output;
mod patch;
mod probe;
mod progress;
mod ready;
mod relay;
mod report;
mod serve;
mod signals;
mod store;
mod sum;
mod tune;
mod units;

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    // A wrong command line ends here, with a message and exit code 2.
    let cli = Cli::parse();
    log_to_stderr(cli.verbose);
    report::exit_code(match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Files(args) => files::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Log(args) => log::run(&args),
        Command::Cache(args) => cache::run(&args),
        Command::Probe(args) => probe::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Dups(args) => dups::run(&args),
        Command::Patch(args) => patch::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Sum(args) => sum::run(&args, cli.verbose),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { dir } => generate::man(dir.as_deref()),
    })
}

fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // s3s calls it an error when a client asks for what is not there.
    let s3s = if verbose < 2 { LevelFilter::OFF } else { level };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_filter(Targets::new().with_default(level).with_target("s3s", s3s));
    tracing_subscriber::registry().with(lines).init();
}
