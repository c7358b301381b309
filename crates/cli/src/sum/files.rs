//! Finds the files to hash, reads lists, and prints and counts errors.

use std::io::{IsTerminal, Read, stderr, stdout};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use haul_bulk_read::{
    CacheMode, Error, ReadOptions, ReadStats, SkipReason, Tree, WalkEvents, WalkOptions, walk,
};

use crate::args::SumArgs;
use crate::progress::{Amount, Progress};
use crate::report::{Exit, Failure, Result, print_message};
use crate::units::Count;

/// The path that stands for stdin.
pub(super) const STDIN: &str = "-";

/// Finds all files below `paths`, including hidden ones.
pub(super) fn find_files(paths: &[PathBuf], errors: &Errors) -> Tree {
    let options = WalkOptions { hidden: true, sort: true, ..WalkOptions::default() };
    walk(paths, &options, &Events { paths, errors })
}

pub(super) fn read_options(args: &SumArgs) -> ReadOptions<'static> {
    ReadOptions {
        cache: if args.spare_cache { CacheMode::Preserve } else { CacheMode::Normal },
        kind: args.disk_kind.map(Into::into),
        threads: args.threads.map(usize::from),
        ..ReadOptions::default()
    }
}

/// Returns the progress bar. The bar is hidden if stdout and stderr are terminals, because it would
/// mix with the printed results.
pub(super) fn progress(tree: &Tree) -> Progress {
    let bytes = tree.ids().map(|id| tree.meta(id).bytes).fold(0, u64::saturating_add);
    let all = Amount { things: tree.len() as u64, bytes };
    if stdout().is_terminal() && stderr().is_terminal() {
        Progress::hidden("file", all)
    } else {
        Progress::new("file", all)
    }
}

/// Prints how each disk was read, if the user requested verbose output.
pub(super) fn print_devices(stats: &ReadStats, verbose: u8) {
    for device in stats.devices.iter().filter(|_| verbose > 0) {
        print_message(&format!(
            "{}: {} ({}), {}, {} not cached before",
            device.name,
            device.kind,
            device.kind_source,
            Count(device.threads as u64, "thread"),
            Count(device.cold, "file"),
        ));
    }
}

/// Reads a whole list from a file or from stdin.
pub(super) fn read_text(path: &Path) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = if path == Path::new(STDIN) {
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    read.map_err(|error| {
        let message = format!("cannot read the list {}", path.display());
        Failure::new(message).because(error).exit(Exit::Failed)
    })
}

/// A receiver of the events of a walk that prints and counts errors.
struct Events<'a> {
    paths: &'a [PathBuf],
    errors: &'a Errors,
}

impl WalkEvents for Events<'_> {
    fn failed(&self, error: Error) {
        self.errors.count();
        print_message(&error.to_string());
    }

    fn skipped(&self, path: &Path, why: SkipReason) {
        // A special file is reported only if the user named it on the command line.
        if why == SkipReason::NotRegularFile && self.paths.iter().any(|named| named == path) {
            self.errors.count();
            print_message(&format!("skipped {}: not a file or directory", path.display()));
        }
    }
}

/// A counter of errors; each error is reported when it occurs.
#[derive(Debug, Default)]
pub(super) struct Errors(AtomicU64);

impl Errors {
    /// Prints an error above the progress bar and counts it.
    pub(super) fn report(&self, progress: &Progress, error: &Error) {
        self.count();
        progress.print_message(&error.to_string());
    }

    /// Counts an error that the caller printed.
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a failure if any error was counted.
    pub(super) fn result(&self) -> Result {
        if self.0.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(Failure::reported()) }
    }
}
