//! A bench at a terminal: a bar on stderr, and Ctrl-C.

use haul_bench::Watcher;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::{Exit, Result};
use crate::signals::Stop;

/// Shows how far a bench is, and hears signals.
pub(crate) struct Console {
    stop: Stop,
    bar: ProgressBar,
}

impl Console {
    /// Begins; the first signal says that `work` is finished now.
    pub(crate) fn new(work: &'static str) -> Result<Self> {
        let stop = Stop::on_signals(work)?;
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        if let Ok(style) =
            ProgressStyle::with_template("{bar:24} {percent:>3} %  {msg}, {eta} left")
        {
            bar.set_style(style);
        }
        Ok(Self { stop, bar })
    }

    /// Removes the bar, and tells how the program ends if it was asked to stop.
    pub(crate) fn finish(self) -> Option<Exit> {
        self.bar.finish_and_clear();
        self.stop.asked()
    }
}

impl Watcher for Console {
    fn is_cancelled(&self) -> bool {
        self.stop.asked().is_some()
    }

    fn step(&self, done: usize, of: usize, what: &str) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(what.to_owned());
    }
}
