//! `haul probe`: what a storage is, what Haul does on it and why, and what it can do.

mod choices;
mod json;
mod show;
mod warnings;

use std::path::{Path, PathBuf};

use haul_bench::Watcher;
use haul_bench::storage::{Measured, Options, run as measure};
use haul_disk::probe;

use crate::args::ProbeArgs;
use crate::console::Console;
use crate::output::Output;
use crate::report::{Failure, OrFail, Result};

pub(crate) fn run(args: &ProbeArgs) -> Result {
    let path = &args.path;
    let storage = probe(path).or_fail(|| format!("cannot find out about {}", path.display()))?;
    let measured = args.measure.then(|| in_console(args)).transpose()?;
    let choices = choices::choices(&storage, measured.as_ref());
    let warnings = warnings::warnings(&storage, measured.as_ref());
    let mut output = Output::new();
    if args.json {
        output.line(json::json(&storage, &choices, &warnings, measured.as_ref()))?;
    } else {
        output.line(&storage)?;
        output.bytes(show::choices(&choices).as_bytes())?;
        output.bytes(show::warnings(&warnings).as_bytes())?;
        if let Some(measured) = &measured {
            output.bytes(show::measured(measured).as_bytes())?;
        }
    }
    output.finish()
}

/// Measures, with a bar on stderr; Ctrl-C ends it.
fn in_console(args: &ProbeArgs) -> Result<Measured> {
    let options = Options { bytes: args.size, ..Options::new(directory(&args.path)) };
    let console = Console::new("the write or read under way")?;
    let measured = measure(&options, &console as &dyn Watcher);
    match (measured, console.finish()) {
        (Err(_), Some(exit)) => Err(Failure::new("haul probe was stopped").exit(exit)),
        (measured, _) => measured.or_fail(|| format!("cannot measure {}", args.path.display())),
    }
}

/// Where a scratch file for `path` can be.
pub(crate) fn directory(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    // What a link leads to may be elsewhere.
    let real = path.canonicalize().unwrap_or_else(|_gone| path.to_path_buf());
    real.parent().unwrap_or(Path::new("/")).to_path_buf()
}
