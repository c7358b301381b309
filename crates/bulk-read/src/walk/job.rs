//! Defines the jobs that the threads of a walk share: directories to list.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::ignore_rules::IgnoreRules;
use crate::tree::DirId;

/// The maximum number of directories that are kept open, so that subdirectories can be opened
/// relative to their parents. When the limit is reached, further subdirectories are opened by full
/// path.
const OPEN_DIRS_MAX: usize = 128;

/// A directory to list, and the properties that it inherits from its root and its parent.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) dir: DirId,
    pub(super) root: u32,
    /// The depth of the directory below its root.
    pub(super) depth: usize,
    /// The device number of the root's file system.
    pub(super) device: u64,
    /// The parent directory, if it is kept open, and the name of this directory in it.
    pub(super) parent: Option<(Arc<OpenDir>, CString)>,
    pub(super) rules: Option<Arc<IgnoreRules>>,
    pub(super) follow: bool,
}

impl Job {
    pub(super) fn root(dir: DirId, root: u32, device: u64) -> Self {
        Self { dir, root, depth: 0, device, parent: None, rules: None, follow: true }
    }
}

/// A directory kept open for its subdirectories.
#[derive(Debug)]
pub(super) struct OpenDir {
    pub(super) dir: OwnedFd,
    count: Arc<AtomicUsize>,
}

impl OpenDir {
    /// Keeps `dir` open; returns `None` and closes it if the limit is reached.
    pub(super) fn new(dir: OwnedFd, count: &Arc<AtomicUsize>) -> Option<Arc<Self>> {
        if count.fetch_add(1, Ordering::Relaxed) < OPEN_DIRS_MAX {
            Some(Arc::new(Self { dir, count: Arc::clone(count) }))
        } else {
            count.fetch_sub(1, Ordering::Relaxed);
            None
        }
    }
}

impl Drop for OpenDir {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}
