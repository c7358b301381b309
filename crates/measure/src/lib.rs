//! Measures the write latency, read rates and write rates of a storage device in a few seconds.
//!
//! # What it is
//! - [`measure`] times durable writes of a 4 KiB block by each [`Method`], random reads at each
//!   queue depth, and sequential reads and writes.
//! - [`write_rate`] measures the sequential write rate without latencies, and judges whether the
//!   disk rotates: enough to predict how long the kernel throttles writers.
//! - [`Latencies`] and [`Spread`] summarise samples; [`turns`] measures several candidates in turn,
//!   round by round, so that a device that slows down affects all of them alike.
//! - [`Watcher`] receives progress and can cancel a measurement.
//!
//! # Example
//! ```
//! # fn main() -> haul_measure::Result<()> {
//! use haul_measure::{RateOptions, Silent, write_rate};
//!
//! let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory on a disk");
//! let rate = write_rate(&RateOptions { bytes_max: 16 << 20, ..RateOptions::new(dir.path()) }, &Silent)?;
//! println!("{} MiB/s", rate.bytes_per_s() >> 20);
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//! - All I/O goes to unnamed scratch files, whose blocks the kernel frees even if the process is
//!   killed. The scratch file takes at most half of the free space in [`measure`], and an eighth in
//!   [`write_rate`].
//! - A figure that could not be measured is `None`, and a note or a field states the reason.
//!
//! # Cost
//! Measuring a latency costs one clock read before the call and one after it. A latency is stored
//! with a precision of 0.1 %.
//!
//! # What it is not
//! The crate does not compare programs; `haul-bench` does.
//!
//! # Sources
//! \[PgTestFsync\] for the kind of test, \[HdrHistogram\] for latencies.

mod error;
mod load;
mod method;
mod options;
mod random;
mod reads;
mod rounds;
mod scratch;
mod stats;
mod storage;
mod verdict;
mod watch;
mod write_rate;
mod writes;

pub use error::{Error, Result};
pub use load::{load, load_average};
pub use method::Method;
pub use options::{BLOCK_BYTES, LONG_BYTES, LONG_DEPTH, Options};
pub use reads::DepthRead;
pub use rounds::{Turn, shuffled_turns, turns};
pub use scratch::{noise, stamp};
pub use stats::{Latencies, Sample, Spread};
pub use storage::{Measured, measure};
pub use verdict::{Rotation, knee, rotation};
pub use watch::{Silent, Watcher};
pub use write_rate::{RateOptions, WriteRate, write_rate};
pub use writes::MethodWrite;
