//! Runs benchmarks, and selects rows and numbers of their reports.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_bench::{Benchmark, Error, Report, Row, Silent, Value, Watcher};
use haul_testing::skip;

use crate::disk_dir;

/// Runs a benchmark on a new directory; `None` if the machine lacks something.
pub(crate) fn report<B: Benchmark>(line: &str, has_dir: bool) -> Option<Report> {
    let dir = disk_dir();
    match parsed::<B>(line, has_dir.then_some(dir.path())).run(&Silent) {
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

fn parsed<B: Benchmark>(line: &str, dir: Option<&Path>) -> B {
    let words = ["haul"].into_iter().chain(line.split_whitespace()).map(OsStr::new);
    let dir = dir.map(|dir| [OsStr::new("--dir"), dir.as_os_str()]);
    B::parse_from(words.chain(dir.into_iter().flatten()))
}

/// Runs a benchmark that is cancelled after each of these numbers of checks; checks that it leaves
/// only the files that were in its directory before.
pub(crate) fn cancel<B: Benchmark>(line: &str, checks: &[usize]) {
    let dir = disk_dir();
    std::fs::write(dir.path().join("mine"), "").unwrap();
    let bench = parsed::<B>(line, Some(dir.path()));
    for checks in checks.iter().copied() {
        let stopped = bench.run(&StopAfter(checks.into()));
        assert!(matches!(stopped, Err(Error::Cancelled)), "after {checks}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "after {checks}");
    }
}

/// Returns the rows that have all these texts.
pub(crate) fn rows<'a>(report: &'a Report, texts: &[(&str, &str)]) -> Vec<&'a Row> {
    let has = |row: &Row| {
        texts.iter().all(|(key, text)| report.value(row, key) == Some(&Value::from(*text)))
    };
    report.rows.iter().filter(|row| has(row)).collect()
}

/// Returns the numbers of a column in the rows that have all these texts.
#[track_caller]
pub(crate) fn numbers(report: &Report, texts: &[(&str, &str)], key: &str) -> Vec<f64> {
    rows(report, texts).into_iter().map(|row| number(report, row, key)).collect()
}

#[track_caller]
pub(crate) fn number(report: &Report, row: &Row, key: &str) -> f64 {
    let value = report.value(row, key).and_then(Value::number);
    value.unwrap_or_else(|| panic!("no {key} in {row:?}\n{}", report.notes.join("\n")))
}

/// A watcher that passes as many checks as its number states, and then cancels.
struct StopAfter(AtomicUsize);

impl Watcher for StopAfter {
    fn is_cancelled(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
    }
}
