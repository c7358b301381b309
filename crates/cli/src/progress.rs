//! How far long work is: a bar on stderr when that is a terminal, nothing otherwise.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::say;
use crate::units::{Bytes, Count, Grouped, Time, per_second};

/// What a file costs beside its bytes, so that the time left is right for empty files too.
const FILE_COST_BYTES: u64 = 16 << 10;

/// So many things of so many bytes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) things: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    fn cost(self) -> u64 {
        self.things.saturating_mul(FILE_COST_BYTES).saturating_add(self.bytes)
    }
}

/// Work under way, counted from any thread.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    noun: &'static str,
    all: Amount,
    things: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Work on `all` of what `noun` names; on nobody knows how much where that is nothing.
    pub(crate) fn new(noun: &'static str, all: Amount) -> Self {
        Self::on(ProgressDrawTarget::stderr(), noun, all)
    }

    /// The same without a bar: the terminal is needed for something else.
    pub(crate) fn hidden(noun: &'static str, all: Amount) -> Self {
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

    /// One more thing of `bytes` is done.
    pub(crate) fn add(&self, bytes: u64) {
        self.things.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.show(self.done());
    }

    /// A thing that takes long enough for its bytes to be counted as they are done.
    pub(crate) fn part(&self) -> Part<'_> {
        Part { progress: self, bytes: 0 }
    }

    /// So much is done altogether.
    pub(crate) fn set(&self, done: Amount) {
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

    /// A message on stderr, above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| say(text));
    }

    /// Removes the bar, and tells what was done and how long it took.
    pub(crate) fn finish(self) -> Done {
        self.bar.finish_and_clear();
        Done { noun: self.noun, amount: self.done(), time: self.started.elapsed() }
    }
}

/// A thing under way. Dropped before it is finished, it counts for nothing.
pub(crate) struct Part<'a> {
    progress: &'a Progress,
    bytes: u64,
}

impl Part<'_> {
    /// So many more of its bytes are done.
    pub(crate) fn more(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        self.progress.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.progress.show(self.progress.done());
    }

    /// All of it is done.
    pub(crate) fn finish(mut self) {
        self.bytes = 0;
        self.progress.add(0);
    }
}

impl Drop for Part<'_> {
    fn drop(&mut self) {
        self.progress.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What was done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    noun: &'static str,
    pub(crate) amount: Amount,
    time: Duration,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { noun, amount: Amount { things, bytes }, time } = *self;
        let amount_is_nothing = things == 0;
        let things_rate = Count(per_second(things, time), noun);
        let bytes_rate = Bytes(per_second(bytes, time));
        let (things, bytes, time) = (Count(things, noun), Bytes(bytes), Time(time));
        write!(f, "{things} ({bytes}) in {time}")?;
        if amount_is_nothing { Ok(()) } else { write!(f, ": {things_rate}/s, {bytes_rate}/s") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_done_is_told_with_its_rates() {
        let amount = Amount { things: 3000, bytes: 6 << 20 };
        let done = Done { noun: "file", amount, time: Duration::from_secs(2) };
        assert_eq!(done.to_string(), "3,000 files (6 MiB) in 2.0 s: 1,500 files/s, 3 MiB/s");
    }

    #[test]
    fn what_is_not_finished_counts_for_nothing() {
        let progress = Progress::new("file", Amount { things: 2, bytes: 30 });
        let (mut good, mut bad) = (progress.part(), progress.part());
        good.more(5);
        bad.more(10);
        good.more(5);
        good.finish();
        drop(bad);
        assert_eq!(progress.finish().amount, Amount { things: 1, bytes: 10 });
    }

    #[test]
    fn what_is_counted_on_several_threads_adds_up() {
        let progress = Progress::new("file", Amount { things: 8, bytes: 8 });
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| progress.add(1));
            }
        });
        assert_eq!(progress.finish().amount, Amount { things: 8, bytes: 8 });
    }
}
