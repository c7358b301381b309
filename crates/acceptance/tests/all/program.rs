//! Runs the `haul` program under test.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

pub(crate) use haul_testing::{files_below, root};

/// Returns the path of `haul`: the path in `HAUL_PROGRAM`, else that of the program built beside
/// this test.
pub(crate) fn path() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("HAUL_PROGRAM") {
        Some(chosen) => std::path::absolute(chosen).expect("HAUL_PROGRAM is a path"),
        None => haul_testing::program("haul"),
    })
}

/// Returns a command that runs the program without `HAUL_` variables of the environment.
pub(crate) fn command() -> Command {
    let mut command = Command::new(path());
    for (name, _) in std::env::vars_os().filter(|(name, _)| starts_with_haul(name)) {
        command.env_remove(name);
    }
    command
}

fn starts_with_haul(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with("HAUL_")
}

/// Runs `haul store SUBCOMMAND --data DATA ...`.
pub(crate) fn store(subcommand: &str, data: &Path, more: &[&str]) -> Output {
    let mut command = command();
    command.args(["store", subcommand, "--data"]).arg(data).args(more);
    command.output().expect("haul starts")
}

/// Returns the exit status and both outputs of a program, for messages of failed tests.
pub(crate) fn output_text(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Asserts that a program succeeded.
pub(crate) fn assert_success(output: &Output) {
    assert!(output.status.success(), "{}", output_text(output));
}
