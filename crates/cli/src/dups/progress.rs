//! Shows the progress of a search for duplicates, and prints and counts its errors.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use haul_bulk_read::SkipReason;
use haul_duplicates::{Error, Events, Phase};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Name;
use crate::progress::{LineTimer, ShowProgress};
use crate::report::{Exit, Failure, Result, chain, print_message, try_print_message};
use crate::units::{Bytes, Count};

/// A receiver of events that shows a progress bar for each phase and prints errors above the bar.
pub(super) struct Watch {
    show: ShowProgress,
    bar: Mutex<ProgressBar>,
    phase: Mutex<Phase>,
    /// The times of lines, which replace the bar if stderr is no terminal.
    lines: LineTimer,
    /// The paths that the command line names.
    named: Vec<PathBuf>,
    failures: AtomicU64,
    /// The number of errors of paths that the command line names.
    missing: AtomicU64,
}

impl Watch {
    pub(super) fn new(show: ShowProgress, named: &[PathBuf]) -> Self {
        Self {
            show,
            bar: Mutex::new(ProgressBar::hidden()),
            phase: Mutex::new(Phase::Walking),
            lines: LineTimer::default(),
            named: named.to_vec(),
            failures: AtomicU64::new(0),
            missing: AtomicU64::new(0),
        }
    }

    /// Removes the bar. Fails if a file could not be processed.
    pub(super) fn finish(self) -> Result {
        self.bar().finish_and_clear();
        match (self.failures.into_inner(), self.missing.into_inner()) {
            (0, _) => Ok(()),
            (_, 0) => Err(Failure::reported()),
            _ => Err(Failure::reported().exit(Exit::NotStarted)),
        }
    }

    fn bar(&self) -> ProgressBar {
        // A poisoned lock is harmless: the bar is consistent even if a thread panicked.
        self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    pub(super) fn print(&self, text: &str) {
        self.bar().suspend(|| print_message(&Name(text).to_string()));
    }
}

fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Walking => "finding files",
        Phase::Sampling => "reading small files and samples of big ones",
        Phase::Reading => "comparing remaining candidates",
        Phase::Transforming => "transforming files",
        Phase::Hashing => "reading blocks",
        Phase::Sharing => "sharing blocks",
    }
}

impl Events for Watch {
    fn failed(&self, error: Error) {
        self.failures.fetch_add(1, Ordering::Relaxed);
        if let Error::Read(missing) = &error
            && missing.is_not_found()
            && self.named.iter().any(|named| named == missing.path())
        {
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
        self.print(&chain(&error.to_string(), std::error::Error::source(&error)));
    }

    fn phase(&self, phase: Phase, things: u64, bytes: u64) {
        self.bar().finish_and_clear();
        let bar = match (self.show, phase) {
            (ShowProgress::False, _) => ProgressBar::hidden(),
            (_, Phase::Walking) => ProgressBar::no_length(),
            (_, Phase::Transforming) => ProgressBar::new(things),
            _ => ProgressBar::new(bytes),
        };
        let template = match phase {
            Phase::Walking => "{spinner} {prefix}: {msg}",
            _ => "{bar:24} {percent:>3} %  {prefix}: {msg}, {eta} left",
        };
        if self.show != ShowProgress::False {
            bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(words(phase));
        bar.enable_steady_tick(Duration::from_millis(200));
        if self.show == ShowProgress::True && bar.is_hidden() {
            print_message(words(phase));
        }
        *self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = phase;
        *self.bar.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = bar;
    }

    fn progress(&self, things: u64, bytes: u64) {
        let bar = self.bar();
        let is_hidden = bar.is_hidden();
        if is_hidden && !(self.show == ShowProgress::True && self.lines.is_due()) {
            return;
        }
        let phase = *self.phase.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let noun = if phase == Phase::Sharing { "range" } else { "file" };
        let done = format!("{}, {}", Count(things, noun), Bytes(bytes));
        if is_hidden {
            try_print_message(&format!("{}: {done}", words(phase)));
            return;
        }
        bar.set_message(done);
        bar.set_position(if phase == Phase::Transforming { things } else { bytes });
    }

    fn skipped(&self, path: &Path, why: SkipReason) {
        let why = match why {
            SkipReason::NotRegularFile => "not a regular file",
            SkipReason::AlreadyVisited => "already visited",
            SkipReason::DanglingLink => "a dangling symbolic link",
            SkipReason::LengthUnknown => "its length is unknown",
            _ => "skipped",
        };
        tracing::debug!("{} is {why}", path.display());
    }
}
