//! Runs benchmarks, and selects rows and numbers of their reports.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicUsize, Ordering};

use haul_bench::{Benchmark, Error, Report, Row, Silent, Value, Watcher};
use haul_testing::skip;

use crate::disk_dir;

/// Runs a benchmark on a new directory; `None` if the machine lacks something.
pub(crate) fn report<B: Benchmark>(line: &str, has_dir: bool) -> Option<Report> {
    let dir = disk_dir();
    let words = ["haul"].into_iter().chain(line.split_whitespace()).map(OsStr::new);
    let place = has_dir.then_some([OsStr::new("--dir"), dir.path().as_os_str()]);
    match B::parse_from(words.chain(place.into_iter().flatten())).run(&Silent) {
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

/// Returns the rows that have all these texts.
pub(crate) fn rows<'a>(report: &'a Report, texts: &[(&str, &str)]) -> Vec<&'a Row> {
    let has = |row: &Row| {
        texts.iter().all(|(key, text)| report.value(row, key) == Some(&Value::from(*text)))
    };
    report.rows.iter().filter(|row| has(row)).collect()
}

#[track_caller]
pub(crate) fn number(report: &Report, row: &Row, key: &str) -> f64 {
    let value = report.value(row, key).and_then(Value::number);
    value.unwrap_or_else(|| panic!("no {key} in {row:?}\n{}", report.notes.join("\n")))
}

/// A watcher that passes as many checks as its number states, and then cancels.
pub(crate) struct StopAfter(pub(crate) AtomicUsize);

impl Watcher for StopAfter {
    fn is_cancelled(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            .is_err()
    }
}
