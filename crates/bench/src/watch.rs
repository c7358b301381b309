//! How a bench speaks with whoever runs it.

use crate::error::{Error, Result};

/// Hears how far a bench is, and tells it to stop. All of it may be left as it is.
pub trait Watcher {
    /// Whether the bench shall clean up and end; asked often, so it must be cheap.
    fn is_cancelled(&self) -> bool {
        false
    }

    /// `done` of `of` steps are done, and `what` is next.
    fn step(&self, done: usize, of: usize, what: &str) {
        let (_, _, _) = (done, of, what);
    }

    /// `?` on this ends a bench that was told to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when it was.
    fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// Hears nothing and never says stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Watcher for Silent {}
