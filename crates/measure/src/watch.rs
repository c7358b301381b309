//! Reports the progress of a measurement to its caller, which can cancel the measurement.

use crate::error::{Error, Result};

/// A receiver of the progress of a measurement, which may cancel the measurement. The default
/// methods ignore progress and never cancel.
pub trait Watcher {
    /// Returns `true` once the measurement should clean up and end. Measurements call this often,
    /// so an implementation must be cheap.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// Reports that `done` of `of` steps are finished, and that the step `what` begins.
    fn step(&self, done: usize, of: usize, what: &str) {
        let (_, _, _) = (done, of, what);
    }

    /// Fails once the measurement is cancelled, so that callers can write `check()?`.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// A watcher that ignores progress and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Watcher for Silent {}

/// The watcher of a measurement, and the number of steps of the measurement.
pub(crate) struct Steps<'a> {
    pub(crate) watcher: &'a dyn Watcher,
    pub(crate) of: usize,
}

impl Steps<'_> {
    pub(crate) fn at(&self, done: usize, what: &str) -> Result<()> {
        self.watcher.check()?;
        self.watcher.step(done, self.of, what);
        Ok(())
    }
}
