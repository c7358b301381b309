//! Tests the crate on the running kernel and on real file systems.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod counters;
mod dedupe;
mod extents;
mod fill;
mod holes;
mod leases;
mod map;
mod names;
mod pacing;
mod page_cache;
mod per_call;
mod probe;
mod ring;
mod simulated;
mod writeback;

use haul_testing::disk_dir;
