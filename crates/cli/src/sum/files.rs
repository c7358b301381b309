//! Finds the files to hash, reads lists, and prints and counts errors.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use haul_bulk_read::{
    CacheMode, Error, ReadOptions, ReadStats, SkipReason, Tree, WalkEvents, WalkOptions, walk,
};

use crate::args::SumArgs;
use crate::progress::{Amount, Progress, ShowProgress};
use crate::report::{Exit, Failure, OrFail, Result, print_message};
use crate::units::Count;

/// The path that stands for stdin.
pub(super) const STDIN: &str = "-";

/// Finds all files below `paths`, including hidden ones.
pub(super) fn find_files(args: &SumArgs, paths: &[PathBuf], errors: &Errors) -> Tree {
    let options = WalkOptions { hidden: true, sort: true, ..WalkOptions::default() };
    let progress = Progress::search(show_progress(args));
    let events = Events { args, paths, errors, progress: &progress };
    let tree = walk(paths, &options, &events);
    progress.set(amount_of(&tree));
    progress.finish();
    tree
}

/// Returns the condition for showing progress.
pub(super) fn show_progress(args: &SumArgs) -> ShowProgress {
    if args.status { ShowProgress::False } else { args.progress.show }
}

pub(super) fn read_options(args: &SumArgs) -> ReadOptions<'static> {
    ReadOptions {
        cache: if args.spare_cache { CacheMode::Preserve } else { CacheMode::Normal },
        kind: args.disk_kind.map(Into::into),
        threads: args.threads.map(usize::from),
        ..ReadOptions::default()
    }
}

/// Returns the progress of reading all files of `tree`.
pub(super) fn progress(show: ShowProgress, tree: &Tree) -> Progress {
    Progress::new(show, "file", amount_of(tree))
}

fn amount_of(tree: &Tree) -> Amount {
    let bytes = tree.ids().map(|id| tree.meta(id).bytes).fold(0, u64::saturating_add);
    Amount { things: tree.len() as u64, bytes }
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
    read.or_not_start(|| format!("cannot read the list {}", path.display()))
}

/// A receiver of the events of a walk that prints and counts errors.
struct Events<'a> {
    args: &'a SumArgs,
    paths: &'a [PathBuf],
    errors: &'a Errors,
    progress: &'a Progress,
}

impl WalkEvents for Events<'_> {
    fn failed(&self, error: Error) {
        // A path of a list may have been removed since; a path of the command line must exist.
        if error.is_not_found() && self.args.paths.iter().any(|named| named == error.path()) {
            self.errors.missing.store(true, Ordering::Relaxed);
        }
        self.errors.report(self.progress, &error);
    }

    fn progress(&self, files: u64, bytes: u64) {
        self.progress.set(Amount { things: files, bytes });
    }

    fn skipped(&self, path: &Path, why: SkipReason) {
        // A special file is reported only if the user named it on the command line.
        if why == SkipReason::NotRegularFile && self.paths.iter().any(|named| named == path) {
            self.errors.count();
            let message = format!("skipped {}: not a file or directory", path.display());
            self.progress.print_message(&message);
        }
    }
}

/// A counter of errors; each error is reported when it occurs.
#[derive(Debug, Default)]
pub(super) struct Errors {
    count: AtomicU64,
    /// `true` if a path of the command line does not exist.
    missing: AtomicBool,
}

impl Errors {
    /// Prints an error above the progress bar and counts it.
    pub(super) fn report(&self, progress: &Progress, error: &Error) {
        self.count();
        progress.print_message(&error.to_string());
    }

    /// Counts an error that the caller printed.
    pub(super) fn count(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a failure if any error was counted.
    pub(super) fn result(&self) -> Result {
        match (self.count.load(Ordering::Relaxed), self.missing.load(Ordering::Relaxed)) {
            (0, _) => Ok(()),
            (_, false) => Err(Failure::reported()),
            (_, true) => Err(Failure::reported().exit(Exit::NotStarted)),
        }
    }
}
