//! Shows the progress of measurements and benchmarks, and cancels them on a signal.

use haul_measure::Watcher;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{Exit, Result};
use crate::signals::Stop;

/// A progress bar on stderr, combined with the handling of termination signals.
pub struct Console {
    stop: Stop,
    bar: ProgressBar,
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
        Ok(Self { stop, bar })
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
    }
}
