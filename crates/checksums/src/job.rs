//! Defines a job of [`crate::hash()`]: a file and its hash function.

use haul_bulk_read::FileId;
use haul_bulk_read::digest::HashKind;

/// A file to hash, and its hash function.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The file, as identified in its [`haul_bulk_read::Tree`].
    pub file: FileId,
    /// The hash function.
    pub kind: HashKind,
}
