//! Errors of searches and reports.

use std::io;
use std::path::PathBuf;

/// The result of a fallible operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation failed or a file was excluded from the result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name or path pattern is invalid.
    #[error("invalid pattern \"{pattern}\"")]
    Pattern {
        /// The pattern as given.
        pattern: String,
        /// The syntax error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A report is malformed or truncated.
    #[error("invalid report: {reason} (line {line})")]
    Report {
        /// The defect.
        reason: &'static str,
        /// The line number, from 1.
        line: usize,
    },
    /// A system call failed.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
    /// A file or directory could not be listed or read.
    #[error(transparent)]
    Read(#[from] haul_bulk_read::Error),
    /// Reading or writing a report failed.
    #[error("cannot {operation} the report")]
    Stream {
        /// "read" or "write".
        operation: &'static str,
        /// The I/O error.
        source: io::Error,
    },
    /// A file was modified or replaced during the search.
    #[error("{path} was modified during the search: skipped", path = .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The transform command is invalid or failed for a file.
    #[error("cannot transform {path}: {reason}", path = .path.display())]
    Transform {
        /// The file that was transformed. If the command is invalid: the text of the command.
        path: PathBuf,
        /// The error message.
        reason: String,
    },
}
