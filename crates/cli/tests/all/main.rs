//! The real program, run as people run it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod bench;
mod bench_log;
mod bench_net;
mod bench_pacing;
mod bench_read;
mod bench_write;
mod cache;
mod cache_order;
mod damage;
mod dups;
mod dups_filters;
mod files;
mod generated;
mod helper;
mod log;
mod mistakes;
mod objects;
mod patch;
mod probe;
mod relay;
mod serving;
mod sum;
mod trees;
mod tune;
