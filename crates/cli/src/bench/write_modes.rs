//! `haul bench write-modes`.

use haul_bench::write_modes::{Options, run as measure};

use super::measured;
use crate::args::WriteModesArgs;
use crate::report::Result;

pub(super) fn run(args: &WriteModesArgs) -> Result {
    let options = Options {
        dir: args.dir.clone(),
        virtual_disks: args.virtual_disk.clone(),
        modes: args.modes.clone(),
        record_bytes: args.sizes.clone(),
        records: args.records,
        rounds: args.rounds,
        time_per_row: args.seconds_per_row,
    };
    measured("write-modes", &args.report, |watcher| measure(&options, watcher))
}
