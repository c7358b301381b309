//! Defines the content of a report: a header, and groups of files.

use std::path::PathBuf;

use super::header::Header;

/// The identity and the state of a file. If any field differs, the file was modified or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The device number (`st_dev`).
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The length, in bytes.
    pub bytes: u64,
    /// The modification time (`mtime`), in nanoseconds since 1970.
    pub modified_ns: i64,
    /// The status change time (`ctime`), in nanoseconds since 1970.
    pub changed_ns: i64,
}

/// A file of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The path.
    pub path: PathBuf,
    /// The identity and state at the time of the search; `None` if the report does not contain it.
    /// Only JSON reports written by haul contain identities.
    pub identity: Option<Identity>,
}

/// Files or directories with equal content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The length of each file or directory, in bytes.
    pub bytes: u64,
    /// The digest of each file or directory, in hexadecimal; zeros if no file had to be read.
    pub hash: String,
    /// The files or directories, at least one.
    pub members: Vec<Member>,
}

/// A report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The header.
    pub header: Header,
    /// The groups.
    pub groups: Vec<Group>,
}
