//! `haul log show`: prints the lines of a log.

use haul_line_log::{TimeRange, copy_lines};

use crate::args::LogShowArgs;
use crate::output::{Name, Output};
use crate::report::{Exit, Failure, OrFail, Result, chain, print_message};
use crate::units::Count;

pub(super) fn run(args: &LogShowArgs) -> Result {
    let range = TimeRange { since: args.since, until: args.until };
    let mut output = Output::new();
    let mut printed = Ok(());
    let mut sink = |lines: &[u8]| {
        printed = output.bytes(lines);
        printed.is_ok()
    };
    let report = copy_lines(&args.dir, range, &mut sink)
        .or_fail(|| format!("cannot read the log in {}", args.dir.display()))
        .map_err(|failure| failure.exit(Exit::NotStarted))?;
    printed?;
    output.finish()?;
    if report.files_listed == 0 {
        let context = format!("{} contains no file of a log", args.dir.display());
        return Err(Failure::new(context).exit(Exit::NotStarted));
    }
    if report.files_without_timestamps > 0 && range != TimeRange::default() {
        let files = Count(report.files_without_timestamps, "file");
        print_message(&format!("printed {files} whole: the lines have no timestamps"));
    }
    for name in &report.removed {
        print_message(&format!("{name} was removed by the log before it was read"));
    }
    for error in &report.failures {
        print_message(&Name(&chain("some lines are missing", Some(&**error))).to_string());
    }
    if report.removed.is_empty() && report.failures.is_empty() {
        return Ok(());
    }
    Err(Failure::reported())
}
