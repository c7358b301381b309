//! Why a bench ended without a report.

use std::io;

/// The result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a bench ended without a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It was told to stop.
    #[error("it was told to stop before it was done")]
    Cancelled,
    /// The disk refused what was to be measured.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
    /// Something around the measuring failed.
    #[error("cannot {what}")]
    Other {
        /// Completes "cannot".
        what: String,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// Something this machine lacks.
    #[error("{0}")]
    Missing(String),
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl Error {
    /// For `map_err`: `what` completes "cannot".
    pub fn other<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Other { what, source: source.into() }
    }
}
