//! The description of a benchmark, from which its command line and its part of `haul bench all`
//! follow.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;
use haul_measure::{Error, Result, Watcher};

use crate::report::Report;

/// A benchmark; its fields are its command-line options.
pub trait Benchmark: Parser {
    /// The name of the subcommand, and of the report.
    const NAME: &'static str;

    /// Measures the competing methods in interleaved rounds.
    ///
    /// # Errors
    /// Returns an error if a method fails that is not a rival's, if root or a program is missing,
    /// and if `watcher` cancels the benchmark.
    fn run(&self, watcher: &dyn Watcher) -> Result<Report>;
}

/// Parses the options of a benchmark from words as on a command line.
pub(crate) fn parsed<B: Benchmark>(options: &str, dir: Option<&Path>) -> Result<B> {
    let words = ["haul bench"].into_iter().chain(options.split_whitespace()).map(OsString::from);
    let dir = dir.map(|dir| ["--dir".into(), dir.as_os_str().to_owned()]);
    let parsed = B::try_parse_from(words.chain(dir.into_iter().flatten()));
    parsed.map_err(|error| Error::Missing(format!("invalid options: {error}")))
}
