//! Shows the progress of long operations as a bar if stderr is a terminal, and sums up the work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use haul_units::{Bytes, Count, Grouped, Time, per_second};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::print_message;

/// The fixed cost of processing a file, expressed as the number of bytes that are processed in the
/// same time. It keeps the estimated time realistic for small and empty files.
const FILE_COST_BYTES: u64 = 16 << 10;

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
    started: Instant,
    noun: &'static str,
    all: Amount,
    things: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Creates a progress bar. `all` is the amount of work; if it is unknown, `all` is zero and a
    /// spinner replaces the bar. `noun` is the singular name of an item, such as "file".
    #[must_use]
    pub fn new(noun: &'static str, all: Amount) -> Self {
        Self::on(ProgressDrawTarget::stderr(), noun, all)
    }

    /// Creates a `Progress` without a bar, for operations that print results to the terminal: a bar
    /// would mix with the results.
    #[must_use]
    pub fn hidden(noun: &'static str, all: Amount) -> Self {
        Self::on(ProgressDrawTarget::hidden(), noun, all)
    }

    fn on(target: ProgressDrawTarget, noun: &'static str, all: Amount) -> Self {
        let bar = ProgressBar::with_draw_target(Some(all.cost()), target);
        let template = match all.cost() {
            0 => "{spinner}  {msg}",
            _ => "{bar:24} {percent:>3} %  {msg}, {eta} left",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        let (things, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { bar, started: Instant::now(), noun, all, things, bytes }
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
        if self.bar.is_hidden() {
            return;
        }
        let (all, rate) = (self.all, per_second(done.bytes, self.started.elapsed()));
        let rate = Bytes(rate);
        self.bar.set_message(match all.cost() {
            0 => format!("{}, {}, {rate}/s", Count(done.things, self.noun), Bytes(done.bytes)),
            _ => format!(
                "{} of {}, {} of {}, {rate}/s",
                Grouped(done.things),
                Count(all.things, self.noun),
                Bytes(done.bytes),
                Bytes(all.bytes),
            ),
        });
        self.bar.set_position(done.cost());
    }

    /// Prints a message to stderr, above the bar if one is shown.
    pub fn print_message(&self, text: &str) {
        self.bar.suspend(|| print_message(text));
    }

    /// Removes the bar and returns the summary.
    pub fn finish(self) -> Summary {
        self.bar.finish_and_clear();
        Summary { noun: self.noun, amount: self.done(), time: self.started.elapsed() }
    }
}

/// The amount of work done, and the time since the start.
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    noun: &'static str,
    /// The amount done.
    pub amount: Amount,
    time: Duration,
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
        let progress = Progress::new("file", Amount { things: 8, bytes: 8 });
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| progress.add(1));
            }
        });
        assert_eq!(progress.finish().amount, Amount { things: 8, bytes: 8 });
    }
}
