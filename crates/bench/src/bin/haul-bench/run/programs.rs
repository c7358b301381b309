//! Finds the programs that a benchmark runs.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

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

fn installed(name: &str) -> Option<PathBuf> {
    let this = env::current_exe().ok();
    let path = env::var_os("PATH").unwrap_or_default();
    find(name, this.as_deref().and_then(Path::parent), &path)
}

/// Searches for `name` in `beside`, the directory of this program, then in the directories of
/// `path`.
fn find(name: &str, beside: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let dirs = beside.map(Path::to_path_buf).into_iter().chain(env::split_paths(path));
    dirs.map(|dir| dir.join(name)).find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_beside_this_one_precede_those_in_path() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["one", "two", "three"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let path = env::join_paths([at("one"), at("two")]).unwrap();
        assert_eq!(find("rival", Some(&at("three")), &path), None);
        for (name, expected) in [("two", "two"), ("one", "one"), ("three", "three")] {
            std::fs::write(at(name).join("rival"), "").unwrap();
            let found = find("rival", Some(&at("three")), &path);
            assert_eq!(found, Some(at(expected).join("rival")));
        }
    }
}
