//! States for a row the command line of fio that measures the same, and runs these commands beside
//! the benchmark.
//!
//! # Sources
//! The manual page of fio; fio counts a write together with its sync.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use haul_measure::{Error, Result, Watcher};
use serde_json::Value as Json;

use crate::guardian::Guardian;
use crate::named::named;
use crate::report::{Column, Report, Value};

named! {
    /// A program that measures the same as rows of a report.
    pub enum Checker {
        /// fio.
        Fio = "fio",
    }
}

/// The column with the command lines.
pub(crate) const COLUMN: Column = Column::text("fio", "fio").rank(12);

/// The figure of fio that is comparable with the figure of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figure {
    column: Column,
    /// The member of a job's reads or writes in the output of fio, and the factor of its unit.
    key: &'static str,
    unit: f64,
}

pub(crate) const OPERATIONS_PER_SECOND: Figure =
    Figure { column: Column::number("fio_per_s", "fio/s", 0), key: "iops", unit: 1.0 };
pub(crate) const MEGABYTES_PER_SECOND: Figure =
    Figure { column: Column::number("fio_mb_per_s", "fio MB/s", 0), key: "bw_bytes", unit: 1e6 };

impl Figure {
    /// Returns the figure of the only job in the output of fio; `None` if the output has none.
    fn of(self, output: &Json) -> Option<f64> {
        let job = output["jobs"].get(0)?;
        let figures = ["read", "write"].into_iter().filter_map(|it| job[it][self.key].as_f64());
        figures.map(|number| number / self.unit).find(|number| *number > 0.0)
    }
}

/// The beginning of each command line. FILE stands for the file of the benchmark.
const BEGIN: &str = "fio --name=haul --filename=FILE ";

/// Returns the cell of a row with the command line of these options; a row that fio cannot measure
/// has none.
pub(crate) fn cell(options: Option<String>) -> Value {
    options.map_or(Value::NotMeasured, |options| Value::Text(BEGIN.to_owned() + &options))
}

/// Runs the command of each row in a directory below `dir`, which is removed, and adds a column
/// with the figures of fio. If fio is not installed, adds a note.
///
/// # Errors
/// Returns [`Error::Cancelled`] if the watcher cancels, and an error if fio fails.
pub(crate) fn check(
    report: &mut Report,
    figure: Figure,
    dir: &Path,
    watcher: &dyn Watcher,
) -> Result<()> {
    let (dir, _guardian) = Guardian::of_tree(dir, "haul-bench-fio")?;
    let commands: Vec<_> = report.rows.iter().map(|row| command_of(report, row)).collect();
    let mut known: BTreeMap<String, f64> = BTreeMap::new();
    for command in commands.iter().flatten() {
        watcher.check()?;
        if known.contains_key(command) {
            continue;
        }
        watcher.step(known.len(), commands.len(), "fio");
        match run(command, figure, &dir)? {
            Some(number) => known.insert(command.clone(), number),
            None => {
                report.notes.push("fio is not installed: its figures are missing.".to_owned());
                return Ok(());
            }
        };
    }
    report.columns.push(figure.column);
    for (row, command) in report.rows.iter_mut().zip(commands) {
        row.values.push(command.and_then(|command| known.get(&command).copied()).into());
    }
    report.notes.push(
        "fio ran once for each command, after the rounds: its figures have no interval.".to_owned(),
    );
    Ok(())
}

fn command_of(report: &Report, row: &crate::report::Row) -> Option<String> {
    match report.value(row, COLUMN.key) {
        Some(Value::Text(command)) if row.state.is_none() => Some(command.clone()),
        _ => None,
    }
}

/// Runs a command with a new file; returns `None` if fio is not installed.
fn run(command: &str, figure: Figure, dir: &Path) -> Result<Option<f64>> {
    let mut words = command.split_whitespace();
    let mut fio = Command::new(words.next().unwrap_or_default());
    fio.args(words.map(|word| word.replace("=FILE", "=file"))).arg("--output-format=json");
    fio.current_dir(dir).stdin(Stdio::null()).stderr(Stdio::null());
    let output = match fio.output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        output => output.map_err(Error::other("start fio"))?,
    };
    // A file of the next command must be new.
    std::fs::remove_file(dir.join("file")).ok();
    let failed = || Error::Missing(format!("fio failed: {command}"));
    let json: Json = serde_json::from_slice(&output.stdout).ok().ok_or_else(failed)?;
    figure.of(&json).filter(|_| output.status.success()).map(Some).ok_or_else(failed)
}

#[cfg(test)]
mod tests {
    use haul_measure::Silent;

    use super::*;
    use crate::host::Host;
    use crate::report::Row;

    #[test]
    fn figures_are_those_of_the_only_job() {
        let output = serde_json::json!({
            "jobs": [{ "read": { "iops": 0.0, "bw_bytes": 0 },
                       "write": { "iops": 508.0, "bw_bytes": 2_000_000 } }]
        });
        assert_eq!(OPERATIONS_PER_SECOND.of(&output), Some(508.0));
        assert_eq!(MEGABYTES_PER_SECOND.of(&output), Some(2.0));
        assert_eq!(MEGABYTES_PER_SECOND.of(&Json::Null), None);
    }

    #[test]
    fn each_row_with_a_command_has_a_figure_of_fio() {
        let dir = tempfile::tempdir().unwrap();
        let mut report = Report::new("b", Host::default(), [COLUMN]);
        let options = "--rw=write --bs=4096 --size=64k --ioengine=psync --fdatasync=1";
        for options in [Some(options.to_owned()), None] {
            report.rows.push(Row::new("", "", vec![cell(options)]));
        }
        check(&mut report, OPERATIONS_PER_SECOND, dir.path(), &Silent).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "removed");
        if report.notes[0].contains("not installed") {
            return haul_testing::skip("fio is not installed");
        }
        let number = |row: usize| report.value(&report.rows[row], "fio_per_s")?.number();
        assert!(number(0).is_some_and(|rate| rate > 0.0) && number(1).is_none());
    }
}
