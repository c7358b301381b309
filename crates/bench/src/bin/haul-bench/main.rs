//! Measures Haul beside other methods and programs; the command `haul bench` starts this program.

mod args;
mod run;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use haul_cli_common::{generate, report};

use crate::args::{BenchCommand, Cli};

fn main() -> ExitCode {
    haul_disk::replace_unusable_streams();
    // If the command line is wrong, `parse` prints a message and exits with code 2.
    let cli = Cli::parse();
    report::exit_code(match cli.command {
        BenchCommand::Completions { shell } => generate::completions(&mut Cli::command(), shell),
        BenchCommand::Man { dir } => generate::man(Cli::command(), dir.as_deref()),
        bench => run::run(bench),
    })
}
