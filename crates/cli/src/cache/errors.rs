//! Prints errors as they occur, and counts them.

use std::error::Error as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use haul_disk::Error;
use haul_page_cache::{Files, FilesEvents};

use crate::args::FilesArgs;
use crate::report::{Failure, Result, chain, print_message};
use crate::units::Count;

/// A counter of the errors of a run.
#[derive(Debug, Default)]
pub(super) struct Errors(AtomicU64);

impl Errors {
    /// Finds the files that the command line names. Prints and counts errors.
    pub(super) fn find<'a>(&self, args: &'a FilesArgs) -> Files<'a> {
        Files::find(&args.paths, args.one_file_system, self)
    }

    /// Prints an error and counts it.
    pub(super) fn report(&self, text: &str) {
        self.count();
        print_message(text);
    }

    /// Counts an error that the caller printed.
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a failure if any error was counted.
    pub(super) fn result(&self) -> Result {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            count => Err(Failure::new(format!("skipped {}", Count(count, "path")))),
        }
    }
}

impl FilesEvents for Errors {
    fn failed(&self, error: haul_bulk_read::Error) {
        self.report(&error.to_string());
    }

    fn not_a_file(&self, path: &Path) {
        self.report(&format!("{} is not a file or directory", path.display()));
    }
}

/// Formats an error with its causes, in one line.
pub(super) fn error_text(error: &Error) -> String {
    chain(&error.to_string(), error.source())
}
