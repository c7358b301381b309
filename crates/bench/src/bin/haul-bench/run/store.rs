//! Runs `haul bench small-files-scale`, and the child processes that it starts.

use std::env;
use std::io::{stdin, stdout};

use haul_bench::small_files::scale::{self, Role};

use super::measured::measured;
use crate::args::Measured;
use haul_cli_common::report::{Failure, OrFail, Result};

pub(super) fn scale(args: &Measured<scale::Options>) -> Result {
    if let Some(role) = args.options.child {
        return child(&args.options, role);
    }
    let program = env::current_exe().or_fail(|| "cannot find this program".to_owned())?;
    let options = scale::Options { program, ..args.options.clone() };
    measured("small-files-scale", &args.report, |watcher| scale::run(&options, watcher))
}

fn child(options: &scale::Options, role: Role) -> Result {
    let done = scale::run_child(options, role, &mut stdout(), &mut stdin());
    done.map_err(|failure| Failure::new(format!("cannot {role} the store: {failure}")))
}
