//! Measures ways of doing a job beside each other, and tells it with its circumstances.
//!
//! # What it is
//! - [`Report`] holds what a bench found, and writes it as a table for a terminal, as Markdown for
//!   pages, and as JSON for programs; [`Host`] is the circumstances it was found in.
//! - [`turns`] orders rounds so that drift of the machine hits every way alike; [`Spread`] and
//!   [`Latencies`] sum up what came out.
//! - [`write_modes`] measures ways of writing records durably, with every request to the device on
//!   somebody's account.
//! - [`pacing`] writes bulk data in several ways beside writers who want to be quick.
//! - [`random_read`] and [`sequential_read`] read one file, by many readers or from end to end.
//! - [`direct_or_cached`] and [`app_cache`] find out what the page cache is good for, with little
//!   memory.
//! - [`read_order`] reads a tree on a simulated spinning disk, in one order after the other.
//! - [`random_write`] writes records to random places in batches, sorted or not, and durable pages.
//! - [`mod@log`] drives a log, ours or another's, and measures it beside the raw disk.
//! - [`duplicates`] runs `haul dups` beside the tools others search duplicates with.
//! - [`files`] serves files over HTTP, and [`relay`] relays connections, beside others who do: each
//!   on one core, asked from another.
//! - [`storage`] finds out in a few seconds what a storage is good at.
//! - [`Watcher`] is how a bench tells how far it is, and hears that it shall stop.
//!
//! # Example
//! ```
//! use haul_bench::{Column, Host, Report, Row, Spread, Value, turns};
//!
//! const COLUMNS: &[Column] =
//!     &[Column::text("way", "way"), Column::number("records_per_s", "records/s", 0)];
//!
//! let ways = ["one", "two"];
//! let mut rates = vec![Vec::new(); ways.len()];
//! for turn in turns(5, ways.len()) {
//!     rates[turn.which].push(100.0 * (turn.which + 1) as f64); // measure here
//! }
//! let mut report = Report::new("example", Host::here(), COLUMNS, "records_per_s");
//! for (way, rates) in ways.iter().zip(&rates) {
//!     let median = Spread::of(rates).map(|spread| spread.median);
//!     report.rows.push(Row::new("", "", vec![(*way).into(), Value::from(median)]));
//! }
//! report.ratios.insert("two_vs_one".into(), 2.0);
//! println!("{}", report.table(80));
//! assert!(report.json().contains("\"two_vs_one\": 2.0"));
//! ```
//!
//! # Promises
//! - Nothing is printed, and nothing invented: what could not be measured has no number.
//! - A report names processor, memory, kernel, file system with its options, and device.
//! - What a bench makes (files, file systems, tracing instances) is gone when it ends, however it
//!   ends: the kernel takes back what hangs on a descriptor, and a process beside it removes names
//!   and ends servers.
//!
//! # Cost
//! A latency costs one look at the clock before and one after; it is kept in 0.1 % steps.
//!
//! # What it is not
//! No load generator for anybody's server: its load is for the servers it starts. And no judge:
//! which rules a figure has to obey is in `docs/measuring.md`.
//!
//! # Sources
//! \[HdrHistogram\] for latencies, \[Ftrace\] for who asked a device for what.

mod aging;
pub mod app_cache;
pub mod direct_or_cached;
pub mod duplicates;
mod error;
pub mod files;
mod guardian;
mod host;
mod host_facts;
pub mod log;
mod memory_limit;
mod net;
pub mod pacing;
mod places;
pub mod random_read;
pub mod random_write;
pub mod read_order;
mod reads;
pub mod relay;
mod report;
mod rounds;
pub mod sequential_read;
mod setting;
mod stats;
pub mod storage;
mod table;
mod test_file;
mod trace;
mod watch;
pub mod write_modes;

pub use error::{Error, Result};
pub use host::{Host, StorageFacts};
pub use report::{Column, Report, Row, Value};
pub use rounds::{Turn, turns};
pub use stats::{Latencies, Spread};
pub use watch::{Silent, Watcher};
