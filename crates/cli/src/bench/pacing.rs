//! `haul bench pacing`.

use haul_bench::pacing::{Options, run as measure};

use super::measured;
use crate::args::BenchPacingArgs;
use crate::report::Result;

pub(super) fn run(args: &BenchPacingArgs) -> Result {
    let options = Options {
        dir: args.dir.clone(),
        virtual_disks: args.virtual_disk.clone(),
        bulk_bytes: args.bulk,
        window_bytes: args.windows.clone(),
        rounds: args.rounds,
        alone: args.alone,
        dirty_limit_bytes: args.dirty_limit,
    };
    measured("pacing", &args.report, |watcher| measure(&options, watcher))
}
