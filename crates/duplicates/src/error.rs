//! What can go wrong.

use std::io;
use std::path::PathBuf;

/// The result of what can fail as a whole.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be done, or a file not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A pattern that is none.
    #[error("cannot understand the pattern \"{pattern}\"")]
    Pattern {
        /// As it was given.
        pattern: String,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A report that is none, or is not whole.
    #[error("cannot read the report: {what} (line {line})")]
    Report {
        /// What is wrong with it.
        what: &'static str,
        /// Where, counted from 1.
        line: usize,
    },
    /// The kernel refused.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
    /// A file or directory could not be listed or read.
    #[error(transparent)]
    Read(#[from] haul_bulk_read::Error),
    /// Reading or writing a report failed.
    #[error("cannot {what} the report")]
    Stream {
        /// "read" or "write".
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A file is not the one it was when it was found.
    #[error("{path} changed under way; it is left out", path = .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A command given to transform files failed on one.
    #[error("cannot transform {path}: {what}", path = .path.display())]
    Transform {
        /// The file.
        path: PathBuf,
        /// What the command did instead.
        what: String,
    },
    /// What the file of kept digests says cannot be trusted; it is made anew.
    #[error("{path} is damaged: {what}; it is made anew", path = .path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
}
