//! Runs the experiments of `haul bench seed`.

use haul_bench::seed::{fill, prefault, pwrite, readahead, stdio, trace};
use haul_cli_common::report::Result;

use super::measured::measured;
use crate::args::SeedCommand;

/// Runs the experiment that `command` selects.
pub(super) fn seed(command: &SeedCommand) -> Result {
    match command {
        SeedCommand::Fill(args) => {
            measured("seed fill", &args.report, |watcher| fill::run(&args.options, watcher))
        }
        SeedCommand::Trace(args) => {
            measured("seed trace", &args.report, |watcher| trace::run(&args.options, watcher))
        }
        SeedCommand::Readahead(args) => measured("seed readahead", &args.report, |watcher| {
            readahead::run(&args.options, watcher)
        }),
        SeedCommand::Pwrite(args) => {
            measured("seed pwrite", &args.report, |watcher| pwrite::run(&args.options, watcher))
        }
        SeedCommand::Stdio(args) => {
            measured("seed stdio", &args.report, |watcher| stdio::run(&args.options, watcher))
        }
        SeedCommand::Prefault(args) => {
            measured("seed prefault", &args.report, |watcher| prefault::run(&args.options, watcher))
        }
    }
}
