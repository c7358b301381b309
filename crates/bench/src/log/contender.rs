//! Defines the interface through which the benchmark drives a log.

use std::error::Error as StdError;
use std::io;

use haul_measure::Error;

/// The error of a contender.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// Converts a failure to an error that states what could not be done. An error of a watcher, which
/// cancels, stays what it is.
pub(crate) fn failed(what: impl Into<String>) -> impl FnOnce(Failure) -> Error {
    let what = what.into();
    move |failure| match failure.downcast::<Error>() {
        Ok(error) => *error,
        Err(failure) => Error::other(what)(io::Error::other(failure)),
    }
}

/// A log under test. Several threads call its methods concurrently, except [`Contender::warm_up`].
pub trait Contender: Sync {
    /// Appends `record`. `writer` is the number of the calling thread, from 0; each writer makes
    /// one call at a time.
    ///
    /// # Errors
    /// Any error of the log; an error ends the measurement.
    ///
    /// # Durability
    /// When this call returns, the record survives a power cut.
    fn append(&self, writer: usize, record: &[u8]) -> Result<(), Failure>;

    /// Brings the log to its steady state, in which the log writes only to files that were written
    /// before. Called once, before any append.
    ///
    /// # Errors
    /// Any error of the log.
    fn warm_up(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Performs maintenance, such as removing segments (files of the log) after a checkpoint. A
    /// separate thread calls this up to 200 times per second.
    ///
    /// # Errors
    /// Any error of the log.
    fn housekeep(&self) -> Result<(), Failure> {
        Ok(())
    }
}
