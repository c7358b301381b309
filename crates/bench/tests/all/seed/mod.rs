//! The experiments of `haul bench seed`: checks counts that are equal on any machine.

mod experiments;
mod simulated;

use std::ffi::OsStr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Parser;
use haul_bench::{Error, Report, Result, Row, Value};
use haul_testing::skip;
use tempfile::TempDir;

/// Returns options from a command line, for the directory `dir`.
fn options<O: Parser>(dir: &TempDir, line: &str) -> O {
    let words = ["seed"].into_iter().chain(line.split_whitespace()).map(OsStr::new);
    O::parse_from(words.chain([OsStr::new("--dir"), dir.path().as_os_str()]))
}

/// Returns the report of an experiment that left no file; `None` if it cannot run on this machine.
fn finished(dir: &TempDir, report: Result<Report>) -> Option<Report> {
    match report {
        Ok(report) => {
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "left behind");
            Some(report)
        }
        Err(Error::Missing(why)) => {
            skip(&why);
            None
        }
        Err(error) => panic!("{error:?}"),
    }
}

/// Held by tests that limit the memory of the process or the dirty pages of the machine: a limit
/// would change the figures of the others.
static LIMITS: Mutex<()> = Mutex::new(());

/// Waits until no other test holds [`LIMITS`].
fn limits() -> MutexGuard<'static, ()> {
    LIMITS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the rows whose columns have these texts.
fn rows<'a>(report: &'a Report, texts: &[(&str, &str)]) -> Vec<&'a Row> {
    let has = |row: &Row| {
        texts.iter().all(|(key, text)| report.value(row, key) == Some(&Value::from(*text)))
    };
    report.rows.iter().filter(|row| has(row)).collect()
}

#[track_caller]
fn number(report: &Report, row: &Row, key: &str) -> f64 {
    let value = report.value(row, key).and_then(Value::number);
    value.unwrap_or_else(|| panic!("no {key} in {row:?}\n{}", report.notes.join("\n")))
}
