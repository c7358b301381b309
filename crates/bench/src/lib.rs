//! Measures competing methods side by side, and reports the results and the machine.
//!
//! # Overview
//! - [`Report`] holds the results, and formats them as a table for a terminal, as Markdown and as
//!   JSON. [`Host`] describes the machine.
//! - [`turns`] orders the measurements of all rounds so that a drift of the machine affects all
//!   methods alike; [`Spread`] and [`Latencies`] summarize the results of the rounds.
//! - [`write_modes`] writes durable records, and counts the writes to the device by data, journal
//!   and metadata.
//! - [`pacing`] measures the latency of small writes while bulk data is written.
//! - [`file_read`] reads one file, at random offsets or sequentially.
//! - [`page_cache`] measures reads through the page cache, and reads that bypass it, with limited
//!   memory.
//! - [`power_cuts`] cuts the power of a simulated disk, and counts the records that survive.
//! - [`read_order`] reads a tree on a simulated spinning disk in several orders.
//! - [`random_write`] writes batches of records at random offsets.
//! - [`mod@log`] drives the append log and other logs, and compares them with durable writes to a
//!   plain file.
//! - [`small_files`] stores small files durably, in a file store, in files and in databases, and
//!   reads them.
//! - [`mod@splice`] relays a file to a socket by `splice` and by copies.
//! - [`duplicates`] runs `haul dups` and other duplicate finders.
//! - [`files`] measures HTTP file servers, [`serve`] and [`s3`] measure `haul serve`, alone and
//!   beside other S3 servers, and [`relay`] measures relays: each server runs on one core, with the
//!   load generator wrk or warp on another.
//! - [`all`] runs the benchmarks of disks within minutes, and judges published claims;
//!   [`compare`] compares the ratios of two reports.
//! - [`Watcher`] receives progress and cancels a benchmark.
//!
//! # Example
//! ```
//! use haul_bench::{Column, Host, Ratio, Report, Row, Samples, Spread, Value, turns};
//!
//! const COLUMNS: &[Column] =
//!     &[Column::text("method", "method"), Column::number("records_per_s", "records/s", 0)];
//!
//! let methods = ["one", "two"];
//! let mut rates = vec![Vec::new(); methods.len()];
//! for turn in turns(5, methods.len()) {
//!     rates[turn.which].push(100.0 * (turn.which + 1) as f64); // measure here
//! }
//! let mut report = Report::new("example", Host::here(), COLUMNS);
//! for (method, rates) in methods.iter().zip(&rates) {
//!     let median = Spread::of(rates).map(|spread| spread.median);
//!     report.rows.push(Row::new("", "", vec![(*method).into(), Value::from(median)]));
//! }
//! let [one, two] = [0, 1].map(|which| Samples::new(methods[which], rates[which].clone()));
//! report.ratio("two_vs_one", Ratio::of(two, one));
//! println!("{}", report.table(80));
//! assert_eq!(report.ratios["two_vs_one"].value, 2.0);
//! ```
//!
//! # Promises
//! - The library prints nothing. A figure that could not be measured is reported as missing, never
//!   as a number.
//! - A report names the processor, the memory, the kernel, the file system with its options, and
//!   the device.
//! - When a benchmark ends, its files, file systems and tracing instances are removed, its servers
//!   are stopped, and changed kernel settings are restored. After a kill, the kernel and a child
//!   process do the same, but the directories of [`mod@log`], [`files`], [`serve`], [`s3`], [`relay`]
//!   and [`duplicates`] remain.
//!
//! # Cost
//! Each measured latency costs two readings of the clock. Latencies are recorded with three
//! significant digits.
//!
//! # Limits
//! `docs/measuring.md` has the rules for published figures.
//!
//! # Sources
//! \[HdrHistogram\] on recording latencies, \[Ftrace\] on attributing requests to tasks.

mod aging;
pub mod all;
mod benchmark;
pub mod compare;
mod contest;
pub mod duplicates;
pub mod file_read;
pub mod files;
mod fio;
mod guardian;
mod host;
pub mod log;
mod memory_limit;
mod named;
mod net;
pub mod options;
pub mod pacing;
pub mod page_cache;
pub mod power_cuts;
pub mod random_write;
pub mod read_order;
mod reads;
pub mod relay;
mod report;
pub mod s3;
pub mod serve;
mod setting;
mod simulated;
pub mod small_files;
pub mod splice;
mod test_file;
mod trace;
pub mod write_modes;

pub use benchmark::Benchmark;
pub use haul_measure::{Error, Latencies, Result, Silent, Spread, Turn, Watcher, turns};
pub use host::{Host, StorageFacts};
pub use net::programs::find as find_program;
pub use report::{Circumstances, Column, Ratio, Report, Row, Samples, Value, Verdict};
