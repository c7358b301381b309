//! Runs a measurement with progress on stderr, and writes its report.

use std::io::{IsTerminal, stdout};

use haul_bench::{Error, Report, Watcher};
use haul_cli_common::console::Console;
use haul_cli_common::output::Output;
use haul_cli_common::report::{Failure, OrFail, Result};

use crate::args::ReportArgs;

/// The width in characters of a table that is written to a file or pipe.
const WIDTH_OF_A_FILE: usize = 240;

/// Measures with progress on stderr until done or cancelled by Ctrl-C, and shows the report.
pub(super) fn measured(
    name: &str,
    to: &ReportArgs,
    measure: impl FnOnce(&dyn Watcher) -> haul_bench::Result<Report>,
) -> Result {
    let console = Console::new("the current record")?;
    let measured = measure(&console);
    let asked = console.finish();
    match (measured, asked) {
        // Reports that Ctrl-C stopped the benchmark, not the error, which may be a consequence: the
        // same Ctrl-C also stops child processes.
        (Err(_), Some(exit)) => {
            Err(Failure::new(format!("haul bench {name} was stopped")).exit(exit))
        }
        (Err(Error::Cancelled), None) => Err(Failure::new("stopped")),
        (Err(error), None) => Err(error).or_fail(|| format!("cannot finish haul bench {name}")),
        (Ok(report), _) => show(&report, to),
    }
}

fn show(report: &Report, to: &ReportArgs) -> Result {
    for (file, text) in [(&to.json, report.json()), (&to.markdown, report.markdown())] {
        if let Some(file) = file {
            let what = || format!("cannot write the report to {}", file.display());
            std::fs::write(file, text).or_fail(what)?;
        }
    }
    let width = if stdout().is_terminal() {
        rustix::termios::tcgetwinsize(stdout()).map_or(80, |size| usize::from(size.ws_col).max(40))
    } else {
        WIDTH_OF_A_FILE
    };
    let mut output = Output::new();
    output.bytes(report.table(width).as_bytes())?;
    output.finish()
}
