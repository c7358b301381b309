//! `haul log show`: prints the lines of a log.

use haul_line_log::{TimeRange, copy_lines, split_stamp};
use serde_json::json;

use crate::args::LogShowArgs;
use crate::output::{Name, Output};
use crate::report::{Exit, Failure, OrFail, Result, chain, print_message};
use crate::units::Count;

pub(super) fn run(args: &LogShowArgs) -> Result {
    let range = TimeRange { since: args.since, until: args.until };
    let mut printer = Printer::new(args.json);
    let mut printed = Ok(());
    let mut sink = |file: &str, lines: &[u8]| {
        printed = printer.lines(file, lines);
        printed.is_ok()
    };
    let report = copy_lines(&args.dir, range, &mut sink)
        .or_fail(|| format!("cannot read the log in {}", args.dir.display()))
        .map_err(|failure| failure.exit(Exit::NotStarted))?;
    printed?;
    printer.finish()?;
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

/// Prints lines to stdout, as they are or as JSON objects.
struct Printer {
    output: Output,
    is_json: bool,
    /// The name of the file of `partial`.
    file: String,
    /// The beginning of a line whose end was not passed yet.
    partial: Vec<u8>,
}

impl Printer {
    fn new(is_json: bool) -> Self {
        Self { output: Output::new(), is_json, file: String::new(), partial: Vec::new() }
    }

    /// Prints lines of a file, of which the first and the last may be incomplete.
    fn lines(&mut self, file: &str, lines: &[u8]) -> Result {
        if !self.is_json {
            return self.output.bytes(lines);
        }
        if self.file != file {
            self.print_partial()?;
            file.clone_into(&mut self.file);
        }
        for part in lines.split_inclusive(|byte| *byte == b'\n') {
            self.partial.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.print_partial()?;
            }
        }
        Ok(())
    }

    /// Prints the incomplete line as a line of its own, if there is one.
    fn print_partial(&mut self) -> Result {
        if self.partial.is_empty() {
            return Ok(());
        }
        let line = self.partial.strip_suffix(b"\n").unwrap_or(&self.partial);
        let (time, text) = split_stamp(line);
        let time = time.map(|time| time.to_string());
        let text = String::from_utf8_lossy(text);
        self.output.line(json!({ "time": time, "text": text, "file": self.file }))?;
        self.partial.clear();
        Ok(())
    }

    fn finish(mut self) -> Result {
        self.print_partial()?;
        self.output.finish()
    }
}
