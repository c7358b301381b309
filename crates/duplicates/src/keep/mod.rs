//! Selects which files of a group of equal files to keep and which to drop. Files that count as one
//! copy, such as the hard links of an inode, form a replica and are kept or dropped together.

mod plan;

use std::path::PathBuf;

pub use plan::{Choice, choose};

use crate::pattern::Pattern;
use crate::report::{Identity, Timestamp};

/// The order in which redundant files are dropped. The names of the priorities are those of
/// fclones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Drops files listed first in the report.
    Top,
    /// Drops files listed last in the report; the default.
    Bottom,
    /// Drops the most recently created files.
    Newest,
    /// Drops the least recently created files.
    Oldest,
    /// Drops files with the latest `mtime`.
    MostRecentlyModified,
    /// Drops files with the earliest `mtime`.
    LeastRecentlyModified,
    /// Drops files with the latest `atime`.
    MostRecentlyAccessed,
    /// Drops files with the earliest `atime`.
    LeastRecentlyAccessed,
    /// Drops files with the latest `ctime`.
    MostRecentStatusChange,
    /// Drops files with the earliest `ctime`.
    LeastRecentStatusChange,
    /// Drops files with the deepest path.
    MostNested,
    /// Drops files with the shallowest path.
    LeastNested,
}

/// Patterns of names and paths. A file is selected if any pattern matches.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Patterns of file names.
    pub names: Vec<Pattern>,
    /// Patterns of full paths.
    pub paths: Vec<Pattern>,
}

/// The rules that select the files to keep. By default the first file of each group is kept.
#[derive(Debug, Clone)]
pub struct Rules {
    /// The number of replicas to keep, at least 1.
    pub keep_count: usize,
    /// The order in which files are dropped; a later priority decides among files that all earlier
    /// priorities treat as equal.
    pub priorities: Vec<Priority>,
    /// The files that are always kept.
    pub keep: Selection,
    /// The directories below which all files are kept.
    pub keep_roots: Vec<PathBuf>,
    /// The files that may be dropped. Without patterns, any file may be dropped.
    pub drop: Selection,
    /// Directories. All files below one of them count as one replica: they are kept or dropped
    /// together.
    pub isolate: Vec<PathBuf>,
    /// `true` to count each hard link as a replica; `false` to count all links to a file as one.
    pub match_links: bool,
    /// If set, a group is skipped if any of its files was modified after this time.
    pub modified_before: Option<Timestamp>,
    /// `true` to skip a group if the length of any of its files differs from the report.
    pub check_bytes: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            keep_count: 1,
            priorities: Vec::new(),
            keep: Selection::default(),
            keep_roots: Vec::new(),
            drop: Selection::default(),
            isolate: Vec::new(),
            match_links: false,
            modified_before: None,
            check_bytes: true,
        }
    }
}

/// The owner and the mode of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The user ID of the owner.
    pub user: u32,
    /// The group ID.
    pub group: u32,
    /// The permission bits of the mode.
    pub mode: u32,
}

/// The properties of a file that the rules use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInfo {
    /// The path.
    pub path: PathBuf,
    /// The identity of the file in its current state.
    pub identity: Identity,
    /// The creation time, in nanoseconds since 1970; `None` if the file system does not record it.
    pub created_ns: Option<i64>,
    /// The access time (`atime`), in nanoseconds since 1970.
    pub accessed_ns: i64,
    /// The owner and the mode.
    pub permissions: Permissions,
    /// `true` for a symbolic link, which is never dropped and does not count as a kept copy.
    pub is_link: bool,
}
