//! Shows the progress of measurements and benchmarks, and cancels them on a signal.

use std::cell::Cell;
use std::time::{Duration, Instant};

use haul_measure::Watcher;
use haul_units::Time;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{Exit, Result, try_print_message};
use crate::signals::Stop;

/// The shortest time between two lines about the progress, if stderr is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// A progress bar on stderr, or lines if stderr is no terminal, combined with the handling of
/// termination signals.
pub struct Console {
    stop: Stop,
    bar: ProgressBar,
    started: Instant,
    last_line: Cell<Instant>,
}

impl Console {
    /// Shows the bar and installs handlers of termination signals. `work` names the operation in
    /// the message that the first signal prints.
    pub fn new(work: &'static str) -> Result<Self> {
        let stop = Stop::on_signals(work)?;
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}, {eta} left")
        {
            bar.set_style(style);
        }
        let started = Instant::now();
        Ok(Self { stop, bar, started, last_line: Cell::new(started) })
    }

    /// Removes the bar. Returns the exit code if a signal requested a stop.
    pub fn finish(self) -> Option<Exit> {
        self.bar.finish_and_clear();
        self.stop.requested()
    }
}

impl Watcher for Console {
    fn is_cancelled(&self) -> bool {
        self.stop.requested().is_some()
    }

    fn step(&self, done: usize, of: usize, what: &str) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
        if self.bar.is_hidden() && self.last_line.get().elapsed() >= LINE_EVERY {
            self.last_line.set(Instant::now());
            try_print_message(&line(done, of, what, self.started.elapsed()));
        }
    }
}

/// Returns a line about the progress, with the time left if the elapsed time allows an estimate.
fn line(done: usize, of: usize, what: &str, elapsed: Duration) -> String {
    let percent = (done * 100).checked_div(of).unwrap_or(0);
    let left = elapsed.as_secs_f64() * (of as f64 / done as f64 - 1.0);
    match Duration::try_from_secs_f64(left.round()) {
        Ok(left) => format!("{percent} %  {what}, {} left", Time(left)),
        Err(_unknown) => format!("{percent} %  {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_estimates_the_time_left() {
        let seconds = Duration::from_secs;
        for (done, of, expected) in [
            (1, 4, "25 %  reads, 30.0 s left"),
            (4, 4, "100 %  reads, 0.0 s left"),
            (0, 4, "0 %  reads"),
            (0, 0, "0 %  reads"),
        ] {
            assert_eq!(line(done, of, "reads", seconds(10)), expected);
        }
    }
}
