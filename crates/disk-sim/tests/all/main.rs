//! Tests the spinning disk under a real kernel, and the disk in memory.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod files;
mod memory;
mod power;
mod program;
mod superblock;
mod timing;

use haul_disk_sim::{Options, Parameters, SpinningDisk};

/// Starts a disk at time scale 0, or skips the test.
fn disk(bytes: u64) -> Option<SpinningDisk> {
    let mut options = Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    start(&options)
}

fn start(options: &Options) -> Option<SpinningDisk> {
    SpinningDisk::start(options).map_err(|why| haul_testing::skip(&why)).ok()
}
