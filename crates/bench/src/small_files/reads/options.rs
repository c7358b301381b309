//! Defines the options of the benchmark.

use std::path::PathBuf;
use std::time::Duration;

use haul_measure::Result;
use haul_units::parse_time;

use super::case::Case;
use crate::options::{count, rounds, size};

/// The length of the objects of which a range is read: long, but in volumes with default options.
pub(super) const RANGE_OBJECT_BYTES: u64 = 3 << 20;
/// The length of the range.
const RANGE_BYTES: u64 = 100;

/// Options of `haul bench small-files-get`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the test files, which needs four times the data size by default
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Lengths of the objects that are read whole
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "4KiB,16KiB")]
    #[arg(value_parser = object_bytes)]
    pub sizes: Vec<u64>,
    /// Bytes of the objects of each length, and of the file of the floor; 16MiB or more
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = data_bytes)]
    pub data_size: u64,
    /// Number of threads that read
    #[arg(long, value_name = "N", default_value = "32", value_parser = count(1..=1024))]
    pub threads: usize,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Maximum duration of one measurement
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    pub seconds: Duration,
}

impl Options {
    /// Returns the reads to measure: of whole objects, and of a range.
    pub(super) fn cases(&self) -> Vec<Case> {
        let whole = self.sizes.iter().map(|&bytes| Case { object_bytes: bytes, read_bytes: bytes });
        let range = Case { object_bytes: RANGE_OBJECT_BYTES, read_bytes: RANGE_BYTES };
        whole.chain([range]).collect()
    }
}

fn object_bytes(text: &str) -> Result<u64, String> {
    size(text, 64..=1 << 20, "64 B to 1MiB")
}

fn data_bytes(text: &str) -> Result<u64, String> {
    Ok(size(text, 16 << 20..=1 << 40, "16MiB to 1TiB")? >> 20 << 20)
}
