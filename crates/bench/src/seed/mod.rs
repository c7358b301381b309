//! Repeats the experiments of the five texts on fast file access after which Haul was designed.
//!
//! Each module is one experiment, in the shape that its text describes. The report has the figures
//! of the text beside those of this machine. An experiment that another benchmark already measures
//! is a preset: a command line of this benchmark.
//!
//! # Sources
//! `docs/experiments.md` lists the experiments with the figures of the texts.

pub mod direct;
pub mod fiemap;
pub mod fill;
pub mod gain;
pub mod journal;
pub mod prefault;
mod presets;
pub mod pwrite;
pub mod readahead;
mod simulated;
pub mod splice;
pub mod stdio;
mod thread_counts;
pub mod trace;
pub mod writeback;

use std::path::Path;

use clap::Parser;
use haul_disk::{Disk, OsDisk};
use haul_measure::{Error, Result};

use crate::report::Report;

pub use presets::{crossover, order, stall, threads};
pub use simulated::{haystack, index, mmap, sorted};

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

/// Returns the options of another benchmark from its command line, and from a directory.
fn preset<O: Parser>(line: &str, dir: Option<&Path>) -> Result<O> {
    let words = line.split_whitespace().map(Into::into);
    let dir = dir.into_iter().flat_map(|dir| ["--dir".into(), dir.as_os_str().to_owned()]);
    O::try_parse_from(words.chain(dir)).map_err(|error| {
        Error::Missing(format!("haul bench {line} is not a valid command: {error}"))
    })
}

/// Returns the report of a preset under the name of its experiment, with the command line `line`
/// and the figures of the text in its notes.
fn present(mut report: Report, name: &str, line: &str, figures: &[(&str, f64)]) -> Report {
    name.clone_into(&mut report.bench);
    report.notes.push(format!("The same as: haul bench {line}"));
    if !figures.is_empty() {
        compare(&mut report, "", figures);
    }
    report
}
