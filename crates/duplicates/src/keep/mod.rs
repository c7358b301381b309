//! Which files of a group are kept, and which are done something about.

mod plan;

use std::path::PathBuf;

pub use plan::{Choice, choose};

use crate::pattern::Pattern;
use crate::report::{Identity, Moment};

/// What goes first when there are more files than are to be kept: the names are fclones'.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Priority {
    /// Files higher up in the report.
    Top,
    /// Files lower down in the report; this is so without any priority.
    Bottom,
    /// Files made last.
    Newest,
    /// Files made first.
    Oldest,
    /// Files whose bytes changed last.
    MostRecentlyModified,
    /// Files whose bytes did not change for the longest time.
    LeastRecentlyModified,
    /// Files read last.
    MostRecentlyAccessed,
    /// Files not read for the longest time.
    LeastRecentlyAccessed,
    /// Files of which anything changed last.
    MostRecentStatusChange,
    /// Files of which nothing changed for the longest time.
    LeastRecentStatusChange,
    /// Files deeper down in the tree.
    MostNested,
    /// Files higher up in the tree.
    LeastNested,
}

/// Names and paths, any of which a file may match.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// For the last part of the path.
    pub names: Vec<Pattern>,
    /// For the whole path.
    pub paths: Vec<Pattern>,
}

/// How it is decided. The default keeps the first file of each group.
#[derive(Debug, Clone)]
pub struct Rules {
    /// How many replicas are kept; at least one is in any case.
    pub keep_count: usize,
    /// What goes first; the first of them counts most.
    pub priorities: Vec<Priority>,
    /// What is always kept.
    pub keep: Selection,
    /// Below these directories everything is kept.
    pub keep_roots: Vec<PathBuf>,
    /// Only this may go; everything, when it is empty.
    pub drop: Selection,
    /// What is below one of these directories counts as one replica, and goes or stays together.
    pub isolate: Vec<PathBuf>,
    /// Each hard link counts as a replica; otherwise all of a file's are one.
    pub match_links: bool,
    /// Groups in which a file was modified later are left alone.
    pub modified_before: Option<Moment>,
    /// Files of another length than the report says are left alone.
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

/// What is known of a file when it is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Where it is.
    pub path: PathBuf,
    /// Who it is.
    pub identity: Identity,
    /// When it was made, in nanoseconds since 1970; not every file system knows.
    pub created_ns: Option<i64>,
    /// When it was last read.
    pub accessed_ns: i64,
    /// It is a symbolic link: it is left alone, and never what is kept of a content.
    pub is_link: bool,
}
