//! Defines the errors of imports from and exports to tar archives.

use std::io;

use haul_file_store::Error as StoreError;

use crate::error::ReadError;

/// An error that ends the import of an archive. The objects before it are stored.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// The archive cannot be read.
    #[error("cannot read the archive at byte {at}")]
    Read {
        /// The offset in the archive.
        at: u64,
        /// The reason.
        source: io::Error,
    },
    /// The archive has no end: its copy, or the program that writes it, was interrupted.
    #[error("the archive is truncated: it ends at byte {at}, before its end-of-archive mark")]
    Truncated {
        /// The length of the archive in bytes.
        at: u64,
    },
    /// The input is not an archive, or damaged.
    #[error("the archive is damaged at byte {at}: {what}")]
    Malformed {
        /// The offset of the header.
        at: u64,
        /// The rule that it violates.
        what: &'static str,
    },
    /// Data follows the end of the archive, such as another archive.
    #[error("data follows the end of the archive, at byte {at}: import it separately")]
    TrailingData {
        /// The offset of the first byte.
        at: u64,
    },
    /// The store failed. The error of the store states what to do.
    #[error("cannot store {key}")]
    Store {
        /// The key of the first object that was not stored.
        key: String,
        /// The reason.
        source: StoreError,
    },
}

/// The reason why a member of an archive was not imported.
#[derive(Debug, thiserror::Error)]
pub(super) enum MemberError {
    /// The path cannot be a key.
    #[error("{0}")]
    Name(&'static str),
    /// The content is a map and the parts that are not zero.
    #[error("sparse members are not supported: create the archive without --sparse")]
    Sparse,
    /// The member that a hard link refers to was not imported.
    #[error("hard link to \"{target}\", which is not in the bucket")]
    Link {
        /// The key that the link refers to.
        target: String,
    },
    /// The store refuses the object.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An error that ends an export. The archive is incomplete, and has no end-of-archive mark.
#[derive(Debug, thiserror::Error)]
pub enum TarExportError {
    /// The objects cannot be listed.
    #[error("cannot list the objects")]
    List(#[source] StoreError),
    /// The content of an object cannot be read, and part of it is in the archive.
    #[error("cannot export {key}")]
    Content {
        /// The key of the object.
        key: String,
        /// The reason.
        source: ReadError,
    },
    /// The archive cannot be written.
    #[error("cannot write the archive")]
    Write(#[from] io::Error),
    /// The caller requested a stop.
    #[error("interrupted")]
    Stopped,
}
