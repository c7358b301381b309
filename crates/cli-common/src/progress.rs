//! Shows the progress of long operations as a bar or as lines, and sums up the work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use haul_units::{Bytes, Count, Grouped, Time, per_second};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{print_message, try_print_message};

/// The fixed cost of processing a file, expressed as the number of bytes that are processed in the
/// same time. It keeps the estimated time realistic for small and empty files.
const FILE_COST_BYTES: u64 = 16 << 10;

/// The time between two lines about the progress.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The condition for showing progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShowProgress {
    /// If stderr is a terminal
    Auto,
    /// Always: as a bar on a terminal, otherwise as a line every 10 seconds
    True,
    /// Never
    False,
}

/// The times of lines about the progress, for operations whose stderr is no terminal.
#[derive(Debug)]
pub struct LineTimer {
    started: Instant,
    every: Duration,
    /// The time of the last line, in milliseconds after the start.
    last_ms: AtomicU64,
}

impl Default for LineTimer {
    fn default() -> Self {
        Self { started: Instant::now(), every: LINE_EVERY, last_ms: AtomicU64::new(0) }
    }
}

impl LineTimer {
    /// Returns `true` if the next line is due. Of several threads, one receives `true`.
    pub fn is_due(&self) -> bool {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now_ms, last_ms) = (ms(self.started.elapsed()), self.last_ms.load(Ordering::Relaxed));
        let (new, old) = (Ordering::Relaxed, Ordering::Relaxed);
        now_ms.saturating_sub(last_ms) >= ms(self.every)
            && self.last_ms.compare_exchange(last_ms, now_ms, new, old).is_ok()
    }
}

/// A number of items and their total size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// The number of items.
    pub things: u64,
    /// The total size of the items, in bytes.
    pub bytes: u64,
}

impl Amount {
    fn cost(self) -> u64 {
        self.things.saturating_mul(FILE_COST_BYTES).saturating_add(self.bytes)
    }
}

/// The progress of an operation, which several threads may update.
pub struct Progress {
    bar: ProgressBar,
    /// The times of lines, if they replace the bar.
    lines: Option<LineTimer>,
    started: Instant,
    noun: &'static str,
    all: Amount,
    /// `true` if files are searched, whose contents are not read.
    is_search: bool,
    things: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Creates the progress of a search for files.
    #[must_use]
    pub fn search(show: ShowProgress) -> Self {
        Self { is_search: true, ..Self::new(show, "file", Amount::default()) }
    }

    /// Creates a progress bar. `all` is the amount of work; if it is unknown, `all` is zero and a
    /// spinner replaces the bar. `noun` is the singular name of an item, such as "file".
    #[must_use]
    pub fn new(show: ShowProgress, noun: &'static str, all: Amount) -> Self {
        let target = match show {
            ShowProgress::False => ProgressDrawTarget::hidden(),
            ShowProgress::Auto | ShowProgress::True => ProgressDrawTarget::stderr(),
        };
        let lines = (show == ShowProgress::True && target.is_hidden()).then(LineTimer::default);
        Self::on(target, lines, noun, all)
    }

    fn on(
        target: ProgressDrawTarget,
        lines: Option<LineTimer>,
        noun: &'static str,
        all: Amount,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(Some(all.cost()), target);
        let template = match all.cost() {
            0 => "{spinner}  {msg}",
            _ => "{bar:24} {percent:>3} %  {msg}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (things, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        let started = Instant::now();
        Self { bar, lines, started, noun, all, is_search: false, things, bytes }
    }

    /// Counts one more item of `bytes`.
    pub fn add(&self, bytes: u64) {
        self.things.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.show(self.done());
    }

    /// Sets the amount done so far.
    pub fn set(&self, done: Amount) {
        self.things.store(done.things, Ordering::Relaxed);
        self.bytes.store(done.bytes, Ordering::Relaxed);
        self.show(done);
    }

    fn done(&self) -> Amount {
        Amount {
            things: self.things.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    fn show(&self, done: Amount) {
        if self.lines.as_ref().is_some_and(LineTimer::is_due) {
            try_print_message(&self.line(done));
        }
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_message(self.text(done));
        self.bar.set_position(done.cost());
    }

    /// Returns the amounts and the rate.
    fn text(&self, done: Amount) -> String {
        let (all, rate) = (self.all, per_second(done.bytes, self.started.elapsed()));
        let rate = Bytes(rate);
        let files = Count(done.things, self.noun);
        match all.cost() {
            _ if self.is_search => format!("finding files: {files}, {}", Bytes(done.bytes)),
            0 => format!("{files}, {}, {rate}/s", Bytes(done.bytes)),
            _ => format!(
                "{} of {}, {} of {}, {rate}/s",
                Grouped(done.things),
                Count(all.things, self.noun),
                Bytes(done.bytes),
                Bytes(all.bytes),
            ),
        }
    }

    /// Returns a line about the progress, for a stderr that is no terminal.
    fn line(&self, done: Amount) -> String {
        let text = self.text(done);
        match done.cost().saturating_mul(100).checked_div(self.all.cost()) {
            Some(percent) => format!("{} %  {text}", percent.min(100)),
            None => text,
        }
    }

    /// Prints a message to stderr, above the bar if one is shown.
    pub fn print_message(&self, text: &str) {
        self.bar.suspend(|| print_message(text));
    }

    /// Removes the bar, or prints the last line, and returns the summary.
    pub fn finish(self) -> Summary {
        self.bar.finish_and_clear();
        if self.lines.is_some() {
            try_print_message(&self.line(self.done()));
        }
        Summary { noun: self.noun, amount: self.done(), time: self.started.elapsed() }
    }
}

/// The amount of work done, and the time since the start.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    noun: &'static str,
    /// The amount done.
    pub amount: Amount,
    /// The time since the start.
    pub time: Duration,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { noun, amount: Amount { things, bytes }, time } = *self;
        let is_empty = things == 0;
        let things_rate = Count(per_second(things, time), noun);
        let bytes_rate = Bytes(per_second(bytes, time));
        let (things, bytes, time) = (Count(things, noun), Bytes(bytes), Time(time));
        write!(f, "{things} ({bytes}) in {time}")?;
        if is_empty { Ok(()) } else { write!(f, ": {things_rate}/s, {bytes_rate}/s") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_contains_rates() {
        let amount = Amount { things: 3000, bytes: 6 << 20 };
        let summary = Summary { noun: "file", amount, time: Duration::from_secs(2) };
        assert_eq!(summary.to_string(), "3,000 files (6 MiB) in 2.0 s: 1,500 files/s, 3 MiB/s");
    }

    #[test]
    fn counts_of_several_threads_add_up() {
        let all = Amount { things: 8, bytes: 8 };
        let progress = Progress::new(ShowProgress::Auto, "file", all);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| progress.add(1));
            }
        });
        assert_eq!(progress.finish().amount, Amount { things: 8, bytes: 8 });
    }

    #[test]
    fn line_has_the_percentage_if_the_amount_is_known() {
        let line = |all: Amount, done: Amount| {
            Progress::on(ProgressDrawTarget::hidden(), None, "file", all).line(done)
        };
        let amount = |things, bytes| Amount { things, bytes };
        let known = line(amount(4, 4 << 20), amount(1, 1 << 20));
        assert!(known.starts_with("25 %  1 of 4 files, 1 MiB of 4 MiB, "), "{known}");
        let more = line(amount(1, 0), amount(2, 0));
        assert!(more.starts_with("100 %  2 of 1 file"), "{more}");
        let unknown = line(Amount::default(), amount(7, 0));
        assert!(unknown.starts_with("7 files, 0 B, "), "{unknown}");
    }

    #[test]
    fn one_thread_prints_each_line() {
        let timer = LineTimer::default();
        assert!(!timer.is_due(), "the first line is due after {LINE_EVERY:?}");
        let timer = LineTimer { every: Duration::ZERO, ..LineTimer::default() };
        assert!(timer.is_due() && timer.is_due());
    }
}
