//! `haul bench direct-or-cached` and `app-cache`.

use haul_bench::{app_cache, direct_or_cached};

use super::measured;
use crate::args::{AppCacheArgs, DirectOrCachedArgs};
use crate::report::Result;

pub(super) fn direct_or_cached(args: &DirectOrCachedArgs) -> Result {
    let options = direct_or_cached::Options {
        dir: args.dir.clone(),
        memory_bytes: args.memory,
        data_percents: args.data_percent.clone(),
        readers: args.readers,
        rounds: args.rounds,
        time: args.seconds,
    };
    measured("direct-or-cached", &args.report, |watcher| direct_or_cached::run(&options, watcher))
}

pub(super) fn app_cache(args: &AppCacheArgs) -> Result {
    let options = app_cache::Options {
        dir: args.dir.clone(),
        memory_bytes: args.memory,
        hot_percent: args.hot_percent,
        cold_percent: args.cold_percent,
        readers: args.readers,
        reads_per_s: args.reads_per_second,
        rounds: args.rounds,
        time: args.seconds,
    };
    measured("app-cache", &args.report, |watcher| app_cache::run(&options, watcher))
}
