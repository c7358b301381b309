//! The program `haul`: one file for each subcommand, no logic a library should have.

mod args;
mod clock;
mod credentials;
mod generate;
mod opening;
mod output;
mod progress;
mod report;
mod serve;
mod signals;
mod store;
mod units;

use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::filter::LevelFilter;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    // A wrong command line ends here, with a message and exit code 2.
    let cli = Cli::parse();
    log_to_stderr(cli.verbose);
    report::exit_code(match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Store(args) => store::run(&args),
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
    tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_ansi(stderr().is_terminal())
        .with_max_level(level)
        .init();
}
