//! Runs a measurement with progress on stderr, and writes its report.

use std::io::{IsTerminal, stdout};

use haul_bench::{Circumstances, Error, Host, Report, Watcher};
use haul_cli_common::console::Console;
use haul_cli_common::output::{Name, Output};
use haul_cli_common::report::{Failure, OrFail, Result, print_message};

use crate::args::ReportArgs;

/// The width in characters of a table that is written to a file or pipe.
const WIDTH_OF_A_FILE: usize = 240;

/// Measures with progress on stderr until done or cancelled by Ctrl-C, and shows the report.
pub(super) fn measured(
    name: &str,
    to: &ReportArgs,
    measure: impl FnOnce(&dyn Watcher) -> haul_bench::Result<Report>,
) -> Result {
    let start = Circumstances::at_start(command_line());
    if let Some(warning) = start.warning(Host::here().cores) {
        print_message(&warning);
    }
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
        (Ok(report), _) => show(&Report { circumstances: start.at_end(), ..report }, to),
    }
}

/// Returns the command line as a user enters it, in the form that a shell accepts.
pub(super) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    ["haul bench".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, unless it needs no quotes.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", Name(word).to_string().replace('\'', "'\\''")),
    }
}

fn show(report: &Report, to: &ReportArgs) -> Result {
    for (file, text) in [(&to.json, report.json()), (&to.markdown, report.markdown())] {
        if let Some(file) = file {
            let what = || format!("cannot write the report to {}", file.display());
            std::fs::write(file, text).or_fail(what)?;
        }
    }
    let mut output = Output::new();
    output.bytes(report.table(width()).as_bytes())?;
    output.finish()
}

/// Returns the width of the output in characters.
pub(super) fn width() -> usize {
    if stdout().is_terminal() {
        rustix::termios::tcgetwinsize(stdout()).map_or(80, |size| usize::from(size.ws_col).max(40))
    } else {
        WIDTH_OF_A_FILE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        for (word, expected) in [
            ("--dir=/var/tmp", "--dir=/var/tmp"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("a\nb", "'a\\nb'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
