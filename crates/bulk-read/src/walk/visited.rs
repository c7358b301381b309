//! Records which directories and roots a walk has visited.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

/// The device and inode number, which identify a file or directory independent of its path.
pub(super) type Identity = (u64, u64);

/// The directories and roots visited so far.
#[derive(Debug, Default)]
pub(super) struct Visited {
    dirs: HashSet<Identity>,
    /// The roots that are files: the identity of the file's directory, and the name of the file in
    /// it.
    root_files: HashSet<(Identity, CString)>,
    has_root_files: bool,
}

impl Visited {
    /// Inserts a directory; returns `true` if it is new. A directory without an inode number (0)
    /// cannot be recognized and always counts as new.
    pub(super) fn insert_dir(&mut self, dir: Identity) -> bool {
        dir.1 == 0 || self.dirs.insert(dir)
    }

    /// `true` if any root is a file.
    pub(super) fn has_root_files(&self) -> bool {
        self.has_root_files
    }

    /// `true` if the file `name` in `dir` is itself a root.
    pub(super) fn is_root_file(&self, dir: Identity, name: &CStr) -> bool {
        self.root_files.contains(&(dir, name.to_owned()))
    }

    /// Inserts a root that is a file; returns `true` if it is new.
    pub(super) fn insert_root_file(&mut self, dir: Identity, name: &CStr) -> bool {
        self.has_root_files = true;
        self.root_files.insert((dir, name.to_owned()))
    }
}
