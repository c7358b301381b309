//! A command that prints the length of a file: an error becomes a message and an exit code.

use std::process::ExitCode;

use haul_cli_common::output::Output;
use haul_cli_common::report::{Exit, OrFail, Result, exit_code};

fn print_length(path: &str) -> Result {
    let content = std::fs::read(path).or_fail(|| format!("cannot read the file {path}"));
    let content = content.map_err(|failure| failure.exit(Exit::NotStarted))?;
    let mut out = Output::new();
    out.line(format_args!("{path}: {} bytes", content.len()))?;
    out.finish() // a closed stdout, as in `| head`, ends the command without a message
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "/proc/self/stat".to_owned());
    exit_code(print_length(&path))
}
