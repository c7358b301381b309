//! `haul bench`: ways of doing a job measured beside each other.

mod duplicates;
mod log;
mod memory;
mod net;
mod pacing;
mod reading;
mod write_modes;
mod writing;

use std::io::{IsTerminal, stdout};

use haul_bench::{Error, Report, Watcher};

use crate::args::{BenchArgs, BenchCommand, ReportArgs};
use crate::console::Console;
use crate::output::Output;
use crate::report::{Failure, OrFail, Result};

/// How wide a table may be where nobody's terminal says so: as wide as it wants.
const WIDTH_OF_A_FILE: usize = 240;

/// Carries out one of them.
pub(crate) fn run(args: &BenchArgs) -> Result {
    match &args.command {
        BenchCommand::WriteModes(args) => write_modes::run(args),
        BenchCommand::Log(args) => log::run(args),
        BenchCommand::Duplicates(args) => duplicates::run(args),
        BenchCommand::Pacing(args) => pacing::run(args),
        BenchCommand::RandomRead(args) => reading::random_read(args),
        BenchCommand::SequentialRead(args) => reading::sequential_read(args),
        BenchCommand::ReadOrder(args) => reading::read_order(args),
        BenchCommand::DirectOrCached(args) => memory::direct_or_cached(args),
        BenchCommand::AppCache(args) => memory::app_cache(args),
        BenchCommand::RandomWrite(args) => writing::random_write(args),
        BenchCommand::Files(args) => net::files(args),
        BenchCommand::Relay(args) => net::relay(args),
    }
}

/// Measures with progress on stderr, ended by Ctrl-C, and shows what came of it.
fn measured(
    name: &str,
    to: &ReportArgs,
    measure: impl FnOnce(&dyn Watcher) -> haul_bench::Result<Report>,
) -> Result {
    let console = Console::new("the record under way")?;
    let measured = measure(&console);
    let asked = console.finish();
    match (measured, asked) {
        // A program that was started for it may have heard the same Ctrl-C, and failed first.
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
