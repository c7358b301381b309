//! `haul bench`: runs the program `haul-bench`.

use std::env;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args::BenchArgs;
use crate::report::{Exit, Failure, Result};

const PROGRAM: &str = "haul-bench";

/// Replaces this process with `haul-bench`.
pub(crate) fn run(args: &BenchArgs) -> Result {
    let this = env::current_exe().ok();
    let path = env::var_os("PATH").unwrap_or_default();
    let Some(program) = find(this.as_deref().and_then(Path::parent), &path) else {
        return Err(Failure::new("cannot find the program haul-bench")
            .advise(
                "build it with \"cargo build --release -p haul-bench\", or install it beside haul",
            )
            .exit(Exit::NotStarted));
    };
    let error = Command::new(&program).args(&args.arguments).exec();
    Err(Failure::new(format!("cannot run {}", program.display())).because(error))
}

/// Searches for `haul-bench` in `beside`, the directory of this program, then in the directories of
/// `path`, the value of `PATH`.
fn find(beside: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let dirs = beside.map(Path::to_path_buf).into_iter().chain(env::split_paths(path));
    dirs.map(|dir| dir.join(PROGRAM)).find(|program| program.is_file())
}
