//! Runs the program in a new temporary directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use haul_testing::Finished;
use serde_json::Value;
use tempfile::TempDir;

/// A directory to run the program in.
pub(crate) struct WorkDir(TempDir);

impl WorkDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates the directory on a disk; the usual temporary directory may be in memory.
    pub(crate) fn on_disk() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_haul-bench"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    /// Returns the report of a benchmark that ran in the directory `d`, which must be empty.
    pub(crate) fn report(&self) -> Value {
        assert_eq!(std::fs::read_dir(self.path("d")).unwrap().count(), 0, "left behind");
        serde_json::from_slice(&std::fs::read(self.path("report")).unwrap()).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Finished {
        Finished(self.command(arguments).output().unwrap())
    }

    /// Runs the program with the words of `line`.
    pub(crate) fn run_line(&self, line: &str) -> Finished {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }
}

/// Runs a benchmark in a new directory, which must be empty afterwards, and returns its report.
pub(crate) fn report(line: &str) -> Value {
    report_unless(line, &[]).unwrap()
}

/// As [`report`]; returns `None` if the benchmark cannot run on this machine for one of `reasons`.
pub(crate) fn report_unless(line: &str, reasons: &[&str]) -> Option<Value> {
    let place = WorkDir::on_disk();
    std::fs::create_dir(place.path("d")).unwrap();
    let ended = place.run_line(&format!("{line} --json report"));
    if reasons.iter().any(|why| ended.stderr().contains(why)) {
        haul_testing::skip(&ended.stderr());
        return None;
    }
    ended.code(0);
    Some(place.report())
}
