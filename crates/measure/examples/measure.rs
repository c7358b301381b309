//! Measures the sequential write rate of the disk of a directory (the current one by default).
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use haul_measure::{RateOptions, Silent, write_rate};

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    let options = RateOptions { bytes_max: 16 << 20, ..RateOptions::new(dir) };
    let rate = write_rate(&options, &Silent)?; // into an unnamed file
    println!("{} MiB/s", rate.bytes_per_s() >> 20);
    Ok(())
}
