//! The spinning disk as the kernel sees it, the disk in memory as an engine does.
#![expect(clippy::unwrap_used, reason = "helpers of tests, which may fail like them")]

mod files;
mod memory;
mod power;
mod program;
mod timing;

use haul_disk_sim::{Options, Parameters, SpinningDisk};

/// A disk that waits for nobody, or `None` after saying why there is none.
fn disk(bytes: u64) -> Option<SpinningDisk> {
    let mut options = Options::new(Parameters::travelstar_7k320(), bytes);
    options.time_scale = 0.0;
    start(&options)
}

fn start(options: &Options) -> Option<SpinningDisk> {
    SpinningDisk::start(options).map_err(|why| haul_test_image::skip(&why)).ok()
}
