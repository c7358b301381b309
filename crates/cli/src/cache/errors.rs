//! Prints errors as they occur, and counts them.

use std::error::Error as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use haul_disk::Error;
use haul_page_cache::{Files, FilesEvents};

use crate::args::FilesArgs;
use crate::report::{Exit, Failure, Result, chain, print_message};
use crate::units::Count;

/// A counter of the errors of a run.
#[derive(Debug)]
pub(super) struct Errors<'a> {
    args: &'a FilesArgs,
    count: AtomicU64,
    /// `true` if a path of the command line does not exist.
    missing: AtomicBool,
}

impl<'a> Errors<'a> {
    pub(super) fn new(args: &'a FilesArgs) -> Self {
        Self { args, count: AtomicU64::new(0), missing: AtomicBool::new(false) }
    }

    /// Finds the files that the command line names. Prints and counts errors.
    pub(super) fn find(&self) -> Files<'a> {
        Files::find(&self.args.paths, self.args.one_file_system, self)
    }

    /// Prints an error and counts it.
    pub(super) fn report(&self, text: &str) {
        self.count();
        print_message(text);
    }

    /// Counts an error that the caller printed.
    pub(super) fn count(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a failure if any error was counted.
    pub(super) fn result(&self) -> Result {
        let failure = match self.count.load(Ordering::Relaxed) {
            0 => return Ok(()),
            count => Failure::new(format!("skipped {}", Count(count, "path"))),
        };
        Err(match self.missing.load(Ordering::Relaxed) {
            true => failure.exit(Exit::NotStarted),
            false => failure,
        })
    }
}

impl FilesEvents for Errors<'_> {
    fn failed(&self, error: haul_bulk_read::Error) {
        if error.is_not_found() && self.args.paths.iter().any(|named| named == error.path()) {
            self.missing.store(true, Ordering::Relaxed);
        }
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
