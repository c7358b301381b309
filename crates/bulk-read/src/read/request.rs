//! Defines read requests and their results.

use crate::tree::FileId;

/// A request to read a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadRequest {
    /// The file.
    pub file: FileId,
    /// The start of the range, as a byte offset in the file.
    pub offset: u64,
    /// The length of the range in bytes, cut at the end of the file; `u64::MAX` reads to the end.
    pub bytes: u64,
}

impl ReadRequest {
    /// Creates a request for the whole file.
    #[must_use]
    pub fn whole(file: FileId) -> Self {
        Self { file, offset: 0, bytes: u64::MAX }
    }
}

/// The status of a file, taken after it was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileStatus {
    /// The device number of the file's file system (`st_dev`).
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The length, in bytes. A request never reads beyond it, even if the file grows meanwhile.
    pub bytes: u64,
    /// The modification time (`mtime`), in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The status change time (`ctime`), in nanoseconds since 1970.
    pub changed_ns: i64,
    /// The number of hard links.
    pub links: u32,
    /// The bytes of the file that have blocks; `None` if the file system did not report it.
    pub allocated_bytes: Option<u64>,
}

/// The result of a completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadSummary {
    /// The number of bytes read.
    pub bytes: u64,
    /// `true` if the file grew after it was opened; the added bytes were not read. Growth is
    /// detected only by a request that extends to the end of the file.
    pub grew: bool,
}
