//! Finds the programs that a benchmark runs.

use std::env;
use std::path::{Path, PathBuf};

use haul_bench::find_program;
use haul_bench::log::RIVALS_PROGRAM;
use haul_cli_common::report::{Failure, OrFail, Result};

/// Returns the path of `haul-bench-compare`, which runs the rival logs, databases and relays, if it
/// is installed.
pub(super) fn rivals_program() -> Option<PathBuf> {
    installed(RIVALS_PROGRAM)
}

/// Returns the `haul` program to measure: `chosen` from the command line, or the installed program.
pub(super) fn haul_program(chosen: Option<&Path>) -> Result<PathBuf> {
    match chosen {
        Some(program) => existing(program),
        None => installed("haul").ok_or_else(|| {
            Failure::new("cannot find the program haul beside haul-bench or in PATH")
                .advise("build it with \"cargo build --release\", or install it")
        }),
    }
}

/// Returns `program`, which was named on the command line, or an error if the file does not exist.
pub(super) fn existing(program: &Path) -> Result<PathBuf> {
    let cannot = || format!("cannot find the program {}", program.display());
    program.metadata().or_fail(cannot).map(|_| program.to_owned())
}

/// Searches for `name` beside this program, then in the directories of `PATH`.
fn installed(name: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|this| Some(this.parent()?.join(name)));
    let path = env::var_os("PATH").unwrap_or_default();
    beside.filter(|program| program.is_file()).or_else(|| find_program(&path, name))
}
