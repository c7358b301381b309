//! Defines log errors, each with the action that the caller should take.

use std::path::PathBuf;
use std::sync::Arc;

use haul_disk::error_chain;

/// The result of a log operation.
pub type Result<T> = std::result::Result<T, Error>;

/// The error of a log operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk has no space for another segment. Free space, then retry: the record was not
    /// appended, and the log still works.
    #[error("cannot create another segment of the log: {}", error_chain(source))]
    Full {
        /// The error that occurred when the log tried to create the segment.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// The disk rejects the file for another segment, for a reason other than lack of space. Remove
    /// the cause, then retry: the record was not appended, and the log still works.
    #[error("cannot create another segment of the log: {}", error_chain(source))]
    NoSegment {
        /// The last attempt's error. After repeated failures the log retries at most once a second.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// An earlier write or sync failed, and the log accepts no more records. Close the log and open
    /// it again: only recovery can determine which unacknowledged records are durable.
    #[error("the log stopped after a failed write or sync: {}", error_chain(source))]
    Latched {
        /// The error of the write or sync.
        #[source]
        source: Arc<haul_disk::Error>,
    },
    /// The storage returned bytes that differ from those that were written. Restore the file from a
    /// backup, or open the log with [`crate::OnDamage::Report`].
    #[error("damaged bytes in {} at offset {offset}: {what}", file.display())]
    Damaged {
        /// The damaged file.
        file: PathBuf,
        /// The damaged bytes' offset in the file.
        offset: u64,
        /// The check that failed.
        what: String,
    },
    /// The file has an unsupported format. Use a version of this program that supports the format,
    /// or another directory.
    #[error("{} is not a segment this version can read: {what}", file.display())]
    UnsupportedFormat {
        /// The file whose format is unsupported.
        file: PathBuf,
        /// The reason why the file cannot be read.
        what: String,
    },
    /// The log is already open for writing. Wait until the holder closes it, or use
    /// [`crate::Log::open_read_only`].
    #[error("{} is in use by {holder}", dir.display())]
    InUse {
        /// The log directory.
        dir: PathBuf,
        /// The process that holds the lock, with its process id if known.
        holder: String,
    },
    /// Another process removed this segment while the log was read. Call
    /// [`crate::Log::open_read_only`] again.
    #[error("{} was removed by the writer of the log while it was read", file.display())]
    SegmentRemoved {
        /// The segment's file, which was removed or reused for another segment.
        file: PathBuf,
    },
    /// The payload is longer than a segment can hold, or than 256 MiB: split it, or increase
    /// [`crate::Options::segment_bytes`].
    #[error("a record of {bytes} bytes is longer than the maximum of {bytes_max} bytes")]
    TooLong {
        /// The payload length in bytes.
        bytes: u64,
        /// The maximum payload length in bytes.
        bytes_max: u64,
    },
    /// An argument or a call is invalid: correct the program.
    #[error("{0}")]
    Invalid(&'static str),
    /// A system call on a log file or directory failed.
    #[error(transparent)]
    Disk(#[from] haul_disk::Error),
}

#[cfg(test)]
mod tests {
    use haul_disk::{Error as DiskError, Op};

    use super::*;

    #[test]
    fn errors_contain_the_innermost_cause_once() {
        let disk = || DiskError::new(Op::Sync, "/log/1", std::io::Error::other("the cause"));
        let damaged =
            || Error::Damaged { file: "/log/1".into(), offset: 8, what: "the cause".into() };
        for error in [
            Error::Full { source: Arc::new(disk()) },
            Error::NoSegment { source: Arc::new(disk()) },
            Error::Latched { source: Arc::new(disk()) },
            damaged(),
            Error::UnsupportedFormat { file: "/log/1".into(), what: "the cause".into() },
            Error::InUse { dir: "/log".into(), holder: "the cause".into() },
            Error::Invalid("the cause"),
            Error::Disk(disk()),
        ] {
            let text = error_chain(&error);
            assert_eq!(text.matches("the cause").count(), 1, "{text}");
        }
    }
}
