//! `haul bench duplicates`.

use std::env;

use haul_bench::duplicates::{Options, Sizes, run as measure};

use super::measured;
use crate::args::BenchDuplicatesArgs;
use crate::report::{OrFail, Result};

pub(super) fn run(args: &BenchDuplicatesArgs) -> Result {
    let program = env::current_exe().or_fail(|| "cannot find this program".to_owned())?;
    let options = Options {
        dir: args.dir.clone(),
        program,
        path: env::var_os("PATH").unwrap_or_default(),
        corpora: args.corpus.clone(),
        sizes: Sizes {
            small_files: args.files,
            spinning_files: args.spinning_files,
            paths: args.paths,
            big_bytes: args.big,
        },
        rounds: args.rounds,
    };
    measured("duplicates", &args.report, |watcher| measure(&options, watcher))
}
