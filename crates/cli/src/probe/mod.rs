//! `haul probe`: prints the properties of a disk, Haul's choices for this disk, and measurements.

mod json;
mod picture;
mod show;

pub(crate) use json::storage_json;

use std::path::{Path, PathBuf};

use haul_cli_common::svg;
use haul_disk::probe;
use haul_measure::Watcher;
use haul_measure::{Measured, Options, measure};
use haul_tuning::{choices, warnings};

use crate::args::ProbeArgs;
use crate::console::Console;
use crate::output::Output;
use crate::report::{Failure, OrFail, Result};

pub(crate) fn run(args: &ProbeArgs) -> Result {
    let path = &args.path;
    let storage = probe(path).or_not_start(|| format!("cannot probe {}", path.display()))?;
    let measured = args.measure.then(|| measure_with_progress(args)).transpose()?;
    let choices = choices(&storage, measured.as_ref());
    let warnings = warnings(&storage, measured.as_ref());
    if let (Some(file), Some(measured)) = (&args.svg, &measured) {
        svg::write(file, &picture::picture(&storage, measured))?;
    }
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

/// Measures with a progress bar on stderr. A termination signal ends the measurement.
fn measure_with_progress(args: &ProbeArgs) -> Result<Measured> {
    let options = Options { bytes: args.size, ..Options::new(directory(&args.path)) };
    let console = Console::new("the request in progress")?;
    let measured = measure(&options, &console as &dyn Watcher);
    match (measured, console.finish()) {
        (Err(_), Some(exit)) => Err(Failure::new("the measurement was interrupted").exit(exit)),
        (measured, _) => measured.or_fail(|| format!("cannot measure {}", args.path.display())),
    }
}

/// Returns a directory for a scratch file, on the same file system as `path`.
pub(crate) fn directory(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    // Resolve symbolic links, because the target may be on another file system.
    let real = path.canonicalize().unwrap_or_else(|_gone| path.to_path_buf());
    real.parent().unwrap_or(Path::new("/")).to_path_buf()
}
