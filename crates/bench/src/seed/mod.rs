//! Repeats the experiments of the five texts on fast file access after which Haul was designed.
//!
//! Each module is one experiment, in the shape that its text describes. The report has the figures
//! of the text beside those of this machine. An experiment that another benchmark already measures
//! is a preset: a command line of this benchmark.
//!
//! # Sources
//! `docs/experiments.md` lists the experiments with the figures of the texts.

pub mod fill;
pub mod prefault;
pub mod pwrite;
pub mod readahead;
pub mod stdio;
mod thread_counts;
pub mod trace;

use std::path::Path;

use haul_disk::{Disk, OsDisk};
use haul_measure::{Error, Result};

use crate::report::Report;

/// Adds a note with figures of the text beside the ratios of the report that have these names.
fn compare(report: &mut Report, prefix: &str, figures: &[(&str, f64)]) {
    let here = |name: String| match report.ratios.get(&name) {
        Some(here) => format!("{:.2}", here.value),
        None => "not measured".to_owned(),
    };
    let one = |(name, text): &(&str, f64)| {
        let name = format!("{prefix}{name}");
        format!("{name} {text:.2}, {}", here(name.clone()))
    };
    let all: Vec<_> = figures.iter().map(one).collect();
    report.notes.push(format!("Figures of the text, then of this run: {}.", all.join("; ")));
}

/// Returns an error that names the missing space unless `bytes` bytes are free in `dir`.
fn require_space(dir: &Path, bytes: u64) -> Result<()> {
    let free = OsDisk::open(dir)?.free_bytes()?;
    match free {
        Some(free) if free < bytes => Err(Error::Missing(format!(
            "{} has {} MiB of free space, and the experiment needs {} MiB",
            dir.display(),
            free >> 20,
            bytes.div_ceil(1 << 20),
        ))),
        _ => Ok(()),
    }
}
