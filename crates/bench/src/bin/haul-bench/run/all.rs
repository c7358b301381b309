//! Runs `haul bench all`.

use std::fs;
use std::path::Path;

use haul_bench::all::{self, Run};
use haul_bench::{Circumstances, Error, Host};
use haul_cli_common::console::Console;
use haul_cli_common::output::Output;
use haul_cli_common::report::{Exit, Failure, OrFail, Result};

use super::measured::{command_line, width};
use crate::args::AllArgs;

/// Runs all parts with progress on stderr, saves the results after each part, and prints the
/// answers to the claims.
pub(super) fn all(args: &AllArgs) -> Result {
    let start = Circumstances::at_start(command_line());
    if let Some(warning) = start.warning(Host::here().cores).filter(|_| !args.force) {
        return Err(Failure::new(format!("not started: {warning}"))
            .advise("repeat on an idle machine, or use --force")
            .exit(Exit::NotStarted));
    }
    let console = Console::new("the current measurement")?;
    let run = all::run(&args.options, start, &console, |run| save(run, args));
    let asked = console.finish();
    let run = run.or_fail(|| "cannot finish haul bench all".to_owned())?;
    let mut output = Output::new();
    output.bytes(run.text(width()).as_bytes())?;
    output.finish()?;
    match asked {
        Some(exit) => {
            Err(Failure::new("haul bench all was stopped; the results so far are kept").exit(exit))
        }
        None => Ok(()),
    }
}

/// Writes the files of the results so far.
fn save(run: &Run, args: &AllArgs) -> haul_bench::Result<()> {
    for (file, text) in [(&args.report.json, run.json()), (&args.report.markdown, run.markdown())] {
        if let Some(file) = file {
            let what = format!("write the report to {}", file.display());
            replace(file, &text).map_err(Error::other(what))?;
        }
    }
    Ok(())
}

/// Replaces the content of a file in one step, so that a reader or a kill never finds half of it.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut name = file.as_os_str().to_owned();
    name.push(".part");
    fs::write(&name, text)?;
    fs::rename(&name, file)
}
