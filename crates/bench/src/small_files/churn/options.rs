//! Defines the options of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use haul_units::parse_time;

use super::pattern::Pattern;
use crate::options::{count, rounds, size};
use crate::write_modes::VirtualDisk;

/// Options of `haul bench small-files-churn`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the images of the file systems; needs root
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// File systems to create in image files: ext4, ext4-nojournal, xfs, btrfs
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ext4")]
    pub virtual_disk: Vec<VirtualDisk>,
    /// Size of an image
    #[arg(long, value_name = "SIZE", default_value = "1536MiB", value_parser = disk_bytes)]
    pub disk_size: u64,
    /// Size of a volume of the store; its share of the disk decides how much can be reclaimed
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = volume_bytes)]
    pub volume: u64,
    /// Percentages of the usable space that live objects take
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "60,75,85")]
    #[arg(value_parser = count(1..=99))]
    pub live: Vec<usize>,
    /// Choice of the objects to overwrite: uniform, or zipf (exponent 0.99)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "uniform,zipf")]
    pub patterns: Vec<Pattern>,
    /// Length of an object
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = object_bytes)]
    pub object: u64,
    /// Number of threads that store objects; one more reads
    #[arg(long, value_name = "N", default_value = "16", value_parser = count(1..=1024))]
    pub writers: usize,
    /// Overwrite until this many times the usable space was stored
    #[arg(long, value_name = "N", default_value = "2", value_parser = count(1..=1_000_000))]
    pub times: usize,
    /// Overwrite for at most this time
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    pub seconds: Duration,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "1", value_parser = rounds())]
    pub rounds: usize,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value = "1")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new())]
    pub seed: u64,
}

fn disk_bytes(text: &str) -> Result<u64, String> {
    Ok(size(text, 64 << 20..=1 << 40, "64MiB to 1TiB")? >> 20 << 20)
}

fn volume_bytes(text: &str) -> Result<u64, String> {
    Ok(size(text, 4 << 20..=2 << 30, "4MiB to 2GiB")? >> 20 << 20)
}

fn object_bytes(text: &str) -> Result<u64, String> {
    size(text, 16..=1 << 20, "16 B to 1MiB")
}
