//! Runs `haul bench compare`.

use std::path::Path;

use haul_bench::compare::{Agreement, Comparison, RunFile};
use haul_cli_common::output::Output;
use haul_cli_common::report::{Exit, Failure, OrFail, Result};

use crate::args::CompareArgs;

/// Prints the ratios of two reports side by side. Fails with exit code 1 if a ratio moved.
pub(super) fn compare(args: &CompareArgs) -> Result {
    let comparison = Comparison::of(&read(&args.a)?, &read(&args.b)?);
    let mut output = Output::new();
    output.bytes(comparison.to_string().as_bytes())?;
    output.finish()?;
    match comparison.count(Agreement::Moved) {
        0 => Ok(()),
        _ => Err(Failure::reported()),
    }
}

fn read(file: &Path) -> Result<RunFile> {
    let what = || format!("cannot read the report {}", file.display());
    let text = std::fs::read_to_string(file).or_fail(what);
    let run = text.map_err(|failure| failure.exit(Exit::NotStarted))?.parse::<RunFile>();
    run.map_err(|why| Failure::new(format!("{}: {why}", what())).exit(Exit::NotStarted))
}
