//! Defines the errors that end a measurement without a result.

use std::io;

/// The result of a measurement.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a measurement or benchmark ended without a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The [`crate::Watcher`] cancelled the measurement.
    #[error("cancelled before it was finished")]
    Cancelled,
    /// A file operation under measurement failed.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
    /// An operation other than the measured ones failed, such as starting a thread.
    #[error("cannot {what}")]
    Other {
        /// The action that failed; completes "cannot".
        what: String,
        /// The cause of the failure.
        #[source]
        source: io::Error,
    },
    /// The machine lacks something that the measurement needs, such as free space.
    #[error("{0}")]
    Missing(String),
}

impl Error {
    /// Returns a closure for `map_err` that makes an [`Error::Other`]. `what` names the action that
    /// failed and completes the sentence "cannot …".
    pub fn other<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Other { what, source: source.into() }
    }
}
