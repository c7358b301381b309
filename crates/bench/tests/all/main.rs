//! Short runs of the benchmarks on real file systems.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests, which may fail like them"
)]

mod experiments;
mod pacing;
mod power_cuts;
mod read_order;
mod reports;
mod write_modes;

use haul_testing::disk_dir;
