//! Defines the command-line options of the benchmark of read orders.

use haul_measure::Result;

use crate::options::{count, rounds, size, size_in};
use crate::simulated::Drive;

/// The benchmark `read-order`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct ReadOrderBench {
    /// Models of the simulated drives; each is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "travelstar-7k320,deskstar-7k1000.c")]
    pub drive: Vec<Drive>,
    /// Size of the simulated disk, 1GiB or more; only written blocks take memory
    #[arg(long, value_name = "SIZE", default_value = "16GiB")]
    #[arg(value_parser = size_in(1 << 30..=u64::MAX, "1GiB or more"))]
    pub disk_size: u64,
    /// Number of files in the tree
    #[arg(long, value_name = "N", default_value = "2000", value_parser = count(10..=1_000_000))]
    pub files: usize,
    /// Number of directories in the tree
    #[arg(long, value_name = "N", default_value = "40", value_parser = count(1..=1000))]
    pub dirs: usize,
    /// Number of times that half of the files are replaced, which ages the tree
    ///
    /// With 0, the tree is fresh: no file is replaced.
    #[arg(long, value_name = "N", default_value = "6", value_parser = count(0..=100))]
    pub replacements: usize,
    /// Length below which all files are, a power of two from 2KiB to 16MiB
    ///
    /// The files have lengths from 1KiB on; each power of two is equally frequent.
    #[arg(long, value_name = "SIZE", default_value = "128KiB", value_parser = longest)]
    pub longest: u64,
    /// Numbers of threads that read; each number is measured separately
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,4")]
    #[arg(value_parser = count(1..=1024))]
    pub threads: Vec<usize>,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
}

fn longest(text: &str) -> Result<u64, String> {
    let expected = "a power of two from 2KiB to 16MiB";
    let bytes = size(text, 2 << 10..=16 << 20, expected)?;
    if bytes.is_power_of_two() { Ok(bytes) } else { Err(format!("expected {expected}")) }
}
