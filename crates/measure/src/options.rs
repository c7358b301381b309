//! Defines the options and the fixed request lengths of a measurement.

use std::path::PathBuf;
use std::time::Duration;

use haul_disk::PAGE_BYTES;

/// The length of a write by a [`crate::Method`] or of a random read, in bytes.
pub const BLOCK_BYTES: usize = PAGE_BYTES;
/// The length of a sequential read or write, in bytes.
pub const LONG_BYTES: usize = 1 << 20;
/// The number of sequential requests in flight.
pub const LONG_DEPTH: usize = 4;

/// The options of [`crate::measure`]: the directory, and the amount of data and time.
#[derive(Debug, Clone)]
pub struct Options {
    /// The directory whose storage is measured.
    pub dir: PathBuf,
    /// The length of the scratch file in bytes, rounded up to [`LONG_BYTES`].
    pub bytes: u64,
    /// The number of rounds; each round measures every method and every depth once.
    pub rounds: usize,
    /// The measuring time of each method and of each depth in a round.
    pub time: Duration,
    /// The queue depths of random reads.
    pub depths: Vec<usize>,
}

impl Options {
    /// Returns the default options for `dir`, with which a measurement takes well under ten seconds
    /// on a solid-state disk.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            bytes: 256 << 20,
            rounds: 3,
            time: Duration::from_millis(80),
            depths: vec![1, 2, 4, 8, 16, 32, 64],
        }
    }
}
