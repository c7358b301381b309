//! `haul bench random-read`, `sequential-read` and `read-order`.

use haul_bench::{random_read, read_order, sequential_read};

use super::measured;
use crate::args::{RandomReadArgs, ReadOrderArgs, SequentialReadArgs};
use crate::report::Result;

pub(super) fn random_read(args: &RandomReadArgs) -> Result {
    let options = random_read::Options {
        dir: args.dir.clone(),
        read_bytes: args.size,
        file_bytes: args.file_size,
        readers: args.readers.clone(),
        rounds: args.rounds,
        time: args.seconds,
    };
    measured("random-read", &args.report, |watcher| random_read::run(&options, watcher))
}

pub(super) fn sequential_read(args: &SequentialReadArgs) -> Result {
    let options = sequential_read::Options {
        dir: args.dir.clone(),
        file_bytes: args.file_size,
        request_bytes: args.sizes.clone(),
        window_bytes: args.windows.clone(),
        advices: args.advice.clone(),
        read_ahead_kib: args.read_ahead_kb.clone(),
        rounds: args.rounds,
    };
    measured("sequential-read", &args.report, |watcher| sequential_read::run(&options, watcher))
}

pub(super) fn read_order(args: &ReadOrderArgs) -> Result {
    let options = read_order::Options {
        drives: args.drive.clone(),
        file_system: args.fs,
        disk_bytes: args.disk_size,
        files: args.files,
        dirs: args.dirs,
        replacements: args.replacements,
        threads: args.threads.clone(),
        rounds: args.rounds,
        time_scale: args.time_scale,
        scheduler: args.scheduler.clone(),
        seed: args.seed,
    };
    measured("read-order", &args.report, |watcher| read_order::run(&options, watcher))
}
