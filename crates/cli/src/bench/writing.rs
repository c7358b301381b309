//! `haul bench random-write`.

use haul_bench::random_write;
use haul_sorted_write::{Options, PageFileOptions};

use super::{log, measured};
use crate::args::RandomWriteArgs;
use crate::report::Result;

pub(super) fn random_write(args: &RandomWriteArgs) -> Result {
    let generation_bytes = usize::try_from(args.memory).unwrap_or(usize::MAX);
    let page_file = PageFileOptions {
        sorted: Options { generation_bytes, ..Options::default() },
        log_bytes_max: args.log_size,
        ..PageFileOptions::default()
    };
    let options = random_write::Options {
        dir: args.dir.clone(),
        drives: args.drive.iter().filter_map(|drive| drive.0.clone()).collect(),
        ways: args.ways.clone(),
        records: args.records,
        batches: args.batches.clone(),
        batches_max: args.batches_max,
        file_bytes: args.file_size,
        index_bytes: args.index_size,
        rounds: args.rounds,
        time_scale: args.time_scale,
        scheduler: args.scheduler.clone(),
        seed: args.seed,
        writers: args.writers.clone(),
        pages_bytes: args.pages_size,
        time: args.seconds,
        page_file,
        rivals: args.rivals.clone().or_else(log::rivals_program),
    };
    measured("random-write", &args.report, |watcher| random_write::run(&options, watcher))
}
