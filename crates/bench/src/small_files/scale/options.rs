//! Defines the options of the benchmark.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::named::named;
use crate::options::count;
use crate::small_files::fill::Loaders;

named! {
    /// The task of a child process.
    pub enum Role {
        /// To fill the store.
        Fill = "fill",
        /// To open the store.
        Open = "open",
        /// To open the store and to list its bucket.
        List = "list",
    }
}

/// Options of `haul bench small-files-scale`.
#[derive(Debug, Clone, clap::Parser)]
pub struct Options {
    /// Directory for the store, which needs about 400 bytes for each object, and 1 GiB
    #[arg(long, value_name = "DIR")]
    pub dir: PathBuf,
    /// Number of objects
    #[arg(long, value_name = "N", default_value = "4000000")]
    #[arg(value_parser = RangedU64ValueParser::<u64>::new().range(1000..=1_000_000_000))]
    pub objects: u64,
    /// Number of steps in which the objects are stored; the memory is measured after each
    #[arg(long, value_name = "N", default_value = "4", value_parser = count(2..=100))]
    pub steps: usize,
    /// Number of objects that a thread stores with one call; they share a sync
    #[arg(long, value_name = "N", default_value = "1000", value_parser = count(1..=1_000_000))]
    pub batch: usize,
    /// Number of threads that store the objects; each waits for its syncs [default: 2, or 128 with
    /// --batch 1]
    #[arg(long, value_name = "N", value_parser = count(1..=1024))]
    pub loaders: Option<usize>,
    /// Number of pages of the listing that begin at random keys
    #[arg(long, value_name = "N", default_value = "10000", value_parser = count(1..=10_000_000))]
    pub pages: usize,
    /// Be a child process with this task, with the store in DIR
    #[arg(long, value_name = "TASK", hide = true)]
    pub child: Option<Role>,
    /// The path of this program, which the benchmark starts as a child process.
    #[arg(skip)]
    pub program: PathBuf,
}

impl Options {
    /// Returns the threads that store the objects.
    pub(in crate::small_files) fn loaders(&self) -> Loaders {
        let threads = self.loaders.unwrap_or(if self.batch == 1 { 128 } else { 2 });
        Loaders { threads, batch: self.batch }
    }

    /// Returns the number of objects after each step.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        let steps = self.steps as u64;
        // The product is less than 2^64: at most 10^9 objects and 100 steps.
        (1..=steps).map(move |step| self.objects * step / steps)
    }
}
