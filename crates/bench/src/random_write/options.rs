//! Defines the command-line options of the benchmark of random writes.

use std::path::PathBuf;
use std::str::FromStr;

use haul_measure::Result;
use haul_units::parse_bytes;

use super::method::{Cell, Index, Method, cells};
use super::records::Shape;
use crate::options::{count, file_size, rounds, size_in};
use crate::simulated::Drive;

/// A simulated drive; `None` for the argument `none`.
#[derive(Debug, Clone)]
pub struct DriveOrNone(pub(crate) Option<Drive>);

impl FromStr for DriveOrNone {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "none" => Ok(Self(None)),
            name => Drive::from_str(name)
                .map(|drive| Self(Some(drive)))
                .map_err(|expected| format!("{expected}, none")),
        }
    }
}

/// The benchmark `random-write`, and its options.
#[derive(Debug, Clone, clap::Parser)]
pub struct RandomWriteBench {
    /// Directory on a real disk to measure too; some GiB must be free
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Models of the simulated drives to measure, or "none"
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "deskstar-7k1000.c")]
    pub drive: Vec<DriveOrNone>,
    /// Methods: random, random-direct, random-mapped, sorted, sorted-direct, sorted-mapped,
    /// sorted-merged
    ///
    /// random writes in arrival order, sorted in offset order, both with pwrite; -direct adds
    /// O_DIRECT, and -mapped writes through mmap and syncs with msync. sorted-merged uses Haul's
    /// sorted writer, which also merges adjacent records.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "random,random-direct,sorted,sorted-direct,sorted-merged")]
    pub ways: Vec<Method>,
    /// Shapes of the records: records (100 to 4,096 B at any offset), pages (whole pages)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "records,pages")]
    pub shapes: Vec<Shape>,
    /// Length of each record of the shape records, 1 B to 4KiB [default: 100 to 4,096 B]
    #[arg(long, value_name = "SIZE", value_parser = size_in(1..=4096, "1 B to 4KiB"))]
    pub record_size: Option<u64>,
    /// Maximum number of records to write in one measurement
    #[arg(long, value_name = "N", default_value = "20000", value_parser = count(1..=100_000_000))]
    pub records: usize,
    /// Numbers of records between two syncs; if above --records, one sync at the end
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,1000,1000000")]
    #[arg(value_parser = count(1..=100_000_000))]
    pub batches: Vec<usize>,
    /// Maximum number of batches to write in one measurement
    ///
    /// A batch is the records between two syncs. Short batches all cost the same, so that a limited
    /// number of them is sufficient.
    #[arg(long, value_name = "N", default_value = "1000", value_parser = count(1..=100_000_000))]
    pub batches_max: usize,
    /// Length of the file that records are written to; zeros take no memory
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = file_size)]
    pub file_size: u64,
    /// Entries of an index: no, mixed (each after its record), apart (those of a batch after its
    /// records), alone (without records), in-memory (once, after all batches)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "no,mixed")]
    pub index: Vec<Index>,
    /// Length of the index, which gets an entry of 64 B per record; 0: no index
    #[arg(long, value_name = "SIZE", default_value = "4MiB", value_parser = parse_bytes)]
    pub index_size: u64,
    /// Number of interleaved rounds
    #[arg(long, value_name = "N", default_value = "5", value_parser = rounds())]
    pub rounds: usize,
    /// Directory for the sparse images of simulated disks [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub image_dir: Option<PathBuf>,
    /// Memory that the benchmark may use, page cache included; needs root and the memory cgroup
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
}

impl RandomWriteBench {
    /// Returns the cells of a shape. Only [`Shape::Records`] is also measured with an index.
    pub(super) fn cells(&self, shape: Shape) -> Vec<Cell> {
        let with_index = self.index_size > 0 && shape == Shape::Records;
        let indexes = if with_index { &self.index[..] } else { &[Index::None] };
        cells(shape, &self.ways, &self.batches, indexes)
    }
}
