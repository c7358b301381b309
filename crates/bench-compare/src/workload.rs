//! Defines the workload for which a rival (a library that is compared with Haul) is opened, and the
//! choice of the rival's settings.

use std::path::Path;

use haul_bench::log::{Contender, Failure};

/// The settings of a rival.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tuning {
    /// The defaults of the library.
    Default,
    /// Recycled log files, as the library's documentation recommends for durable appends.
    Recycling,
}

/// The workload for which a rival is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Workload<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) writers: usize,
}

/// A function that opens a rival for a workload.
pub(crate) type Open = fn(Workload<'_>) -> Result<Box<dyn Contender>, Failure>;
