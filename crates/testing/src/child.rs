//! Runs a test of the present test program in another process, for tests that kill the process.

use std::io::BufRead;
use std::process::{Command, Stdio};

/// Returns a command that runs one test of this test program, such as `kill::child_appends`, in
/// another process. Its stdout is a pipe, which also contains lines of the test harness.
///
/// # Panics
/// If the path of the test program is unknown.
#[must_use]
pub fn child_test(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).stdout(Stdio::piped());
    command
}

/// Reads lines up to the first line that contains `words`, and returns that line.
///
/// # Panics
/// Panics if no line contains `words`.
#[track_caller]
#[expect(clippy::panic, reason = "it fails the test")]
pub fn line_with(words: &str, lines: &mut impl BufRead) -> String {
    let mut lines = lines.lines().map(Result::unwrap);
    lines.find(|line| line.contains(words)).unwrap_or_else(|| panic!("no line has {words:?}"))
}
